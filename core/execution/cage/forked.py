"""A call as a fork of a zygote, seen from the event loop: asked for, read, bounded, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import struct
from collections.abc import Sequence

from core.execution.cage.streams import OnProgress, Outcome, Streams, finish, sealed
from core.execution.cage.zygote import ENDED, FAILED, PID
from core.execution.cage.zygotes import Zygote

_END_GRACE_S = 3.0


async def run_forked(
    zygote: Zygote,
    frame: bytes,
    *,
    warm: Sequence[str],
    site_dirs: Sequence[str],
    max_output: int,
    timeout_s: float,
    on_progress: OnProgress | None = None,
    broker: int | None = None,
) -> Outcome:
    """Ask for a fork that runs `frame`, and wait for its end.

    `warm`: modules of declared packages to import in the zygote first, once and for all. `broker`:
    a descriptor the call inherits as its only way out; it stays the caller's to close. When this
    task is cancelled the fork is ended first. `lost` in the outcome: the zygote went away.
    Raises `OSError` when no fork can be made.
    """
    streams = Streams(max_output=max_output, on_progress=on_progress)
    try:
        call = _Call(zygote, streams)
        try:
            call.ask(frame, warm, site_dirs, broker)
            stopped = await streams.wait(timeout_s)
        finally:
            try:
                await finish(asyncio.ensure_future(call.end()))
            finally:
                call.close()
        return call.outcome(stopped)
    finally:
        streams.close()


class _Call:
    def __init__(self, zygote: Zygote, streams: Streams) -> None:
        self._zygote = zygote
        self._streams = streams
        self._loop = asyncio.get_running_loop()
        self._pidfd: int | None = None
        self._code: int | None = None
        self._failed: int | None = None
        self._known = asyncio.Event()
        self._ended = asyncio.Event()
        self._asked = False
        self._report, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._report.setblocking(False)

    def ask(
        self, frame: bytes, warm: Sequence[str], site_dirs: Sequence[str], broker: int | None
    ) -> None:
        memory = sealed(frame)
        try:
            fds = [memory, *self._streams.theirs, self._theirs.fileno()]
            fds += [] if broker is None else [broker]
            self._zygote.ask({"warm": list(warm), "site_dirs": list(site_dirs)}, fds)
        finally:
            os.close(memory)
        self._asked = True
        self._theirs.close()
        self._streams.hand_over()
        self._loop.add_reader(self._report.fileno(), self._on_report)

    async def end(self) -> None:
        """Kill the fork if it still runs; its zygote too when that does not answer."""
        if not self._asked:
            return
        for moment in (self._known, self._ended):
            if self._pidfd is not None and not self._ended.is_set():
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            try:
                async with asyncio.timeout(_END_GRACE_S):
                    await moment.wait()
            except TimeoutError:
                self._zygote.kill()
        await self._ended.wait()

    def outcome(self, stopped: str | None) -> Outcome:
        if self._failed is not None:
            raise OSError(self._failed, os.strerror(self._failed))
        code = self._code
        lost = code is None
        if code is None:
            code = -signal.SIGKILL
        elif code < 0:
            code = 128 - code
        return self._streams.outcome(code, "timeout" if stopped else None, lost=lost)

    def close(self) -> None:
        if self._asked:
            self._loop.remove_reader(self._report.fileno())
        self._report.close()
        self._theirs.close()
        if self._pidfd is not None:
            os.close(self._pidfd)

    def _on_report(self) -> None:
        try:
            message, fds, _, _ = socket.recv_fds(self._report, 64, 1)
        except BlockingIOError:
            return
        except OSError:
            message, fds = b"", []
        match message[:1]:
            case kind if kind == PID:
                self._pidfd = fds[0]
                self._known.set()
                return
            case kind if kind == ENDED:
                (self._code,) = struct.unpack("=i", message[1:])
            case kind if kind == FAILED:
                (self._failed,) = struct.unpack("=i", message[1:])
        self._loop.remove_reader(self._report.fileno())
        self._streams.drain()
        self._known.set()
        self._ended.set()
        self._streams.settled.set()
