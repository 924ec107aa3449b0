"""`metnos console`: a link into the console of the bot that runs, and ending its sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.beside import read_store, write_store
from bot.cli.checks import engine_holder
from bot.cli.output import FAULT, Session

if TYPE_CHECKING:
    from core.store.database import Transaction


def console(
    ctx: typer.Context,
    end_sessions: Annotated[bool, typer.Option("--end-sessions")] = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """A new link makes the former one void. 1 while no console can be opened."""
    session: Session = ctx.obj
    speaker, settings = session.console, session.settings
    from bot.console.server import TROUBLE, address, door, tunnel
    from core.clock import SystemClock
    from core.store import actors, kv
    from core.store import console as console_store

    clock = SystemClock()
    if end_sessions:
        ended = write_store(settings, console_store.end_all)
        if as_json:
            speaker.json({"ended": ended})
        else:
            speaker.tell("cli.console.ended", count=ended)
        return 0
    if not settings.metnos_console:
        speaker.note("cli.console.off")
        return FAULT
    holder = engine_holder(settings.metnos_home)
    if holder is None or holder[1] != "run":
        speaker.note("cli.console.not_running")
        return FAULT
    port = settings.metnos_console_port
    if read_store(settings, lambda tx: kv.get(tx, TROUBLE)) is not None:
        speaker.note("cli.console.port_taken", port=str(port))
        return FAULT

    async def work(tx: Transaction) -> str:
        host = await actors.ensure_local_host(tx, clock)
        return await console_store.make_link(tx, host.id, clock.now())

    link = door(address(port), write_store(settings, work))
    if as_json:
        expires = clock.now() + console_store.LINK_TTL
        speaker.json({"link": link, "expires_at": expires.isoformat()})
        return 0
    minutes = int(console_store.LINK_TTL.total_seconds() // 60)
    speaker.tell("cli.console.link", minutes=minutes)
    speaker.line(f"  {link}")
    speaker.tell("cli.console.from_afar", tunnel=tunnel(port))
    return 0
