"""Forms at the engine's door: every kind, options from steps, buttons that toggle, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.messages import (
    ButtonsChanged,
    FinalKind,
    QuestionSettled,
    TurnClosed,
    TurnSuspended,
)
from tests.core.test_questions import asked, note, only, press, said
from tests.support.house import open_scripted
from tests.support.scripted_model import Rule


def form(*fields: dict[str, Any]) -> list[Rule]:
    return only("get_inputs", {"fields": list(fields)})


def field(kind: str, **more: Any) -> dict[str, Any]:
    return {"var": "x", "prompt": "Quale?", "kind": kind, **more}


def value(end: Any) -> Any:
    assert isinstance(end, TurnClosed), end
    assert end.final_kind is FinalKind.ANSWER
    return json.loads(end.reply.plain)["x"]


def labels(question: TurnSuspended) -> list[str]:
    return [button.label for row in question.reply.buttons for button in row]


OPTIONS = ["pane", "latte", "vino"]


@pytest.mark.parametrize(
    ("kind", "more", "text", "expected"),
    [
        ("text", {}, "Verbale", "Verbale"),
        ("yes_no", {}, "sì", True),
        ("yes_no", {}, "no grazie", False),
        ("choice", {"options": OPTIONS}, "2", "latte"),
        ("choice", {"options": OPTIONS}, "Vino", "vino"),
        ("multi_choice", {"options": OPTIONS}, "1, vino", ["pane", "vino"]),
        ("multi_choice", {"options": OPTIONS}, "tutti", OPTIONS),
        ("number", {}, "milleduecento", 1200),
        ("date", {}, "3 dicembre 2031", "2031-12-03"),
        ("location", {}, "45.07, 7.68", {"lat": 45.07, "lon": 7.68}),
    ],
)
async def test_kind_is_answered_in_words(
    tmp_path: Path, kind: str, more: dict[str, Any], text: str, expected: Any
) -> None:
    async with open_scripted(tmp_path, form(field(kind, **more))) as (house, _):
        await asked(house, "cerca")
        found = value((await said(house, text))[-1])
        if kind == "location":
            found = {name: found[name] for name in ("lat", "lon")}
        assert found == expected


@pytest.mark.parametrize(
    ("kind", "more", "text", "word"),
    [
        ("text", {}, "x" * 10_000, "Mi serve un testo"),
        ("secret", {}, "x" * 1001, "Mi serve una parola"),
        ("yes_no", {}, "forse domani", "Rispondi sì o no"),
        ("choice", {"options": OPTIONS}, "birra", "Scegli una delle voci"),
        ("multi_choice", {"options": OPTIONS}, "pane, birra", "Scegli una o più"),
        ("number", {}, "tanti", "Mi serve un numero"),
        ("date", {}, "31 febbraio", "Mi serve un giorno"),
        ("file_path", {}, "a\nb", "percorso di un file"),
        ("file_path", {}, "/etc/hosts", "fuori dalle cartelle aperte"),
        ("file_path", {}, "~/.ssh/id_rsa", "fuori dalle cartelle aperte"),
        ("file_path", {}, "../../home/private/metnos.db", "fuori dalle cartelle aperte"),
    ],
)
async def test_reply_of_the_wrong_shape_is_asked_again_and_named(
    tmp_path: Path, kind: str, more: dict[str, Any], text: str, word: str
) -> None:
    async with open_scripted(tmp_path, form(field(kind, **more))) as (house, model):
        question = await asked(house, "cerca")
        settled, again = await said(house, text, data={"reply_to": question.turn_id})

        assert isinstance(settled, QuestionSettled)
        assert isinstance(again, TurnSuspended)
        assert word in settled.text + again.reply.plain
        assert "Quale?" in again.reply.plain
        assert len(model.asked) == 1


async def test_path_in_an_open_folder_is_handed_on_as_it_was_said(tmp_path: Path) -> None:
    note(tmp_path, "b.md")
    async with open_scripted(tmp_path, form(field("file_path"))) as (house, _):
        await asked(house, "cerca")
        assert value((await said(house, "b.md"))[-1]) == "b.md"


async def test_thirty_fields_are_asked_and_a_thirty_first_is_not(tmp_path: Path) -> None:
    many = [{"var": f"v{n}", "prompt": f"N {n}?", "kind": "number"} for n in range(31)]
    async with open_scripted(tmp_path, only("get_inputs", {"fields": many[:30]})) as (house, _):
        last: Any = await asked(house, "cerca")
        for number in range(30):
            assert last.reply.plain.startswith(f"N {number}?")
            assert f"{number + 1} di 30" in last.reply.plain
            last = (await said(house, str(number)))[-1]
        assert isinstance(last, TurnClosed)
        assert json.loads(last.reply.plain) == {f"v{n}": n for n in range(30)}
    rules = [
        Rule(user="cerca", after=0, calls=[("get_inputs", {"fields": many})]),
        Rule(user="cerca", after=1, text="Dimmi tu."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        assert isinstance((await said(house, "cerca"))[-1], TurnClosed)
        assert "1 to 30" in model.asked[1].last_result


async def test_optional_field_is_passed_over_by_its_button(tmp_path: Path) -> None:
    one = field("number", optional=True)
    async with open_scripted(tmp_path, form(one)) as (house, _):
        question = await asked(house, "cerca")
        assert labels(question)[0].startswith("⏭")
        assert value((await press(house, question, "Salta"))[-1]) is None


async def test_secret_that_may_be_left_out_is_passed_over_by_a_word(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, form(field("secret", optional=True))) as (house, _):
        question = await asked(house, "cerca")
        assert len(labels(question)) == 1
        assert "«salta»" in question.reply.plain
        assert value((await said(house, "salta"))[-1]) is None


@pytest.mark.parametrize("key", ["cancel", "skip", "done", "list", "yes", "no", "=pane"])
async def test_option_that_is_called_like_a_button_is_an_option(tmp_path: Path, key: str) -> None:
    one = field("choice", options=[key, "latte"])
    async with open_scripted(tmp_path, form(one)) as (house, _):
        question = await asked(house, "cerca")
        assert value((await press(house, question, key))[-1]) == key


async def picks(house: House, question: TurnSuspended, *names: str) -> TurnSuspended:
    for name in names:
        changed, question = await press(house, question, name)
        assert isinstance(changed, ButtonsChanged)
        assert isinstance(question, TurnSuspended)
    return question


async def test_several_are_picked_by_buttons_and_survive_a_restart(tmp_path: Path) -> None:
    rules = form(field("multi_choice", options=OPTIONS))
    async with open_scripted(tmp_path, rules) as (house, _):
        first = await asked(house, "cerca")
        assert labels(first)[:3] == OPTIONS
        shown = await picks(house, first, "vino", "pane", "latte", "latte")
        assert labels(shown)[:3] == ["☑️ pane", "latte", "☑️ vino"]
    async with open_scripted(tmp_path, rules) as (house, _):
        end = (await press(house, first, "Fatto"))[-1]

        assert value(end) == ["pane", "vino"]


async def test_toggle_delivered_twice_counts_once_and_none_may_be_picked(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, form(field("multi_choice", options=OPTIONS))) as (house, _):
        question = await asked(house, "cerca")
        await press(house, question, "vino", id="same")
        again = (await press(house, question, "vino", id="same"))[-1]
        assert isinstance(again, TurnSuspended)
        assert labels(again)[2] == "☑️ vino"
        await picks(house, question, "vino")

        assert value((await press(house, question, "Fatto"))[-1]) == []


async def test_words_take_the_place_of_what_was_picked(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, form(field("multi_choice", options=OPTIONS))) as (house, _):
        await picks(house, await asked(house, "cerca"), "vino")
        assert value((await said(house, "pane e latte"))[-1]) == ["pane", "latte"]


async def test_many_options_are_listed_and_answered_by_number(tmp_path: Path) -> None:
    options = [f"voce {letter}" for letter in "abcdefghijkl"]
    async with open_scripted(tmp_path, form(field("multi_choice", options=options))) as (house, _):
        question = await asked(house, "cerca")
        assert "12. voce l" in question.reply.plain
        assert len(labels(question)) == 1
        assert value((await said(house, "1, 12"))[-1]) == ["voce a", "voce l"]


@pytest.mark.parametrize("tool", ["get_inputs", "request_disambiguation_from_user"])
async def test_choices_come_from_an_earlier_step(tmp_path: Path, tool: str) -> None:
    for name in ("a.md", "b.md"):
        note(tmp_path, name)
    one = {"var": "choice", "prompt": "Quale?", "kind": "choice", "from_step": 1}
    args = {"fields": [one]} if tool == "get_inputs" else {"prompt": "Quale?", "from_step": 1}
    rules = [
        Rule(
            user="cerca", after=0, calls=[("find_files", {"base_path": str(tmp_path / "notes")})]
        ),
        Rule(user="cerca", after=1, calls=[(tool, args)]),
        Rule(user="cerca", after=2, text=lambda a: json.loads(a.last_result)["content"]["choice"]),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        question = await asked(house, f"cerca in {tmp_path / 'notes'}")
        assert labels(question)[:2] == ["a.md", "b.md"]
        await press(house, question, "b.md")

        chosen = json.loads(model.asked[2].last_result)["content"]["choice"]
        assert chosen == str(tmp_path / "notes" / "b.md")


@pytest.mark.parametrize(
    ("step", "code"), [(7, "bad_reference"), ("x", "bad_reference"), (None, "invalid_args")]
)
async def test_choices_of_no_step_are_told_to_the_model(
    tmp_path: Path, step: Any, code: str
) -> None:
    rules = [
        Rule(
            user="cerca",
            after=0,
            calls=[("get_inputs", {"fields": [field("choice", from_step=step)]})],
        ),
        Rule(user="cerca", after=1, text="Dimmi tu."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        await said(house, "cerca")
        assert json.loads(model.asked[1].last_result)["error"]["code"] == code


async def test_question_in_the_answer_is_an_ask_and_a_short_reply_is_understood(
    tmp_path: Path,
) -> None:
    """Nothing is open: a plain question, whose answer is a request that knows what was asked."""
    rules = [
        Rule(user="^apri", text="Quale dei due: a.md o b.md?"),
        Rule(user="^il secondo", text="Apro b.md."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        ask = (await said(house, "apri il file"))[-1]
        assert isinstance(ask, TurnClosed)
        assert ask.final_kind is FinalKind.ASK
        assert ask.reply.expects is None
        assert ask.reply.buttons == ()
        end = (await said(house, "il secondo"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.ANSWER
        assert end.turn_id != ask.turn_id
        prompt = json.dumps(model.asked[-1].body["messages"], ensure_ascii=False)
        assert "Quale dei due: a.md o b.md?" in prompt
        assert "apri il file" in prompt


async def test_final_kind_says_what_a_turn_waits_for(tmp_path: Path) -> None:
    rules = [
        Rule(user="modulo", after=0, calls=[("get_inputs", {"fields": [field("number")]})]),
        Rule(
            user="dove",
            after=0,
            calls=[("request_location_from_user", {"prompt": "Dove?"})],
        ),
        Rule(
            user="scelta",
            after=0,
            calls=[("request_disambiguation_from_user", {"prompt": "Q?", "options": OPTIONS})],
        ),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        kinds = []
        for request in ("modulo", "dove", "scelta"):
            last = (await said(house, request))[-1]
            assert isinstance(last, TurnSuspended)
            kinds.append(last.reply.final_kind)
            await said(house, "annulla")

    assert kinds == [FinalKind.NEEDS_INPUTS, FinalKind.AWAITING, FinalKind.AWAITING]
