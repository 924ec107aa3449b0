"""Executors that misbehave: each its own code, in bounded time, nothing left, memory bounded."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from pathlib import Path
from textwrap import dedent

import pytest

from core.errors import ErrorCode
from core.observation import Effects
from tests.cage.conftest import Mutant, Room
from tests.cage.hostile_answers import ANSWERS
from tests.cage.hostile_endings import ENDINGS, UNTIDY
from tests.cage.hostile_processes import PROCESSES, Case

MIB = 1024 * 1024


CASES = [*PROCESSES, *ENDINGS, *ANSWERS]
# What the cage ends at once is still the keeper's to end where there is none.
PLAIN = [case for case in CASES if case.caged is not None]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_hostile_executor_gets_its_code_and_leaves_nothing(room: Room, case: Case):
    await _suffer(room, case, case.caged or case.expected)


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.name)
async def test_hostile_executor_without_a_cage_gets_its_code(open_room: Room, case: Case):
    await _suffer(open_room, case, case.expected)


async def _suffer(room: Room, case: Case, expected: ErrorCode) -> None:
    await room.run("def run(c): return {'ok': True}")
    gc.collect(1)  # all of it would go through every collected test
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory("VmRSS")
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    started = time.monotonic()

    observation = await room.run(dedent(case.code), **case.about)

    assert observation.error is not None
    assert (observation.error.code, observation.ok) == (expected, False)
    assert observation.effects is Effects.NONE
    assert time.monotonic() - started < 40
    assert room.left() == []
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before
    assert memory("VmHWM") - before < 20 * MIB


def memory(field_name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field_name):
            return int(line.split()[1]) * 1024
    raise KeyError(field_name)


@pytest.mark.parametrize("case", UNTIDY, ids=lambda case: case.name)
async def test_untidy_executor_that_answers_is_answered_and_leaves_nothing(room: Room, case: Case):
    started = time.monotonic()

    observation = await room.run(dedent(case.code), {"token": room.token})

    assert observation.ok is (case.caged is None), observation.error
    assert observation.error is None or observation.error.code is case.caged
    assert time.monotonic() - started < 40
    assert room.left() == []


@pytest.mark.parametrize(
    "case", [case for case in UNTIDY if case.caged], ids=lambda case: case.name
)
async def test_untidy_executor_without_a_cage_leaves_nothing(open_room: Room, case: Case):
    observation = await open_room.run(dedent(case.code), {"token": open_room.token})

    assert observation.ok, observation.error
    assert open_room.left() == []


async def test_file_beyond_the_limit_is_a_resource_limit(room: Room, tmp_path: Path):
    code = """
    def run(c):
        with open(c.roots[0] + "/big", "wb") as file:
            while True:
                file.write(bytes(65536))
    """

    observation = await room.run(
        dedent(code), roots=[tmp_path], capabilities="fs:write", is_mutating=True
    )

    assert observation.error is not None
    assert observation.error.code is ErrorCode.RESOURCE_LIMIT
    assert (tmp_path / "big").stat().st_size == MIB


async def test_large_arguments_that_nobody_reads_do_not_block(room: Room):
    observation = await room.run(
        "def run(c): return {'ok': True, 'content': len(c.args['text'])}",
        {"text": "é" * 4_000_000},
    )

    assert observation.content == 4_000_000


@pytest.mark.parametrize(
    ("code", "effects"),
    [
        (
            """
        import time

        def run(c):
            time.sleep(60)
        """,
            Effects.UNKNOWN,
        ),
        ("def run(c): raise KeyError", Effects.UNKNOWN),
        ("def run(c): return {'ok': True, 'content': float('inf')}", Effects.UNKNOWN),
        (
            """
        import os

        def run(c):
            os._exit(3)
        """,
            Effects.UNKNOWN,
        ),
        ("def run(c): open('/nonexistent/x')", Effects.UNKNOWN),
        (
            """
        from executors._sdk.result import Failure

        def run(c):
            raise Failure('not_found')
        """,
            Effects.NONE,
        ),
        ("def run(c): return {'ok': True}", Effects.DONE),
        ("def run(c): return {'ok': True, 'entries': []}", Effects.NONE),
        ("def run(c): return {'ok': True, 'entries': [{'ok': False}, {}]}", Effects.DONE),
        ("def run(c): return {'ok': True, 'metadata': {'effects': 'none'}}", Effects.NONE),
    ],
)
async def test_mutating_executor_says_what_it_may_have_left(
    room: Room, code: str, effects: Effects
):
    seconds = 1.0 if "sleep" in code else 30.0
    observation = await room.run(dedent(code), is_mutating=True, timeout_s=seconds)

    assert observation.effects is effects


# -- S5 mutants: a check removed must be seen by the cases above ------------------------------


async def test_call_without_limits_is_not_told_that_it_has_reached_one(mutant: Mutant):
    mutant("zygote", 'worker.limit(frame["limits"])', "None")
    room = Room()

    code = "import mmap\ndef run(c): return {'ok': True, 'content': len(mmap.mmap(-1, 2**30))}"
    observation = await room.run(code)

    room.cage.close()
    assert observation.ok


async def test_keeper_that_does_not_clean_up_leaves_a_daemon(mutant: Mutant):
    mutant("keeper", "    end_all(child)\n    if posix", "    if posix")
    room = Room(unsafe=True)
    daemon = next(case for case in UNTIDY if case.name == "leaves_a_daemon")

    await room.run(dedent(daemon.code), {"token": room.token})
    left = room.left()

    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left


async def test_zygote_that_does_not_clean_up_leaves_what_a_call_forked(mutant: Mutant):
    """With process creation let through, it is the sweep alone that ends a daemon."""
    mutant("seccomp", "[] if programs else _some_bit(_CLONE_THREAD)", "[]")
    code = """
    import os, time
    def run(c):
        if os.fork() == 0:
            os.closerange(0, 10)
            time.sleep(60)
        return {"ok": True}
    """
    tidy = Room()
    assert (await tidy.run(dedent(code))).ok
    swept = tidy.left()
    tidy.cage.close()
    mutant("zygote", "            if not strangers:", "            if True:")
    room = Room()

    await room.run(dedent(code))
    left = room.left()

    for pid in left:
        os.kill(pid, signal.SIGKILL)
    room.cage.close()
    assert swept == []
    assert left


async def test_call_without_a_death_signal_outlives_its_zygote(mutant: Mutant):
    mutant("confine", "self.kernel.prctl(_PDEATHSIG, signal.SIGKILL)", "None")
    room = Room()
    begun = asyncio.Event()
    code = "import time\ndef run(c):\n c.progress(1, 1)\n time.sleep(30)"
    task = asyncio.create_task(room.run(code, on_progress=lambda done, total: begun.set()))
    await begun.wait()
    (zygote,) = room.cage.zygote_pids

    os.kill(zygote, signal.SIGKILL)
    await task
    left = room.left()

    for pid in left:
        os.kill(pid, signal.SIGKILL)
    room.cage.close()
    assert left
