"""Caps that a person extends once: asked in words, gone on from the refused call, told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.errors import ErrorCode, ErrorInfo
from core.execution import guards
from core.messages import (
    FinalKind,
    InboundKind,
    QuestionSettled,
    StepFinished,
    TurnClosed,
    TurnSuspended,
)
from core.store import suspensions, turns
from core.turn_state import Cap, TurnState
from tests.core.test_questions import press, said
from tests.core.test_turn import lines
from tests.support.house import open_scripted
from tests.support.scripted_model import Ask, Rule

ZONES = ["Rome", "Paris", "Madrid", "Berlin", "Vienna", "Prague", "Warsaw", "Athens"]


def planned(*steps: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"steps": [{"tool": tool, "args": args} for tool, args in steps]}


def write(number: int) -> tuple[str, dict[str, Any]]:
    return ("write_files", {"path": f"n{number}.md", "content": "x"})


def writes(asked: Ask) -> list[tuple[str, dict[str, Any]]]:
    return [write(len(asked.results) + 1)]


NAMES = ", ".join(f"n{number}.md" for number in range(1, 40))
WRITE = f"scrivi x nei file {NAMES}"
ONE_BY_ONE = [Rule(user="scrivi", calls=writes)]
INVENTING = [Rule(calls=lambda a: [(f"get_thing_{len(a.body['messages'])}", {})])]


def written(tmp_path: Path) -> int:
    return len(list((tmp_path / "notes").glob("n*.md")))


async def at_cap(house: House, text: str, **fields: Any) -> TurnSuspended:
    last = (await said(house, text, **fields))[-1]
    assert isinstance(last, TurnSuspended), last
    return last


async def test_cap_is_asked_in_words_with_what_was_done_and_what_a_yes_means(
    tmp_path: Path,
) -> None:
    async with open_scripted(tmp_path, ONE_BY_ONE) as (house, _):
        question = await at_cap(house, WRITE)

        text = question.reply.plain
        assert question.reply.final_kind is FinalKind.AWAITING
        assert text.startswith("✋ Ho fatto 10 volte la stessa cosa («Scrivo il file»)")
        assert "10 passi, riusciti: 10" in text
        assert "n1.md" in text
        assert "sale a 20 volte" in text
        assert "scade alle" in text
        labels = [button.label for row in question.reply.buttons for button in row]
        assert labels == ["✅ Sì", "✋ No"]


async def test_cap_is_asked_in_english_too(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, INVENTING, metnos_lang="en") as (house, _):
        question = await at_cap(house, "please do all of the things")

        assert question.reply.plain.startswith("✋ I have come to 30 steps")
        assert "I have changed nothing" in question.reply.plain


@pytest.mark.parametrize("engine", ["simple", "metis"])
async def test_yes_goes_on_from_the_refused_call_and_the_second_time_ends(
    tmp_path: Path, engine: str
) -> None:
    rules = ONE_BY_ONE
    if engine == "metis":
        rules = [Rule(plan=planned(*(write(number) for number in range(1, 26))))]
    async with open_scripted(tmp_path, rules, metnos_engine=engine) as (house, model):
        question = await at_cap(house, WRITE)
        assert written(tmp_path) == 10
        asked = len(model.asked)

        events = await press(house, question, "Sì")

        end = events[-1]
        assert isinstance(end, TurnClosed)
        assert end.turn_id == question.turn_id
        assert end.final_kind is FinalKind.CAP_SAME_EXECUTOR
        assert "(20)" in end.reply.plain
        assert "n1.md" in end.reply.plain
        assert written(tmp_path) == 20
        first = next(event for event in events if isinstance(event, StepFinished))
        assert (first.number, first.ok) == (11, True)
        settled = [event.text for event in events if isinstance(event, QuestionSettled)]
        assert len(settled) == 1
        assert "Vado avanti" in settled[0]
        # The refused call was not proposed a second time.
        assert len(model.asked) - asked == (10 if engine == "simple" else 0)
        logged = lines(house)
        assert [line["segment"] for line in logged] == [1, 2]
        assert [line["final_kind"] for line in logged] == ["awaiting", "cap_same_executor"]
        assert [len(line["steps"]) for line in logged] == [10, 11]
        async with house.stores.main.read() as tx:
            left = await suspensions.of_turn(tx, question.turn_id)
        assert [state.value for _, state in left] == ["done"]


@pytest.mark.parametrize("way", ["no", "annulla", "expiry", "late press", "left"])
async def test_cap_that_is_not_extended_ends_as_the_cap_with_what_was_done(
    tmp_path: Path, way: str
) -> None:
    async with open_scripted(tmp_path, ONE_BY_ONE) as (house, _):
        if way == "left":
            end: Any = (await said(house, WRITE, data={"interactive": False}))[-1]
        else:
            question = await at_cap(house, WRITE)
        if way in {"expiry", "late press"}:
            async with house.stores.main.write() as tx:
                past = (house.clock.now() - timedelta(seconds=1)).timestamp()
                await tx.execute("UPDATE suspensions SET expires_at = ?", (past,))
        if way == "expiry":
            end = (await house.turns.expire())[-1][1]
        elif way == "late press":
            end = (await press(house, question, "Sì"))[-1]
        elif way == "annulla":
            end = (await said(house, "lascia stare"))[-1]
        elif way == "no":
            end = (await press(house, question, "No"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.CAP_SAME_EXECUTOR
        assert end.error is not None
        assert end.error.code.value == "cap_same_executor"
        assert "(10)" in end.reply.plain
        assert "n1.md" in end.reply.plain  # what was done
        assert "n11.md" in end.reply.plain  # and what was not
        assert written(tmp_path) == 10
        kinds = [line["final_kind"] for line in lines(house)]
        assert kinds == ([] if way == "left" else ["awaiting"]) + ["cap_same_executor"]
        async with house.stores.main.read() as tx:
            stored = await turns.get(tx, end.turn_id)
        assert stored is not None
        assert (stored.state, stored.final_kind) == ("closed", FinalKind.CAP_SAME_EXECUTOR)


async def test_cap_no_of_a_plan_names_the_rest_of_it_once(tmp_path: Path) -> None:
    rules = [Rule(plan=planned(*(write(number) for number in range(1, 13))))]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, _):
        end = (await press(house, await at_cap(house, WRITE), "No"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.reply.plain.count("n11.md") == 1
        assert end.reply.plain.count("n12.md") == 1


async def test_steps_cap_extended_lets_thirty_more_be_taken_and_no_more(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, INVENTING) as (house, model):
        question = await at_cap(house, "fai qualcosa")
        assert "30 passi" in question.reply.plain
        assert len(model.asked) == 31

        end = (await press(house, question, "Sì"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.CAP_STEPS
        assert "60 passi" in end.reply.plain
        assert len(model.asked) == 61


async def test_calls_of_one_reply_behind_the_refused_one_are_made_after_a_yes(
    tmp_path: Path,
) -> None:
    many = [write(number) for number in range(1, 15)]
    rules = [
        Rule(user="scrivi", after=0, calls=many),
        Rule(user="scrivi", after=14, text="Scritti."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        question = await at_cap(house, WRITE)
        assert written(tmp_path) == 10

        end = (await press(house, question, "Sì"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.ANSWER
        assert written(tmp_path) == 14
        assert len(model.asked) == 2
        assert len(model.asked[1].results) == 14


async def test_unreadable_call_at_the_cap_waits_and_is_told_after_a_yes(tmp_path: Path) -> None:
    """A call that no program can be started with counts and waits like any other."""
    rules = [
        Rule(when=lambda a: len(a.results) < 30, calls=lambda a: [(f"get_{len(a.results)}", {})]),
        Rule(when=lambda a: len(a.results) == 30, calls=[("read_files", "nothing like JSON")]),
        Rule(text="Non ci riesco."),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        question = await at_cap(house, "fai qualcosa")

        end = (await press(house, question, "Sì"))[-1]

        assert isinstance(end, TurnClosed)
        assert [len(line["steps"]) for line in lines(house)] == [30, 1]


async def test_extension_survives_a_restart_and_another_question(tmp_path: Path) -> None:
    """Ten writes, the cap, one more write, a deletion that asks, and writes to the second cap."""

    def next_call(asked: Ask) -> list[tuple[str, dict[str, Any]]]:
        number = len(asked.results) + 1
        if number == 12:
            return [("delete_files", {"paths": ["n1.md"]})]
        return [write(number)]

    rules = [Rule(user="scrivi", calls=next_call)]
    request = f"{WRITE} e poi cancella n1.md"
    async with open_scripted(tmp_path, rules) as (house, _):
        question = await at_cap(house, request)
    async with open_scripted(tmp_path, rules) as (house, _):
        consent = (await press(house, question, "Sì"))[-1]
        assert isinstance(consent, TurnSuspended)
        assert "Elimino" in consent.reply.plain
    async with open_scripted(tmp_path, rules) as (house, _):
        async with house.stores.main.read() as tx:
            stored = await turns.get(tx, consent.turn_id)
        assert stored is not None
        state = TurnState.from_json(stored.state_data or {})
        assert state.extended == (Cap.SAME_EXECUTOR,)
        assert state.capped is None

        end = (await press(house, consent, "Sì"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.CAP_SAME_EXECUTOR
        assert "(20)" in end.reply.plain
        assert [line["segment"] for line in lines(house)] == [1, 2, 3]


async def test_plan_longer_than_a_turn_is_asked_about_before_it_begins(tmp_path: Path) -> None:
    steps = [
        (tool, args)
        for number in range(1, 17)
        for tool, args in (write(number), ("read_files", {"paths": [f"n{number}.md"]}))
    ]
    rules = [Rule(plan=planned(*steps))]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, model):
        alone = (await said(house, WRITE, data={"interactive": False}))[-1]
        assert isinstance(alone, TurnClosed)
        assert alone.final_kind is FinalKind.CAP_STEPS

        question = await at_cap(house, WRITE)

        assert "32 passi" in question.reply.plain
        assert written(tmp_path) == 0
        asked = len(model.asked)
        other_cap = (await press(house, question, "Sì"))[-1]
        # The steps are granted; the ten writes are a cap of their own.
        assert isinstance(other_cap, TurnSuspended)
        assert written(tmp_path) == 10
        end = (await press(house, other_cap, "Sì"))[-1]
        assert isinstance(end, TurnClosed)
        assert written(tmp_path) == 16
        assert len(model.asked) == asked


async def test_plan_longer_than_a_turn_that_is_refused_does_nothing(tmp_path: Path) -> None:
    rules = [Rule(plan=planned(*(write(number) for number in range(1, 33))))]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, _):
        end = (await press(house, await at_cap(house, WRITE), "No"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.CAP_STEPS
        assert end.error is not None
        assert end.error.params["limit"] == 30
        assert written(tmp_path) == 0


def test_cap_of_reads_only_what_is_one() -> None:
    record = {"cap": "steps", "limit": 30}

    assert guards.cap_of(ErrorInfo(ErrorCode.CAP_STEPS, record)) is Cap.STEPS
    assert guards.cap_of(ErrorInfo(ErrorCode.CAP_STEPS, {"cap": ["steps"]})) is None
    assert guards.cap_of(ErrorInfo(ErrorCode.CAP_STEPS, {"cap": "all"})) is None
    assert guards.cap_of(None) is None


def test_state_of_an_older_version_has_extended_nothing() -> None:
    old = TurnState("t", "r").to_json()
    del old["extended"], old["capped"]

    assert TurnState.from_json(old) == TurnState("t", "r")


async def test_scheduled_turn_waits_an_hour_for_its_answer(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, ONE_BY_ONE) as (house, _):
        question = await at_cap(house, WRITE, kind=InboundKind.SCHEDULED)
        other = await at_cap(house, WRITE.replace("n1.md", "n01.md"))

        async with house.stores.main.read() as tx:
            spans = [
                suspension.expires_at - suspension.created_at
                for turn_id in (question.turn_id, other.turn_id)
                for suspension, _ in await suspensions.of_turn(tx, turn_id)
            ]
        assert spans == [timedelta(seconds=3600), timedelta(seconds=600)]
