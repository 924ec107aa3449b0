"""Taking back the last turn of a person that changed something: newest effect first, item by item.

What changed since is left alone and said. Goes through the cage with the executors that move and
delete, so it can do no more than they; what it takes away goes to the trash like anything
deleted. It is journalled like any other change.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.clock import Clock
from core.errors import CallRefused, ErrorCode, ErrorInfo, to_error_info
from core.execution import world
from core.execution.context import TurnContext
from core.execution.paths import TRASH, check_scope, folders_of, is_refused
from core.execution.preimages import KEEP
from core.execution.runner import Runner
from core.execution.undo_ids import ById
from core.execution.undo_steps import UNDO_LAST_TURN, UndoItem, items_of
from core.messages import Autonomy
from core.observation import Effects, Observation
from core.store import effects, turns
from core.store.database import Transaction
from core.store.effects import StoredEffect
from core.store.stores import Stores
from core.turn_state import TurnState

_MOVE, _DELETE = "move_files", "delete_files"


@dataclass(slots=True)
class _Run:
    """One undo while it goes on. `resumed`: an earlier one of the same turn was cut short.
    `vacated`: places that it made free itself."""

    context: TurnContext
    step: int
    resumed: bool = False
    vacated: set[str] = field(default_factory=set)
    touched: bool = False
    unsure: bool = False


@dataclass(frozen=True, slots=True)
class Undo:
    """Holds what undoing needs; keeps nothing of any turn."""

    cage: Runner
    stores: Stores
    clock: Clock

    async def put_back_last(
        self, context: TurnContext, state: TurnState, *, only: str | None = None
    ) -> tuple[Observation, str | None]:
        """Take back the last turn of this actor that changed something; what came of it, and the
        key of the journal entry that is to be closed with it (None: nothing was begun).

        `only`: the turn that it must be. `metadata.status` is `undone`, `already` (it was, at
        `undone_at`), `not_last` (another one changed something since), or `nothing`; with
        `undone` there is one entry per item: `path`, `did` (restore, move, remove, already), or
        its error. Of any number of calls one does it, the others are `already`.
        """
        if context.actor.autonomy is Autonomy.READ_ONLY:
            return Observation.failed(ErrorCode.NOT_AUTHORIZED, "this person may only look"), None
        async with self.stores.main.write() as tx:
            journal = await effects.last_to_undo(tx, context.actor.id)
            if not journal:
                return Observation(ok=True, metadata={"status": "nothing"}), None
            if only is not None and journal[0].turn_id != only:
                if await effects.undone_at(tx, only) is None:
                    newer = _about(journal, await turns.get(tx, journal[0].turn_id))
                    return Observation(ok=True, metadata={"status": "not_last", **newer}), None
                journal = await effects.of_turn(tx, only)
            about = _about(journal, await turns.get(tx, journal[0].turn_id))
            undone_at = await effects.undone_at(tx, journal[0].turn_id)
            if undone_at is not None:
                when = {"undone_at": undone_at.isoformat()}
                return Observation(ok=True, metadata={"status": "already", **about, **when}), None
            resumed = await effects.undo_cut_short(tx, journal[0].turn_id)
            items = items_of(journal)
            key = await self._open_journal(tx, context, state, journal[0].turn_id, items)
        run = _Run(context, len(state.steps) + 1, resumed)
        seen = await self._put_back(run, items)
        return replace(seen, metadata={"status": "undone", **about, **seen.metadata}), key

    async def _open_journal(
        self,
        tx: Transaction,
        context: TurnContext,
        state: TurnState,
        undoes: str,
        items: Sequence[UndoItem],
    ) -> str:
        number = len(state.steps) + 1
        key = effects.effect_key(context.turn_id, number)
        known = [item for item in items if item.do not in {"none", "delete", "put_back"}]
        by_id = [item for item in items if item.do in {"delete", "put_back"}]
        await effects.start(
            tx,
            key=key,
            turn_id=context.turn_id,
            step=number,
            tool=UNDO_LAST_TURN,
            before={"found": [_left(item) for item in known]},
            expected={"wanted": [_former(item) for item in known], "undo": None},
            summary={
                "undoes": undoes,
                "targets": [item.path for item in (*known, *by_id)],
                "count": len(known) + len(by_id),
                # What is taken back by id cannot be seen from here: after a crash it is unknown.
                "class": "keyed" if by_id else "checkable",
            },
            now=self.clock.now(),
        )
        return key

    async def _put_back(self, run: _Run, items: Sequence[UndoItem]) -> Observation:
        entries: list[dict[str, Any]] = []
        for item in items:
            try:
                entries.append(await self._one(run, item))
            except CallRefused as exc:
                error = to_error_info(exc)
                entries.append({"ok": False, "path": item.path, "error": error.to_json()})
        good = sum(entry["ok"] for entry in entries)
        failed = next((e["error"] for e in entries if not e["ok"]), None)
        left = Effects.DONE if run.touched else Effects.NONE
        return Observation(
            ok=good > 0 or failed is None,
            entries=tuple(entries),
            metadata={
                "count": len(entries),
                "ok_count": good,
                "failed_count": len(entries) - good,
            },
            error=ErrorInfo.from_json(failed) if failed and not good else None,
            effects=Effects.UNKNOWN if run.unsure else left,
        )

    async def _one(self, run: _Run, item: UndoItem) -> dict[str, Any]:
        """Put one thing back, if the world is as it was left. Raises `CallRefused`."""
        if item.do == "none":
            raise CallRefused(ErrorCode.NOT_UNDOABLE, "the journal knows no way back")
        if item.do in {"delete", "put_back"}:
            return await self._by_id(run, item)
        for path in filter(None, (item.path, item.source)):
            self._check(run.context, path)
        if await asyncio.to_thread(_is_already, item, run.vacated):
            return {"ok": True, "path": item.path, "did": "already"}
        await asyncio.to_thread(_check_unchanged, item, run)
        if item.source is None:
            await self._call(run, _DELETE, {"paths": [item.path]})
            run.vacated.add(item.path)
            return {"ok": True, "path": item.path, "did": item.do}
        args: dict[str, Any] = {"paths": [item.source], "dst": item.path}
        if item.do == "restore" and world.is_there(item.path):
            args["overwrite"] = True
        moved = await self._call(run, _MOVE, args)
        if moved.get("path") != item.path:
            raise CallRefused(ErrorCode.CHANGED_SINCE, "something came in between")
        run.vacated.add(item.source)
        return {"ok": True, "path": item.path, "did": item.do}

    async def _by_id(self, run: _Run, item: UndoItem) -> dict[str, Any]:
        """Delete what a step made, or put back what it changed, if it is there as it was left.
        Raises `CallRefused`."""
        if item.done_at is not None and self.clock.now() - item.done_at > KEEP:
            raise CallRefused(ErrorCode.NOT_UNDOABLE, "older than what is kept")
        by_id = ById(self.cage, self.stores, run.context, run.step)
        if item.do == "put_back":
            left, already = await by_id.put_back(item)
        elif already := await by_id.is_gone(item):
            left = Effects.NONE
        else:
            left = await by_id.delete(item)
        run.touched = run.touched or left is not Effects.NONE
        run.unsure = run.unsure or left is Effects.UNKNOWN
        did = "already" if already else "delete" if item.do == "delete" else "restore"
        return {"ok": True, "path": item.path, "did": did}

    def _check(self, context: TurnContext, path: str) -> None:
        """The actor's rights of today, not those of the turn that is taken back."""
        check_scope(path, context.scope, write=True)
        if is_refused(path, context.scope, mutating=True):
            raise CallRefused(ErrorCode.FORBIDDEN_PATH, "a place that no tool may touch")

    async def _call(self, run: _Run, tool: str, args: dict[str, Any]) -> Mapping[str, Any]:
        """The only entry of a call of one item. Raises `CallRefused` when it did not work."""
        context = run.context
        # Also one that is no longer offered for planning.
        executor = context.catalog.executors.get(tool)
        if executor is None:
            raise CallRefused(ErrorCode.EXECUTOR_CHANGED, f"{tool} is not there any more")
        manifest = executor.manifest
        document = {
            "paths": [*args["paths"], *filter(None, [args.get("dst")])],
            "product_home": context.scope.product_home,
            "workspace": context.scope.workspace,
            "v": 1,
            "tool": tool,
            "args": args,
            "lang": context.lang,
            "tz": context.tz,
            "now": context.now.isoformat(),
            "turn_id": context.turn_id,
            "step": run.step,
            "actor_id": context.actor.id,
            **folders_of(manifest, context.scope),
            "home": context.scope.home,
            "trash_name": TRASH,
            "private_hosts": [],
            "user_agent": "Metnos",
        }
        observation = await self.cage.run(executor, context.catalog.sdk, document)
        run.touched = run.touched or observation.effects is not Effects.NONE
        run.unsure = run.unsure or observation.effects is Effects.UNKNOWN
        if observation.ok and observation.entries:
            return observation.entries[0]
        error = observation.error or ErrorInfo(ErrorCode.INTERNAL)
        raise CallRefused(error.code, error.detail, **dict(error.params))


def _is_already(item: UndoItem, vacated: set[str]) -> bool:
    """Whether the thing is as it was before the turn: it never was changed, or is back."""
    if item.path in vacated or item.found is None or not world.is_as(item.found):
        return False
    if item.do == "move" and item.source is not None:
        return not world.is_there(item.source)
    return True


def _check_unchanged(item: UndoItem, run: _Run) -> None:
    if item.do == "restore" and item.source is not None and not world.is_there(item.source):
        raise CallRefused(ErrorCode.COPY_GONE, "what was kept of it is gone")
    if item.do == "move":
        if item.wanted is None or not world.is_as(item.wanted) or world.is_there(item.path):
            raise CallRefused(ErrorCode.CHANGED_SINCE, "it is not as it was left")
        return
    if item.path in run.vacated and world.is_there(item.path):
        raise CallRefused(ErrorCode.CHANGED_SINCE, "something came in between")
    if not world.is_there(item.path) and (item.path in run.vacated or run.resumed):
        # Free since a later change was taken back, or since an undo was killed half way.
        return
    if item.wanted is None or not world.is_as(item.wanted):
        raise CallRefused(ErrorCode.CHANGED_SINCE, "it is not as it was left")


def _left(item: UndoItem) -> dict[str, Any]:
    return dict(item.wanted or {"path": item.source or item.path, "exists": True})


def _former(item: UndoItem) -> dict[str, Any]:
    return dict(item.found or {"path": item.path, "exists": item.do != "remove"})


def _about(journal: Sequence[StoredEffect], turn: turns.StoredTurn | None) -> dict[str, Any]:
    ended: dt.datetime = (turn.ended_at if turn else None) or journal[-1].started_at
    return {
        "undoes": journal[0].turn_id,
        "request": "" if turn is None else turn.request,
        "changed_at": ended.isoformat(),
    }
