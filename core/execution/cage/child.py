"""One child process of a call, seen from the event loop: started, read, bounded, ended.

Holds no opinion about what the bytes mean. Descriptors are watched by the loop directly (no
transports, no threads); the process is watched through a pidfd. Ending asks the child's keeper
(see `bootstrap`) to kill everything below it, and kills the keeper when that takes too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_CHUNK = 65536
_KEPT_ERRORS = 4096
_MAX_PROGRESS = 262_144
_END_GRACE_S = 3.0
_HOLDER_ROUNDS = 500
_F_ADD_SEALS = 1033
_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # seal, shrink, grow, write

OnProgress = Callable[[int | None, int | None], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a child ended.

    `returncode`: of the keeper: the worker's code, 128 + signal, or negative when the keeper
    itself was killed. `begun`: the executor's code was reached. `stopped`: why it was ended
    from here. `errors`: the last 4 KiB of its error stream.
    """

    output: bytes
    returncode: int
    begun: bool
    stopped: Literal["timeout", "output"] | None
    errors: bytes


async def run_child(
    argv: Sequence[str],
    build: Callable[[int], bytes],
    *,
    max_output: int,
    timeout_s: float,
    on_progress: OnProgress | None = None,
    broker_fd: int | None = None,
) -> Outcome:
    """Start a child, give it `build(progress_fd)` as standard input, and wait for its end.

    A copy of `broker_fd` is handed to it under the same number. At most `max_output` bytes are
    kept. When this task is cancelled the child and all below it are ended first. Raises `OSError`
    when no child can be started.
    """
    child = _Child(
        argv,
        build,
        max_output=max_output,
        on_progress=on_progress,
        handed=() if broker_fd is None else (broker_fd,),
    )
    try:
        return await child.wait(timeout_s)
    finally:
        await child.close()


class _Child:
    def __init__(
        self,
        argv: Sequence[str],
        build: Callable[[int], bytes],
        *,
        max_output: int,
        on_progress: OnProgress | None,
        handed: tuple[int, ...],
    ) -> None:
        self._max_output = max_output
        self._on_progress = on_progress
        self._output = bytearray()
        self._errors = bytearray()
        self._half_line = b""
        self._progress_total = 0
        self._begun = False
        self._overflow = False
        self._loop = asyncio.get_running_loop()
        self._settled = asyncio.Event()
        self._exited = asyncio.Event()
        self._fds: dict[int, Callable[[], None]] = {}
        with contextlib.ExitStack() as undo:
            out_r, out_w = _pipe(undo)
            err_r, err_w = _pipe(undo)
            progress_r, progress_w = _pipe(undo)
            stdin = _sealed(build(progress_w))
            undo.callback(_close, stdin)
            # No preexec_fn: it would forbid vfork, and limits are set by the child's own keeper.
            self._process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=out_w,
                stderr=err_w,
                pass_fds=(progress_w, *handed),
                start_new_session=True,
                cwd="/",
                env={"LANG": "C.UTF-8"},
            )
            try:
                pidfd = os.pidfd_open(self._process.pid)
            except OSError:
                self._process.kill()
                self._process.wait()
                raise
            undo.pop_all()
        for fd in (stdin, out_w, err_w, progress_w):
            os.close(fd)
        self._pidfd = pidfd
        self._out, self._err, self._progress = out_r, err_r, progress_r
        self._pipes = frozenset(
            f"pipe:[{os.fstat(fd).st_ino}]" for fd in (out_r, err_r, progress_r)
        )
        self._watch(out_r, self._read_output)
        self._watch(err_r, self._read_errors)
        self._watch(progress_r, self._read_progress)
        self._watch(pidfd, self._on_exit)

    async def wait(self, timeout_s: float) -> Outcome:
        stopped: Literal["timeout", "output"] | None = None
        try:
            async with asyncio.timeout(timeout_s):
                await self._settled.wait()
        except TimeoutError:
            stopped = "timeout"
        await self._end()
        if self._overflow:
            stopped = "output"
        return Outcome(
            bytes(self._output),
            self._process.returncode,
            self._begun,
            stopped,
            bytes(self._errors[-_KEPT_ERRORS:]),
        )

    async def close(self) -> None:
        """End the child if it still runs and let go of every descriptor, also when cancelled."""
        ending = asyncio.ensure_future(self._end())
        cancelled = None
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError as exc:
                cancelled = exc
        for fd in list(self._fds):
            self._unwatch(fd)
        if cancelled is not None:
            raise cancelled

    async def _end(self) -> None:
        if not self._exited.is_set():
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # somebody may have stopped the keeper
            try:
                async with asyncio.timeout(_END_GRACE_S):
                    await self._exited.wait()
            except TimeoutError:
                self._signal(signal.SIGKILL)
                await self._exited.wait()
        if self._process.returncode < 0:
            # Somebody killed the keeper, so nobody has cleaned up below it.
            for _ in range(_HOLDER_ROUNDS):
                if not _kill_holders(self._pipes):
                    break
                await asyncio.sleep(0.002)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    # -- what the loop calls ------------------------------------------------------------------

    def _on_exit(self) -> None:
        self._process.wait()
        # The keeper leaves only when nothing below it lives, so what is in the pipes is all.
        for fd, callback in list(self._fds.items()):
            if fd != self._pidfd:
                for _ in range(32):
                    if fd not in self._fds:
                        break
                    callback()
        self._unwatch(self._pidfd)
        self._exited.set()
        self._settled.set()

    def _read_output(self) -> None:
        data = self._read(self._out)
        room = self._max_output - len(self._output)
        self._output += data[:room] if room > 0 else b""
        if len(data) > room:
            self._overflow = True
            self._unwatch(self._out)
            self._settled.set()

    def _read_errors(self) -> None:
        self._errors += self._read(self._err)
        del self._errors[:-_KEPT_ERRORS]

    def _read_progress(self) -> None:
        data = self._read(self._progress)
        self._progress_total += len(data)
        *lines, self._half_line = (self._half_line + data).split(b"\n")
        if not self._begun and lines and lines[0] == b"begun":
            self._begun = True
            del lines[0]
        if self._progress_total > _MAX_PROGRESS or len(self._half_line) > 64:
            self._unwatch(self._progress)
        if lines and self._on_progress is not None and len(lines[-1]) <= 40:
            numbers = lines[-1].split()
            if len(numbers) == 2 and all(n == b"-" or n.isdigit() for n in numbers):
                done, total = (None if n == b"-" else int(n) for n in numbers)
                self._on_progress(done, total)

    # -- descriptors --------------------------------------------------------------------------

    def _read(self, fd: int) -> bytes:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return b""
        if not data:
            self._unwatch(fd)
        return data

    def _watch(self, fd: int, callback: Callable[[], None]) -> None:
        self._fds[fd] = callback
        self._loop.add_reader(fd, callback)

    def _unwatch(self, fd: int) -> None:
        if self._fds.pop(fd, None) is not None:
            self._loop.remove_reader(fd)
            os.close(fd)


def _pipe(undo: contextlib.ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    undo.callback(_close, read)
    undo.callback(_close, write)
    os.set_blocking(read, False)
    return read, write


def _close(fd: int) -> None:
    with contextlib.suppress(OSError):
        os.close(fd)


def _kill_holders(pipes: frozenset[str]) -> int:
    """Kill every other process that holds one of these pipes; how many there were.

    Without threads on purpose: while this loop's thread is here it starts no process, so no child
    between fork and exec can be taken for a holder.
    """
    found = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        if _holds(folder / "fd", pipes):
            found += 1
            with contextlib.suppress(OSError):
                os.kill(int(folder.name), signal.SIGKILL)
    return found


def _holds(folder: Path, pipes: frozenset[str]) -> bool:
    try:
        links = list(folder.iterdir())
    except OSError:
        return False
    for link in links:
        with contextlib.suppress(OSError):
            if str(link.readlink()) in pipes:
                return True
    return False


def _sealed(data: bytes) -> int:
    """A file without a name that holds `data`, read from its start, and that nobody can change."""
    fd = os.memfd_create("metnos-call", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        fcntl.fcntl(fd, _F_ADD_SEALS, _SEALS)
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:
        os.close(fd)
        raise
    return fd
