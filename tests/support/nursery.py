"""Bots started without importing everything anew: a process of one thread that has imported what a
bot imports forks one for each that is asked for. A bot is a process as before: it has its own
number, session, directory, environment and log, and takes signals; only its first second, most of
what a small journey costs, is done once. Whoever tests the start itself starts a program.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import random
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
_STATUS = struct.Struct("<i")
_IMPORTED = ("bot.cli.commands", "bot.cli.run", "bot.app", "bot.console.server",
             "bot.telegram.channel", "telegram.ext", "typer.exceptions")  # fmt: skip


class Forked:
    """What a test needs of `subprocess.Popen`: `pid`, `returncode`, and asking for the end."""

    def __init__(self, pid: int, told: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._told = told

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        found = self._look(timeout)
        if found is None:
            raise subprocess.TimeoutExpired(f"bot {self.pid}", timeout or 0)
        return found

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], timeout)[0]:
            data = os.read(self._told, _STATUS.size)
            os.close(self._told)
            # Nothing is read when the nursery is gone, and its bots are nobody's.
            self.returncode = _STATUS.unpack(data)[0] if data else -signal.SIGKILL
        return self.returncode

    def __del__(self) -> None:
        if self.returncode is None:
            with suppress(OSError):
                os.close(self._told)


class _Nursery:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                cwd=REPO,
                env={"PYTHONPATH": str(REPO), "PATH": os.defpath},
            )
        self._asking, self._lock = ours, threading.Lock()
        atexit.register(self.close)

    def start(
        self, module: str, args: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: int
    ) -> Forked:
        mine, theirs = os.pipe()
        asked = json.dumps([module, list(args), str(cwd), dict(env)]).encode()
        try:
            with self._lock:
                socket.send_fds(self._asking, [asked], [log, theirs])
                pid = self._asking.recv(64)
        finally:
            os.close(theirs)
        if not pid:
            os.close(mine)
            raise RuntimeError("the nursery is gone")
        return Forked(int(pid), mine)

    def close(self) -> None:
        self._asking.close()
        self._process.wait()


@cache
def _nursery() -> _Nursery:
    return _Nursery()


def start(
    module: str, args: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: int
) -> Forked:
    """`python -m module args` in a session of its own; `log` takes what it prints."""
    return _nursery().start(module, args, cwd=cwd, env=env, log=log)


def _serve(asked_by: socket.socket) -> None:
    # As `bot.cli.main` does before anything is imported.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    for name in _IMPORTED:
        importlib.import_module(name)
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    told: dict[int, int] = {}
    while True:
        watched: list[socket.socket | int] = [asked_by, woken]
        ready, _, _ = select.select(watched, [], [])
        if woken in ready:
            os.read(woken, 4096)
        if asked_by in ready:
            data, fds, _, _ = socket.recv_fds(asked_by, 1 << 20, 2)
            if not data:
                return
            log, tell = fds
            pid = os.fork()
            if pid == 0:
                _be(log, *json.loads(data))
            told[pid] = tell
            os.close(log)
            asked_by.send(str(pid).encode())
        _tell(told)


def _tell(told: dict[int, int]) -> None:
    """Say of every child that has ended how it ended."""
    while told:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        tell = told.pop(pid)
        with suppress(OSError):  # whoever asked may have gone
            os.write(tell, _STATUS.pack(os.waitstatus_to_exitcode(status)))
        os.close(tell)


def _be(log: int, module: str, args: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
    status: Any = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.closerange(3, 1024)
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        os.chdir(cwd)
        random.seed()
        sys.argv = [module, *args]
        sys.modules.pop("__main__", None)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as exc:
        status = exc.code
        if status is not None and not isinstance(status, int):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(status or 0)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as asking:
        _serve(asking)
