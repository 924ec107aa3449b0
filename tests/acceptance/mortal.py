"""An engine that dies, or whose disk fails, at a chosen step of its input and output.

`python -m tests.acceptance.mortal` imports everything once and forks an engine for each line it
reads. Steps are counted at the edges: statements and commits, calls of the cage, requests to
Telegram, lines of the logs. What is to happen at which step stands in a small shared file, so that
it can be set while the engine runs. Death is a real SIGKILL.
"""

from __future__ import annotations

import asyncio
import errno
import importlib
import json
import mmap
import os
import random
import select
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.acceptance.mutants import MUTANTS

KILL, FULL, BROKEN = 1, 2, 3
GROUPS = ("any", "statement", "commit", "committed", "cage", "caged", "inside", "send", "sent",
          "log", "logged")  # fmt: skip
# Where a disk can fail.
DISK = ("statement", "commit", "log", "cage")
# How long a change takes, about.
_INSIDE_S = 0.012
_PLAN = struct.Struct("<qqqq")  # countdown, action, group (as a bit set), steps so far


class Plan:
    """What is to happen, shared by a test and its engine through a file."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_PLAN.size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _PLAN.size)

    def arm(self, steps: int, action: int = KILL, *groups: str) -> None:
        """Let the `steps`-th next step of these groups (none: all) fail."""
        wanted = sum(1 << GROUPS.index(name) for name in groups) or -1
        self._map[:] = _PLAN.pack(steps, action, wanted, self.steps)

    def disarm(self) -> None:
        self.arm(0)

    @property
    def is_armed(self) -> bool:
        return int(_PLAN.unpack(self._map[:])[0]) > 0

    @property
    def steps(self) -> int:
        """How many steps there were, of all groups and engines."""
        return int(_PLAN.unpack(self._map[:])[3])

    def step(self, group: str) -> int:
        """Count one step; what is to happen at it (0: nothing)."""
        left, action, wanted, steps = _PLAN.unpack(self._map[:])
        due = left > 0 and bool(wanted >> GROUPS.index(group) & 1)
        self._map[:] = _PLAN.pack(left - due, action, wanted, steps + 1)
        return int(action) if due and left == 1 else 0


class Engine:
    """A forked engine as a test sees it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.pidfd_open(pid)
        self._gone = False

    def is_gone(self) -> bool:
        if not self._gone:
            self._gone = bool(select.select([self._fd], [], [], 0)[0])
            if self._gone:
                os.close(self._fd)
        return self._gone

    def kill(self) -> None:
        """SIGKILL, to the engine alone, as the kernel does it when memory runs out."""
        if not self.is_gone():
            os.kill(self.pid, signal.SIGKILL)
            while not self.is_gone():
                threading.Event().wait(0.005)


class Nursery:
    """The process that engines are forked from; one thread, so that a fork is sound."""

    def __init__(self, tree: Path) -> None:
        env = {"PYTHONPATH": str(tree), "PATH": os.defpath, "HOME": str(tree)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.mortal"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def start(self, env: dict[str, str], *, plan: Path, log: Path, mutant: str = "") -> Engine:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"env": env, "plan": str(plan), "log": str(log), "mutant": mutant}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Engine(int(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.communicate()


def _serve() -> None:
    for name in ("bot.app", "bot.telegram.channel"):
        importlib.import_module(name)
    # Nobody waits for engines; their end is seen by a descriptor.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _be_engine(asked)
        print(pid, flush=True)


def _be_engine(asked: dict[str, Any]) -> None:
    status = 1
    try:
        os.setsid()
        log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for fd, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(fd, target)
        os.environ.clear()
        os.environ.update(asked["env"])
        os.chdir(asked["env"]["HOME"])
        random.seed()
        lay_mines(Plan(Path(asked["plan"])))
        if asked["mutant"]:
            MUTANTS[asked["mutant"]]()
        from bot.app import run_telegram
        from core.config import load_settings

        asyncio.run(run_telegram(load_settings()))
        status = 0
    except BaseException as exc:
        print(f"engine ended: {exc!r}", file=sys.stderr, flush=True)
    finally:
        os._exit(status)


def lay_mines(plan: Plan) -> None:
    """Count the steps of this process, and let the planned one fail."""
    from telegram.request import HTTPXRequest

    from core.execution.cage.process import ProcessCage
    from core.store import statements, turn_log

    lock = threading.Lock()

    def step(group: str) -> int:
        with lock:
            action = plan.step(group)
            if action == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            return action

    def on_disk(group: str) -> None:
        if action := step(group):
            code = errno.ENOSPC if action == FULL else errno.EIO
            raise OSError(code, os.strerror(code))

    def in_database(group: str, conn: sqlite3.Connection) -> None:
        if action := step(group):
            if action == FULL and conn.in_transaction:
                conn.rollback()  # as SQLite does by itself when there is no room
            error = sqlite3.OperationalError("made to fail")
            code = sqlite3.SQLITE_FULL if action == FULL else sqlite3.SQLITE_IOERR
            error.sqlite_errorcode = code
            error.sqlite_errorname = "SQLITE_FULL" if action == FULL else "SQLITE_IOERR"
            raise error

    run_statement, commit = statements.run_statement, statements.commit

    def counted_statement(begin: Any, sql: Any, params: Any, conn: Any, **rest: Any) -> Any:
        in_database("statement", conn)
        return run_statement(begin, sql, params, conn, **rest)

    def counted_commit(conn: sqlite3.Connection) -> None:
        in_database("commit", conn)
        commit(conn)
        step("committed")

    statements.run_statement = counted_statement
    statements.commit = counted_commit

    append_line = turn_log.append_line

    def counted_line(path: Path, line: Any) -> None:
        try:
            on_disk("log")
        except OSError as exc:
            from core.errors import ErrorCode, StoreError

            error = StoreError(f"{path.name} cannot be written ({exc.strerror})")
            full = exc.errno == errno.ENOSPC
            error.code = ErrorCode.DISK_FULL if full else error.code
            raise error from exc
        append_line(path, line)
        step("logged")

    turn_log.append_line = counted_line

    run = ProcessCage.run

    async def counted_run(self: Any, *args: Any, **rest: Any) -> Any:
        on_disk("cage")
        if rest.get("mode", "run") == "run":
            with lock:
                due = plan.step("inside")
            if due:  # some time after it has begun
                later = random.uniform(0, _INSIDE_S)
                threading.Timer(later, os.kill, (os.getpid(), signal.SIGKILL)).start()
        found = await run(self, *args, **rest)
        step("caged")
        return found

    ProcessCage.run = counted_run  # type: ignore[method-assign]
    request = HTTPXRequest.do_request

    async def counted_request(self: Any, url: str, *args: Any, **rest: Any) -> Any:
        step("send")
        found = await request(self, url, *args, **rest)
        step("sent")
        return found

    HTTPXRequest.do_request = counted_request  # type: ignore[method-assign]


if __name__ == "__main__":
    _serve()
