"""The journal of effects against a simple model of it, over random walks on a real file."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core.messages import FinalKind
from core.store import effects, turns
from core.store.database import Database
from core.store.effects import UNDO_LAST_TURN, EffectState
from core.store.migrations import MAIN, migrate
from tests.support.clock import FrozenClock

T = TypeVar("T")
ACTORS = ("ada", "luca")
ENDS = (EffectState.DONE, EffectState.FAILED, EffectState.UNKNOWN)


@dataclass
class Wanted:
    """What the model believes of one turn: its steps, and what takes it back."""

    id: str
    actor: str
    running: bool = True
    steps: dict[int, EffectState] = field(default_factory=dict)
    undone: bool = False
    undoes: str | None = None


class Journal(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FrozenClock()
        self.model: list[Wanted] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize()
    def open(self) -> None:
        self.run(self._open())

    async def _open(self) -> None:
        path = Path(self.folder.name) / "metnos.db"
        self.db = await Database.open(path, durable=False)
        await migrate(self.db, MAIN, self.clock)

    def teardown(self) -> None:
        self.run(self.db.close())
        self.loop.close()
        self.folder.cleanup()

    @rule(actor=st.sampled_from(ACTORS))
    def begin_turn(self, actor: str) -> None:
        turn = Wanted(f"turn{len(self.model):04}", actor)
        self.clock.advance(timedelta(seconds=1))
        self.run(self._open_turn(turn))
        self.model.append(turn)

    async def _open_turn(self, turn: Wanted) -> None:
        async with self.db.write() as tx:
            await turns.open_turn(
                tx,
                turn_id=turn.id,
                inbound_id=turn.id,
                actor_id=turn.actor,
                conversation="terminal:local:",
                lang="it",
                request="scrivi",
                now=self.clock.now(),
            )

    @rule(data=st.data())
    def start_a_step(self, data: st.DataObject) -> None:
        running = [turn for turn in self.model if turn.running and turn.undoes is None]
        if running:
            turn = data.draw(st.sampled_from(running))
            number = len(turn.steps) + 1
            self.run(self._start(turn, number, "write_files", {}))
            turn.steps[number] = EffectState.STARTED

    async def _start(self, turn: Wanted, step: int, tool: str, summary: dict[str, Any]) -> None:
        async with self.db.write() as tx:
            await effects.start(
                tx,
                key=effects.effect_key(turn.id, step),
                turn_id=turn.id,
                step=step,
                tool=tool,
                before=None,
                expected=None,
                summary=summary,
                now=self.clock.now(),
            )

    @rule(data=st.data(), end=st.sampled_from(ENDS))
    def finish_a_step(self, data: st.DataObject, end: EffectState) -> None:
        steps = [(turn, number) for turn in self.model for number in turn.steps]
        if steps:
            turn, number = data.draw(st.sampled_from(steps))
            first = turn.steps[number] is EffectState.STARTED
            assert self.run(self._finish(turn, number, end)) is first
            if first:
                turn.steps[number] = end

    async def _finish(self, turn: Wanted, step: int, end: EffectState) -> bool:
        async with self.db.write() as tx:
            return await effects.finish(
                tx, effects.effect_key(turn.id, step), end, self.clock.now()
            )

    @rule(data=st.data())
    def close_a_turn(self, data: st.DataObject) -> None:
        running = [turn for turn in self.model if turn.running]
        if running:
            turn = data.draw(st.sampled_from(running))
            self.run(self._close(turn))
            turn.running = False

    async def _close(self, turn: Wanted) -> None:
        async with self.db.write() as tx:
            await turns.close_turn(tx, turn.id, FinalKind.ANSWER, {}, self.clock.now())

    @rule(data=st.data())
    def begin_an_undo(self, data: st.DataObject) -> None:
        """As `Undo.put_back_last` does: look, and claim, in one transaction."""
        running = [turn for turn in self.model if turn.running and not turn.steps]
        if not running:
            return
        turn = data.draw(st.sampled_from(running))
        target = self.last(turn.actor)
        if target is not None and not self.is_undone(target):
            turn.undoes = target.id
            self.run(self._start(turn, 1, UNDO_LAST_TURN, {"undoes": target.id}))
            turn.steps[1] = EffectState.STARTED

    def last(self, actor: str) -> Wanted | None:
        may_have = {EffectState.DONE, EffectState.UNKNOWN}
        found = [
            turn
            for turn in self.model
            if turn.actor == actor
            and not turn.running
            and turn.undoes is None
            and may_have & set(turn.steps.values())
        ]
        return found[-1] if found else None

    def is_undone(self, target: Wanted) -> bool:
        claims = {EffectState.STARTED, EffectState.DONE}
        return any(t.undoes == target.id and t.steps[1] in claims for t in self.model)

    @invariant()
    def journal_is_as_the_model(self) -> None:
        self.run(self._compare())

    async def _compare(self) -> None:
        if not hasattr(self, "db"):
            return
        async with self.db.read() as tx:
            for turn in self.model:
                found = await effects.of_turn(tx, turn.id)
                assert {one.step: one.state for one in found} == turn.steps
                undone = await effects.undone_at(tx, turn.id)
                assert (undone is not None) is self.is_undone(turn)
            begun = {one.key for one in await effects.open_effects(tx)}
            assert begun == {
                effects.effect_key(turn.id, step)
                for turn in self.model
                for step, state in turn.steps.items()
                if state is EffectState.STARTED
            }
            for actor in ACTORS:
                target = self.last(actor)
                found = await effects.last_to_undo(tx, actor)
                assert {one.turn_id for one in found} == ({target.id} if target else set())


TestJournal = Journal.TestCase
TestJournal.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
