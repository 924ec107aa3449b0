"""R12: contents made to break their reader. Each ends within its limits with an error of its own,
in the cage, while other calls are answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from core.execution.cage.process import ProcessCage
from core.observation import Observation
from tests.executors.pathological import mute_tls_server, pathological_server
from tests.executors.web_server import WebServer
from tests.support.run_executor import (
    TREE,
    SimpleProgram,
    call_document,
    read_program,
    read_sdk,
)

# What a call may need at most here; the manifest's own time is three minutes for twenty pages.
CALL_S = 25.0
# What is known to end with the call's time need not have all of it.
ENDLESS_S = {"slow_drip": 8.0}
PATIENCE_S = 10.0

# Content → the errors that are honest about it; None: it is read after all, within the limits.
CONTENTS: dict[str, set[str | None]] = {
    "gzip_of_zeros": {"too_large"},
    "comments": {None, "unsupported", "timeout", "resource_limit"},
    "nested": {None, "unsupported", "timeout", "resource_limit"},
    "one_line": {None, "too_large"},
    "attributes": {None, "unsupported", "timeout", "resource_limit"},
    "entities": {None, "timeout", "resource_limit"},
    "zip_as_page": {None, "unsupported"},
    "endless_text": {"too_large"},
    "slow_drip": {"timeout"},
    "huge_headers": {"network"},
    "wrong_length": {"network"},
    "mute_tls": {"timeout"},
}


def impatient(name: str) -> tuple[SimpleProgram, ProcessCage]:
    """`read_urls_html` as it is, with less time for a server that says nothing."""
    program = read_program(TREE / "read_urls_html")
    manifest = replace(program.manifest, timeout_s=ENDLESS_S.get(name, CALL_S))
    return SimpleProgram(manifest, program.files), ProcessCage(max_parallel=3)


@asynccontextmanager
async def others(cage: ProcessCage) -> AsyncIterator[list[float]]:
    """How long other calls took meanwhile, one after the other, in seconds."""
    clock = read_program(TREE / "get_now")
    took: list[float] = []
    answered = asyncio.Event()

    async def ask() -> None:
        while True:
            start = time.monotonic()
            seen = await cage.run(clock, read_sdk(), call_document("get_now", {}))
            assert seen.ok
            took.append(time.monotonic() - start)
            answered.set()
            await asyncio.sleep(0.05)

    asking = asyncio.create_task(ask())
    try:
        yield took
        async with asyncio.timeout(60):  # the one that was asked meanwhile is answered, too
            await answered.wait()
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def read(program: SimpleProgram, cage: ProcessCage, url: str) -> Observation:
    document = call_document("read_urls_html", {"urls": [url]}, private_hosts=("127.0.0.1",))
    return await cage.run(program, read_sdk(), document)


@pytest.fixture(scope="module")
def server():
    with pathological_server() as running:
        yield running


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", CONTENTS)
async def test_pathological_content_ends_within_limits_while_others_are_answered(
    server: WebServer, name: str
):
    program, cage = impatient(name)
    with mute_tls_server() as mute:
        url = f"https://127.0.0.1:{mute}/" if name == "mute_tls" else server.url(f"/{name}")
        async with others(cage) as took:
            start = time.monotonic()
            seen = await read(program, cage, url)
            spent = time.monotonic() - start

    code = seen.error.code.value if seen.error else None
    assert took
    middle, worst = sorted(took)[len(took) // 2], max(took)
    print(
        f"R12: {name}: {code or 'read'} in {spent:.1f} s; {len(took)} other calls,"
        f" median {middle * 1000:.0f} ms, worst {worst * 1000:.0f} ms"
    )
    assert code in CONTENTS[name]
    # The figures are printed; what is asserted holds whatever else this machine does meanwhile.
    assert spent < CALL_S + 20
    assert middle < PATIENCE_S


def test_pathological_contents_are_at_least_twelve():
    assert len(CONTENTS) >= 12
