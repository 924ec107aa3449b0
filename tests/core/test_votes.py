"""The row under answers: votes decide what is remembered, each by its owner, the last counting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.messages import (
    Button,
    ButtonsChanged,
    ChatAddress,
    FinalKind,
    InboundKind,
    Reply,
    Role,
    TurnClosed,
)
from core.store import actors, feedback, outbox, plan_cache
from core.store.plan_cache import StoredPlan
from tests.support.house import ask, events_of, inbound, open_scripted
from tests.support.scripted_model import Rule, ScriptedModel

CLOCK = Rule(user="or[ae]|time", plan={"steps": [{"tool": "get_now", "args": {}}]})
TALK = Rule(user="ciao", text="Ciao.")
HOST, GUEST = "42", "77"
WORDS = {
    "it": {"clock": "che ore sono?", "over": "Questo bottone è già stato usato."},
    "en": {"clock": "what time is it?", "over": "This button has been used already."},
}


@asynccontextmanager
async def chat(
    tmp_path: Path, *rules: Rule, **settings: Any
) -> AsyncIterator[tuple[House, ScriptedModel]]:
    """A house whose host and guest are on a channel where messages stay."""
    settings = {"metnos_engine": "metis", **settings}
    async with open_scripted(tmp_path, rules or (CLOCK, TALK), **settings) as (house, model):
        async with house.stores.main.write() as tx:
            host = await actors.find_host(tx)
            assert host is not None
            await actors.link(tx, "telegram", HOST, host.id)
            guest = await actors.add(tx, Role.GUEST, "Luca", house.clock)
            await actors.link(tx, "telegram", GUEST, guest.id)
        yield house, model


def at(person: str) -> dict[str, Any]:
    return {"sender_id": person, "address": ChatAddress("telegram", person)}


async def say(house: House, text: str, person: str = HOST, **fields: Any) -> TurnClosed:
    return await ask(house, text, **{**at(person), **fields})


def labels(reply: Reply) -> list[list[str]]:
    return [[button.label for button in row] for row in reply.buttons]


def button(reply: Reply, label: str) -> Button:
    return next(b for row in reply.buttons for b in row if label in b.label)


async def press(
    house: House, token: str, person: str = HOST, *, id: str = "", lang: str = "it"
) -> tuple[TurnClosed, Reply | None]:
    """Press a button; the end, and the row as it stands then."""
    said = inbound(
        "", id=id, kind=InboundKind.CHOICE, data={"token": token, "lang": lang}, **at(person)
    )
    events = await events_of(house, said)
    changed = [event.reply for event in events if isinstance(event, ButtonsChanged)]
    assert isinstance(events[-1], TurnClosed)
    return events[-1], changed[-1] if changed else None


async def kept(house: House, most: int | None = None) -> list[StoredPlan]:
    """What is remembered. `most`: wait until it is so much; memory is written after the end."""
    async with asyncio.timeout(30):
        while True:
            async with house.stores.memory.read() as tx:
                rows = await plan_cache.listed(tx)
            if most is None or len(rows) == most:
                return rows
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_row_stands_under_an_answer_of_tools_and_not_under_small_talk(
    tmp_path: Path, lang: str
):
    async with chat(tmp_path) as (house, _):
        data = {"lang": lang}
        told = await say(house, WORDS[lang]["clock"], data=data)
        talk = await say(house, "ciao", data=data)
        local = await ask(house, WORDS[lang]["clock"], data=data)
        group = await say(
            house,
            WORDS[lang]["clock"],
            address=ChatAddress("telegram", "-5"),
            alone=ChatAddress("telegram", HOST),
            data=data,
        )

    assert labels(told.reply) == [["👍", "👎", "⚡", "⋯"]]
    assert labels(talk.reply) == []
    assert labels(local.reply) == []
    assert labels(group.reply) == [["⋯"]]


async def test_pin_is_shown_taken_back_and_kept_out_of_what_was_not_learnt(tmp_path: Path):
    notes = Rule(user="leggi", plan={"steps": [{"tool": "read_files", "args": {"paths": ["x"]}}]})
    async with chat(tmp_path, CLOCK, notes) as (house, _):
        (tmp_path / "notes/x").write_text("a\n")
        told = await say(house, "che ore sono?")
        await kept(house, 1)

        _, row = await press(house, button(told.reply, "⚡").token)
        assert row is not None
        assert labels(row) == [["👍", "👎", "⚡✓", "⋯"]]
        assert [one.approved for one in await kept(house)] == [True]
        again = await say(house, "che ore sono?")
        assert labels(again.reply) == [["👍", "👎", "⚡✓", "⋯"]]
        word, _ = await press(house, button(told.reply, "⚡").token)
        assert word.reply.plain == WORDS["it"]["over"]
        _, row = await press(house, button(row, "⚡").token)
        assert row is not None
        assert labels(row) == [["👍", "👎", "⚡", "⋯"]]
        assert [one.approved for one in await kept(house)] == [False]
        # A name that stands nowhere in the request: such a plan is not kept.
        other = await say(house, "leggi la mia nota")
        assert labels(other.reply) == [["👍", "👎", "⋯"]]


async def test_vote_down_forgets_keeps_away_for_an_hour_and_vote_up_lifts_it(tmp_path: Path):
    async with chat(tmp_path) as (house, model):
        first = await say(house, "che ore sono?")
        await kept(house, 1)
        word, row = await press(house, button(first.reply, "👎").token)
        assert row is not None
        assert labels(row) == [["👍", "👎✓", "⚡", "⋯"]]
        assert "dimenticato" in word.reply.plain
        assert await kept(house) == []

        await say(house, "che ore sono?")
        await say(house, "che ore sono?")
        assert await kept(house) == []
        assert len(model.asked) == 3

        _, row = await press(house, button(first.reply, "👍").token)
        assert row is not None
        assert labels(row) == [["👍✓", "👎", "⚡", "⋯"]]
        async with house.stores.main.read() as tx:
            host = await actors.find_host(tx)
            assert host is not None
            assert await feedback.find(tx, first.turn_id, host.id) == "up"
        # One yes is enough: the plan serves by merit, and nothing is planned.
        again = await say(house, "che ore sono?")
        assert again.reply.plain.endswith("⚡")
        assert len(model.asked) == 3


async def test_vote_on_an_answer_of_somebody_else_changes_nothing(tmp_path: Path):
    async with chat(tmp_path) as (house, _):
        told = await say(house, "che ore sono?")
        await kept(house, 1)
        for label in ("👎", "⚡", "⋯"):
            word, row = await press(house, button(told.reply, label).token, GUEST)
            assert word.final_kind is FinalKind.ERROR
            assert row is None
        assert [one.approved for one in await kept(house)] == [False]


async def test_vote_of_last_month_is_a_word(tmp_path: Path):
    async with chat(tmp_path) as (house, _):
        told = await say(house, "che ore sono?")
        await kept(house, 1)
        async with house.stores.main.write() as tx:
            past = (house.clock.now() - timedelta(days=20)).timestamp()
            await tx.execute("UPDATE actions SET expires_at = :past", {"past": past})

        word, row = await press(house, button(told.reply, "👎").token)

        assert word.reply.plain
        assert word.final_kind is FinalKind.ERROR
        assert row is None
        assert len(await kept(house)) == 1


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_second_row_tells_the_steps_and_plans_anew(tmp_path: Path, lang: str):
    async with chat(tmp_path) as (house, model):
        told = await say(house, WORDS[lang]["clock"], data={"lang": lang})
        await kept(house, 1)
        opens = button(told.reply, "⋯").token

        _, row = await press(house, opens, lang=lang)
        assert row is not None
        steps, anew = {"it": ("Passi", "di nuovo"), "en": ("Steps", "anew")}[lang]
        assert labels(row)[0] == ["👍", "👎", "⚡", "⋯"]
        assert [steps in labels(row)[1][0], anew in labels(row)[1][1]] == [True, True]
        _, closed = await press(house, opens, lang=lang)
        assert closed is not None
        assert labels(closed) == labels(told.reply)
        dead, _ = await press(house, button(row, steps).token, lang=lang)
        assert dead.reply.plain == WORDS[lang]["over"]

        _, row = await press(house, opens, lang=lang)
        assert row is not None
        end, _ = await press(house, button(row, steps).token, lang=lang)
        assert "get_now" not in end.reply.plain
        assert "✓" in end.reply.plain
        _, row = await press(house, opens, lang=lang)
        assert row is not None
        end, _ = await press(house, button(row, anew).token, lang=lang)
        assert end.turn_id not in {"", told.turn_id}
        assert "⚡" not in end.reply.plain
        assert len(model.asked) == 2


async def test_undo_stands_in_the_second_row(tmp_path: Path):
    writes = Rule(
        user="scrivi",
        plan={"steps": [{"tool": "write_files", "args": {"path": "a.md", "content": "latte"}}]},
    )
    async with chat(tmp_path, writes) as (house, _):
        told = await say(house, 'scrivi "latte" in a.md')
        assert "↩️ annullabile" in told.reply.plain
        assert labels(told.reply)[0][-1] == "⋯"
        _, row = await press(house, button(told.reply, "⋯").token)
        assert row is not None

        end, _ = await press(house, button(row, "Annulla").token)

        assert not (tmp_path / "notes/a.md").exists()
        assert "a.md" in end.reply.plain
        again = await say(house, 'scrivi "latte" in a.md')
        assert again.reply.plain.rstrip().endswith("⚡")


async def test_thumb_put_under_the_message_counts_like_the_button(tmp_path: Path):
    async with chat(tmp_path) as (house, _):
        told = await say(house, "che ore sono?")
        await kept(house, 1)
        async with house.stores.main.write() as tx:
            await tx.execute(
                "UPDATE outbox SET message_id = '9', state = 'sent' WHERE key = :key",
                {"key": told.outbox_key},
            )
            assert await outbox.find(tx, str(told.outbox_key)) is not None
        for vote, left in (("down", 0), (None, 0)):
            data = {"message_id": "9", "vote": vote}
            said = inbound("", kind=InboundKind.REACTION, data=data, **at(HOST))
            await house.turns.follow(said)
            assert len(await kept(house)) == left
        await say(house, "che ore sono?")
        assert len(await kept(house, 1)) == 1


async def test_without_memory_there_is_no_row(tmp_path: Path):
    async with chat(tmp_path, metnos_memory=False) as (house, _):
        told = await say(house, "che ore sono?")

    assert labels(told.reply) == []


async def test_button_beside_the_row_is_left_when_a_vote_redraws_it(tmp_path: Path):
    finds = Rule(
        user="trova",
        plan={"steps": [{"tool": "find_files", "args": {"patterns": ["*.txt"]}}]},
    )
    async with chat(tmp_path, finds) as (house, _):
        for number in range(30):
            (tmp_path / f"notes/{number}.txt").write_text("a")
        told = await say(house, "trova i file *.txt")
        more = labels(told.reply)[-1]
        assert len(told.reply.buttons) == 2, labels(told.reply)

        _, row = await press(house, button(told.reply, "👍").token)
        assert row is not None
        assert labels(row)[-1] == more
        end, _ = await press(house, row.buttons[-1][0].token)
        assert "29.txt" in end.reply.plain or "9.txt" in end.reply.plain
