"""Servers of tools by hand: what each lists stands in its folder."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.catalog.foreign import Approval
from core.catalog.loaded import NO_SDK, LoadedExecutor
from core.catalog.manifest import Effect
from core.foreign.servers import Servers
from core.observation import Observation
from core.store import actors, mcp
from core.store.mcp import KnownTool, Server
from core.store.stores import Stores, open_stores
from tests.support import mcp_raw
from tests.support.clock import FrozenClock
from tests.support.house import house_settings

NOW = datetime(2026, 5, 1, tzinfo=UTC)
ANY = {"type": "object", "properties": {"text": {"type": "string"}}}


def tool(name: str, description: str = "Does it.", schema: Any = None) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": schema or ANY}


def raw_argv(folder: Path) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", mcp_raw.__file__, str(folder))


@dataclass
class Bench:
    """One server and the engine's end of it."""

    folder: Path
    stores: Stores
    clock: Any
    servers: Servers
    server: Server
    made: dict[str, LoadedExecutor] = field(default_factory=dict)

    def lists(self, *tools: dict[str, Any]) -> None:
        (self.folder / "tools.json").write_text(json.dumps(tools), encoding="utf-8")

    async def approve(self, name: str, approval: Approval | None = None) -> LoadedExecutor:
        await self.servers.look(self.server)
        known = {one.seen.tool: one for one in await self.known()}[name]
        said = approval or Approval(Effect.BLIND)
        async with self.stores.main.write() as tx:
            assert await mcp.approve(tx, self.server.name, known.seen, said, NOW)
        (one,) = [e for e in await self.active() if e.foreign and e.foreign.tool == name]
        return one

    async def known(self) -> list[KnownTool]:
        async with self.stores.main.read() as tx:
            return await mcp.tools(tx)

    async def active(self) -> tuple[LoadedExecutor, ...]:
        async with self.stores.main.read() as tx:
            return await mcp.active(tx)

    async def call(self, one: LoadedExecutor, **bounds: Any) -> Observation:
        return await self.servers.run(one, NO_SDK, {"args": {"text": "ciao"}}, **bounds)

    @property
    def starts(self) -> list[int]:
        """The processes that were started, oldest first."""
        file = self.folder / "starts"
        return (
            [int(line) for line in file.read_text(encoding="utf-8").split()]
            if file.exists()
            else []
        )


Connect = Callable[..., Any]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    folder = tmp_path / "server"
    folder.mkdir()
    clock = FrozenClock(NOW)
    stores = await open_stores(house_settings(tmp_path), clock)
    async with stores.main.write() as tx:
        host = await actors.ensure_local_host(tx, clock)
        server = Server("raw", host.id, raw_argv(folder), env=("TOKEN",))
        assert await mcp.add(tx, stores.vault, server, {"TOKEN": "canary-91-value"}, NOW)
    servers = Servers(stores, clock, tmp_path / "servers")
    made = Bench(folder, stores, clock, servers, server)
    made.lists(tool("echo"))
    yield made
    await servers.close()
    await stores.close()
