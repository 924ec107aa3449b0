"""Answers that are none: asked again with what would be one, a few times, then how to leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.errors import ErrorCode
from core.messages import FinalKind, TurnClosed, TurnSuspended
from core.store import suspensions, turns
from tests.core.test_questions import asked, only, press, said
from tests.core.test_turn import lines
from tests.support.house import open_scripted
from tests.support.scripted_model import Rule

LONG = "parola " * 1500  # 10 500 characters
OPTIONS = ["pane", "latte"]
# kind: (an answer of the wrong shape, a word of what is said then, a right one, what it means)
KINDS: dict[str, tuple[str, str, str, Any]] = {
    "text": (LONG, "4.000 caratteri", "Anna", "Anna"),
    "yes_no": ("forse", "sì o no", "sì", True),
    "choice": ("burro", "una delle voci", "2", "latte"),
    "multi_choice": ("burro", "una o più voci", "tutti", ["pane", "latte"]),
    "number": ("parecchi", "un numero", "ventidue", 22),
    "date": ("presto", "un giorno", "12/03/2027", "2027-03-12"),
    "file_path": ("a\nb", "percorso", "a.md", "a.md"),
}


def asking(kind: str) -> list[Rule]:
    field = {"var": "x", "prompt": "Dimmi?", "kind": kind, "options": OPTIONS}
    return only("get_inputs", {"fields": [field]})


async def replied(house: House, question: Any, text: str) -> Any:
    """Answer by a reply to the question."""
    async with house.stores.main.read() as tx:
        [(suspension, _)] = await suspensions.of_turn(tx, question.turn_id)
    return (await said(house, text, data={"reply_to": suspension.prompt_key}))[-1]


@pytest.mark.parametrize("kind", KINDS)
async def test_answer_of_the_wrong_shape_is_asked_again_three_times_with_the_shape(
    tmp_path: Path, kind: str
) -> None:
    wrong, words, right, meant = KINDS[kind]
    async with open_scripted(tmp_path, asking(kind)) as (house, model):
        question: Any = await asked(house, "cerca")
        for _ in range(3):
            question = await replied(house, question, wrong)
            assert isinstance(question, TurnSuspended)
            assert words in question.reply.blocks[0].text
            assert question.reply.blocks[1].text.startswith("Dimmi?")
        told = await replied(house, question, wrong)

        assert isinstance(told, TurnClosed)
        assert told.turn_id == ""
        assert words in told.reply.plain
        assert "annulla" in told.reply.plain
        assert len(model.asked) == 1
        end = await replied(house, question, right)
        assert isinstance(end, TurnClosed)
        assert json.loads(end.reply.plain) == {"x": meant}
        assert [line["segment"] for line in lines(house)] == [1, 2]


@pytest.mark.parametrize("kind", KINDS)
async def test_ten_thousand_characters_in_reply_are_asked_again(tmp_path: Path, kind: str) -> None:
    async with open_scripted(tmp_path, asking(kind)) as (house, model):
        again = await replied(house, await asked(house, "cerca"), LONG)

        assert isinstance(again, TurnSuspended)
        assert len(again.reply.plain) < 1000
        assert len(model.asked) == 1


async def test_count_of_misses_begins_anew_with_each_field_and_survives_a_restart(
    tmp_path: Path,
) -> None:
    fields = [{"var": v, "prompt": f"{v}?", "kind": "number"} for v in ("uno", "due")]
    rules = only("get_inputs", {"fields": fields})
    async with open_scripted(tmp_path, rules) as (house, _):
        question: Any = await asked(house, "cerca")
        for _ in range(3):
            question = await replied(house, question, "boh")
    async with open_scripted(tmp_path, rules) as (house, _):
        assert isinstance(await replied(house, question, "boh"), TurnClosed)
        question = await replied(house, question, "3")
        assert question.reply.plain.startswith("due?")
        for _ in range(3):
            question = await replied(house, question, "boh")
            assert isinstance(question, TurnSuspended)
        assert isinstance(await replied(house, question, "boh"), TurnClosed)
        end = await replied(house, question, "quattro")
        assert json.loads(end.reply.plain) == {"uno": 3, "due": 4}


@pytest.mark.parametrize("words", ["lascia stare", "forget it", "annulla"])
@pytest.mark.parametrize("kind", ["text", "number", "choice"])
async def test_question_is_dropped_in_words_whatever_it_asks(
    tmp_path: Path, kind: str, words: str
) -> None:
    async with open_scripted(tmp_path, asking(kind)) as (house, model):
        question = await asked(house, "cerca")
        end = (await said(house, words))[-1]

        assert isinstance(end, TurnClosed)
        assert end.turn_id == question.turn_id
        assert end.error is not None
        assert end.error.code is ErrorCode.CANCELLED
        assert len(model.asked) == 1
        async with house.stores.main.read() as tx:
            [(_, state)] = await suspensions.of_turn(tx, question.turn_id)
        assert state.value == "cancelled"


async def test_new_requests_while_questions_are_open_run_and_all_end_right(
    tmp_path: Path,
) -> None:
    rules = [
        *asking("number"),
        Rule(user="elimina", after=0, calls=[("delete_files", {"paths": ["a.md"]})]),
        Rule(user="elimina", after=1, text="Fatto."),
        Rule(user="ciao", text="Ciao!"),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        (tmp_path / "notes/a.md").write_text("x")
        number = await asked(house, "cerca")
        delete = await asked(house, "elimina a.md")
        hello = (await said(house, "ciao a tutti"))[-1]
        assert isinstance(hello, TurnClosed)
        assert hello.reply.plain == "Ciao!"
        async with house.stores.main.read() as tx:
            states = [
                stored.state
                for stored in [await turns.get(tx, one.turn_id) for one in (number, delete)]
                if stored is not None
            ]
        assert states == ["suspended", "suspended"]

        first = await replied(house, number, "sette")
        second = (await press(house, delete, "Sì"))[-1]

        assert isinstance(first, TurnClosed)
        assert first.turn_id == number.turn_id
        assert json.loads(first.reply.plain) == {"x": 7}
        assert isinstance(second, TurnClosed)
        assert second.turn_id == delete.turn_id
        assert second.final_kind is FinalKind.ANSWER
        assert not (tmp_path / "notes/a.md").exists()


async def test_three_open_questions_survive_a_restart_and_each_reply_finds_its_own(
    tmp_path: Path,
) -> None:
    names = ["a.md", "b.md", "c.md"]
    rules = [
        Rule(user=f"elimina {name}", after=0, calls=[("delete_files", {"paths": [name]})])
        for name in names
    ]
    rules.append(Rule(text="Fatto."))
    for name in names:
        (tmp_path / "notes").mkdir(exist_ok=True)
        (tmp_path / "notes" / name).write_text("x")
    async with open_scripted(tmp_path, rules) as (house, _):
        first, second, third = [await asked(house, f"elimina {name}") for name in names]

    def left() -> list[str]:
        return sorted(path.name for path in (tmp_path / "notes").glob("*.md"))

    async with open_scripted(tmp_path, rules) as (house, _):
        one = await replied(house, first, "sì")
        assert (one.turn_id, left()) == (first.turn_id, ["b.md", "c.md"])
        newest = (await said(house, "sì"))[-1]
        assert (newest.turn_id, left()) == (third.turn_id, ["b.md"])
        # The yes was the newest question's; what is left is asked still.
        no = (await said(house, "no"))[-1]
        assert (no.turn_id, left()) == (second.turn_id, ["b.md"])
        assert isinstance(no, TurnClosed)
        assert no.error is not None
        assert no.error.code is ErrorCode.DECLINED
