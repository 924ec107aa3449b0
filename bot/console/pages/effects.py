"""What was changed in the world, what became of it, and until when it can be taken back."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from bot.console.people import People
from bot.console.ports import Outcome, Page, Shown, Visit
from bot.console.story import Change, change_of
from core.execution.preimages import KEEP
from core.execution.undo_steps import UNDO_LAST_TURN, items_of
from core.store import effects, turn_pages
from core.store.database import Transaction
from core.store.effects import EffectState, StoredEffect

PER_PAGE = 50
STATES = tuple(state.value for state in EffectState)
_MAY_BE_DONE = frozenset({EffectState.DONE, EffectState.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Undo:
    """How taking an effect back stands (`console.undo.…`), and the moment that belongs to it."""

    state: str
    at: dt.datetime | None = None
    tone: str = "calm"


@dataclass(frozen=True, slots=True)
class Entry:
    change: Change
    turn_id: str
    name: str
    undo: Undo
    undoes: str | None


async def listed(visit: Visit) -> Outcome:
    """The journal of everybody, newest first; `?state=` for those in one state alone."""
    page = visit.page_number()
    wanted = visit.query.get("state", "")
    state = EffectState(wanted) if wanted in STATES else None
    now = visit.house.clock.now()
    async with visit.house.stores.main.read() as tx:
        people = await People.read(tx)
        found = await effects.page(
            tx, limit=PER_PAGE + 1, offset=(page - 1) * PER_PAGE, state=state
        )
        shown = found[:PER_PAGE]
        owners = {
            turn_id: row.actor_id
            for turn_id, row in (
                await turn_pages.rows_of(tx, list({one.turn_id for one in shown}))
            ).items()
        }
        undone = await effects.takings_back(tx, {one.turn_id for one in shown})
        last = await _last_of(tx, set(owners.values()))
    catalog, secrets = visit.house.loader.current(), visit.house.settings.secrets
    entries = [
        Entry(
            change_of(one, catalog, visit.lang, secrets),
            one.turn_id,
            people.name(owners.get(one.turn_id, "")),
            undo_of(one, undone.get(one.turn_id, []), last=last, now=now),
            _undoes(one),
        )
        for one in shown
    ]
    return Shown(
        "effects.html",
        {
            "entries": entries,
            "page": page,
            "more": len(found) > PER_PAGE,
            "base": f"/effects?state={state.value}" if state else "/effects",
            "state": "" if state is None else state.value,
            "states": STATES,
        },
    )


def undo_of(
    effect: StoredEffect, takings: list[StoredEffect], *, last: set[str], now: dt.datetime
) -> Undo:
    """Whether an effect can be taken back. `takings`: what was done to take its turn back; `last`:
    the turns that are the last change of their person, which alone can be."""
    if effect.tool == UNDO_LAST_TURN:
        return Undo("itself")
    if effect.state not in _MAY_BE_DONE:
        return Undo("nothing")
    whole = [one for one in takings if one.state is EffectState.DONE and not _is_partial(one)]
    if whole:
        return Undo("undone", whole[-1].ended_at, "good")
    if any(one.state is EffectState.STARTED for one in takings):
        return Undo("running")
    if takings and any(one.state is not EffectState.FAILED for one in takings):
        return Undo("partly", takings[-1].ended_at, "warn")
    if all(item.do == "none" for item in items_of([effect])):
        return Undo("no_way")
    until = effect.started_at + KEEP
    if until <= now:
        return Undo("too_late", until)
    if effect.turn_id not in last:
        return Undo("not_last")
    return Undo("until", until, "good")


async def _last_of(tx: Transaction, actor_ids: set[str]) -> set[str]:
    found = set()
    for actor_id in sorted(actor_ids):
        journal = await effects.last_to_undo(tx, actor_id)
        found |= {one.turn_id for one in journal[:1]}
    return found


def _is_partial(effect: StoredEffect) -> bool:
    return isinstance(effect.summary, dict) and effect.summary.get("partial") is not None


def _undoes(effect: StoredEffect) -> str | None:
    if effect.tool != UNDO_LAST_TURN or not isinstance(effect.summary, dict):
        return None
    found = effect.summary.get("undoes")
    return found if isinstance(found, str) and found else None


PAGES = (Page("/effects", listed, nav="console.nav.effects"),)
