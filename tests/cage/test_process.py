"""What a well-behaved executor sees, what the engine sees of it, and how a call is ended early."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from core.errors import ErrorCode
from core.execution.cage.process import ProcessCage
from core.observation import Effects, Provenance
from tests.cage.conftest import Room
from tests.support.run_executor import (
    SimpleManifest,
    SimpleProgram,
    call_document,
    read_sdk,
    run_executor,
)

TREE = Path(__file__).parents[2]
TRIVIAL = """
from executors._sdk import result

def run(call):
    return result.done([result.item(said=call.args.get("text"))])
"""


async def test_call_with_unicode_arguments_comes_back_whole(room: Room):
    text = "Perché no? 日本 \u0000 \U0001f600"

    observation = await room.run(TRIVIAL, {"text": text})

    assert observation.ok
    assert observation.entries == ({"ok": True, "said": text},)
    assert observation.metadata == {"count": 1, "ok_count": 1, "failed_count": 0}
    assert (observation.effects, observation.provenance) == (Effects.NONE, Provenance.OWN)


async def test_call_carries_what_the_executor_may_know(room: Room):
    code = """
    def run(call):
        call.progress(1, 2)
        return {"ok": True, "content": [
            call.now.isoformat(), call.tz, call.lang, call.tool, call.mode, call.step,
            call.trash_name, call.roots, call.closed, call.user_agent,
        ]}
    """

    observation = await room.run(dedent(code))

    assert observation.content == [
        "2026-03-18T09:00:00+00:00",
        "Europe/Rome",
        "it",
        "get_now",
        "run",
        1,
        ".metnos-trash",
        [],
        {},
        "Metnos/0.1 (test)",
    ]


async def test_child_sees_an_empty_environment_and_only_its_descriptors(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TOP_SECRET", "canary")
    code = """
    import os, stat, sys
    def run(call):
        kinds = {}
        for fd in range(1024):
            try:
                mode = os.fstat(fd).st_mode
            except OSError:
                continue
            kinds[str(fd)] = "pipe" if stat.S_ISFIFO(mode) else os.readlink(f"/proc/self/fd/{fd}")
        return {"ok": True, "content": [dict(os.environ), os.getcwd(), kinds,
            sys.flags.isolated, sys.flags.no_site, sys.stdin.read()]}
    """
    with (tmp_path / "open").open("wb") as file:
        os.set_inheritable(file.fileno(), True)

        observation = await room.run(dedent(code))

    assert observation.content[:2] == [{"LANG": "C.UTF-8"}, "/"]
    assert observation.content[2] == {"0": "/dev/null", "1": "pipe", "2": "pipe", "3": "pipe"}
    assert observation.content[3:] == [1, 1, ""]
    for pid in room.cage.zygote_pids:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        assert environment == b"LANG=C.UTF-8\0"


async def test_kernel_limits_are_those_of_the_manifest(room: Room):
    code = """
    import resource
    def run(call):
        names = ["AS", "CPU", "FSIZE", "NOFILE", "CORE"]
        limits = [getattr(resource, "RLIMIT_" + name) for name in names]
        return {"ok": True, "content": [resource.getrlimit(limit)[0] for limit in limits]}
    """

    observation = await room.run(dedent(code), memory_mb=200, cpu_s=7, file_mb=3)

    assert observation.content == [200 * 1024**2, 7, 3 * 1024**2, 256, 0]


async def test_preview_answer_is_the_content_and_has_no_effects(room: Room):
    code = """
    def run(call): raise AssertionError
    def preview(call): return {"targets": [call.args["path"]], "before": None, "count": 1}
    """

    observation = await room.run(dedent(code), {"path": "/x"}, mode="preview", is_mutating=True)

    assert observation.ok
    assert observation.content == {"targets": ["/x"], "before": None, "count": 1}
    assert observation.effects is Effects.NONE


async def test_preview_that_is_not_there_is_unsupported(room: Room):
    observation = await room.run(TRIVIAL, mode="preview")

    assert observation.error is not None
    assert observation.error.code is ErrorCode.UNSUPPORTED


async def test_failure_raised_anywhere_is_the_error(room: Room):
    code = """
    from executors._sdk.result import Failure
    def run(call): raise Failure("unknown_place", "no such zone", place="Atlantide", odd=[1])
    """

    observation = await room.run(dedent(code), provenance="external")

    assert observation.error is not None
    assert observation.error.code is ErrorCode.UNKNOWN_PLACE
    assert observation.error.detail == "no such zone"
    assert observation.error.params == {"place": "Atlantide"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/nonexistent/x", ErrorCode.NOT_FOUND),
        ("/proc", ErrorCode.PERMISSION_DENIED),
        ("/dev/null/x", ErrorCode.NOT_DIRECTORY),
        ("/" + "x" * 300, ErrorCode.NAME_TOO_LONG),
    ],
)
async def test_operating_system_errors_have_codes(room: Room, path: str, expected: ErrorCode):
    observation = await room.run("def run(c): open(c.args['path'])", {"path": path})

    assert observation.error is not None
    assert observation.error.code is expected


async def test_progress_reaches_the_engine(room: Room):
    seen: list[tuple[int | None, int | None]] = []
    code = """
    import time
    def run(call):
        call.progress(1, 3)
        time.sleep(0.15)
        call.progress(2)
        call.progress(3, 3)
        return {"ok": True}
    """

    observation = await room.run(dedent(code), on_progress=lambda d, t: seen.append((d, t)))

    assert observation.ok
    assert seen[-1] == (3, 3)
    assert set(seen) <= {(1, 3), (2, None), (3, 3)}


async def test_crash_names_the_line_and_not_the_values(room: Room):
    observation = await room.run("def run(c):\n    raise KeyError('secret-word')")

    assert observation.error is not None
    assert observation.error.detail == "KeyError at executors/get_now/main.py:2"


FORKING = """
import os, time
def run(call):
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            os.fork()
            time.sleep(60)
    call.progress(1, 1)
    time.sleep(60)
"""
SLEEPING = """
import time
def run(call):
    call.progress(1, 1)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("name", "code"), [("room", SLEEPING), ("open_room", FORKING)], ids=["caged", "plain"]
)
async def test_cancelled_call_ends_everything_before_it_passes_on(
    name: str, code: str, request: pytest.FixtureRequest
):
    room: Room = request.getfixturevalue(name)
    ready = asyncio.Event()
    task = asyncio.create_task(
        room.run(code, on_progress=lambda done, total: ready.set(), timeout_s=60.0)
    )
    await ready.wait()
    assert room.left()

    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert room.left() == []


async def test_call_cancelled_at_once_leaves_nothing(room: Room):
    for _ in range(5):
        task = asyncio.create_task(room.run(TRIVIAL))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert room.left() == []


@pytest.mark.parametrize(("unsafe", "least"), [(False, 2), (True, 4)], ids=["caged", "plain"])
async def test_engine_killed_takes_the_call_and_its_daemons_along(
    tmp_path: Path, unsafe: bool, least: int
):
    room = Room()
    script = f"""
    import asyncio
    from tests.cage.conftest import Room
    from tests.cage.test_process import FORKING, SLEEPING
    room = Room(unsafe={unsafe})
    room.cage._argv = (*room.cage._argv, {room.token!r})
    def tell(done, total):
        open({str(tmp_path / "mark")!r}, "w").close()
    code = FORKING if {unsafe} else SLEEPING
    asyncio.run(room.run(code, timeout_s=60.0, on_progress=tell))
    """
    engine = await asyncio.create_subprocess_exec(sys.executable, "-c", dedent(script), cwd=TREE)
    await _until((tmp_path / "mark").exists)
    assert len(room.left()) >= least  # a zygote and its fork; a keeper, its worker and daemons

    engine.kill()
    await engine.wait()

    await _until(lambda: room.left() == [])


async def test_calls_beyond_the_slots_run_in_order_of_arrival():
    cage = ProcessCage(max_parallel=1)
    sdk = read_sdk()
    program = SimpleProgram(SimpleManifest("get_now"), {"main.py": TRIVIAL.encode()})
    finished: list[int] = []

    async def one(number: int) -> None:
        await cage.run(program, sdk, call_document("get_now", {"text": number}))
        finished.append(number)

    await asyncio.gather(*(one(number) for number in range(8)))

    assert finished == list(range(8))


async def test_loop_is_not_held_while_a_call_runs(room: Room):
    longest, turns = 0.0, 0
    task = asyncio.create_task(
        room.run("import time\ndef run(c):\n time.sleep(0.5)\n return {'ok': True}")
    )
    while not task.done():
        before = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - before)
        turns += 1

    assert (await task).ok
    print(f"longest pause of the loop {longest * 1000:.1f} ms in {turns} turns")
    assert turns > 10


async def test_median_of_a_trivial_call_is_printed(room: Room):
    times = []
    for _ in range(15):
        started = time.perf_counter()
        await room.run(TRIVIAL)
        times.append((time.perf_counter() - started) * 1000)

    print(f"trivial call: median {statistics.median(times):.1f} ms, best {min(times):.1f} ms")


async def test_python_that_is_not_there_is_sandbox_unavailable():
    cage = ProcessCage(python=Path("/nonexistent/python"))
    program = SimpleProgram(SimpleManifest("get_now"), {"main.py": TRIVIAL.encode()})
    before = len(list(Path("/proc/self/fd").iterdir()))

    observation = await cage.run(program, read_sdk(), call_document("get_now", {}))

    assert observation.error is not None
    assert observation.error.code is ErrorCode.SANDBOX_UNAVAILABLE
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_arguments_that_are_no_json_are_invalid(room: Room):
    observation = await room.run(TRIVIAL, {"text": object()})

    assert observation.error is not None
    assert observation.error.code is ErrorCode.INVALID_ARGS


def test_run_executor_runs_a_folder_of_the_tree(tmp_path: Path):
    folder = tmp_path / "get_now"
    folder.mkdir()
    (folder / "manifest.toml").write_text('name = "get_now"\neffect = "pure"', encoding="utf-8")
    (folder / "main.py").write_text(TRIVIAL, encoding="utf-8")

    result = run_executor(folder, {"text": "hello"}, roots=[tmp_path])

    assert result["entries"] == [{"ok": True, "said": "hello"}]


async def _until(condition, *, seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - other processes set no event of ours
            await asyncio.sleep(0.02)
