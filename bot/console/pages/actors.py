"""Who may speak here, what each of them may do, and what of the programs is kept from them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from bot.console.ports import Outcome, Page, Shown, Visit
from core.allowance import Limits, limits_for
from core.execution.guests import catalog_for
from core.messages import Actor
from core.store import accounts, actors, grants, usage, visitors
from core.store.grants import Grant, GrantKind
from core.store.usage import DayUsage

LIMITS = ("turns_per_hour", "tokens_per_day", "money_per_day")


@dataclass(frozen=True, slots=True)
class Person:
    """`withheld`: names of the programs that are kept from them; `dormant`: of those that lack an
    account of theirs, each with its kind."""

    actor: Actor
    channels: tuple[str, ...]
    since: dt.datetime | None
    today: DayUsage
    limits: Limits
    grants: tuple[Grant, ...]
    tools: int
    withheld: tuple[str, ...]
    dormant: tuple[tuple[str, str], ...]


async def listed(visit: Visit) -> Outcome:
    house = visit.house
    now, settings, catalog = house.clock.now(), house.settings, house.loader.current()
    people = []
    async with house.stores.main.read() as tx:
        for actor in await actors.list_actors(tx):
            held = tuple(await grants.list_grants(tx, now, actor_id=actor.id))
            rights = [one.target for one in held if one.kind is GrantKind.RIGHT]
            have = await accounts.kinds_of(tx, actor.id)
            theirs = catalog_for(actor, catalog, rights, have)
            day = now.astimezone(ZoneInfo(actor.tz or settings.metnos_tz)).date()
            senders = await actors.identities_of(tx, actor.id)
            people.append(
                Person(
                    actor,
                    tuple(dict.fromkeys(channel for channel, _ in senders)),
                    await actors.came_at(tx, actor.id),
                    await usage.of_day(tx, actor.id, day),
                    limits_for(actor, settings),
                    held,
                    len(theirs.offered),
                    tuple(sorted(theirs.withheld)),
                    tuple((name, kind.value) for name, kind in sorted(theirs.dormant.items())),
                )
            )
        others = await visitors.list_visitors(tx, now)
    return Shown(
        "actors.html", {"people": people, "visitors": others, "limit_of": _limit_of(visit)}
    )


def _limit_of(visit: Visit) -> Callable[[Person, str], str]:
    """A function that says a limit of somebody's, "" where there is none."""

    def said(person: Person, name: str) -> str:
        value = getattr(person.limits, name)
        if value is None:
            return ""
        words = visit.words
        shown = words.money(value) if name == "money_per_day" else words.number(value)
        return words.t(f"console.limit.{name}", value=shown)

    return said


PAGES = (Page("/actors", listed, nav="console.nav.actors"),)
