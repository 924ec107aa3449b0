"""HTTP for the console: uvicorn on a socket that listens already, with every client bounded.

A connection serves one request and is ended after a few seconds whatever it does, so that slow
or silent clients, which only this machine has, cannot keep the host out.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.app import House
from bot.console.app import build_app
from bot.console.ports import Engine
from bot.console.rendering import environment

LIFETIME_S = 20.0
MOST_CONNECTIONS = 64
_MOST_HEAD_BYTES = 16 * 1024
_END_S = 2.0


def prepare() -> None:
    """Make every template ready, which takes longest; called again it costs nothing."""
    templates = environment()
    for name in templates.list_templates(extensions=["html"]):
        templates.get_template(name)


async def serve(house: House, engine: Engine, listening: socket.socket) -> None:
    """Serve until cancelled; then what is being answered may end, for two seconds at most."""
    server = _Server(
        uvicorn.Config(
            build_app(house, engine),
            http=_Bounded,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # Nobody's word counts about who asks from where.
            proxy_headers=False,
            h11_max_incomplete_event_size=_MOST_HEAD_BYTES,
            timeout_keep_alive=2,
            timeout_graceful_shutdown=int(_END_S),
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listening]), name="console")
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await asyncio.wait({serving}, timeout=_END_S + 1)
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


class _Server(uvicorn.Server):
    """uvicorn without its handlers of signals: the process has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Bounded(H11Protocol):
    """One connection of a bounded number, for a bounded time. When there are too many, the one
    that has said nothing for longest makes room."""

    _end: asyncio.TimerHandle | None = None
    _made_at = 0.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._made_at = self.loop.time()
        self._end = self.loop.call_later(LIFETIME_S, transport.abort)
        if len(self.connections) > MOST_CONNECTIONS:
            ours = [one for one in self.connections if isinstance(one, _Bounded)]
            silent = [one for one in ours if one.cycle is None]
            min(silent, key=lambda one: one._made_at, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._end is not None:
            self._end.cancel()
        super().connection_lost(exc)
