"""A call inside bubblewrap's namespaces: their first process, and the executor, closed in again.

Runs in a process of its own and is handed over as code, as everything it imports of this package.
The first process keeps the call: when it ends, for whatever reason, the kernel ends every other
process of its namespace, and bubblewrap ends only after that. It is killed when bubblewrap dies.
"""

from __future__ import annotations

import posix
import sys

from core.execution.cage import confine, fence, keeper, worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Mapping
    from typing import Any
else:
    import _signal

_PROGRESS_FD, _BROKER_FD = 3, 4
_RESERVED = 64


def main(frame: dict[str, Any]) -> None:
    """Fork the executor's process and wait for it. Does not return."""
    if posix.getpid() != 1:
        posix._exit(worker.NO_CAGE)
    _signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGTERM, _signal.SIGCHLD})
    child = posix.fork()
    if child == 0:
        try:
            _work(frame)
        except MemoryError:
            posix._exit(worker.OUT_OF_MEMORY)
        finally:
            posix._exit(1)
    posix.closerange(0, 4096)
    posix._exit(keeper.keep(child))


def _work(frame: dict[str, Any]) -> None:
    """Limits, the cage and the fence, then the executor; leaves the process, never returns."""
    try:
        posix.setsid()
        posix.umask(0o077)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {_signal.SIGTERM, _signal.SIGCHLD})
        first_free = _settle(frame)
        confinement = confine.Confinement(programs=frame["programs"])
        worker.limit(frame["limits"])
        _refuse_swapped(frame["identities"])
        confinement.apply(frame["scope"], first_free_fd=first_free)
        sys.dont_write_bytecode = True
        fence.install(frame)
    except (ImportError, OSError, ValueError):
        posix._exit(worker.NO_CAGE)
    worker.answer(frame)


def _refuse_swapped(identities: Mapping[str, tuple[int, int] | None]) -> None:
    """Raise `OSError` when a path names something else than when it was decided on: leaving out
    its rule would not do where it lies below `/tmp`, which is open."""
    for path, known in identities.items():
        try:
            found = posix.lstat(path)
        except OSError:
            continue
        if (found.st_dev, found.st_ino) != known:
            raise OSError(f"{path} was swapped")


def _settle(frame: dict[str, Any]) -> int:
    """Progress and the broker at fixed numbers, an empty input; the first number that is free."""
    import fcntl

    null = posix.open("/dev/null", posix.O_RDONLY)
    posix.dup2(null, 0)
    given = [frame["progress_fd"], frame["broker_fd"]]
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _RESERVED) for fd in given if fd is not None]
    for fd, number in zip(high, (_PROGRESS_FD, _BROKER_FD), strict=False):
        posix.dup2(fd, number, inheritable=False)
    posix.set_blocking(_PROGRESS_FD, False)
    frame["progress_fd"] = _PROGRESS_FD
    if len(high) > 1:
        frame["broker_fd"] = _BROKER_FD
    return _PROGRESS_FD + len(high)
