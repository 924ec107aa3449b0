"""The life of zygotes, what a machine without walls gets, and what they weigh."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest

from core.errors import ErrorCode
from core.execution.cage import frame, process
from core.execution.cage.process import ProcessCage
from core.execution.cage.status import cage_status
from tests.cage.conftest import Mutant, Room
from tests.cage.test_process import TRIVIAL, _until
from tests.support.poor_kernel import python_without
from tests.support.run_executor import (
    TREE,
    SimpleManifest,
    SimpleProgram,
    SimpleSdk,
    call_document,
    read_sdk,
)

PROGRAM = SimpleProgram(SimpleManifest("get_now"), {"main.py": TRIVIAL.encode()})


def weight(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise KeyError(pid)


async def test_zygote_that_was_killed_is_replaced(own_room: Room):
    await own_room.run(TRIVIAL)
    (first,) = own_room.cage.zygote_pids
    os.kill(first, signal.SIGKILL)

    observation = await own_room.run(TRIVIAL)

    assert observation.ok
    assert own_room.cage.zygote_pids != (first,)


async def test_call_whose_zygote_is_killed_is_an_executor_crash(own_room: Room):
    begun = asyncio.Event()
    code = "import time\ndef run(c):\n c.progress(1, 1)\n time.sleep(60)"
    task = asyncio.create_task(own_room.run(code, on_progress=lambda done, total: begun.set()))
    await begun.wait()
    os.kill(own_room.cage.zygote_pids[0], signal.SIGKILL)

    observation = await task

    assert observation.error is not None
    assert observation.error.code is ErrorCode.EXECUTOR_CRASHED
    await _until(lambda: own_room.left() == [])


async def test_another_sdk_gets_another_zygote_while_calls_of_the_old_one_end(own_room: Room):
    slow = asyncio.create_task(
        own_room.run("import time\ndef run(c):\n time.sleep(0.5)\n return {'ok': True}")
    )
    await asyncio.sleep(0.1)
    files = dict(own_room.sdk.files)
    files["result.py"] += b"\nMARK = 7\n"
    own_room.sdk = SimpleSdk(files)

    code = (
        "from executors._sdk.result import MARK\ndef run(c): return {'ok': True, 'content': MARK}"
    )
    fresh = await own_room.run(code)

    assert fresh.content == 7
    assert (await slow).ok
    assert len(own_room.cage.zygote_pids) == 1


async def test_heavy_zygote_imports_once_and_ends_when_idle(
    own_room: Room, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process, "HEAVY_IDLE_S", 3.0)
    code = """
    import sys
    BEFORE = "trafilatura" in sys.modules
    import trafilatura
    def run(c): return {"ok": True, "content": BEFORE}
    """

    observation = await own_room.run(dedent(code), requires=("trafilatura",))

    assert observation.content is True
    (heavy,) = own_room.cage.zygote_pids
    print(f"heavy zygote with trafilatura: {weight(heavy):.1f} MB resident")
    assert weight(heavy) <= 100
    await _until(lambda: own_room.cage.zygote_pids == ())
    assert (await own_room.run(dedent(code), requires=("trafilatura",))).ok


async def test_light_zygote_is_light_and_has_one_thread(own_room: Room):
    for _ in range(20):
        await own_room.run(TRIVIAL)

    (pid,) = own_room.cage.zygote_pids
    print(f"light zygote: {weight(pid):.1f} MB resident")
    assert weight(pid) <= 35
    assert len(list(Path(f"/proc/{pid}/task").iterdir())) == 1
    assert len(list(Path(f"/proc/{pid}/fd").iterdir())) < 64


async def test_undeclared_package_stays_out_of_reach_though_it_is_imported(room: Room):
    code = "def run(c):\n from executors._sdk import http\n return {'ok': True}"

    refused = await room.run(code)
    given = await room.run(code, requires=("httpx",))

    assert refused.error is not None
    assert refused.error.code is ErrorCode.EXECUTOR_CRASHED
    assert given.ok, given.error


def test_what_runs_in_the_cage_imports_only_itself_and_the_standard_library():
    for parts in (frame._PLAIN_PARTS, frame._ZYGOTE_PARTS, frame._BUBBLE_PARTS):
        known: set[str] = set()
        for name in parts:
            path = Path(frame.__file__).with_name(f"{name}.py")
            for imported in imports_at_top(path):
                top, _, rest = imported.partition(".")
                own = top == "core" and rest.removeprefix("execution.cage.") in known
                assert own or top in sys.stdlib_module_names | {"executors"}, (name, imported)
            known.add(name)


def test_what_is_imported_ahead_is_what_many_programs_use():
    """A module of few programs would weigh on all, one of many slow each call down."""
    sdk = {f"executors._sdk.{path.stem}": sdk_names(path) for path in (TREE / "_sdk").glob("*.py")}
    users: Counter[str] = Counter()
    for program in TREE.glob("*/main.py"):
        reached: set[str] = set()
        ahead = set().union(*map(sdk_names, program.parent.glob("*.py")))
        while ahead:
            reached.add(name := ahead.pop())
            ahead |= sdk.get(name, set()) - reached
        users.update(reached)

    assert min(users[name] for name in frame.FOR_MOST) >= 10
    assert max(count for name, count in users.items() if name not in frame.FOR_MOST) < 15


def sdk_names(path: Path) -> set[str]:
    """The modules of `_sdk` that a program imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "executors._sdk":
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} if node.module.startswith("executors._sdk.") else set()
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.startswith("executors._sdk.")}
    return found


def imports_at_top(path: Path) -> list[str]:
    """What a module imports when it runs, without what only the type checker reads."""
    found: list[str] = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "core.execution.cage":
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


# -- G1: a machine that cannot ---------------------------------------------------------------


@pytest.fixture(params=["landlock", "seccomp"])
def poor_python(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return python_without(request.param, tmp_path)


async def test_machine_that_cannot_close_a_cage_refuses_every_call(poor_python: Path):
    cage = ProcessCage(python=poor_python)
    for _ in range(2):
        observation = await cage.run(PROGRAM, read_sdk(), call_document("get_now", {}))

        assert observation.error is not None
        assert observation.error.code is ErrorCode.SANDBOX_UNAVAILABLE
        assert observation.error.detail
    cage.close()
    status = cage_status(poor_python)
    print(f"G1: {status}")
    assert not status.available
    assert status.reasons


async def test_hosts_way_out_runs_plain_processes_there(poor_python: Path):
    cage = ProcessCage(python=poor_python, unsafe=True)

    observation = await cage.run(PROGRAM, read_sdk(), call_document("get_now", {"text": "x"}))

    assert observation.entries == ({"ok": True, "said": "x"},)


async def test_machine_without_landlock_that_does_not_look_would_run_bare(
    tmp_path: Path, mutant: Mutant
):
    """The counter-proof of G1: with the looking removed, the call runs without its wall."""
    mutant("confine", "if not self.abi:", "if False:")
    mutant("confine", "rules = landlock.Ruleset(", "rules = None and landlock.Ruleset(")
    mutant("confine", "rules.add(", "(lambda *_: None)(")
    mutant("confine", "rules.restrict()", "None")
    mutant("probe", "    return problems + b", '    return b"done\\n"\n    return problems + b')
    cage = ProcessCage(python=python_without("landlock", tmp_path))

    observation = await cage.run(PROGRAM, read_sdk(), call_document("get_now", {}))

    cage.close()
    assert observation.ok


async def test_status_says_what_calls_will_find(room: Room):
    status = cage_status()

    print(f"cage here: {status}")
    assert status.available == (not status.reasons)
    assert status.available == (await room.run(TRIVIAL)).ok
    assert cage_status(Path("/nonexistent/python")).available is False
