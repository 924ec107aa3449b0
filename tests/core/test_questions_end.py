"""Questions that end without an answer: at the same moment as one, by a stop, told again."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.errors import ErrorCode
from core.messages import (
    ChatAddress,
    FinalKind,
    InboundKind,
    QuestionSettled,
    Role,
    TurnClosed,
    TurnSuspended,
)
from core.store import actors, effects, outbox, suspensions, turns
from tests.core.test_caps import ONE_BY_ONE, WRITE, at_cap, written
from tests.core.test_questions import DELETE, asked, note, press, said
from tests.core.test_turn import lines
from tests.support.house import LOCAL, open_scripted, until
from tests.support.scripted_model import Rule

CHAT = ChatAddress("telegram", "77")


async def run_out(house: House) -> None:
    async with house.stores.main.write() as tx:
        past = (house.clock.now() - timedelta(seconds=1)).timestamp()
        await tx.execute("UPDATE suspensions SET expires_at = ?", (past,))


async def in_chat(house: House) -> dict[str, Any]:
    """The fields of what the host writes in a chat whose replies go through the outbox."""
    async with house.stores.main.write() as tx:
        host = await actors.find_actor(tx, LOCAL.channel, "local")
        assert host is not None
        await actors.link(tx, CHAT.channel, "77", host.id)
    return {"address": CHAT, "sender_id": "77"}


async def test_answer_while_the_expiry_is_being_told_finds_it_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expiry has decided and not closed the turn yet when the button is pressed."""
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
        await run_out(house)
        late = house.turns._late
        reached, go = asyncio.Event(), asyncio.Event()
        cut_short = late.cut_short

        async def slow(*args: Any) -> TurnClosed:
            reached.set()
            await go.wait()
            return await cut_short(*args)

        monkeypatch.setattr(late, "cut_short", slow)
        expiring = asyncio.create_task(house.turns.expire())
        await reached.wait()
        pressing = asyncio.create_task(press(house, question, "Sì"))
        await asyncio.wait([pressing], timeout=0.3)
        assert not pressing.done()
        go.set()
        told, pressed = await asyncio.gather(expiring, pressing)

        end = told[-1][1]
        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.QUESTION_EXPIRED
        assert pressed[-1].reply == end.reply
        assert path.exists()
        assert [line["error_class"] for line in lines(house)] == [None, "question_expired"]


@pytest.mark.parametrize("first", ["answer", "expiry"])
async def test_answer_and_expiry_at_once_give_the_turn_one_end(tmp_path: Path, first: str) -> None:
    note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
        await run_out(house)
        both: list[Any] = [press(house, question, "Sì"), house.turns.expire()]
        if first == "expiry":
            both.reverse()
        done = await asyncio.gather(*both)

        told = done[0] if first == "expiry" else done[1]
        pressed = done[1] if first == "expiry" else done[0]
        settled = [event for event in pressed if isinstance(event, QuestionSettled)]
        # Whoever came first told of the end, and the other found it told.
        assert len(settled) + len(told) // 2 == 1
        assert [line["segment"] for line in lines(house)] == [1, 2]
        assert await house.turns.expire() == []


async def test_expiry_leaves_a_conversation_that_works_for_the_next_time(tmp_path: Path) -> None:
    path = note(tmp_path)
    gate = threading.Event()

    def wait(_: Any) -> str:
        assert gate.wait(30)
        return "Ciao!"

    rules = [*DELETE, Rule(user="ciao", text=wait)]
    async with open_scripted(tmp_path, rules) as (house, model):
        await asked(house)
        await run_out(house)
        other = asyncio.create_task(said(house, "ciao a tutti"))
        await until(lambda: len(model.asked) == 2)
        try:
            assert await house.turns.expire() == []
        finally:
            gate.set()
        end = (await other)[-1]
        assert isinstance(end, TurnClosed)
        assert end.reply.plain == "Ciao!"

        told = await house.turns.expire()

        assert [type(event) for _, event in told] == [QuestionSettled, TurnClosed]
        assert path.exists()


async def test_request_delivered_again_shows_the_question_that_stands_in_the_outbox_once(
    tmp_path: Path,
) -> None:
    note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, model):
        chat = await in_chat(house)
        first = (await said(house, "cancella a.md", id="same", **chat))[-1]
        again = (await said(house, "cancella a.md", id="same", **chat))[-1]

        assert isinstance(again, TurnSuspended)
        assert again == first
        assert again.outbox_key is not None
        async with house.stores.main.read() as tx:
            item = await outbox.find(tx, again.outbox_key)
            rows = await tx.fetch_all("SELECT key FROM outbox")
        assert item is not None
        assert item.body == again.reply.to_json()
        assert [row["key"] for row in rows] == [again.outbox_key]
        assert len(model.asked) == 1

        # Shown anew in another message, it is that one which is told again.
        listed = (await said(house, "boh", data={"reply_to": again.outbox_key}, **chat))[-1]
        third = (await said(house, "cancella a.md", id="same", **chat))[-1]
        assert isinstance(third, TurnSuspended)
        assert third == listed
        assert third.outbox_key != again.outbox_key

        end = (await press(house, third, "No", id="tap", **chat))[-1]
        after = (await said(house, "cancella a.md", id="same", **chat))[-1]
        assert isinstance(after, TurnClosed)
        assert after.outbox_key == end.outbox_key
        async with house.stores.main.read() as tx:
            assert await outbox.find(tx, f"{after.turn_id}:final") is not None


async def test_end_told_again_where_there_is_no_outbox_names_no_row(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, [Rule(text="Ciao!")]) as (house, _):
        first = (await said(house, "ciao", id="same"))[-1]
        again = (await said(house, "ciao", id="same"))[-1]

        assert isinstance(first, TurnClosed)
        assert isinstance(again, TurnClosed)
        assert (first.outbox_key, again.outbox_key) == (None, None)
        assert again.reply == first.reply


async def test_stop_at_an_open_question_drops_it_and_nothing_is_done(tmp_path: Path) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        chat = await in_chat(house)
        question = (await said(house, "cancella a.md", **chat))[-1]
        assert isinstance(question, TurnSuspended)
        assert await house.turns.stop(CHAT) is False  # nobody said who wants it

        assert await house.turns.stop(CHAT, "77") is True

        async with house.stores.main.read() as tx:
            stored = await turns.get(tx, question.turn_id)
            left = await suspensions.of_turn(tx, question.turn_id)
            final = await outbox.find(tx, f"{question.turn_id}:final")
            settled = await outbox.find(tx, f"{question.outbox_key}:settled")
            assert await effects.of_turn(tx, question.turn_id) == []
        assert stored is not None
        assert stored.state == "closed"
        assert [state.value for _, state in left] == ["cancelled"]
        assert final is not None
        assert "lascio stare" in str(final.body)
        assert settled is not None
        assert "Lasciato stare" in str(settled.body)
        assert path.exists()
        assert await house.turns.stop(CHAT, "77") is False
        late = (await press(house, question, "Sì", **chat))[-1]
        assert isinstance(late, TurnClosed)
        assert late.turn_id == question.turn_id
        assert path.exists()
        assert [line["segment"] for line in lines(house)] == [1, 2]


async def test_stop_of_another_person_leaves_the_question(tmp_path: Path) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        chat = await in_chat(house)
        question = (await said(house, "cancella a.md", **chat))[-1]
        async with house.stores.main.write() as tx:
            guest = await actors.add(tx, Role.GUEST, "Anna", house.clock)
            await actors.link(tx, CHAT.channel, "78", guest.id)

        assert await house.turns.stop(CHAT, "78") is False
        assert await house.turns.stop(CHAT, "79") is False

        assert isinstance(question, TurnSuspended)
        end = (await press(house, question, "Sì", **chat))[-1]
        assert isinstance(end, TurnClosed)
        assert not path.exists()


async def test_stop_at_a_cap_ends_as_the_cap(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, ONE_BY_ONE) as (house, _):
        question = await at_cap(house, WRITE)

        assert await house.turns.stop(LOCAL, "local")

        assert lines(house)[-1]["final_kind"] == "cap_same_executor"
        async with house.stores.main.read() as tx:
            stored = await turns.get(tx, question.turn_id)
        assert stored is not None
        assert stored.final_kind is FinalKind.CAP_SAME_EXECUTOR
        assert written(tmp_path) == 10


async def test_stop_while_a_resumed_turn_works_ends_it_with_what_was_done(tmp_path: Path) -> None:
    """The yes is carried out; then the model is asked, and that is where the stop finds it."""
    path = note(tmp_path)
    gate = threading.Event()

    def wait(_: Any) -> str:
        gate.wait(30)
        return "Fatto."

    rules = [DELETE[0], Rule(user="cancella", after=1, text=wait)]
    async with open_scripted(tmp_path, rules) as (house, model):
        question = await asked(house)
        pressing = asyncio.create_task(press(house, question, "Sì"))
        await until(lambda: len(model.asked) == 2)

        try:
            assert await house.turns.stop(LOCAL, "local")
        finally:
            gate.set()

        end = (await pressing)[-1]
        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.STOPPED
        assert "cestino" in end.reply.plain
        assert not path.exists()
        async with house.stores.main.read() as tx:
            left = await suspensions.of_turn(tx, question.turn_id)
            journal = await effects.of_turn(tx, question.turn_id)
        assert [state.value for _, state in left] == ["done"]
        assert [one.state.value for one in journal] == ["done"]
        assert [line["segment"] for line in lines(house)] == [1, 2]
        # The call that proposed the change was counted when it was asked about.
        first, second = lines(house)
        assert first["tokens_in"] > 0
        assert (second["tokens_in"], second["model_calls"]) == (0, 0)
        async with house.stores.main.read() as tx:
            spent = await tx.fetch_one("SELECT sum(tokens_in) AS n FROM usage")
        assert spent is not None
        assert spent["n"] == first["tokens_in"]


def again_in(end: Any) -> str:
    """The token of the button that asks again."""
    assert isinstance(end, TurnClosed)
    [[button]] = end.reply.buttons
    assert button.label == "🔁 Richiedimelo"
    return button.token


async def tap(house: House, token: str, **fields: Any) -> list[Any]:
    return await said(house, "", kind=InboundKind.CHOICE, data={"token": token}, **fields)


@pytest.mark.parametrize("way", ["expired", "late press", "late reply"])
async def test_question_that_ran_out_is_asked_again_by_a_button_once(
    tmp_path: Path, way: str
) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, model):
        chat = await in_chat(house)
        question = (await said(house, "cancella a.md", **chat))[-1]
        assert isinstance(question, TurnSuspended)
        await run_out(house)
        end: Any
        if way == "expired":
            end = (await house.turns.expire())[-1][1]
        elif way == "late press":
            end = (await press(house, question, "Sì", **chat))[-1]
        else:
            await house.turns.expire()
            data = {"reply_to": question.outbox_key}
            end = (await said(house, "sì", data=data, **chat))[-1]
            assert end.turn_id != question.turn_id
        assert "in tempo" in end.reply.plain
        assert len(model.asked) == 1
        token = again_in(end)

        events = await tap(house, token, id="again", **chat)

        assert isinstance(events[0], QuestionSettled)
        assert "Richiesto" in events[0].text
        anew = events[-1]
        assert isinstance(anew, TurnSuspended)
        assert anew.turn_id not in {question.turn_id, end.turn_id}
        assert anew.reply.blocks[0] == question.reply.blocks[0]
        twice = (await tap(house, token, id="again2", **chat))[-1]
        assert twice.turn_id == ""
        delivered_again = (await tap(house, token, id="again", **chat))[-1]
        assert delivered_again == anew
        assert path.exists()
        done = (await press(house, anew, "Sì", **chat))[-1]
        assert isinstance(done, TurnClosed)
        assert done.final_kind is FinalKind.ANSWER
        assert not path.exists()


async def test_asking_again_is_the_owners(tmp_path: Path) -> None:
    note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, model):
        chat = await in_chat(house)
        await said(house, "cancella a.md", **chat)
        await run_out(house)
        end = (await house.turns.expire())[-1][1]
        async with house.stores.main.write() as tx:
            guest = await actors.add(tx, Role.GUEST, "Anna", house.clock)
            await actors.link(tx, CHAT.channel, "78", guest.id)

        foreign = (await tap(house, again_in(end), address=CHAT, sender_id="78"))[-1]

        assert isinstance(foreign, TurnClosed)
        assert foreign.error is not None
        assert foreign.error.code is ErrorCode.NOT_AUTHORIZED
        assert len(model.asked) == 1
        assert isinstance((await tap(house, again_in(end), **chat))[-1], TurnSuspended)


async def test_asking_again_keeps_what_was_quoted_and_said_before(tmp_path: Path) -> None:
    note(tmp_path)
    rules = [Rule(user="ciao", text="Ciao, parliamo di a.md."), *DELETE]
    async with open_scripted(tmp_path, rules) as (house, model):
        chat = await in_chat(house)
        await said(house, "ciao, a.md", **chat)
        await said(house, "cancella a.md", quoted="una nota citata", **chat)
        await run_out(house)
        end = (await house.turns.expire())[-1][1]

        await tap(house, again_in(end), **chat)

        first, anew = model.asked[1], model.asked[2]
        assert anew.user == first.user
        for words in ("una nota citata", "parliamo di a.md"):
            assert words in str(first.body["messages"])
            assert words in str(anew.body["messages"])


@pytest.mark.parametrize("why", ["changed", "secret in it", "declined"])
async def test_nothing_is_asked_again_where_it_would_be_wrong(tmp_path: Path, why: str) -> None:
    note(tmp_path)
    request = "cancella a.md"
    rules = DELETE
    if why == "changed":
        request = "scrivi n1.md e cancella a.md"
        rules = [
            Rule(after=0, calls=[("write_files", {"path": "n1.md", "content": "x"})]),
            Rule(after=1, calls=[("delete_files", {"paths": ["a.md"]})]),
        ]
    elif why == "secret in it":
        request = "cancella a.md, password: dragone99"
    async with open_scripted(tmp_path, rules) as (house, _):
        question = (await said(house, request))[-1]
        assert isinstance(question, TurnSuspended)
        if why == "declined":
            end = (await press(house, question, "No"))[-1]
        else:
            await run_out(house)
            end = (await house.turns.expire())[-1][1]

        assert isinstance(end, TurnClosed)
        labels = [button.label for row in end.reply.buttons for button in row]
        assert "🔁 Richiedimelo" not in labels


async def test_cap_that_ran_out_over_readings_offers_to_ask_again(tmp_path: Path) -> None:
    zones = ["Rome", "Tokyo", "Lima", "Paris"]
    rules = [Rule(calls=lambda a: [("get_now", {"timezone": zones[len(a.results) % 4]})])]
    async with open_scripted(tmp_path, rules) as (house, _):
        await at_cap(house, "che ore sono a Roma, Tokyo, Lima e Parigi?")
        await run_out(house)

        end = (await house.turns.expire())[-1][1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.CAP_SAME_EXECUTOR
        assert isinstance((await tap(house, again_in(end)))[-1], TurnSuspended)


async def test_reply_to_an_answered_question_is_a_new_request(tmp_path: Path) -> None:
    note(tmp_path)
    rules = [*DELETE, Rule(user="grazie", text="Prego.")]
    async with open_scripted(tmp_path, rules) as (house, _):
        chat = await in_chat(house)
        question = (await said(house, "cancella a.md", **chat))[-1]
        assert isinstance(question, TurnSuspended)
        await press(house, question, "Sì", **chat)

        end = (await said(house, "grazie", data={"reply_to": question.outbox_key}, **chat))[-1]

        assert isinstance(end, TurnClosed)
        assert end.reply.plain == "Prego."
