"""What is remembered: each row of both levels, why it last served or did not, and taking it
away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.console.ports import Missing, Moved, Outcome, Page, Shown, Visit, number_of
from core.levels.champions import Status
from core.levels.reuse import serves
from core.store import actors, antis, autopath, observations, plan_cache
from core.store.database import Transaction
from core.store.stores import Stores

_PER_PAGE = 20
_APPROVED = {"all": None, "approved": True, "learnt": False}
_STATUSES = {status.value: status for status in Status}
_KINDS = (*_APPROVED, *_STATUSES, "observations", "anti")
_LEVELS = frozenset({"l0", "l1", "all"})
# Those that are kept away now are few: none is so for more than a month.
_MOST_ANTIS = 200


async def praxis(visit: Visit) -> Outcome:
    """The rows of one kind: L0's plans, L1's by their status, what L1 observed, and what it keeps
    away."""
    kind, page = visit.query.get("kind", "all"), visit.page_number()
    if kind not in _KINDS:
        return Missing()
    stores, now = visit.house.stores, visit.house.clock.now()
    async with stores.memory.read() as tx:
        approved, learnt = await plan_cache.count(tx)
        counts = {"all": approved + learnt, "approved": approved, "learnt": learnt}
        counts |= {status.value: n for status, n in (await autopath.count(tx)).items()}
        counts |= {
            "observations": await observations.count(tx),
            "anti": await antis.count(tx, now),
        }
        rows = await _rows(visit, tx, kind, page)
    more = len(rows) > _PER_PAGE and kind != "anti"
    return Shown(
        "praxis.html",
        {
            "kind": kind,
            "counts": counts,
            "rows": rows[:_PER_PAGE] if more else rows,
            "level": "l0" if kind in _APPROVED else "l1",
            "serves": serves,
            "names": await _names(stores),
            "page": page,
            "more": more,
        },
    )


async def _rows(visit: Visit, tx: Transaction, kind: str, page: int) -> Sequence[Any]:
    """One more than a page holds, so that it is known whether another follows."""
    limit, offset = _PER_PAGE + 1, _PER_PAGE * (page - 1)
    if kind in _APPROVED:
        approved = _APPROVED[kind]
        return await plan_cache.listed(tx, approved=approved, limit=limit, offset=offset)
    if kind in _STATUSES:
        status = _STATUSES[kind]
        return await autopath.listed(tx, status=status, limit=limit, offset=offset)
    if kind == "observations":
        return await observations.listed(tx, limit=limit, offset=offset)
    return await antis.listed(tx, visit.house.clock.now(), limit=_MOST_ANTIS)


async def plan(visit: Visit) -> Outcome:
    """A plan of L0."""
    number, stores = number_of(visit.params["id"]), visit.house.stores
    async with stores.memory.read() as tx:
        found = None if number is None else await plan_cache.get(tx, number)
    if found is None:
        return Missing()
    names = await _names(stores)
    return Shown("plan.html", {"plan": found, "serves": serves(found.lesson), "names": names})


async def champion(visit: Visit) -> Outcome:
    """A plan of L1."""
    number, stores = number_of(visit.params["id"]), visit.house.stores
    async with stores.memory.read() as tx:
        found = None if number is None else await autopath.get(tx, number)
    if found is None:
        return Missing()
    return Shown("champion.html", {"plan": found, "names": await _names(stores)})


async def pin(visit: Visit) -> Outcome:
    """Pin a plan, or take that back; twice it is the same."""
    number, pinned = number_of(visit.params["id"]), visit.form.get("to") == "yes"
    async with visit.house.stores.memory.write() as tx:
        if number is None or not await plan_cache.approve(tx, number, pinned):
            return Missing()
    return Moved(f"/praxis/plans/{number}", done="pinned" if pinned else "unpinned")


async def delete(visit: Visit) -> Outcome:
    """Forget a plan of L0. One that is gone already is gone all the same."""
    number = number_of(visit.params["id"])
    if number is None:
        return Missing()
    async with visit.house.stores.memory.write() as tx:
        await plan_cache.delete(tx, number)
    return Moved(_back(visit, "all"), done="plan_deleted")


async def delete_champion(visit: Visit) -> Outcome:
    """Forget a plan of L1; the next best of its kind takes its place."""
    number = number_of(visit.params["id"])
    if number is None:
        return Missing()
    async with visit.house.stores.memory.write() as tx:
        await autopath.delete(tx, number)
    return Moved(_back(visit, Status.ACTIVE.value), done="plan_deleted")


async def delete_observation(visit: Visit) -> Outcome:
    """Forget one observation. What was made of it stays."""
    number = number_of(visit.params["id"])
    if number is None:
        return Missing()
    async with visit.house.stores.memory.write() as tx:
        await observations.delete(tx, number)
    return Moved("/praxis?kind=observations", done="observation_deleted")


async def lift(visit: Visit) -> Outcome:
    """Keep a plan away from somebody no more."""
    who, intent, plan = (visit.form.get(name, "") for name in ("actor", "intent", "plan"))
    async with visit.house.stores.memory.write() as tx:
        await antis.lift(tx, who, intent, plan)
    return Moved("/praxis?kind=anti", done="lifted")


async def flush(visit: Visit) -> Outcome:
    """Forget all of one level, or of both at once, after the typed word; nothing without it."""
    level = visit.form.get("which", "")
    if level not in _LEVELS or not _is_sure(visit):
        return Moved("/praxis", done="flush_left")
    gone = 0
    async with visit.house.stores.memory.write() as tx:
        if level != "l1":
            gone += await plan_cache.flush(tx)
        if level != "l0":
            gone += await autopath.flush(tx)
    return Moved("/praxis", done="flushed", count=gone)


def _is_sure(visit: Visit) -> bool:
    typed = visit.form.get("word", "").strip().casefold()
    return typed == visit.words.t("cli.plans.flush_word").casefold()


def _back(visit: Visit, default: str) -> str:
    kind = visit.form.get("kind", default)
    return f"/praxis?kind={kind if kind in _KINDS else default}"


async def _names(stores: Stores) -> dict[str, str]:
    async with stores.main.read() as tx:
        return {one.id: one.display_name for one in await actors.list_actors(tx)}


PAGES = (
    Page("/praxis", praxis, nav="console.nav.praxis"),
    Page("/praxis/plans/{id}", plan),
    Page("/praxis/plans/{id}/pin", pin, method="POST"),
    Page("/praxis/plans/{id}/delete", delete, method="POST"),
    Page("/praxis/merit/{id}", champion),
    Page("/praxis/merit/{id}/delete", delete_champion, method="POST"),
    Page("/praxis/observations/{id}/delete", delete_observation, method="POST"),
    Page("/praxis/lift", lift, method="POST"),
    Page("/praxis/flush", flush, method="POST"),
)
