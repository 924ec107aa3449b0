"""`metnos grants agreed` and `forget`: what need not be asked again, and taking that back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.beside import read_store, write_store
from bot.cli.lines import short_path, table
from bot.cli.output import FAULT, Session

if TYPE_CHECKING:
    from core.messages import Actor
    from core.store.approvals import Mandate
    from core.store.database import Transaction


def list_agreed(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """The approvals that stand for good, and the addresses that things may be sent to."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.clock import SystemClock
    from core.store import actors, approvals

    async def work(
        tx: Transaction,
    ) -> tuple[list[Actor], list[Mandate], list[tuple[str, str]]]:
        return (
            await actors.list_actors(tx),
            await approvals.list_mandates(tx, SystemClock().now()),
            await approvals.list_recipients(tx),
        )

    people, mandates, recipients = read_store(settings, work)
    names = {person.id: person.display_name for person in people}
    if as_json:
        found = [_as_data(mandate, names) for mandate in mandates]
        sent = [{"name": names.get(one), "address": address} for one, address in recipients]
        console.json({"mandates": found, "recipients": sent})
        return 0
    if not mandates and not recipients:
        console.tell("cli.grants.agreed_none")
    for line in table(
        [
            (
                str(mandate.id),
                names.get(mandate.actor_id, mandate.actor_id[:8]),
                f"«{mandate.bond.request}»",
                " ".join(short_path(name) for name in mandate.bond.shown),
                console.say("cli.grants.agreed_most", count=mandate.most),
                console.say(
                    "cli.grants.until",
                    when=console.texts.datetime(
                        mandate.expires_at, console.lang, settings.metnos_tz
                    ),
                ),
            )
            for mandate in mandates
        ]
    ):
        console.line(line)
    for actor_id, address in recipients:
        name = names.get(actor_id, actor_id[:8])
        console.tell("cli.grants.agreed_recipient", name=name, address=address)
    return 0


def forget(ctx: typer.Context, what: Annotated[str, typer.Argument(metavar="WHAT")]) -> int:
    """Ask again: about a request, by its number, or before anything is sent to an address."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.store import approvals

    async def work(tx: Transaction) -> str | None:
        if what.isdecimal():
            mandate = await approvals.take_back(tx, int(what))
            return None if mandate is None else f"«{mandate.bond.request}»"
        return what if await approvals.forget_recipient(tx, what) else None

    gone = write_store(settings, work)
    if gone is None:
        console.note("cli.grants.agreed_unknown", what=what)
        return FAULT
    console.tell("cli.grants.revoked", target=gone)
    return 0


def _as_data(mandate: Mandate, names: dict[str, str]) -> dict[str, object]:
    return {
        "id": mandate.id,
        "actor": mandate.actor_id,
        "name": names.get(mandate.actor_id),
        "request": mandate.bond.request,
        "tool": mandate.bond.tool,
        "about": list(mandate.bond.shown),
        "most": mandate.most,
        "granted_at": mandate.granted_at.isoformat(),
        "expires_at": mandate.expires_at.isoformat(),
    }
