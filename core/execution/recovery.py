"""What a crash left behind, told from the world: which changes were made, and which were not.

Looks, decides, and writes the verdicts in one transaction; run again it finds nothing to do.
Nothing is ever repeated here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.clock import Clock
from core.execution import world
from core.execution.preimages import drop_second_names
from core.messages import Actor, ChatAddress
from core.store import actors, effects, turns
from core.store.effects import EffectState, StoredEffect
from core.store.stores import Stores

log = logging.getLogger(__name__)


# What happens out of sight: files that were named beside it prove nothing.
_UNSEEN = frozenset({"keyed", "blind"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a change that was begun. `entries`: item by item, with `ok`, where that
    differs or the state alone does not tell."""

    state: EffectState
    entries: tuple[Mapping[str, Any], ...] = ()


async def settle_effects(stores: Stores, clock: Clock) -> int:
    """Settle the effects that an earlier process left `started`; how many. Only at the start of
    the engine, before anything runs.

    Files that were kept and not replaced lose the name they were kept under.

    The world as the preview promised: done. As it was found: failed, nothing was changed. Some
    items so and some so: done, with what was not. Anything else is unknown.
    """
    async with stores.main.read() as tx:
        left = await effects.open_effects(tx)
    if not left:
        return 0
    verdicts = [(effect, await asyncio.to_thread(verdict_of, effect)) for effect in left]
    for effect in left:
        way_back = effect.expected.get("undo") if isinstance(effect.expected, Mapping) else None
        await asyncio.to_thread(drop_second_names, way_back)
    settled = 0
    async with stores.main.write() as tx:
        for effect, verdict in verdicts:
            summary = dict(effect.summary) if isinstance(effect.summary, Mapping) else {}
            if verdict.entries:
                summary |= {"partial": True, "entries": list(verdict.entries)}
            settled += await effects.finish(
                tx, effect.key, verdict.state, clock.now(), summary=summary
            )
    log.warning("effects settled after a crash", extra={"count": settled})
    return settled


def verdict_of(effect: StoredEffect) -> Verdict:
    """Compare the world with what the journal holds of one effect. Reads files."""
    wanted = _states(effect.expected, "wanted")
    if class_of(effect) in _UNSEEN:
        return Verdict(EffectState.UNKNOWN)
    found = {str(state["path"]): state for state in _states(effect.before, "found")}
    if not wanted:
        return Verdict(EffectState.UNKNOWN)
    marks: dict[str, bool | None] = {}
    for state in wanted:
        path = str(state["path"])
        if world.is_as(state):
            marks[path] = True
        elif path in found and world.is_as(found[path]):
            marks[path] = False
        else:
            marks[path] = None
    if None in marks.values():
        return Verdict(EffectState.UNKNOWN)
    if all(marks.values()):
        return Verdict(EffectState.DONE)
    if not any(marks.values()):
        return Verdict(EffectState.FAILED)
    entries = tuple({"ok": mark is True, "path": path} for path, mark in marks.items())
    return Verdict(EffectState.DONE, entries)


def class_of(effect: StoredEffect) -> str:
    """The effect class of a journalled change, as its manifest said it then (S2); `blind` when
    nothing is known of it."""
    summary = effect.summary if isinstance(effect.summary, Mapping) else {}
    return str(summary.get("class") or ("checkable" if effect.expected else "blind"))


def may_begin_again(journal: Sequence[StoredEffect]) -> bool:
    """Whether a turn with these effects may be walked once more by itself: nothing of it came to
    be, and what it began may be done any number of times."""
    return all(
        effect.state is EffectState.FAILED and class_of(effect) == "idempotent"
        for effect in journal
    )


async def turns_left(
    stores: Stores, *, but_of: Collection[str]
) -> list[tuple[turns.StoredTurn, Actor, ChatAddress]]:
    """Turns that an earlier process left running and that are to be ended, with their person: all
    but those that may begin again and whose channels (`but_of`) deliver again by themselves."""
    left: list[tuple[turns.StoredTurn, Actor, ChatAddress]] = []
    async with stores.main.read() as tx:
        for stored in await turns.running(tx):
            address = ChatAddress.from_key(stored.conversation)
            actor = await actors.get_actor(tx, stored.actor_id)
            former = await actors.find_former(tx, stored.actor_id)
            again = former is None and address.channel in but_of and stored.segment == 1
            if again:
                again = may_begin_again(await effects.of_turn(tx, stored.id))
            person = actor or former
            if not again and person is not None:
                left.append((stored, person, address))
    return left


def _states(value: Any, name: str) -> Sequence[Mapping[str, Any]]:
    listed = value.get(name) if isinstance(value, Mapping) else None
    states = listed if isinstance(listed, list) else []
    return [one for one in states if isinstance(one, Mapping) and "path" in one]
