"""How the house is doing now, and what today cost."""

from __future__ import annotations

import datetime as dt
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from bot.console.figures import figures_of
from bot.console.ports import Outcome, Page, Shown, Visit
from core.errors import ModelMissing
from core.llm.wire import is_this_machine
from core.store import outbox, plan_cache, turns, usage
from core.store.usage import DayUsage

# Beyond this the last word from Telegram is long ago: it is asked every half minute at least.
_SILENT_S = 120.0
_DAYS = 7


async def overview(visit: Visit) -> Outcome:
    stores = visit.house.stores
    today = visit.house.clock.now().astimezone(ZoneInfo(visit.tz)).date()
    first = today - dt.timedelta(days=_DAYS - 1)
    async with stores.main.read() as tx:
        running, asking = await turns.count_open(tx)
        to_send = await outbox.count_open(tx)
        days = await usage.of_days(tx, first)
        figures = await figures_of(tx, visit.words, today)
    async with stores.memory.read() as tx:
        approved, learnt = await plan_cache.count(tx)
    engine = visit.engine
    poll_age = None if engine is None else engine.poll_age_s()
    return Shown(
        "overview.html",
        {
            "poll_age": poll_age,
            "is_silent": poll_age is None or poll_age > _SILENT_S,
            "rival": None if engine is None else engine.rival(),
            "queue": 0 if engine is None else engine.waiting(),
            "running": running,
            "asking": asking,
            "to_send": to_send,
            "today": days.get(today, DayUsage()),
            "week": _sum(list(days.values())),
            "plans": approved + learnt,
            "approved": approved,
            "isolation": (await visit.house.cage.isolation()).value,
            "model": _model(visit),
            "figures": figures,
        },
    )


def _sum(days: list[DayUsage]) -> DayUsage:
    return DayUsage(
        tokens_in=sum(day.tokens_in for day in days),
        tokens_out=sum(day.tokens_out for day in days),
        cached=sum(day.cached for day in days),
        money=sum(day.money for day in days),
        turns=sum(day.turns for day in days),
        from_memory=sum(day.from_memory for day in days),
    )


def _model(visit: Visit) -> dict[str, str]:
    """The model that plans: its name, and where it is (`state` of `console.model.…`)."""
    house = visit.house
    try:
        tier = house.tiers.settings_of("plan")
    except ModelMissing:
        return {"name": "", "state": "none", "host": ""}
    server = house.server
    if server is not None and house.tiers.settings_of("plan") == server.settings:
        state = "loaded" if server.pid is not None else "asleep"
        return {"name": tier.model, "state": state, "host": ""}
    host = urlsplit(tier.base_url).hostname or ""
    state = "here" if tier.local or is_this_machine(host) else "away"
    return {"name": tier.model, "state": state, "host": host}


PAGES = (Page("/", overview, nav="console.nav.overview"),)
