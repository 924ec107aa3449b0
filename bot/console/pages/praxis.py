"""What is remembered: each plan, why it last served or did not, and taking it away."""

from __future__ import annotations

from bot.console.ports import Missing, Moved, Outcome, Page, Shown, Visit, number_of
from core.levels.reuse import serves
from core.store import actors, plan_cache
from core.store.stores import Stores

_PER_PAGE = 20
_KINDS = {"all": None, "approved": True, "learnt": False}


async def praxis(visit: Visit) -> Outcome:
    """The plans of L0, by what keeps them."""
    kind = visit.query.get("kind", "all")
    if kind not in _KINDS:
        return Missing()
    page, stores = visit.page_number(), visit.house.stores
    async with stores.memory.read() as tx:
        approved, learnt = await plan_cache.count(tx)
        found = await plan_cache.listed(
            tx, approved=_KINDS[kind], limit=_PER_PAGE + 1, offset=_PER_PAGE * (page - 1)
        )
    return Shown(
        "praxis.html",
        {
            "kind": kind,
            "counts": {"all": approved + learnt, "approved": approved, "learnt": learnt},
            "plans": found[:_PER_PAGE],
            "serves": serves,
            "names": await _names(stores),
            "page": page,
            "more": len(found) > _PER_PAGE,
        },
    )


async def plan(visit: Visit) -> Outcome:
    number, stores = number_of(visit.params["id"]), visit.house.stores
    async with stores.memory.read() as tx:
        found = None if number is None else await plan_cache.get(tx, number)
    if found is None:
        return Missing()
    names = await _names(stores)
    return Shown("plan.html", {"plan": found, "serves": serves(found.lesson), "names": names})


async def pin(visit: Visit) -> Outcome:
    """Pin a plan, or take that back; twice it is the same."""
    number, pinned = number_of(visit.params["id"]), visit.form.get("to") == "yes"
    async with visit.house.stores.memory.write() as tx:
        if number is None or not await plan_cache.approve(tx, number, pinned):
            return Missing()
    return Moved(f"/praxis/plans/{number}", done="pinned" if pinned else "unpinned")


async def delete(visit: Visit) -> Outcome:
    """Forget a plan. One that is gone already is gone all the same."""
    number = number_of(visit.params["id"])
    if number is None:
        return Missing()
    async with visit.house.stores.memory.write() as tx:
        await plan_cache.delete(tx, number)
    return Moved("/praxis", done="plan_deleted")


async def flush(visit: Visit) -> Outcome:
    """Forget all of one level, or of both, after the typed word; nothing without it."""
    if not _is_sure(visit):
        return Moved("/praxis", done="flush_left")
    async with visit.house.stores.memory.write() as tx:
        gone = await plan_cache.flush(tx)
    return Moved("/praxis", done="flushed", count=gone)


def _is_sure(visit: Visit) -> bool:
    typed = visit.form.get("word", "").strip().casefold()
    return typed == visit.words.t("cli.plans.flush_word").casefold()


async def _names(stores: Stores) -> dict[str, str]:
    async with stores.main.read() as tx:
        return {one.id: one.display_name for one in await actors.list_actors(tx)}


PAGES = (
    Page("/praxis", praxis, nav="console.nav.praxis"),
    Page("/praxis/plans/{id}", plan),
    Page("/praxis/plans/{id}/pin", pin, method="POST"),
    Page("/praxis/plans/{id}/delete", delete, method="POST"),
    Page("/praxis/flush", flush, method="POST"),
)
