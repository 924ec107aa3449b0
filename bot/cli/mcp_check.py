"""What `metnos doctor` says of connected servers of tools; it starts none of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bot.cli.beside import read_store
from bot.cli.checks import Doctor, Finding
from bot.cli.lines import own_command
from bot.cli.mcp import counted

if TYPE_CHECKING:
    from core.store.mcp import KnownTool, Server


def check_servers(doctor: Doctor) -> Iterator[Finding]:
    """A line for each server: a program runs outside the cage, and is said to; a tool that changed
    is a fault, since what was approved sleeps."""
    from core.errors import StoreError
    from core.store import mcp
    from core.store.stores import MAIN_FILE

    async def work(tx: Any) -> tuple[list[Server], list[KnownTool]]:
        return await mcp.servers(tx), await mcp.tools(tx)

    if not (doctor.settings.private_dir / MAIN_FILE).is_file():
        return
    try:
        servers, tools = read_store(doctor.settings, work)
    except StoreError:
        return  # said already, where the database is looked at
    for server in servers:
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
