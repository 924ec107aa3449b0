"""The zygote: a process with everything imported that forks once per call, and nothing else.

Single-threaded, without secrets: it starts as a fresh interpreter with an empty environment. The
engine asks over a control socket and hands over the call's own descriptors; each call has a report
socket on which its pidfd and its end are told. When the engine goes, so do the zygote and all its
calls. What a call leaves behind is adopted and ended.

Runs in its own process and is handed over as code, as everything it imports of this package.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import marshal
import os
import select
import signal
import socket
import struct
import sys

from core.execution.cage import confine, fence, syscalls, worker
from core.execution.cage.probe import probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

PID = b"P"  # with the pidfd
ENDED = b"E"  # with the wait status
FAILED = b"F"  # with an errno: no fork

_SUBREAPER = 36
_PROGRESS_FD, _BROKER_FD, _FIRST_FREE_FD = 3, 4, 5
_RESERVED = 10
_MOST_FDS = 6
_SWEEPS = 1000


def main(boot: dict[str, Any]) -> None:
    """Import, say hello, serve until the engine goes or nothing was asked for `idle_s` seconds."""
    control, null = _settle_descriptors(boot["control_fd"])
    kernel = syscalls.Kernel()
    kernel.prctl(_SUBREAPER, 1)
    kernel.share_one_heap()
    sys.dont_write_bytecode = True
    os.umask(0o077)
    zygote = Zygote(control, null, boot)
    zygote.preload(boot["site_dirs"], boot["preload"])
    zygote.greet()
    zygote.serve(boot["idle_s"])
    os._exit(0)


def _settle_descriptors(control_fd: int) -> tuple[socket.socket, int]:
    """Keep the low numbers taken, so that what is received never stands in a call's way."""
    import fcntl

    control = fcntl.fcntl(control_fd, fcntl.F_DUPFD_CLOEXEC, _RESERVED)
    null = fcntl.fcntl(os.open("/dev/null", os.O_RDWR), fcntl.F_DUPFD_CLOEXEC, _RESERVED)
    for fd in (0, *range(3, _RESERVED)):
        os.dup2(null, fd, inheritable=False)
    return socket.socket(fileno=control), null


class Zygote:
    def __init__(self, control: socket.socket, null: int, boot: dict[str, Any]) -> None:
        self._control = control
        self._null = null
        self._modules = boot["sdk_modules"]
        self._data = boot["sdk_data"]
        self._calls: dict[int, tuple[int, socket.socket]] = {}  # pidfd → pid, report
        self._pid = os.getpid()
        self._shelf = fence.Shelf()
        self._confinement: confine.Confinement | None = None
        # Before any folder of packages is added: this is the base that every call may read.
        self._found = probe()
        if not self._found["reasons"]:
            self._confinement = confine.Confinement()
        fence.open_for_preloading(self._modules, self._data)

    def preload(self, site_dirs: Iterable[str], names: Iterable[str]) -> None:
        """Import what calls would; what cannot be imported here fails, rightly, in the call."""
        self._shelf.give()
        sys.path.extend(path for path in site_dirs if path not in sys.path)
        # Loaded by httpx where they happen to be installed, and used by no program.
        for unused in ("trio", "rich"):
            sys.modules.setdefault(unused, None)  # type: ignore[arg-type]
        for name in names:
            if name not in sys.modules:
                try:
                    importlib.import_module(name)
                except Exception:  # noqa: S112 - foreign code; the call will say it
                    continue
        self._shelf.put()
        gc.collect()
        gc.freeze()

    def greet(self) -> None:
        """Tell the engine what the walls are worth, and how many threads there are (one)."""
        threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1  # noqa: PTH112, PTH208
        self._control.send(marshal.dumps({**self._found, "threads": threads}))

    def serve(self, idle_s: float) -> None:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        while True:
            wait = None if self._calls or not idle_s else idle_s * 1000
            events = poll.poll(wait)
            if not events:
                return
            for fd, _ in events:
                if fd in self._calls:
                    poll.unregister(fd)
                    self._end(fd)
                elif not self._take(poll):
                    for pid, _ in self._calls.values():
                        os.kill(pid, signal.SIGKILL)
                    self._sweep(frozenset())
                    return

    def _take(self, poll: select.poll) -> bool:
        """One request; False when the engine has gone."""
        message, fds, _, _ = socket.recv_fds(self._control, 65536, _MOST_FDS)
        if not message:
            return False
        request = marshal.loads(message)  # noqa: S302 - from the engine alone
        report = socket.socket(fileno=fds[4])
        if request["warm"]:
            self.preload(request["site_dirs"], request["warm"])
        try:
            pid = os.fork()
        except OSError as exc:
            report.send(FAILED + struct.pack("=i", exc.errno or 0))
            report.close()
        else:
            if pid == 0:
                self._become_call(fds)
            pidfd = os.pidfd_open(pid)
            self._calls[pidfd] = (pid, report)
            poll.register(pidfd, select.POLLIN)
            try:
                socket.send_fds(report, [PID], [pidfd])
            except OSError:  # the engine has gone; the control socket will say so
                os.kill(pid, signal.SIGKILL)
        for fd in (*fds[:4], *fds[5:]):
            os.close(fd)
        return True

    def _end(self, pidfd: int) -> None:
        pid, report = self._calls.pop(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        self._sweep(frozenset(pid for pid, _ in self._calls.values()))
        with contextlib.suppress(OSError):
            report.send(ENDED + struct.pack("=i", os.waitstatus_to_exitcode(status)))
        report.close()

    def _sweep(self, known: frozenset[int]) -> None:
        """End every child that is no call: what calls have left, now ours."""
        for _ in range(_SWEEPS):
            strangers = [pid for pid in _children(self._pid) if pid not in known]
            if not strangers:
                return
            for pid in strangers:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def _become_call(self, fds: Sequence[int]) -> None:
        """The fork: close the cage, then run the call. Never returns."""
        try:
            if self._confinement is None or not self._confinement.enter_session(self._pid):
                os._exit(worker.NO_CAGE)
            frame = self._settle_call(fds)
            worker.limit(frame["limits"])
            self._confinement.apply(frame["scope"], first_free_fd=frame["first_free_fd"])
            self._shelf.give(frozenset(frame["packages"]))
            fence.install(frame, self._modules, self._data)
        except MemoryError:
            os._exit(worker.OUT_OF_MEMORY)
        except BaseException:
            os._exit(worker.NO_CAGE)
        try:
            worker.answer(frame)
        finally:
            os._exit(1)

    def _settle_call(self, fds: Sequence[int]) -> dict[str, Any]:
        """Standard streams, progress and the broker at fixed numbers; the frame, read whole."""
        memory, out, err, progress, _, *broker = fds
        size = os.fstat(memory).st_size
        frame: dict[str, Any] = marshal.loads(os.pread(memory, size, 0))  # noqa: S302 - the engine's
        os.dup2(self._null, 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.dup2(progress, _PROGRESS_FD)
        os.set_blocking(_PROGRESS_FD, False)
        frame["progress_fd"] = _PROGRESS_FD
        frame["first_free_fd"] = _BROKER_FD
        if broker:
            os.dup2(broker[0], _BROKER_FD)
            frame["broker_fd"] = _BROKER_FD
            frame["first_free_fd"] = _FIRST_FREE_FD
        return frame


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/self/task/{pid}/children", encoding="ascii") as file:  # noqa: PTH123
            return [int(word) for word in file.read().split()]
    except OSError:
        return []
