"""Turns that ask before they act: asked, answered, and done once or not at all."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.errors import ErrorCode
from core.messages import (
    FinalKind,
    InboundKind,
    QuestionSettled,
    Role,
    TurnClosed,
    TurnEvent,
    TurnSuspended,
)
from core.store import actors, effects, suspensions, turns
from tests.support.house import LOCAL, events_of, inbound, open_scripted
from tests.support.scripted_model import Rule

DELETE = [
    Rule(user="cancella", after=0, calls=[("delete_files", {"paths": ["a.md"]})]),
    Rule(user="cancella", after=1, text="Fatto."),
]
PLAN = [
    Rule(
        text=json.dumps(
            {"steps": [{"tool": "delete_files", "args": {"paths": ["a.md"]}}]},
        )
    )
]
ENGINES = pytest.mark.parametrize(
    ("engine", "rules"), [("simple", DELETE), ("metis", PLAN)], ids=["simple", "metis"]
)


async def said(house: House, text: str, **fields: Any) -> list[TurnEvent]:
    return await events_of(house, inbound(text, **fields))


async def press(house: House, question: TurnSuspended, label: str, **fields: Any) -> Any:
    """Press the button whose label holds `label`; what happens."""
    buttons = [b for row in question.reply.buttons for b in row if label in b.label]
    data = {"token": buttons[0].token}
    return await said(house, "", kind=InboundKind.CHOICE, data=data, **fields)


async def asked(house: House, text: str = "cancella a.md") -> TurnSuspended:
    last = (await said(house, text))[-1]
    assert isinstance(last, TurnSuspended)
    return last


def note(tmp_path: Path, name: str = "a.md") -> Path:
    path = tmp_path / "notes" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    return path


def in_trash(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "notes/.metnos-trash").rglob("*.md"))


@ENGINES
async def test_delete_is_asked_and_a_yes_puts_it_into_the_trash_once(
    tmp_path: Path, engine: str, rules: list[Rule]
) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, rules, metnos_engine=engine) as (house, model):
        question = await asked(house)
        assert path.exists()
        assert question.reply.final_kind is FinalKind.AWAITING
        assert question.reply.plain.startswith("✋ Elimino ")
        assert "a.md" in question.reply.plain
        assert "scade alle" in question.reply.plain
        calls = len(model.asked)

        events = await press(house, question, "Sì")

        assert not path.exists()
        assert len(in_trash(tmp_path)) == 1
        settled = [e for e in events if isinstance(e, QuestionSettled)]
        assert "Approvato da te" in settled[0].text
        end = events[-1]
        assert isinstance(end, TurnClosed)
        assert end.turn_id == question.turn_id
        assert end.final_kind is FinalKind.ANSWER
        assert "cestino" in end.reply.plain
        assert len(model.asked) == calls + (engine == "simple")
        async with house.stores.main.read() as tx:
            assert len(await effects.of_turn(tx, question.turn_id)) == 1


@ENGINES
async def test_delete_that_is_refused_changes_nothing(
    tmp_path: Path, engine: str, rules: list[Rule]
) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, rules, metnos_engine=engine) as (house, _):
        question = await asked(house)
        end = (await press(house, question, "No"))[-1]

        assert path.exists()
        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.DECLINED
        assert "hai detto di no" in end.reply.plain
        async with house.stores.main.read() as tx:
            assert await effects.of_turn(tx, question.turn_id) == []


async def test_button_pressed_twice_at_once_acts_once(tmp_path: Path) -> None:
    note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)

        both = await asyncio.gather(
            press(house, question, "Sì", id="tap1"), press(house, question, "Sì", id="tap2")
        )

        ends = [events[-1] for events in both]
        assert ends[0].reply == ends[1].reply
        assert len(in_trash(tmp_path)) == 1
        async with house.stores.main.read() as tx:
            assert len(await effects.of_turn(tx, question.turn_id)) == 1


async def test_yes_in_words_answers_and_a_new_request_does_not(tmp_path: Path) -> None:
    path = note(tmp_path)
    rules = [*DELETE, Rule(user="ciao", text="Ciao!")]
    async with open_scripted(tmp_path, rules) as (house, _):
        await asked(house)
        other = (await said(house, "ciao a tutti"))[-1]
        assert isinstance(other, TurnClosed)
        assert other.reply.plain == "Ciao!"
        assert path.exists()

        end = (await said(house, "sì"))[-1]

        assert isinstance(end, TurnClosed)
        assert not path.exists()


async def test_request_delivered_again_while_it_waits_tells_the_same_question(
    tmp_path: Path,
) -> None:
    note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, model):
        first = (await said(house, "cancella a.md", id="same"))[-1]
        again = (await said(house, "cancella a.md", id="same"))[-1]

        assert first == again
        assert len(model.asked) == 1


async def test_answer_delivered_twice_is_answered_once(tmp_path: Path) -> None:
    note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        await asked(house)
        first = (await said(house, "sì", id="yes"))[-1]
        again = (await said(house, "sì", id="yes"))[-1]

        assert first.reply == again.reply  # type: ignore[union-attr]
        assert len(in_trash(tmp_path)) == 1


async def test_question_survives_a_restart(tmp_path: Path) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        end = (await press(house, question, "Sì"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.ANSWER
        assert not path.exists()
        async with house.stores.main.read() as tx:
            assert await suspensions.claimed_unsettled(tx) == []


async def test_question_that_ran_out_does_nothing_and_says_so(tmp_path: Path) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
        async with house.stores.main.write() as tx:
            past = (house.clock.now() - timedelta(seconds=1)).timestamp()
            await tx.execute("UPDATE suspensions SET expires_at = ?", (past,))

        told = await house.turns.expire()
        late = (await press(house, question, "Sì"))[-1]

        assert [type(event) for _, event in told] == [QuestionSettled, TurnClosed]
        assert isinstance(late, TurnClosed)
        assert late.error is None  # told before: the stored end
        assert "in tempo" in late.reply.plain
        assert path.exists()
        assert await house.turns.expire() == []


async def test_late_button_ends_the_turn_with_a_word(tmp_path: Path) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
        async with house.stores.main.write() as tx:
            past = (house.clock.now() - timedelta(seconds=1)).timestamp()
            await tx.execute("UPDATE suspensions SET expires_at = ?", (past,))

        late = (await press(house, question, "Sì"))[-1]

        assert isinstance(late, TurnClosed)
        assert late.error is not None
        assert late.error.code is ErrorCode.QUESTION_EXPIRED
        assert path.exists()


async def test_what_changed_after_the_question_is_asked_again(tmp_path: Path) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
        path.write_text("something else, and longer")

        again = (await press(house, question, "Sì"))[-1]

        assert isinstance(again, TurnSuspended)
        assert path.exists()
        end = (await press(house, again, "Sì"))[-1]
        assert isinstance(end, TurnClosed)
        assert not path.exists()


async def test_changed_program_ends_the_turn_politely(tmp_path: Path) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
        async with house.stores.main.write() as tx:
            row = await tx.fetch_one("SELECT data_json FROM suspensions")
            assert row is not None
            data = json.loads(row["data_json"])
            data["programs"]["delete_files"] = "0" * 64
            await tx.execute("UPDATE suspensions SET data_json = ?", (json.dumps(data),))

        end = (await press(house, question, "Sì"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.EXECUTOR_CHANGED
        assert path.exists()


async def test_right_that_was_withdrawn_meanwhile_counts(tmp_path: Path) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
        async with house.stores.main.write() as tx:
            await tx.execute("UPDATE actors SET autonomy = 'read_only'")

        end = (await press(house, question, "Sì"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.ERROR
        assert path.exists()


async def test_forged_button_changes_nothing(tmp_path: Path) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
        end = (await said(house, "", kind=InboundKind.CHOICE, data={"token": "forged"}))[-1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.ERROR
        assert path.exists()
        async with house.stores.main.read() as tx:
            stored = await turns.get(tx, question.turn_id)
        assert stored is not None
        assert stored.state == "suspended"


async def test_list_button_shows_all_and_still_asks(tmp_path: Path) -> None:
    names = [f"n{number}.md" for number in range(6)]
    for name in names:
        note(tmp_path, name)
    rules = [Rule(after=0, calls=[("delete_files", {"paths": names})]), Rule(text="Fatto.")]
    async with open_scripted(tmp_path, rules) as (house, _):
        question = await asked(house, f"cancella {' '.join(names)}")
        assert "6 elementi da" in question.reply.plain

        shown = (await press(house, question, "elenco"))[-1]

        assert isinstance(shown, TurnSuspended)
        assert all(name in shown.reply.plain for name in names)
        end = (await press(house, shown, "Sì"))[-1]
        assert isinstance(end, TurnClosed)
        assert len(in_trash(tmp_path)) == 6


async def test_call_that_was_declined_is_not_asked_a_second_time(tmp_path: Path) -> None:
    note(tmp_path)
    rules = [Rule(user="cancella", calls=[("delete_files", {"paths": ["a.md"]})])]
    async with open_scripted(tmp_path, rules) as (house, _):
        question = await asked(house)
        end = (await press(house, question, "No"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.LOOP_BREAK


async def test_each_stretch_of_a_turn_leaves_its_own_line(tmp_path: Path) -> None:
    note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        await press(house, await asked(house), "Sì")

        home = house.settings.metnos_home
        lines = [
            json.loads(line)
            for path in (home / "turns").glob("*.jsonl")
            for line in path.read_text().splitlines()
        ]
    assert [(line["segment"], line["final_kind"]) for line in lines] == [
        (1, "awaiting"),
        (2, "answer"),
    ]
    assert [len(line["steps"]) for line in lines] == [0, 1]
    assert lines[1]["steps"][0]["consent"] == "given"


async def test_crash_after_the_answer_is_told_and_nothing_is_repeated(tmp_path: Path) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
        async with house.stores.main.write() as tx:
            row = await tx.fetch_one("SELECT id FROM suspensions")
            assert row is not None
            await suspensions.claim(tx, row["id"], house.clock.now())
            await turns.go_on(tx, question.turn_id)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        async with house.stores.main.read() as tx:
            stored = await turns.get(tx, question.turn_id)
            assert await suspensions.claimed_unsettled(tx) == []
        again = (await press(house, question, "Sì"))[-1]

    assert stored is not None
    assert stored.state == "closed"
    assert isinstance(again, TurnClosed)
    assert "Non ho cambiato nulla" in again.reply.plain
    assert path.exists()


async def test_button_of_another_person_is_not_theirs_to_press(tmp_path: Path) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
        async with house.stores.main.write() as tx:
            guest = await actors.add(tx, Role.GUEST, "Anna", house.clock)
            await actors.link(tx, LOCAL.channel, "7", guest.id)
        end = (await press(house, question, "Sì", sender_id="7"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.reply.plain == "Risponde solo la persona a cui l'ho chiesto."
        assert path.exists()
        own = (await press(house, question, "Sì"))[-1]
        assert isinstance(own, TurnClosed)
        assert not path.exists()


def only(tool: str, args: dict[str, Any]) -> list[Rule]:
    """A model that asks the person once and then says what it heard."""
    return [
        Rule(user="cerca", after=0, calls=[(tool, args)]),
        Rule(
            user="cerca", after=1, text=lambda a: json.dumps(json.loads(a.last_result)["content"])
        ),
    ]


async def test_missing_inputs_are_asked_field_by_field(tmp_path: Path) -> None:
    fields = [
        {"var": "many", "prompt": "Quanti?", "kind": "number"},
        {"var": "what", "prompt": "Che cosa?", "kind": "choice", "options": ["pane", "latte"]},
        {"var": "name", "prompt": "Per chi?", "kind": "text"},
    ]
    async with open_scripted(tmp_path, only("get_inputs", {"fields": fields})) as (house, _):
        first = await asked(house, "cerca")
        assert first.reply.final_kind is FinalKind.NEEDS_INPUTS
        assert first.reply.expects == "text"
        assert first.reply.plain.startswith("Quanti?")
        second = (await said(house, "tre"))[-1]
        assert isinstance(second, TurnSuspended)
        assert second.reply.plain.startswith("Che cosa?")
        third = (await press(house, second, "latte"))[-1]
        assert isinstance(third, TurnSuspended)
        end = (await said(house, "Anna"))[-1]

        assert isinstance(end, TurnClosed)
        assert json.loads(end.reply.plain) == {"many": 3, "what": "latte", "name": "Anna"}


async def test_choice_between_several_is_answered_by_its_number(tmp_path: Path) -> None:
    args = {"prompt": "Quale Anna?", "options": ["Anna Bianchi", "Anna Verdi"]}
    rules = only("request_disambiguation_from_user", args)
    async with open_scripted(tmp_path, rules) as (house, _):
        question = await asked(house, "cerca")
        assert [b.label for row in question.reply.buttons for b in row][:2] == args["options"]
        end = (await said(house, "2"))[-1]

        assert isinstance(end, TurnClosed)
        assert json.loads(end.reply.plain) == {"choice": "Anna Verdi"}


@pytest.mark.parametrize("way", ["location", "coordinates"])
async def test_place_of_the_person_comes_by_button_or_in_words(tmp_path: Path, way: str) -> None:
    rules = only("request_location_from_user", {"prompt": "Dove sei?"})
    async with open_scripted(tmp_path, rules) as (house, _):
        question = await asked(house, "cerca")
        assert question.reply.expects == "location"
        assert question.reply.buttons[0][0].kind == "location"
        wanted = {"lat": 45.07, "lon": 7.69}
        if way == "coordinates":
            end = (await said(house, "45.07, 7.69"))[-1]
        else:
            end = (await said(house, "", kind=InboundKind.LOCATION, data=wanted))[-1]

        assert isinstance(end, TurnClosed)
        assert json.loads(end.reply.plain) == wanted


async def test_question_that_is_dropped_ends_its_turn(tmp_path: Path) -> None:
    rules = only("request_location_from_user", {"prompt": "Dove sei?"})
    async with open_scripted(tmp_path, rules) as (house, model):
        await asked(house, "cerca")
        end = (await said(house, "lascia stare"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.CANCELLED
        assert len(model.asked) == 1


@pytest.mark.parametrize(
    "args",
    [{}, {"fields": []}, {"fields": [{"var": "x", "prompt": "Parola?", "kind": "riddle"}]}],
    ids=["none", "empty", "kind"],
)
async def test_inputs_that_cannot_be_asked_are_told_to_the_model(
    tmp_path: Path, args: dict[str, Any]
) -> None:
    rules = [
        Rule(user="cerca", after=0, calls=[("get_inputs", args)]),
        Rule(user="cerca", after=1, text="Dimmi tu."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        end = (await said(house, "cerca"))[-1]

        assert isinstance(end, TurnClosed)
        assert json.loads(model.asked[1].last_result)["error"]["code"] == "invalid_args"


async def test_card_of_a_move_counts_what_is_moved_and_not_where_it_goes(tmp_path: Path) -> None:
    for number in range(24):
        note(tmp_path, f"{number:02}.md")
    found = ("find_files", {"base_path": "notes", "patterns": ["*.md"]})
    rules = [
        Rule(user="sposta", after=0, calls=[found]),
        Rule(user="sposta", after=1, calls=[("move_files", {"from_step": 1, "dst": "archivio"})]),
        Rule(user="sposta", after=2, text="Fatto."),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        question = await asked(house, "sposta i md di notes in archivio")

        card = question.reply.plain
        assert "24 elementi" in card.splitlines()[0]
        assert "48" not in card


@pytest.mark.parametrize(
    ("wished", "open_s"), [(None, 600), (1800, 1800), (99_999, 3600)], ids=str
)
async def test_question_stays_open_as_long_as_its_plan_wishes_up_to_an_hour(
    tmp_path: Path, wished: int | None, open_s: int
) -> None:
    args = {"prompt": "Vado?", **({} if wished is None else {"expires_s": wished})}
    rules = [Rule(user="chiedi", after=0, calls=[("get_approval", args)])]
    async with open_scripted(tmp_path, rules) as (house, _):
        question = await asked(house, "chiedi")
        async with house.stores.main.read() as tx:
            ((kept, _),) = await suspensions.of_turn(tx, question.turn_id)

    assert kept.expires_at - kept.created_at == timedelta(seconds=open_s)


@pytest.mark.parametrize("wished", [0, -5, True, "1800", 2.5, [1]], ids=repr)
async def test_time_that_is_none_asks_nothing(tmp_path: Path, wished: Any) -> None:
    args = {"prompt": "Vado?", "expires_s": wished}
    rules = [
        Rule(user="chiedi", after=0, calls=[("get_approval", args)]),
        Rule(text=lambda ask: ask.last_result),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        end = (await said(house, "chiedi"))[-1]

        assert isinstance(end, TurnClosed)
        assert "expires_s: whole seconds" in end.reply.plain
