"""The console as its host sees it: a whole house in a temporary home, spoken to in process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.app import House, open_house
from bot.console.app import build_app
from bot.console.guard import Guard
from core.clock import Clock
from core.messages import Actor
from core.store import actors
from core.store import console as console_store
from tests.support.house import house_settings

ORIGIN = "http://127.0.0.1:8765"


@dataclass
class QuietEngine:
    """A channel that was heard a moment ago and has nothing to do."""

    age_s: float | None = 2.0
    queued: int = 0
    other: str | None = None

    def waiting(self) -> int:
        return self.queued

    def poll_age_s(self) -> float | None:
        return self.age_s

    def rival(self) -> str | None:
        return self.other


@dataclass
class Console:
    """A browser of the host's (`client`), one of nobody's (`stranger`), and the house behind."""

    house: House
    app: Guard
    host: Actor
    client: httpx.AsyncClient
    stranger: httpx.AsyncClient
    engine: QuietEngine = field(default_factory=QuietEngine)

    async def link(self) -> str:
        """The secret of a new link."""
        async with self.house.stores.main.write() as tx:
            return await console_store.make_link(tx, self.host.id, self.house.clock.now())

    async def enter(
        self, client: httpx.AsyncClient, secret: str, **headers: str
    ) -> httpx.Response:
        return await client.post(
            "/enter", data={"key": secret}, headers={"origin": ORIGIN, **headers}
        )

    @property
    def secret(self) -> str:
        """The secret of the host's session."""
        return self.client.cookies[self.app.cookie]

    @property
    def csrf(self) -> str:
        from bot.console.rules import csrf_of

        return csrf_of(self.secret)

    async def get(self, path: str, *, lang: str | None = None) -> httpx.Response:
        if lang is not None:
            await self.speak(lang)
        return await self.client.get(path)

    async def post(self, path: str, **fields: Any) -> httpx.Response:
        """Send a form of one of the console's own pages."""
        data = {"csrf": self.csrf, **{name: str(value) for name, value in fields.items()}}
        return await self.client.post(path, data=data, headers={"origin": ORIGIN})

    async def speak(self, lang: str) -> None:
        await self.post("/lang", lang=lang, back="/")


def browser(app: Any) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=ORIGIN)


@asynccontextmanager
async def open_console(
    tmp_path: Path, *, clock: Clock | None = None, **overrides: Any
) -> AsyncIterator[Console]:
    settings = house_settings(tmp_path, **overrides)
    async with open_house(settings, "test", clock=clock) as house:
        async with house.stores.main.write() as tx:
            host = await actors.ensure_local_host(tx, house.clock)
        engine = QuietEngine()
        app = build_app(house, engine)
        async with browser(app) as client, browser(app) as stranger:
            console = Console(house, app, host, client, stranger, engine)
            response = await console.enter(client, await console.link())
            assert response.status_code == 303
            yield console


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    async with open_console(tmp_path) as opened:
        yield opened
