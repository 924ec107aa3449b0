"""`metnos grants`: what is open to whom beyond the settings, opened and closed by its owner."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.beside import read_store, write_store
from bot.cli.lines import short_path, table
from bot.cli.output import BAD_SETTING, FAULT, Console, Session
from bot.cli.people import find_person

if TYPE_CHECKING:
    from core.config import Settings
    from core.messages import Actor
    from core.store.database import Transaction
    from core.store.grants import Grant

_SPAN = re.compile(r"(\d{1,4})\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def list_grants(
    ctx: typer.Context,
    actor: Annotated[str, typer.Option("--actor")] = "",
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """The grants that hold now, and the lasting ones of the settings."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.clock import SystemClock
    from core.store import actors, grants

    async def work(tx: Transaction) -> tuple[list[Actor], list[Grant]]:
        return await actors.list_actors(tx), await grants.list_grants(tx, SystemClock().now())

    people, found = read_store(settings, work)
    if actor:
        person = find_person(people, actor)
        if person is None:
            console.note("cli.grants.no_actor", name=actor)
            return FAULT
        found = [grant for grant in found if grant.actor_id == person.id]
    names = {person.id: person.display_name for person in people}
    if as_json:
        console.json([_as_data(grant, names) for grant in found])
        return 0
    lasting = settings.metnos_private_hosts
    if not found and not lasting:
        console.tell("cli.grants.none")
    rows = [_row(console, settings, grant, names) for grant in found]
    for line in table(rows):
        console.line(line)
    if lasting:
        console.tell("cli.grants.lasting", hosts=", ".join(lasting))
    return 0


def add(
    ctx: typer.Context,
    kind: Annotated[str, typer.Argument(metavar="KIND")],
    target: Annotated[str, typer.Argument(metavar="TARGET")],
    write: Annotated[bool, typer.Option("--write")] = False,
    actor: Annotated[str, typer.Option("--actor")] = "",
    span: Annotated[str, typer.Option("--for")] = "",
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """Open an inner host, a folder or a right to an actor, the host of this home when none is
    named."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.clock import SystemClock
    from core.errors import CallRefused
    from core.execution.guests import grantable_rights
    from core.store import actors, grants
    from core.store.grants import GrantKind

    lasts = _timedelta(span)
    kinds = {"host", "folder", "right"}
    if kind not in kinds or (span and lasts is None) or (write and kind != "folder"):
        wrong = "cli.grants.bad_span" if span and lasts is None else "cli.grants.bad_kind"
        console.note(wrong)
        return BAD_SETTING
    clock = SystemClock()

    async def work(tx: Transaction) -> tuple[Grant, dict[str, str]] | str:
        if not actor:
            await actors.ensure_local_host(tx, clock)
        people = await actors.list_actors(tx)
        person = find_person(people, actor) if actor else people[0]
        if person is None:
            return "cli.grants.no_actor"
        if kind == "right":
            if target not in grantable_rights():
                return "cli.grants.bad_right"
            chosen, place = GrantKind.RIGHT, target
        elif kind == "host":
            from core.egress.rules import clean_grant

            chosen, place = GrantKind.HOST, clean_grant(target)
        else:
            from core.execution.paths import may_be_granted, scope_for

            chosen = GrantKind.WRITE if write else GrantKind.READ
            place = _folder(target)
            if not may_be_granted(place, scope_for(person, settings)):
                return "cli.grants.bad_folder"
        now = clock.now()
        end = None if lasts is None else now + lasts
        made = await grants.add(tx, person.id, chosen, place, now=now, expires_at=end)
        return made, {one.id: one.display_name for one in people}

    try:
        outcome = write_store(settings, work)
    except CallRefused:
        outcome = "cli.grants.bad_host"
    if isinstance(outcome, str):
        rights = ", ".join(sorted(grantable_rights()))
        console.note(outcome, name=actor, target=target, rights=rights)
        return FAULT
    grant, names = outcome
    if as_json:
        console.json(_as_data(grant, names))
        return 0
    for line in table([_row(console, settings, grant, names)]):
        console.line(line)
    return 0


def revoke(
    ctx: typer.Context,
    number: Annotated[int, typer.Argument(metavar="NUMBER")],
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """Take a grant back; it ends with the next turn."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.store import grants

    gone = write_store(settings, lambda tx: grants.revoke(tx, number))
    if gone is None:
        console.note("cli.grants.unknown", number=number)
        return FAULT
    if as_json:
        console.json(_as_data(gone, {}))
        return 0
    console.tell("cli.grants.revoked", target=_shown(gone))
    return 0


def _folder(target: str) -> str:
    """The one path of a folder, links followed."""
    return os.path.realpath(os.path.expanduser(target))  # noqa: PTH111


def _timedelta(span: str) -> timedelta | None:
    """`90m`, `12h`, `7d`, `2w`; None for what is no span of time."""
    match = _SPAN.fullmatch(span.strip().lower())
    if match is None or int(match[1]) == 0:
        return None
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def _row(
    console: Console, settings: Settings, grant: Grant, names: dict[str, str]
) -> tuple[str, ...]:
    end = (
        console.say("cli.grants.for_good")
        if grant.expires_at is None
        else console.say(
            "cli.grants.until",
            when=console.texts.datetime(grant.expires_at, console.lang, settings.metnos_tz),
        )
    )
    name = names.get(grant.actor_id, grant.actor_id[:8])
    kind = console.say(f"cli.grants.kind_{grant.kind.value}")
    return (str(grant.id), name, kind, _shown(grant), end)


def _shown(grant: Grant) -> str:
    return short_path(grant.target) if grant.kind.value in {"read", "write"} else grant.target


def _as_data(grant: Grant, names: dict[str, str]) -> dict[str, Any]:
    return {
        "id": grant.id,
        "actor": grant.actor_id,
        "name": names.get(grant.actor_id),
        "kind": grant.kind.value,
        "target": grant.target,
        "granted_at": grant.granted_at.isoformat(),
        "expires_at": None if grant.expires_at is None else grant.expires_at.isoformat(),
    }
