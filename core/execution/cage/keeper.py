"""A call without a cage: a keeper that outlives the executor, and the executor itself.

Only for `METNOS_UNSAFE_NO_CAGE`. Runs in a plain process of its own and is handed over as code, as
everything it imports of this package. In this order:

1. the *keeper* (first process) asks to be told when the engine dies and adopts orphans;
2. it forks the *worker*, which gets its own session, limits, a fenced import system, and then
   runs the verified bytes of the executor;
3. the keeper waits, ends whatever the worker left behind (daemons too: it adopted them), and
   leaves with the worker's exit code, or 128 + signal.
"""

from __future__ import annotations

import posix
import sys
import time

from core.execution.cage import fence, syscalls, worker
from core.execution.cage.worker import NO_CAGE, OUT_OF_MEMORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from typing import Any
else:
    import _signal

ENDED_BY_ENGINE = 120
KILL_ROUNDS = 3000


def main(frame: dict[str, Any]) -> None:
    """Keep one call: fork the worker, wait for it, leave nothing behind. Does not return."""
    _signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGTERM, _signal.SIGCHLD})
    try:
        prctl = syscalls.Kernel().prctl
        prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: daemons the worker leaves become our children
        prctl(1, _signal.SIGTERM)  # PR_SET_PDEATHSIG: the engine is gone, so is the call
    except (ImportError, OSError):
        posix._exit(NO_CAGE)
    if posix.getppid() != frame["engine_pid"]:
        posix._exit(ENDED_BY_ENGINE)
    keeper = posix.getpid()
    child = posix.fork()
    if child == 0:
        try:
            prctl(1, _signal.SIGKILL)
            if posix.getppid() == keeper:
                work(frame)
        except MemoryError:
            posix._exit(OUT_OF_MEMORY)
        finally:
            posix._exit(1)
    null = posix.open("/dev/null", posix.O_RDWR)
    for fd in (0, 1, 2, frame["progress_fd"]):
        posix.dup2(null, fd)
    posix._exit(keep(child))


def keep(child: int) -> int:
    """Wait for the worker or for the order to end it; returns the exit code to leave with."""
    status = None
    while status is None:
        if _signal.sigwait({_signal.SIGTERM, _signal.SIGCHLD}) == _signal.SIGTERM:
            end_all(child)
            return ENDED_BY_ENGINE
        while True:
            try:
                pid, code = posix.waitpid(-1, posix.WNOHANG)
            except ChildProcessError:
                break
            if pid == child:
                status = code
            if pid == 0:
                break
    end_all(child)
    if posix.WIFSIGNALED(status):
        return 128 + posix.WTERMSIG(status)
    return posix.WEXITSTATUS(status)


def end_all(child: int) -> None:
    """Kill the worker's group and then every process that descends from this one."""
    for attempt in range(KILL_ROUNDS):
        try:
            while posix.waitpid(-1, posix.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        kill(-child)
        for pid in descendants():
            kill(pid)
        time.sleep(0.0005 if attempt < 20 else 0.002)


def kill(pid: int) -> None:
    try:  # noqa: SIM105 - `contextlib` costs milliseconds here
        posix.kill(pid, _signal.SIGKILL)
    except OSError:
        pass


def descendants() -> list[int]:
    parents: dict[int, int] = {}
    for name in posix.listdir("/proc"):
        if name.isdecimal():
            try:
                fd = posix.open(f"/proc/{name}/stat", posix.O_RDONLY | posix.O_CLOEXEC)
            except OSError:
                continue
            try:
                fields = posix.read(fd, 4096).rpartition(b")")[2].split()
            except OSError:
                continue
            finally:
                posix.close(fd)
            if len(fields) > 1 and fields[0] != b"Z":
                parents[int(name)] = int(fields[1])
    found = {posix.getpid()}
    grown = True
    while grown:
        grown = False
        for pid, parent in parents.items():
            if parent in found and pid not in found:
                found.add(pid)
                grown = True
    return sorted(found - {posix.getpid()})


def work(frame: dict[str, Any]) -> None:
    """Session, limits and fence, then the executor; leaves the process, never returns."""
    progress_fd = frame["progress_fd"]
    try:
        posix.setsid()
        posix.umask(0o077)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {_signal.SIGTERM, _signal.SIGCHLD})
        null = posix.open("/dev/null", posix.O_RDONLY)
        posix.dup2(null, 0)
        posix.close(null)
        posix.set_blocking(progress_fd, False)
        worker.limit(frame["limits"])
        sys.dont_write_bytecode = True
        fence.install(frame)
    except (OSError, ValueError):
        posix._exit(NO_CAGE)
    worker.answer(frame)
