"""The console beside the bot: a socket on loopback that costs nothing until somebody knocks.

What serves HTTP and draws pages is loaded at the first knock, off the loop. A port that is taken
is said and tried again; the bot goes on.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING

from core.errors import MetnosError, StoreError
from core.messages import Actor
from core.store import console, kv

if TYPE_CHECKING:
    from bot.app import House
    from bot.console.ports import Engine

    Serve = Callable[[House, Engine, socket.socket], Awaitable[None]]

log = logging.getLogger(__name__)

# In the store while the port cannot be had: what `metnos doctor` tells.
TROUBLE = "console.trouble"
_AGAIN_S = 60.0
_BACKLOG = 64


class ConsoleServer:
    """Serves one house until cancelled. `is_open`: somebody can come in now."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.is_open = False

    @property
    def address(self) -> str:
        return address(self._house.settings.metnos_console_port)

    @property
    def tunnel(self) -> str:
        return tunnel(self._house.settings.metnos_console_port)

    async def link(self, actor: Actor) -> str:
        """An address that lets the host in once. Raises `StoreError`."""
        async with self._house.stores.main.write() as tx:
            return door(self.address, await console.make_link(tx, actor.id, self._now()))

    async def run(self, engine: Engine) -> None:
        """Listen, and serve once somebody knocks, until cancelled; the bot does without it when it
        cannot be."""
        try:
            await self._run(engine)
        except (OSError, MetnosError):
            log.exception("console not served")

    async def _run(self, engine: Engine) -> None:
        listening = await self._listen()
        try:
            self.is_open = True
            await _knock(listening)
            # Some 200 ms of imports and templates, which must not keep turns waiting.
            serve = await asyncio.to_thread(_load)
            await serve(self._house, engine, listening)
        finally:
            self.is_open = False
            listening.close()

    async def _listen(self) -> socket.socket:
        port = self._house.settings.metnos_console_port
        told = False
        while True:
            try:
                listening = _bind(port)
            except OSError as exc:
                if not told:
                    log.warning(
                        "console not served: its port is taken",
                        extra={"port": port, "why": exc.strerror},
                    )
                    told = await self._note(str(port))
                await asyncio.sleep(_AGAIN_S)
            else:
                await self._note(None)
                return listening

    async def _note(self, trouble: str | None) -> bool:
        """Tell other processes; whether that was done."""
        try:
            async with self._house.stores.main.write() as tx:
                if trouble is None:
                    await kv.delete(tx, TROUBLE)
                else:
                    await kv.put(tx, TROUBLE, trouble)
        except StoreError as exc:
            log.warning("state of the console not noted", extra={"error": exc.detail})
            return False
        return True

    def _now(self) -> datetime:
        return self._house.clock.now()


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def door(at: str, secret: str) -> str:
    """The address of a one-time link."""
    return f"{at}/enter/{secret}"


def tunnel(port: int) -> str:
    """What brings the console to another machine of the host's."""
    return f"ssh -N -L {port}:127.0.0.1:{port} {socket.gethostname()}"


def _bind(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setblocking(False)
        listening.bind(("127.0.0.1", port))
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


async def _knock(listening: socket.socket) -> None:
    """Wait until somebody connects; nobody is let in yet."""
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listening.fileno(), heard.set)
    try:
        await heard.wait()
    finally:
        loop.remove_reader(listening.fileno())


def _load() -> Serve:
    from bot.console.serving import prepare, serve

    prepare()
    return serve
