"""The engine's end of a zygote: started, greeted, asked, ended with what owns it.

Two of them at most: a light one always, a heavy one with declared packages while it is needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import marshal
import os
import socket
import subprocess
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from core.execution.cage.child import ENVIRONMENT
from core.execution.cage.frame import build_boot
from core.execution.cage.packages import Packages
from core.execution.cage.status import CageStatus, read_status
from core.execution.cage.streams import sealed

log = logging.getLogger(__name__)

HELLO_S = 20.0
_END_GRACE_S = 2.0


class Zygote:
    """One zygote process. `sdk_files` are the verified bytes it has imported.

    Raises `OSError` when it cannot be started. Ends when this object is closed or forgotten, or
    after `idle_s` seconds without a call (0: never); `alive` then says so.
    """

    def __init__(
        self,
        argv: Sequence[str],
        sdk_files: Mapping[str, bytes],
        *,
        packages: Packages,
        preload: Sequence[str],
        idle_s: float = 0.0,
    ) -> None:
        self.sdk_files = sdk_files
        self._status: CageStatus | None = None
        self._greeting: asyncio.Task[CageStatus] | None = None
        self._calls = 0
        self._retired = False
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        memory = None
        try:
            boot = build_boot(
                sdk_files,
                packages=packages,
                preload=preload,
                control_fd=theirs.fileno(),
                idle_s=idle_s,
            )
            memory = sealed(boot)
            self._process = subprocess.Popen(
                argv,
                stdin=memory,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                cwd="/",
                env=ENVIRONMENT,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            if memory is not None:
                os.close(memory)
        self._control = ours
        self._finalizer = weakref.finalize(self, _end, ours, self._process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._retired and self._process.poll() is None

    async def greet(self) -> CageStatus:
        """What the zygote found its walls to be worth; waits for it to be ready.

        Raises `OSError` when it ended or stays silent.
        """
        if self._status is not None:
            return self._status
        loop = asyncio.get_running_loop()
        if self._greeting is None or self._greeting.get_loop() is not loop:
            self._greeting = loop.create_task(self._hello())
        self._status = await asyncio.shield(self._greeting)
        return self._status

    async def _hello(self) -> CageStatus:
        try:
            async with asyncio.timeout(HELLO_S):
                message = await asyncio.get_running_loop().sock_recv(self._control, 65536)
        except TimeoutError:
            self.kill()
            raise OSError("the zygote stays silent") from None
        if not message:
            raise OSError("the zygote ended while it started")
        return read_status(message)

    def ask(self, request: Mapping[str, object], fds: Sequence[int]) -> None:
        """Ask for one call. Raises `OSError`, `BlockingIOError` when too many wait."""
        socket.send_fds(self._control, [marshal.dumps(dict(request))], list(fds))

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While a call runs here, `retire` waits."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            if self._retired and not self._calls:
                self.close()

    def retire(self) -> None:
        """Take no more calls, and end with the last one that runs."""
        self._retired = True
        if not self._calls:
            self.close()

    def kill(self) -> None:
        """End it now; its calls die with it."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def close(self) -> None:
        """End it with all its calls, and wait for it. Twice is fine."""
        self._retired = True
        greeting = self._greeting
        if greeting is not None and not greeting.done() and not greeting.get_loop().is_closed():
            # The loop must not watch a number that the next socket will get.
            greeting.get_loop().remove_reader(self._control)
            greeting.cancel()
        self._finalizer()


def _end(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    control.close()
    try:
        process.wait(_END_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
