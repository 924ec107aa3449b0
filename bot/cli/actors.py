"""`metnos actors`: who may speak here, what each of them may do, and who may no longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bot.cli.beside import read_store, write_store
from bot.cli.lines import table
from bot.cli.output import BAD_SETTING, FAULT, Console, Session
from bot.cli.people import find_person

if TYPE_CHECKING:
    from datetime import datetime

    from core.messages import Actor
    from core.store.database import Transaction
    from core.store.usage import DayUsage
    from core.store.visitors import Visitor

_DEFAULT = "default"


class _Person(NamedTuple):
    actor: Actor
    senders: list[tuple[str, str]]
    since: datetime | None
    today: DayUsage


def list_actors(
    ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json")] = False
) -> int:
    """Everybody who may speak here, and who asked to or was turned away."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from zoneinfo import ZoneInfo

    from core.clock import SystemClock
    from core.store import actors, usage, visitors

    now = SystemClock().now()

    async def work(tx: Transaction) -> tuple[list[_Person], list[Visitor]]:
        people = []
        for actor in await actors.list_actors(tx):
            day = now.astimezone(ZoneInfo(actor.tz or settings.metnos_tz)).date()
            people.append(
                _Person(
                    actor,
                    await actors.identities_of(tx, actor.id),
                    await actors.came_at(tx, actor.id),
                    await usage.of_day(tx, actor.id, day),
                )
            )
        return people, await visitors.list_visitors(tx, now)

    people, others = read_store(settings, work)
    if as_json:
        console.json(
            {
                "actors": [_as_data(one) for one in people],
                "visitors": [_visitor_data(one) for one in others],
            }
        )
        return 0
    if not people:
        console.tell("cli.actors.none")
    for line in table([_row(console, one) for one in people]):
        console.line(line)
    for visitor in others:
        console.tell(
            f"cli.actors.visitor_{visitor.state.value}",
            name=visitor.name or "?",
            number=visitor.sender_id,
            when=console.texts.datetime(visitor.asked_at, console.lang, settings.metnos_tz),
        )
    return 0


def set_actor(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    autonomy: Annotated[str | None, typer.Option("--autonomy")] = None,
    lang: Annotated[str | None, typer.Option("--lang")] = None,
    tz: Annotated[str | None, typer.Option("--tz")] = None,
    turns: Annotated[str | None, typer.Option("--turns-per-hour")] = None,
    tokens: Annotated[str | None, typer.Option("--tokens-per-day")] = None,
    money: Annotated[str | None, typer.Option("--money-per-day")] = None,
    called: Annotated[str | None, typer.Option("--name")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """Change what counts for somebody from their next turn on. `default`: as the settings say."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.store import actors

    given = {
        "autonomy": autonomy,
        "lang": lang,
        "tz": tz,
        "turns_per_hour": turns,
        "tokens_per_day": tokens,
        "money_per_day": money,
    }
    values: dict[str, Any] = {}
    for field, text in given.items():
        if text is None:
            continue
        ok, value = _value(field, text.strip())
        if not ok:
            console.note(f"cli.actors.bad_{field}", value=text)
            return BAD_SETTING
        values[field] = value
    wanted = None if called is None else actors.clean_name(called)
    if (not values and called is None) or wanted == "":
        console.note("cli.actors.nothing_to_set")
        return BAD_SETTING

    async def work(tx: Transaction) -> Actor | str:
        people = await actors.list_actors(tx)
        person = find_person(people, name)
        if person is None:
            return "cli.grants.no_actor"
        if wanted is not None:
            taken = find_person([p for p in people if p.id != person.id], wanted)
            if taken is not None or wanted.casefold() in {"host", "guest"} - {person.role.value}:
                return "cli.actors.name_taken"
            await actors.set_name(tx, person.id, wanted)
        return await actors.change(tx, person.id, **values) or "cli.grants.no_actor"

    changed = write_store(settings, work)
    if isinstance(changed, str):
        console.note(changed, name=wanted if changed == "cli.actors.name_taken" else name)
        return FAULT
    if as_json:
        console.json(_actor_data(changed))
    else:
        console.tell("cli.actors.changed", name=changed.display_name)
    return 0


def revoke(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """Withdraw somebody's right to speak; it counts from their next message."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.clock import SystemClock
    from core.messages import Role
    from core.store import actors, leaving
    from core.store.leaving import Left

    async def work(tx: Transaction) -> Left | str:
        person = find_person(await actors.list_actors(tx), name)
        if person is None:
            return "cli.grants.no_actor"
        if person.role is Role.HOST:
            return "cli.actors.host_stays"
        return await leaving.revoke(tx, person.id, SystemClock().now()) or "cli.grants.no_actor"

    left = write_store(settings, work)
    if isinstance(left, str):
        console.note(left, name=name)
        return FAULT
    files = settings.metnos_home / "files" / left.actor.id
    if as_json:
        console.json({**_actor_data(left.actor), "questions": left.questions, "files": str(files)})
        return 0
    console.tell("cli.actors.revoked", name=left.actor.display_name)
    if files.is_dir() and any(files.iterdir()):
        from bot.cli.lines import short_path

        console.tell("cli.actors.files_stay", folder=short_path(files))
    return 0


def unblock(ctx: typer.Context, number: Annotated[str, typer.Argument(metavar="NUMBER")]) -> int:
    """Forget that a stranger was turned away or blocked, so that they may ask again."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.store import visitors

    gone = write_store(settings, lambda tx: visitors.forget(tx, "telegram", number.strip()))
    console_says = console.tell if gone else console.note
    console_says("cli.actors.unblocked" if gone else "cli.actors.no_visitor", number=number)
    return 0 if gone else FAULT


def _value(field: str, text: str) -> tuple[bool, Any]:
    """Whether a text is a value of this field, and the value as it is stored."""
    from core.config import LANGS
    from core.messages import Autonomy

    if field == "autonomy":
        return text in set(Autonomy), text
    if text.casefold() == _DEFAULT:
        return True, None
    if field == "lang":
        return text in LANGS, text
    if field == "tz":
        from zoneinfo import available_timezones

        return text in available_timezones(), text
    try:
        number = float(text.replace(",", ".")) if field == "money_per_day" else int(text)
    except ValueError:
        return False, None
    return 0 <= number < 1e12, number


def _row(console: Console, person: _Person) -> tuple[str, ...]:
    actor, used = person.actor, person.today
    numbers = ", ".join(sender for channel, sender in person.senders if channel != "terminal")
    tokens = used.tokens_in + used.tokens_out
    return (
        actor.display_name,
        console.say(f"cli.actors.role_{actor.role.value}"),
        console.say(f"cli.actors.autonomy_{actor.autonomy.value}"),
        numbers or "-",
        actor.id[:8],
        console.say("cli.actors.today", count=used.turns, tokens=tokens),
    )


def _actor_data(actor: Actor) -> dict[str, Any]:
    return {
        "id": actor.id,
        "name": actor.display_name,
        "role": actor.role.value,
        "autonomy": actor.autonomy.value,
        "lang": actor.lang,
        "tz": actor.tz,
        "turns_per_hour": actor.turns_per_hour,
        "tokens_per_day": actor.tokens_per_day,
        "money_per_day": actor.money_per_day,
    }


def _as_data(person: _Person) -> dict[str, Any]:
    used = person.today
    return {
        **_actor_data(person.actor),
        "senders": [{"channel": c, "id": s} for c, s in person.senders],
        "since": None if person.since is None else person.since.isoformat(),
        "today": {
            "turns": used.turns,
            "tokens": used.tokens_in + used.tokens_out,
            "money": used.money,
        },
    }


def _visitor_data(visitor: Visitor) -> dict[str, Any]:
    return {
        "channel": visitor.channel,
        "id": visitor.sender_id,
        "name": visitor.name,
        "state": visitor.state.value,
        "asked_at": visitor.asked_at.isoformat(),
    }
