"""Connected servers of tools on the page of programs: what the host approved of each, and why what
is not used is not.

What a server says is a stranger's text; it is shown as text, after it was freed of what cannot be
seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.catalog.foreign import Approval, clean, executor_of
from core.catalog.foreign_schema import ForeignRefused
from core.catalog.manifest import Effect
from core.store import mcp
from core.store.mcp import KnownTool, Server, ToolState

if TYPE_CHECKING:
    from bot.console.ports import Visit

_TONES = {
    ToolState.ACTIVE: "good",
    ToolState.NEW: "calm",
    ToolState.CHANGED: "bad",
    ToolState.GONE: "warn",
}
_MOST_TARGET = 200


@dataclass(frozen=True, slots=True)
class Tool:
    """`name`: in plans, "" while it is not used. `effect` and `rights` as approved, "" and none
    before. `pinned` and `seen`: digests of what was approved and of what the server says now.
    `bad`: why it can be used in no way (`mcp.bad.…`) and `detail` to it."""

    tool: str
    state: ToolState
    tone: str
    description: str
    name: str
    effect: str
    asks: bool
    rights: tuple[str, ...]
    pinned: str
    seen: str
    bad: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Connected:
    """A server; `program`: it runs on this machine, outside the isolation."""

    name: str
    target: str
    program: bool
    variables: tuple[str, ...]
    tools: tuple[Tool, ...]


async def connected(visit: Visit) -> list[Connected]:
    """Every server with its tools, as they were seen last; none of them is started."""
    async with visit.house.stores.main.read() as tx:
        servers, tools = await mcp.servers(tx), await mcp.tools(tx)
    return [_connected(server, tools) for server in servers]


def _connected(server: Server, tools: list[KnownTool]) -> Connected:
    return Connected(
        server.name,
        clean(server.target, most=_MOST_TARGET),
        bool(server.argv),
        server.env,
        tuple(_tool(one) for one in tools if one.server == server.name),
    )


def _tool(one: KnownTool) -> Tool:
    approval, executor = one.approval, one.executor()
    bad = None if executor is not None or one.state is ToolState.GONE else _why_not(one)
    return Tool(
        one.seen.tool,
        one.state,
        "bad" if bad else _TONES[one.state],
        one.seen.description,
        "" if executor is None else executor.name,
        "" if approval is None else approval.effect.value,
        approval is not None and approval.effect is not Effect.PURE,
        () if approval is None else approval.rights,
        "" if one.approved is None else one.approved.digest,
        one.seen.digest,
        "" if bad is None else f"mcp.bad.{bad.reason}",
        "" if bad is None else clean(bad.detail, most=_MOST_TARGET),
    )


def _why_not(one: KnownTool) -> ForeignRefused | None:
    """Why no approval could make use of what the server says now; None where one could."""
    try:
        executor_of(one.server, one.seen, one.approval or Approval(Effect.BLIND))
    except ForeignRefused as exc:
        return exc
    return None
