"""Executors that start programs: what bubblewrap is told, and what a call behind it can touch."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from core.errors import ErrorCode
from core.execution.cage import bubble, process
from core.execution.cage.child import run_child
from core.execution.cage.process import ProcessCage
from core.observation import Effects
from tests.cage.attack_run import fitting, lay_out, run_attack, targets
from tests.cage.conftest import Room

STARTS = "code:exec fs:read"
REALLY = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

# Runs `args["command"]` and says what came of it.
RUNS = """
import subprocess
def run(call):
    ran = subprocess.run(call.args["command"], capture_output=True, text=True)
    content = {"code": ran.returncode, "out": ran.stdout, "err": ran.stderr}
    return {"ok": True, "content": content, "entries": []}
"""


def pairs(argv: list[str], option: str) -> list[str]:
    return [argv[at + 2] for at, word in enumerate(argv) if word == option]


def test_arguments_cut_every_tie_and_begin_with_an_empty_environment():
    argv = bubble.arguments("/usr/bin/bwrap")

    assert argv[0] == "/usr/bin/bwrap"
    assert argv[-1] == "--"
    for flag in ("--unshare-all", "--die-with-parent", "--new-session", "--clearenv"):
        assert flag in argv
    assert "--share-net" not in argv
    assert argv[argv.index("--cap-drop") + 1] == "ALL"
    size = argv.index("--size")
    assert argv[size + 1 : size + 4] == [str(bubble.TMP_BYTES), "--tmpfs", "/tmp"]
    assert "--bind" not in argv
    assert "--bind-try" not in argv


def test_arguments_bind_what_is_above_first_and_hide_last(tmp_path: Path):
    keys, token = tmp_path / "a" / ".ssh", tmp_path / "a" / "token"
    keys.mkdir(parents=True)
    token.write_text("secret")
    upper, lower = str(tmp_path / "a"), str(tmp_path / "a" / "b")

    argv = bubble.arguments(
        "bwrap", read=[lower, upper], write=[lower], hidden=[str(keys), str(token)]
    )

    assert pairs(argv, "--bind-try") == [lower]
    assert upper in pairs(argv, "--ro-bind-try")
    assert lower not in pairs(argv, "--ro-bind-try")
    order = [argv.index(path) for path in (upper, lower, str(keys), str(token))]
    assert order == sorted(order)
    assert argv.index("/tmp") < order[0]
    assert argv[order[2] - 1] == "--tmpfs"
    assert argv[order[3] - 2 : order[3]] == ["--ro-bind", "/dev/null"]


async def test_without_bubblewrap_call_is_refused_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, room: Room, open_room: Room
):
    monkeypatch.setattr(process, "find_bubblewrap", lambda python: None)

    for one in (room, open_room):
        observation = await one.run(RUNS, {"command": ["/bin/echo"]}, capabilities=STARTS)

        assert observation.error is not None
        assert observation.error.code is ErrorCode.SANDBOX_UNAVAILABLE
        assert "install the package bubblewrap" in observation.error.detail
        assert observation.effects is Effects.NONE


@pytest.mark.parametrize("body", ["", "#!/bin/sh\nexit 1\n"], ids=["absent", "broken"])
def test_bubblewrap_that_is_not_there_or_does_not_work_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str
):
    if body:
        (tmp_path / "bwrap").write_text(body)
        (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    bubble.find_bubblewrap.cache_clear()
    try:
        assert bubble.find_bubblewrap() is None
    finally:
        bubble.find_bubblewrap.cache_clear()


async def started(room: Room, *command: str, **about: Any) -> dict[str, Any]:
    about = {"capabilities": STARTS, **about}
    observation = await room.run(RUNS, {"command": list(command)}, **about)
    assert observation.ok, observation.error
    assert isinstance(observation.content, dict)
    return observation.content


@REALLY
@pytest.mark.system
async def test_program_starts_and_reads_a_file_in_scope(room: Room, tmp_path: Path):
    (tmp_path / "note.txt").write_text("inside")

    said = await started(room, "/bin/echo", "hello")
    read = await started(room, "/bin/cat", str(tmp_path / "note.txt"), roots=[tmp_path])

    assert (said["code"], said["out"]) == (0, "hello\n")
    assert (read["code"], read["out"]) == (0, "inside")


@REALLY
@pytest.mark.system
async def test_program_writes_in_the_write_scope_of_a_changing_call_alone(
    room: Room, tmp_path: Path
):
    changing = {"is_mutating": True, "capabilities": "code:exec fs:write", "roots": [tmp_path]}

    refused = await started(room, "/bin/mkdir", str(tmp_path / "no"), roots=[tmp_path])
    written = await started(room, "/bin/mkdir", str(tmp_path / "yes"), **changing)
    system = await started(room, "/bin/mkdir", "/usr/lib/of-a-call", **changing)

    assert refused["code"] != 0
    assert written["code"] == 0, written
    assert system["code"] != 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["yes"]


@REALLY
@pytest.mark.system
async def test_program_sees_neither_keys_nor_product_home_nor_the_machines_secrets(
    room: Room, tmp_path: Path
):
    home = tmp_path / "home"
    for folder in (home / ".ssh", home / ".metnos", home / "papers"):
        folder.mkdir(parents=True)
        (folder / "one").write_text("content")
    told = {"home": str(home), "product_home": str(home / ".metnos")}
    about: dict[str, Any] = {"roots": [home], "document": told}

    paper = await started(room, "/bin/cat", str(home / "papers" / "one"), **about)
    assert paper["out"] == "content", paper
    for path in (home / ".ssh" / "one", home / ".metnos" / "one", "/etc/shadow", "/etc/passwd"):
        closed = await started(room, "/bin/cat", str(path), **about)
        assert closed["code"] != 0, path
        assert closed["out"] == ""
    assert (await started(room, "/usr/bin/env"))["out"].count("=") <= 4


@REALLY
@pytest.mark.system
@pytest.mark.parametrize("swapped", [False, True])
async def test_folder_swapped_for_a_link_before_it_is_bound_stays_closed(
    monkeypatch: pytest.MonkeyPatch, room: Room, tmp_path: Path, swapped: bool
):
    given, secret = tmp_path / "given", tmp_path / "secret"
    for folder in (given, secret):
        folder.mkdir()
        (folder / "one").write_text(folder.name)
    real = run_child

    async def swap_and_run(*args: Any, **about: Any) -> Any:
        if swapped:
            given.rename(tmp_path / "was")
            given.symlink_to(secret)
        return await real(*args, **about)

    monkeypatch.setattr(bubble, "run_child", swap_and_run)
    args = {"command": ["/bin/cat", str(given / "one")]}
    observation = await room.run(RUNS, args, capabilities=STARTS, roots=[given])

    if swapped:
        assert observation.error is not None
        assert observation.error.code is ErrorCode.SANDBOX_UNAVAILABLE
    else:
        assert observation.ok, observation.error


@REALLY
@pytest.mark.system
async def test_program_reaches_no_network_and_no_other_process(room: Room):
    code = """
import os, socket
def run(call):
    said = []
    for act in (
        lambda: socket.create_connection(("127.0.0.1", call.args["port"]), timeout=2),
        lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
        lambda: os.kill(call.args["pid"], 0),
        lambda: os.listdir("/proc"),
        lambda: os.unshare(0) if hasattr(os, "unshare") else os.chroot("/"),
    ):
        try:
            act()
            said.append("did it")
        except OSError as exc:
            said.append("refused")
    return {"ok": True, "content": said, "entries": []}
"""
    with socket.create_server(("127.0.0.1", 0)) as server:
        args = {"port": server.getsockname()[1], "pid": os.getpid()}
        observation = await room.run(code, args, capabilities=STARTS)

    assert observation.content == ["refused"] * 5, observation.error
    # What the executor's process may not do, the programs it starts may not either.
    listed = await started(room, "/bin/ls", "/proc")
    assert listed["code"] != 0


def sleeping(word: str) -> bool:
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and word.encode() in (folder / "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


DAEMON = """
import os, subprocess, sys, time
def run(call):
    if os.fork() == 0:
        os.closerange(0, 64)
        os.execv("/bin/sleep", ["sleep", call.args["word"]])
    time.sleep(call.args.get("stay", 0.1))
    return {"ok": True, "content": "left", "entries": []}
"""


@REALLY
@pytest.mark.system
async def test_daemon_that_a_call_leaves_is_dead_when_it_answers(room: Room):
    observation = await room.run(DAEMON, {"word": "31337.25"}, capabilities=STARTS)

    assert observation.content == "left", observation.error
    assert not sleeping("31337.25")


@REALLY
@pytest.mark.system
async def test_daemon_dies_with_a_call_out_of_time_or_cancelled(room: Room):
    args = {"word": "31337.75", "stay": 30}
    late = await room.run(DAEMON, args, capabilities=STARTS, timeout_s=0.7)
    assert late.error is not None
    assert late.error.code is ErrorCode.TIMEOUT
    assert not sleeping("31337.75")

    running = asyncio.create_task(room.run(DAEMON, args, capabilities=STARTS))
    await asyncio.sleep(0.7)
    assert sleeping("31337.75")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not sleeping("31337.75")


@REALLY
@pytest.mark.system
async def test_flood_and_long_work_of_a_program_are_bounded_like_any_other(room: Room):
    code = "import subprocess\ndef run(c): subprocess.run(['/usr/bin/yes'])"
    flood = await room.run(code, capabilities=STARTS)
    code = "def run(c):\n while True: pass"
    work = await room.run(code, capabilities=STARTS, cpu_s=1)

    assert flood.error is not None
    assert flood.error.code is ErrorCode.OUTPUT_TOO_LARGE
    assert work.error is not None
    assert work.error.code is ErrorCode.RESOURCE_LIMIT


@REALLY
@pytest.mark.system
@pytest.mark.parametrize("network", [False, True], ids=["none", "broker"])
async def test_no_attack_gets_out_but_for_the_starting_of_programs(
    room: Room, tmp_path: Path, network: bool
):
    found: dict[str, bool | None] = {}
    lay_out(tmp_path)
    with targets(tmp_path) as args:
        for attack in fitting(network=network):
            lay_out(tmp_path)
            found[attack.name] = await run_attack(
                room.cage, attack, args, network=network, programs=True
            )

    through = {name for name, got in found.items() if got}
    assert through == {"forks", "starts_a_program", "becomes_another_program"}
    assert None not in found.values()


async def test_executor_that_starts_no_programs_needs_no_bubblewrap(
    monkeypatch: pytest.MonkeyPatch, room: Room
):
    monkeypatch.setattr(process, "find_bubblewrap", lambda python: None)

    observation = await room.run("def run(c): return {'ok': True}")

    assert observation.ok
    assert isinstance(room.cage, ProcessCage)
