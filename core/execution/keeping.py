"""What stays of a call: the journal of a change, the scratchpad, and the state that holds both.

A change is journalled before it runs; its end is committed together with the state that knows it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.catalog.manifest import Manifest
from core.clock import Clock
from core.errors import CallRefused, ErrorCode, StoreError, to_error_info
from core.execution import arguments, builtins, guests, handle, standing
from core.execution.context import TurnContext
from core.execution.standing import Given
from core.messages import Role
from core.observation import Effects, Observation
from core.store import actors, effects, scratchpad, turns
from core.store.database import Transaction
from core.store.stores import Stores
from core.turn_state import PendingCall, StepRecord, TurnState

log = logging.getLogger(__name__)

# Of a preview, with the journal.
_KEPT = ("targets", "count", "bytes", "parts")
_OUTCOME = {
    Effects.DONE: effects.EffectState.DONE,
    Effects.NONE: effects.EffectState.FAILED,
    Effects.UNKNOWN: effects.EffectState.UNKNOWN,
}


async def open_journal(
    stores: Stores,
    clock: Clock,
    context: TurnContext,
    state: TurnState,
    manifest: Manifest,
    args: Mapping[str, Any],
    preview: Mapping[str, Any],
    given: Given | None = None,
) -> str:
    """Write down, before it runs, what the next step is about to change, the state in which its
    call, `args` as they were proposed, is the next, and what stays of the yes it was `given`; the
    entry's key. Raises `CallRefused` for somebody whose right was withdrawn meanwhile."""
    number = len(state.steps) + 1
    key = effects.effect_key(context.turn_id, number)
    summary = {name: preview[name] for name in _KEPT if name in preview}
    summary["class"] = manifest.effect
    if manifest.undo_tool is not None:
        summary["undo_tool"] = manifest.undo_tool
    waiting = state.pending or (PendingCall(manifest.name, arguments.storable(args)),)
    async with stores.main.write() as tx:
        if await actors.is_revoked(tx, context.actor.id):
            raise CallRefused(ErrorCode.NOT_AUTHORIZED, "the right of this person was withdrawn")
        await effects.start(
            tx,
            key=key,
            turn_id=context.turn_id,
            step=number,
            tool=manifest.name,
            before={"found": preview.get("before")},
            expected={"wanted": preview.get("after"), "undo": preview.get("undo")},
            summary=summary,
            now=clock.now(),
        )
        if given is not None:
            await standing.keep(tx, given, clock.now())
        await turns.save_state(tx, context.turn_id, replace(state, pending=waiting).to_json())
    return key


async def keep(
    stores: Stores,
    clock: Clock,
    context: TurnContext,
    state: TurnState,
    record: StepRecord,
    *,
    journal: str | None,
    left_out: Sequence[str] = (),
    along: Callable[[Transaction], Awaitable[None]] | None = None,
) -> StepRecord:
    """Give the record its shown form, and commit journal, state and scratchpad as needed.
    `left_out`: arguments that were not used, which the model is told. `along`: what is written in
    the transaction that ends the journal's entry.

    Raises `StoreError` only for a step that was journalled: its end must not be lost.
    """
    shown = handle.shown_small(record.observation)
    if shown is not None or record.tool == builtins.SCRATCHPAD_READ:
        shown = shown or handle.shown_whole(record.observation)
        if left_out:
            shown = {**shown, "left_out": list(left_out)}
        record = replace(record, shown=_told(context, shown))
        if journal is not None:
            async with stores.main.write() as tx:
                await _finish(tx, clock, context, state.with_step(record), journal, along)
        return record
    stored = handle.to_store(record.observation)
    if left_out:
        stored = replace(stored, fields={"left_out": list(left_out), **stored.fields})
    entry_id = clock.new_id()[:16]
    told = _told(context, handle.shown_handle(record.observation, stored, entry_id))
    record = replace(record, shown=told)
    try:
        async with stores.main.write() as tx:
            await scratchpad.put(
                tx,
                entry_id=entry_id,
                actor_id=context.actor.id,
                turn_id=context.turn_id,
                step=record.number,
                tool=record.tool,
                kind=stored.kind,
                content=stored.text,
                now=clock.now(),
            )
            if journal is not None:
                await _finish(tx, clock, context, state.with_step(record), journal, along)
    except StoreError as exc:
        if journal is not None:
            raise
        log.exception("scratchpad refused an entry")
        failed = Observation.failed(to_error_info(exc))
        record = replace(record, observation=failed, shown=failed.for_model())
    return record


def _told(context: TurnContext, shown: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a model may know of a step: of a guest's, not where the house keeps their folder."""
    if context.actor.role is Role.HOST:
        return shown
    return {key: guests.at_home(value, context.scope.home) for key, value in shown.items()}


async def _finish(
    tx: Transaction,
    clock: Clock,
    context: TurnContext,
    state: TurnState,
    journal: str,
    along: Callable[[Transaction], Awaitable[None]] | None = None,
) -> None:
    """Close the journal entry in the transaction that advances the turn."""
    if along is not None:
        await along(tx)
    position = state.next_step + (state.plan is not None)
    state = replace(state, next_step=position, pending=())
    left = state.steps[-1].observation.effects
    made = [
        {
            name: entry[name]
            for name in ("id", "version", "name", "account")
            if entry.get(name) is not None
        }
        for entry in state.steps[-1].observation.entries or ()
        if entry.get("ok") is not False and isinstance(entry.get("id"), str)
    ]
    if made:
        await effects.note_made(tx, journal, made)
    await effects.finish(tx, journal, _OUTCOME[left], clock.now())
    await turns.save_state(tx, context.turn_id, state.to_json())
