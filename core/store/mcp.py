"""Servers of tools that the host connected, and what was approved of each. Owns `mcp_servers` and
`mcp_tools`.

What a server says of a tool is kept as it was seen last, beside what was seen when the host
approved it: while the two differ, the tool sleeps. Values for a server's environment lie in the
vault, under `secret_name`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from core.catalog.foreign import Approval, SeenTool, executor_of
from core.catalog.foreign_schema import ForeignRefused
from core.catalog.loaded import LoadedExecutor
from core.clock import to_ts
from core.store import credentials
from core.store.credentials import Vault
from core.store.database import Row, Transaction
from core.store.encoding import dump_json, load_json, load_object

MOST_SERVERS = 20


class ToolState(StrEnum):
    """`new`: never approved. `changed`: the server says something else of it than what was
    approved. `gone`: the server does not list it any more. Only `active` ones are called."""

    NEW = "new"
    ACTIVE = "active"
    CHANGED = "changed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Server:
    """`argv` of a program of this machine, or else `url`. `env`: the names of the variables whose
    values `actor_id` entrusted."""

    name: str
    actor_id: str
    argv: tuple[str, ...] = ()
    url: str = ""
    env: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        return self.url or shlex.join(self.argv)

    def secret_name(self, variable: str) -> str:
        return f"mcp:{self.name}:{variable}"


@dataclass(frozen=True, slots=True)
class KnownTool:
    """`seen`: as listed last. `approved`: what was seen when the host approved it."""

    server: str
    seen: SeenTool
    gone: bool = False
    approved: SeenTool | None = None
    approval: Approval | None = None

    @property
    def state(self) -> ToolState:
        if self.approved is None:
            return ToolState.GONE if self.gone else ToolState.NEW
        if self.gone:
            return ToolState.GONE
        same = self.approved.digest == self.seen.digest
        return ToolState.ACTIVE if same else ToolState.CHANGED

    def executor(self) -> LoadedExecutor | None:
        """As it stands in the catalogue; None while it sleeps or was never approved."""
        if self.state is not ToolState.ACTIVE or self.approved is None or self.approval is None:
            return None
        try:
            return executor_of(self.server, self.approved, self.approval)
        except ForeignRefused:
            # Approved by a version that could use it; this one asks anew.
            return None


async def add(
    tx: Transaction, vault: Vault, server: Server, values: Mapping[str, str], now: datetime
) -> bool:
    """Keep a server and the values of its environment; False when there is one of that name or
    there are too many. Raises what `credentials.put` raises."""
    row = await tx.fetch_one("SELECT COUNT(*) AS n FROM mcp_servers")
    if row is None or int(row["n"]) >= MOST_SERVERS or await find(tx, server.name) is not None:
        return False
    await tx.execute(
        """INSERT INTO mcp_servers (name, actor_id, argv_json, url, env_json, added_at)
           VALUES (:name, :actor, :argv, :url, :env, :now)""",
        {
            "name": server.name,
            "actor": server.actor_id,
            "argv": dump_json(list(server.argv)),
            "url": server.url,
            "env": dump_json(list(server.env)),
            "now": to_ts(now),
        },
    )
    for variable in server.env:
        await credentials.put(
            tx,
            vault,
            server.actor_id,
            server.secret_name(variable),
            values[variable],
            now,
        )
    return True


async def remove(tx: Transaction, name: str) -> bool:
    """Forget a server, its tools and its secrets; False when there is none."""
    server = await find(tx, name)
    if server is None:
        return False
    for variable in server.env:
        await credentials.delete(tx, server.actor_id, server.secret_name(variable))
    await tx.execute("DELETE FROM mcp_tools WHERE server = :name", {"name": name})
    await tx.execute("DELETE FROM mcp_servers WHERE name = :name", {"name": name})
    return True


async def servers(tx: Transaction) -> list[Server]:
    return [_server(row) for row in await tx.fetch_all("SELECT * FROM mcp_servers ORDER BY name")]


async def find(tx: Transaction, name: str) -> Server | None:
    row = await tx.fetch_one("SELECT * FROM mcp_servers WHERE name = :name", {"name": name})
    return None if row is None else _server(row)


async def environment(
    tx: Transaction, vault: Vault, server: Server
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The values of a server's environment, and the names of those that were forgotten. Raises
    `SecretUnreadable`."""
    found: dict[str, str] = {}
    missing: list[str] = []
    for variable in server.env:
        name = server.secret_name(variable)
        value = await credentials.read(tx, vault, server.actor_id, name)
        if value is None:
            missing.append(variable)
        else:
            found[variable] = value
    return found, tuple(missing)


async def saw(tx: Transaction, server: str, seen: Sequence[SeenTool]) -> None:
    """Write down what a server lists now; what it does not list is gone. Twice is fine."""
    listed = dump_json([one.tool for one in seen])
    await tx.execute(
        """UPDATE mcp_tools SET gone = 1
           WHERE server = :server AND tool NOT IN (SELECT value FROM json_each(:listed))""",
        {"server": server, "listed": listed},
    )
    for one in seen:
        await tx.execute(
            """INSERT INTO mcp_tools (server, tool, seen_json, gone)
               VALUES (:server, :tool, :seen, 0)
               ON CONFLICT (server, tool)
                   DO UPDATE SET seen_json = excluded.seen_json, gone = 0""",
            {"server": server, "tool": one.tool, "seen": dump_json(_as_data(one))},
        )


async def tools(tx: Transaction, server: str = "") -> list[KnownTool]:
    """What is known of the tools of one server, or of all."""
    rows = await tx.fetch_all(
        """SELECT * FROM mcp_tools WHERE :server IN ('', server) ORDER BY server, tool""",
        {"server": server},
    )
    return [_tool(row) for row in rows]


async def approve(
    tx: Transaction, server: str, seen: SeenTool, approval: Approval, now: datetime
) -> bool:
    """Approve a tool as the host was shown it; False when the server has said something else of
    it since. Raises `ForeignRefused` for what cannot be used."""
    executor_of(server, seen, approval)
    known = {one.seen.tool: one for one in await tools(tx, server)}.get(seen.tool)
    if known is None or known.gone or known.seen.digest != seen.digest:
        return False
    await tx.execute(
        """UPDATE mcp_tools SET approved_json = :seen, approval_json = :approval,
                  approved_at = :now
           WHERE server = :server AND tool = :tool""",
        {
            "server": server,
            "tool": seen.tool,
            "seen": dump_json(_as_data(seen)),
            "approval": dump_json(approval.to_json()),
            "now": to_ts(now),
        },
    )
    return True


async def revoke(tx: Transaction, server: str, tool: str) -> bool:
    """Take an approval back; False when there is none."""
    changed = await tx.execute(
        """UPDATE mcp_tools SET approved_json = NULL, approval_json = NULL, approved_at = NULL
           WHERE server = :server AND tool = :tool AND approved_json IS NOT NULL""",
        {"server": server, "tool": tool},
    )
    return changed == 1


async def active(tx: Transaction) -> tuple[LoadedExecutor, ...]:
    """The tools that may be called, as executors."""
    rows = await tx.fetch_all("SELECT * FROM mcp_tools WHERE approved_json IS NOT NULL")
    found = (_tool(row).executor() for row in rows)
    return tuple(one for one in found if one is not None)


def _as_data(seen: SeenTool) -> dict[str, Any]:
    return {
        "tool": seen.tool,
        "description": seen.description,
        "schema": seen.schema,
        "digest": seen.digest,
    }


def _seen(text: str) -> SeenTool:
    data = load_object(text)
    return SeenTool(data["tool"], data["description"], data["schema"], data["digest"])


def _server(row: Row) -> Server:
    return Server(
        row["name"],
        row["actor_id"],
        tuple(load_json(row["argv_json"])),
        row["url"],
        tuple(load_json(row["env_json"])),
    )


def _tool(row: Row) -> KnownTool:
    approved = row["approved_json"]
    return KnownTool(
        row["server"],
        _seen(row["seen_json"]),
        bool(row["gone"]),
        None if approved is None else _seen(approved),
        None if approved is None else Approval.from_json(load_object(row["approval_json"])),
    )
