"""The states of questions against a simple model of them, over random walks on a real file."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from core.dialogs import Field, FieldKind, Suspension, SuspensionKind, SuspensionState
from core.store import suspensions
from core.store.database import Database
from core.store.migrations import MAIN, migrate
from core.store.suspensions import Standing
from tests.support.clock import FrozenClock

T = TypeVar("T")
ACTORS = ["ada", "luca"]
CHATS = ["telegram:1:", "telegram:2:"]
FIELDS = tuple(Field(f"v{n}", "?", FieldKind.TEXT) for n in range(3))
LIFE = timedelta(seconds=100)


@dataclass
class Wanted:
    """What the model believes of one question. It knows five words and a number."""

    asked: Suspension
    state: str = "open"
    cursor: int = 0
    claims: int = 0
    ends: list[str] = field(default_factory=list)


class Questions(RuleBasedStateMachine):
    ids: Bundle[str] = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FrozenClock()
        self.model: dict[str, Wanted] = {}

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize()
    def start(self) -> None:
        self.db = self.run(self.opened())

    async def opened(self) -> Database:
        database = await Database.open(Path(self.folder.name) / "main.db", durable=False)
        await migrate(database, MAIN, self.clock)
        return database

    def teardown(self) -> None:
        self.run(self.db.close())
        self.loop.close()
        self.folder.cleanup()

    def is_live(self, name: str) -> bool:
        wanted = self.model[name]
        return wanted.state == "open" and wanted.asked.expires_at > self.clock.now()

    @rule(
        target=ids,
        actor=st.sampled_from(ACTORS),
        chat=st.sampled_from(CHATS),
        many=st.integers(0, 3),
    )
    def ask(self, actor: str, chat: str, many: int) -> str:
        name = f"q{len(self.model)}"
        now = self.clock.now()
        asked = Suspension(
            name,
            SuspensionKind.INPUTS if many else SuspensionKind.APPROVAL,
            "turn",
            actor,
            chat,
            now,
            now + LIFE,
            FIELDS[:many],
        )

        async def work() -> None:
            async with self.db.write() as tx:
                await suspensions.open(tx, asked, {"of": name}, {f"{name}.0": "yes"})

        self.run(work())
        self.model[name] = Wanted(asked)
        return name

    @rule(seconds=st.sampled_from([0.5, 30, 99.5, 100]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(name=ids, racers=st.integers(1, 3))
    def claim(self, name: str, racers: int) -> None:
        async def one() -> Any:
            async with self.db.write() as tx:
                return await suspensions.claim(tx, name, self.clock.now())

        async def race() -> list[Any]:
            return await asyncio.gather(*(one() for _ in range(racers)))

        won = [claimed for claimed in self.run(race()) if claimed is not None]
        wanted = self.model[name]
        if self.is_live(name):
            assert len(won) == 1
            assert won[0].state == {"of": name}
            assert won[0].suspension.cursor == wanted.cursor
            wanted.state, wanted.claims = "claimed", wanted.claims + 1
        else:
            assert won == []
        assert wanted.claims <= 1

    @rule(name=ids, stale=st.booleans())
    def advance(self, name: str, stale: bool) -> None:
        wanted = self.model[name]
        seen = wanted.asked
        if stale and wanted.cursor == 0:
            return
        cursor = wanted.cursor - 1 if stale else wanted.cursor
        at = replace(seen, cursor=cursor)

        async def work() -> Suspension | None:
            async with self.db.write() as tx:
                token = {f"{name}.{cursor + 1}": "yes"}
                values = {f"v{cursor}": cursor}
                return await suspensions.advance(
                    tx, at, values, now=self.clock.now(), tokens=token
                )

        moved = self.run(work())
        if self.is_live(name) and not stale:
            assert moved is not None
            wanted.cursor += 1
            assert moved.cursor == wanted.cursor
        else:
            assert moved is None

    @rule(name=ids, end=st.sampled_from(["done", "cancelled", "expired", "indeterminate"]))
    def settle(self, name: str, end: str) -> None:
        async def work() -> bool:
            async with self.db.write() as tx:
                return await suspensions.settle(tx, name, end, self.clock.now())

        wanted = self.model[name]
        may = {
            "open": end in {"cancelled", "expired"},
            "claimed": end in {"done", "cancelled", "indeterminate"},
        }.get(wanted.state, False)

        assert self.run(work()) is may
        if may:
            wanted.state = end
            wanted.ends.append(end)
        assert len(wanted.ends) <= 1

    @rule(
        name=ids,
        button=st.integers(0, 3),
        actor=st.sampled_from(ACTORS),
        chat=st.sampled_from(CHATS),
    )
    def press(self, name: str, button: int, actor: str, chat: str) -> None:
        async def work() -> Any:
            async with self.db.read() as tx:
                return await suspensions.find_by_token(
                    tx,
                    f"{name}.{button}",
                    actor_id=actor,
                    conversation=chat,
                    now=self.clock.now(),
                )

        pressed = self.run(work())
        wanted = self.model[name]
        if button > wanted.cursor:
            assert pressed is None
            return
        own = (actor, chat) == (wanted.asked.actor_id, wanted.asked.conversation)
        assert (pressed.standing is Standing.FOREIGN) is not own
        is_open = own and self.is_live(name) and button == wanted.cursor
        assert (pressed.standing is Standing.OPEN) is is_open

    @rule()
    def crash(self) -> None:
        """The process ends without a word and another begins."""
        self.run(self.db.close())
        self.db = self.run(self.opened())

    @invariant()
    def store_and_model_agree(self) -> None:
        async def work() -> tuple[Any, ...]:
            now = self.clock.now()
            async with self.db.read() as tx:
                return (
                    {name: await suspensions.find(tx, name) for name in self.model},
                    [
                        one.id
                        for chat in CHATS
                        for actor in ACTORS
                        for one in await suspensions.open_of(tx, chat, actor, now)
                    ],
                    [one.id for one in await suspensions.due(tx, now)],
                    [one.suspension.id for one in await suspensions.claimed_unsettled(tx)],
                )

        if not self.model:
            return
        found, answerable, due, claimed = self.run(work())
        for name, wanted in self.model.items():
            stored, state = found[name]
            assert state is SuspensionState(wanted.state)
            assert stored.cursor == wanted.cursor
        live = {name for name in self.model if self.is_live(name)}
        assert set(answerable) == live
        assert len(answerable) == len(live)
        assert set(due) == {n for n, w in self.model.items() if w.state == "open"} - live
        assert set(claimed) == {n for n, w in self.model.items() if w.state == "claimed"}


TestQuestions = Questions.TestCase
TestQuestions.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
