"""What a call's process writes, seen from the event loop: read, bounded, kept.

Holds no opinion about what the bytes mean. Descriptors are watched by the loop directly (no
transports, no threads).
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

_CHUNK = 65536
KEPT_ERRORS = 4096
_MAX_PROGRESS = 262_144
_F_ADD_SEALS = 1033
_SEALS = 0x1 | 0x2 | 0x4 | 0x8  # seal, shrink, grow, write

OnProgress = Callable[[int | None, int | None], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call's process ended.

    `returncode`: the worker's code, 128 + signal, or negative when the process that kept it was
    killed. `begun`: the executor's code was reached. `stopped`: why it was ended from here.
    `errors`: the last 4 KiB of its error stream. `lost`: what kept it went away first.
    """

    output: bytes
    returncode: int
    begun: bool
    stopped: Literal["timeout", "output"] | None
    errors: bytes
    lost: bool = False


class Streams:
    """Three pipes of one call: output, errors, progress. `theirs` are the ends to hand over."""

    def __init__(self, *, max_output: int, on_progress: OnProgress | None) -> None:
        """Raises `OSError` when no pipe can be made; then nothing is left open."""
        self._max_output = max_output
        self._on_progress = on_progress
        self._output = bytearray()
        self._errors = bytearray()
        self._half_line = b""
        self._progress_total = 0
        self._loop = asyncio.get_running_loop()
        self._fds: dict[int, Callable[[], None]] = {}
        self.begun = False
        self.overflow = False
        self.settled = asyncio.Event()
        with contextlib.ExitStack() as undo:
            self._out, out_w = _pipe(undo)
            self._err, err_w = _pipe(undo)
            self._progress, progress_w = _pipe(undo)
            undo.pop_all()
        self.theirs = (out_w, err_w, progress_w)
        self.pipes = frozenset(
            f"pipe:[{os.fstat(fd).st_ino}]" for fd in (self._out, self._err, self._progress)
        )
        self.watch(self._out, self._read_output)
        self.watch(self._err, self._read_errors)
        self.watch(self._progress, self._read_progress)

    def hand_over(self) -> None:
        """Close the other process's ends here: it has them. Twice is fine."""
        theirs, self.theirs = self.theirs, ()  # type: ignore[assignment]
        for fd in theirs:
            os.close(fd)

    async def wait(self, timeout_s: float) -> Literal["timeout"] | None:
        """Until the process has ended, too much was written, or the time is up."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.settled.wait()
        except TimeoutError:
            return "timeout"
        return None

    def outcome(
        self, returncode: int, stopped: Literal["timeout", "output"] | None, *, lost: bool = False
    ) -> Outcome:
        stopped = "output" if self.overflow else stopped
        errors = bytes(self._errors[-KEPT_ERRORS:])
        return Outcome(bytes(self._output), returncode, self.begun, stopped, errors, lost)

    def drain(self) -> None:
        """Read what is left: the writers have gone, so what is in the pipes is all."""
        readers = (self._out, self._err, self._progress)
        for fd, callback in list(self._fds.items()):
            if fd in readers:
                for _ in range(32):
                    if fd not in self._fds:
                        break
                    callback()

    def close(self) -> None:
        """Let go of every descriptor. Twice is fine."""
        self.hand_over()
        for fd in list(self._fds):
            self.unwatch(fd)

    def watch(self, fd: int, callback: Callable[[], None]) -> None:
        """Call back when `fd` can be read; it is closed with the rest."""
        self._fds[fd] = callback
        self._loop.add_reader(fd, callback)

    def unwatch(self, fd: int) -> None:
        """Close a watched descriptor. Twice is fine."""
        if self._fds.pop(fd, None) is not None:
            self._loop.remove_reader(fd)
            os.close(fd)

    # -- what the loop calls ------------------------------------------------------------------

    def _read_output(self) -> None:
        data = self._read(self._out)
        room = self._max_output - len(self._output)
        self._output += data[:room] if room > 0 else b""
        if len(data) > room:
            self.overflow = True
            self.unwatch(self._out)
            self.settled.set()

    def _read_errors(self) -> None:
        self._errors += self._read(self._err)
        del self._errors[:-KEPT_ERRORS]

    def _read_progress(self) -> None:
        data = self._read(self._progress)
        self._progress_total += len(data)
        *lines, self._half_line = (self._half_line + data).split(b"\n")
        if not self.begun and lines and lines[0] == b"begun":
            self.begun = True
            del lines[0]
        if self._progress_total > _MAX_PROGRESS or len(self._half_line) > 64:
            self.unwatch(self._progress)
        if lines and self._on_progress is not None and len(lines[-1]) <= 40:
            numbers = lines[-1].split()
            if len(numbers) == 2 and all(n == b"-" or n.isdigit() for n in numbers):
                done, total = (None if n == b"-" else int(n) for n in numbers)
                self._on_progress(done, total)

    def _read(self, fd: int) -> bytes:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return b""
        if not data:
            self.unwatch(fd)
        return data


async def finish(ending: asyncio.Future[None]) -> None:
    """Wait for `ending`, also when cancelled meanwhile; then the cancellation goes on."""
    cancelled = None
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        raise cancelled


def sealed(data: bytes) -> int:
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


def _pipe(undo: contextlib.ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    undo.callback(_close, read)
    undo.callback(_close, write)
    os.set_blocking(read, False)
    return read, write


def _close(fd: int) -> None:
    with contextlib.suppress(OSError):
        os.close(fd)
