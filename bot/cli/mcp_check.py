"""What `metnos doctor` says of connected servers of tools: what is known of each and, unless it
stays offline, whether it answers now and still says of its tools what the host approved."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bot.cli.beside import read_store
from bot.cli.checks import Doctor, Finding
from bot.cli.lines import own_command
from bot.cli.mcp import counted

if TYPE_CHECKING:
    from core.config import Settings
    from core.store.mcp import KnownTool, Server


def check_servers(doctor: Doctor, *, ask: bool) -> Iterator[Finding]:
    """A line for each server: a program runs outside the cage, and is said to; a tool that changed
    is a fault, since what was approved sleeps. `ask`: each is started or reached, and what it
    lists is written down as at any start; one that does not answer is a fault."""
    from core.errors import StoreError
    from core.store import mcp
    from core.store.stores import MAIN_FILE

    async def work(tx: Any) -> tuple[list[Server], list[KnownTool]]:
        return await mcp.servers(tx), await mcp.tools(tx)

    if not (doctor.settings.private_dir / MAIN_FILE).is_file():
        return
    try:
        servers, tools = read_store(doctor.settings, work)
        silent = asyncio.run(_silent(doctor.settings, servers)) if ask and servers else {}
        if ask and servers:
            servers, tools = read_store(doctor.settings, work)
    except StoreError:
        return  # said already, where the database is looked at
    for server in servers:
        if why := silent.get(server.name):
            mend = own_command(f"mcp tools {server.name}")
            yield doctor.fault("mcp", "mcp_silent", mend, name=server.name, why=why)
            continue
        own = [one for one in tools if one.server == server.name]
        said = counted(doctor.console, own)
        if any(one.state == "changed" or (one.approved and one.gone) for one in own):
            mend = own_command(f"mcp approve {server.name}")
            yield doctor.fault("mcp", "mcp_asleep", mend, name=server.name, tools=said)
        elif server.argv:
            target = server.target
            yield doctor.info("mcp", "mcp_program", name=server.name, tools=said, target=target)
        else:
            yield doctor.good("mcp", "mcp_good", name=server.name, tools=said)


async def _silent(settings: Settings, servers: Sequence[Server]) -> dict[str, str]:
    """The servers that do not answer now, each with the reason; all are asked at once. Raises
    `StoreError`."""
    from core.catalog.foreign import clean
    from core.clock import SystemClock
    from core.errors import SecretUnreadable
    from core.foreign.link import LinkFailed, ServerSaidNo
    from core.foreign.servers import Servers
    from core.store.stores import open_stores

    clock = SystemClock()
    stores = await open_stores(settings, clock)
    running = Servers(stores, clock, settings.private_dir / "servers")

    async def why(server: Server) -> str:
        try:
            await running.look(server)
        except (LinkFailed, ServerSaidNo, SecretUnreadable) as exc:
            return clean(str(exc), most=300) or type(exc).__name__
        return ""

    try:
        reasons = await asyncio.gather(*map(why, servers))
    finally:
        await running.close()
        await stores.close()
    return {one.name: reason for one, reason in zip(servers, reasons, strict=True) if reason}
