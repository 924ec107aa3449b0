"""What a caged call costs, beside what it is made of: a bare fork of an equal process, a plain
`python -I -S` that does nothing, and a call without a cage, all in the same run and by turns.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

from core.execution.cage.preloading import PRELOADED, light_packages
from core.execution.cage.process import ProcessCage
from core.execution.cage.status import cage_status
from tests.bench.figures import spread, times
from tests.support.run_executor import (
    TREE,
    SimpleManifest,
    SimpleProgram,
    call_document,
    read_program,
    read_sdk,
)

TRIVIAL = SimpleProgram(
    SimpleManifest("get_now"), {"main.py": b"def run(call):\n    return {'ok': True}\n"}
)
HEAVY = SimpleProgram(
    SimpleManifest("read_urls_html", requires=("trafilatura",)),
    {"main.py": b"import trafilatura\ndef run(call):\n    return {'ok': True}\n"},
)
FORK = """
import os, sys, time
sys.path.extend({site!r})
for name in {names!r}:
    try:
        __import__(name)
    except ImportError:
        pass
while sys.stdin.readline():
    started = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    print(time.perf_counter() - started, flush=True)
"""


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Milliseconds of each, the first calls (which wait for their zygote) apart, and what the
    zygotes weigh."""
    program = FORK.format(names=PRELOADED, site=list(light_packages().site_dirs))
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program], stdin=PIPE, stdout=PIPE, text=True
    ) as equal:
        return asyncio.run(_measure(times(60), lambda: _fork(equal)))


def _fork(equal: subprocess.Popen[str]) -> float:
    assert equal.stdin is not None
    assert equal.stdout is not None
    equal.stdin.write("\n")
    equal.stdin.flush()
    return float(equal.stdout.readline())


async def _measure(repeat: int, fork: Callable[[], float]) -> dict[str, Any]:
    cage, plain, sdk = ProcessCage(), ProcessCage(unsafe=True), read_sdk()

    async def forked() -> float:
        return fork()

    async def spawned() -> float:
        started = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)  # noqa: ASYNC221
        return time.perf_counter() - started

    def calling(
        one: ProcessCage, program: Any, at_once: int = 1
    ) -> Callable[[], Awaitable[float]]:
        async def once() -> None:
            seen = await one.run(program, sdk, call_document(program.manifest.name, {}))
            if not seen.ok:
                raise RuntimeError(f"{program.manifest.name} failed: {seen.error}")

        async def call() -> float:
            started = time.perf_counter()
            await asyncio.gather(*(once() for _ in range(at_once)))
            return time.perf_counter() - started

        return call

    ways = {
        "fork_of_an_equal_process": forked,
        "bare_interpreter": spawned,
        "uncaged": calling(plain, TRIVIAL),
        "trivial": calling(cage, TRIVIAL),
        "get_now": calling(cage, read_program(TREE / "get_now")),
        "trafilatura": calling(cage, HEAVY),
        "eight_at_once": calling(cage, TRIVIAL, at_once=8),
    }
    first = {name: round(await way() * 1000, 1) for name, way in ways.items()}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeat):
        for name, way in ways.items():
            spent[name].append(await way())
    weights = [_resident(pid) for pid in cage.zygote_pids]
    cage.close()
    bare, trivial = (
        statistics.median(spent[name]) * 1000 for name in ("fork_of_an_equal_process", "trivial")
    )
    return {
        "cage": cage_status().available,
        **{name: spread(values) for name, values in spent.items()},
        "trivial": spread(spent["trivial"], budget_median_ms=8),
        "trivial_over_the_fork_ms": round(trivial - bare, 2),
        # Steadier than medians on a machine that does other things too.
        "least_ms": {name: round(min(values) * 1000, 2) for name, values in spent.items()},
        "first_call_light_ms": first["trivial"],
        "first_call_heavy_ms": first["trafilatura"],
        "zygotes_mb": dict(zip(("light", "heavy"), weights, strict=False)),
    }


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0
