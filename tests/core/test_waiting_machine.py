"""Turns that wait, against a simple model of them: caps extended, questions answered, run out,
asked again, dropped, and restarts between any two of these. Real stores and programs.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections import Counter
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from bot.app import House
from core.messages import InboundKind, QuestionSettled, TurnClosed, TurnSuspended
from core.store import effects, suspensions, turns
from core.turn_state import Cap, TurnState
from tests.support.house import LOCAL, events_of, inbound, open_scripted
from tests.support.scripted_model import Ask, Rule

T = TypeVar("T")


def deletion(asked: Ask) -> list[tuple[str, dict[str, Any]]]:
    return [("delete_files", {"paths": [asked.user.split()[-1]]})]


RULES = [
    Rule(user="cancella", after=0, calls=deletion),
    Rule(user="cancella", after=1, text="Fatto."),
    Rule(user="inventa", calls=lambda a: [(f"get_thing_{len(a.results)}", {})]),
]


@dataclass
class Wanted:
    """What the model believes of one turn."""

    number: int
    cap: bool
    question: TurnSuspended
    state: str = "suspended"
    segments: int = 1
    extended: bool = False
    again: str = ""
    asked_again: bool = False
    done: bool = False

    @property
    def file(self) -> str:
        return f"n{self.number}.md"


class Waiting(RuleBasedStateMachine):
    asked: Bundle[str] = Bundle("asked")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.model: dict[str, Wanted] = {}
        self.heard = 0
        self.closing: AbstractAsyncContextManager[Any] | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    async def opened(self) -> House:
        self.closing = open_scripted(self.path, RULES)
        house, _ = await self.closing.__aenter__()
        return house

    async def closed(self) -> None:
        if self.closing is not None:
            await self.closing.__aexit__(None, None, None)
        self.closing = None

    @initialize()
    def start(self) -> None:
        self.house = self.run(self.opened())

    def teardown(self) -> None:
        self.run(self.closed())
        self.loop.close()
        self.folder.cleanup()

    def say(self, text: str, **fields: Any) -> Coroutine[Any, Any, Any]:
        self.heard += 1
        return events_of(self.house, inbound(text, id=f"in{self.heard}", **fields))

    def tap(self, token: str) -> Coroutine[Any, Any, Any]:
        return self.say("", kind=InboundKind.CHOICE, data={"token": token})

    def press(self, wanted: Wanted, yes: bool) -> Coroutine[Any, Any, Any]:
        buttons = [b for row in wanted.question.reply.buttons for b in row]
        return self.tap(buttons[0 if yes else 1].token)

    def opens(self, events: list[Any], number: int, cap: bool) -> str:
        question = events[-1]
        assert isinstance(question, TurnSuspended)
        self.model[question.turn_id] = Wanted(number, cap, question)
        return question.turn_id

    @rule(target=asked, cap=st.booleans())
    def ask(self, cap: bool) -> str:
        number = len(self.model)
        (self.path / f"notes/n{number}.md").write_text("x")
        text = f"inventa {number}" if cap else f"cancella n{number}.md"
        return self.opens(self.run(self.say(text)), number, cap)

    @rule(turn_id=asked, yes=st.booleans(), twice=st.booleans())
    def answer(self, turn_id: str, yes: bool, twice: bool) -> None:
        wanted = self.model[turn_id]

        async def presses() -> list[Any]:
            both = [self.press(wanted, yes) for _ in range(2 if twice else 1)]
            return list(await asyncio.gather(*both))

        ends = [events[-1] for events in self.run(presses())]
        assert all(isinstance(end, TurnClosed) for end in ends)
        if wanted.state == "suspended":
            assert all(end.reply == ends[0].reply for end in ends)
            wanted.state, wanted.segments = "closed", 2
            wanted.done = yes and not wanted.cap
            wanted.extended = yes and wanted.cap
            if wanted.cap:
                limit = 60 if yes else 30
                assert f"{limit} passi" in ends[0].reply.plain

    @rule(turn_id=asked, racing=st.sampled_from(["nobody", "answer", "before"]))
    def run_out(self, turn_id: str, racing: str) -> None:
        wanted = self.model[turn_id]
        if wanted.state != "suspended":
            return

        async def work() -> tuple[list[Any], list[Any]]:
            async with self.house.stores.main.write() as tx:
                past = (self.house.clock.now() - timedelta(seconds=1)).timestamp()
                await tx.execute(
                    "UPDATE suspensions SET expires_at = ? WHERE turn_id = ?", (past, turn_id)
                )
            if racing == "nobody":
                return await self.house.turns.expire(), []
            both: list[Any] = [self.house.turns.expire(), self.press(wanted, True)]
            if racing == "before":
                pressed, told = await asyncio.gather(both[1], both[0])
            else:
                told, pressed = await asyncio.gather(*both)
            return told, pressed

        told, pressed = self.run(work())
        events = [event for _, event in told] + list(pressed)
        assert sum(isinstance(event, QuestionSettled) for event in events) == 1
        ends = [event for event in events if isinstance(event, TurnClosed)]
        assert all(end.reply == ends[0].reply for end in ends)
        [[button]] = ends[0].reply.buttons
        wanted.state, wanted.segments, wanted.again = "closed", 2, button.token

    @rule(target=asked, turn_id=asked)
    def ask_again(self, turn_id: str) -> str:
        wanted = self.model[turn_id]
        if not wanted.again:
            return turn_id
        events = self.run(self.tap(wanted.again))
        if wanted.asked_again:
            assert events[-1].turn_id == ""
            return turn_id
        wanted.asked_again = True
        return self.opens(events, wanted.number, wanted.cap)

    @rule()
    def stop(self) -> None:
        waiting = [one for one in self.model.values() if one.state == "suspended"]
        assert self.run(self.house.turns.stop(LOCAL, "local")) is bool(waiting)
        for one in waiting:
            one.state, one.segments = "closed", 2

    @rule()
    def restart(self) -> None:
        self.run(self.closed())
        self.house = self.run(self.opened())

    @invariant()
    def store_log_and_files_agree(self) -> None:
        async def look() -> list[Any]:
            found = []
            async with self.house.stores.main.read() as tx:
                for turn_id in self.model:
                    stored = await turns.get(tx, turn_id)
                    open_ones = await suspensions.of_turn(tx, turn_id)
                    found.append((stored, open_ones, await effects.of_turn(tx, turn_id)))
            return found

        if not self.model:
            return
        gone = {one.number for one in self.model.values() if one.done}
        for wanted, (stored, asked, journal) in zip(
            self.model.values(), self.run(look()), strict=True
        ):
            assert stored.state == wanted.state
            states = [state.value for _, state in asked]
            assert len(states) == 1
            assert (states == ["open"]) is (wanted.state == "suspended")
            assert len(journal) == wanted.done
            assert (self.path / "notes" / wanted.file).exists() is (wanted.number not in gone)
            if wanted.state == "suspended":
                state = TurnState.from_json(stored.state_data)
                assert (state.capped is not None) is wanted.cap
                assert Cap.STEPS not in state.extended
        logged = Counter[str]()
        home = self.house.settings.metnos_home
        for path in (home / "turns").glob("*.jsonl"):
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                logged[entry["turn_id"]] += 1
                assert entry["segment"] == logged[entry["turn_id"]]
        for turn_id, wanted in self.model.items():
            assert logged[turn_id] == wanted.segments


SCALE = float(os.environ.get("METNOS_TEST_SCALE") or 0.2)
TestWaiting = Waiting.TestCase
TestWaiting.settings = settings(
    max_examples=max(4, round(10 * SCALE)),
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
