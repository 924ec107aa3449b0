"""Buttons under answers: pressed once by their owner where they stand, and never more."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.app import House
from core.messages import (
    ChatAddress,
    FinalKind,
    InboundKind,
    QuestionSettled,
    Role,
    TurnClosed,
    TurnEvent,
)
from core.store import actors, outbox, pairing
from tests.support.house import LOCAL, ask, events_of, inbound, open_scripted
from tests.support.scripted_model import Rule

ITALIAN = {"lang": "it"}
WRITES = {
    "nota nuova": ("a.md", "nota nuova"),
    "sopra": ("b.md", "sopra"),
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture
async def house(tmp_path: Path, notes: Path) -> AsyncIterator[House]:
    rules = [Rule(user="che cosa", text="Una nota.")]
    for words, (name, content) in WRITES.items():
        call = ("write_files", {"path": f"{notes}/{name}", "content": content})
        rules += [Rule(user=words, after=0, calls=[call]), Rule(user=words, after=1, text="Fatto")]
    async with open_scripted(tmp_path, rules) as (house, _):
        yield house


async def press(
    house: House,
    token: str,
    *,
    sender: str = "local",
    address: ChatAddress = LOCAL,
    message_id: str | None = None,
    id: str = "",
) -> list[TurnEvent]:
    data = {**ITALIAN, "token": token} | ({"message_id": message_id} if message_id else {})
    said = inbound(
        "", id=id, sender_id=sender, address=address, kind=InboundKind.CHOICE, data=data
    )
    return await events_of(house, said)


def end_of(events: list[TurnEvent]) -> TurnClosed:
    assert isinstance(events[-1], TurnClosed)
    return events[-1]


async def rows(house: House, sql: str) -> list[dict[str, object]]:
    async with house.stores.main.read() as tx:
        return [dict(row) for row in await tx.fetch_all(sql)]


async def written(house: House, notes: Path, words: str = "nota nuova") -> str:
    """Have a file written; the token of ↩️ under the answer."""
    name, _ = WRITES[words]
    closed = await ask(house, f"scrivi {words} in {notes}/{name}", data=ITALIAN)
    assert closed.reply.plain.endswith("· ↩️ annullabile"), closed.reply.plain
    [[button]] = closed.reply.buttons
    assert button.label == "↩️ Annulla"
    assert len(button.token.encode()) <= 64
    assert closed.reply.expects is None
    return button.token


async def test_undo_button_takes_its_turn_back_and_its_row_is_replaced(
    house: House, notes: Path
) -> None:
    token = await written(house, notes)

    events = await press(house, token)

    assert not (notes / "a.md").exists()
    assert isinstance(events[0], QuestionSettled)
    assert "Annulla" in events[0].text
    end = end_of(events)
    assert end.final_kind is FinalKind.ANSWER
    assert "a.md" in end.reply.plain
    assert end.reply.buttons == ()


async def test_undo_button_pressed_again_is_a_word_and_changes_nothing(
    house: House, notes: Path
) -> None:
    token = await written(house, notes)
    await press(house, token)
    (notes / "a.md").write_text("mia", encoding="utf-8")
    turns = await rows(house, "SELECT id FROM turns")

    end = end_of(await press(house, token))

    assert end.reply.plain == "Questo bottone è già stato usato."
    assert end.turn_id == ""
    assert (notes / "a.md").read_text(encoding="utf-8") == "mia"
    assert await rows(house, "SELECT id FROM turns") == turns


async def test_a_button_delivered_twice_runs_once_and_tells_the_same_end(
    house: House, notes: Path
) -> None:
    token = await written(house, notes)

    first = end_of(await press(house, token, id="tap:1"))
    again = end_of(await press(house, token, id="tap:1"))

    assert again.turn_id == first.turn_id
    assert again.reply.plain == first.reply.plain


async def test_twenty_presses_at_once_begin_one_turn(house: House, notes: Path) -> None:
    token = await written(house, notes)

    ends = await asyncio.gather(*(press(house, token, id=f"tap:{n}") for n in range(20)))

    begun = [end_of(events) for events in ends if end_of(events).turn_id]
    assert len(begun) == 1
    undone = await rows(house, "SELECT key FROM effects WHERE tool = 'undo_last_turn'")
    assert len(undone) == 1


async def test_a_button_of_another_person_or_chat_does_nothing(house: House, notes: Path) -> None:
    async with house.stores.main.write() as tx:
        luca = await pairing.create_code(tx, Role.GUEST, house.clock)
        await pairing.redeem_code(tx, luca, "telegram", "77", "Luca", house.clock)
    token = await written(house, notes)

    end = end_of(await press(house, token, sender="77", address=ChatAddress("telegram", "77")))

    assert end.reply.plain in {"Questo bottone non è per te.", "This button is not for you."}
    assert (notes / "a.md").exists()
    elsewhere = end_of(
        await press(house, token, address=dataclasses.replace(LOCAL, thread_id="2"))
    )
    assert "non è per te" in elsewhere.reply.plain
    assert (notes / "a.md").exists()
    assert end_of(await press(house, token)).turn_id  # and it still stands for its owner


async def test_a_forged_an_expired_and_a_copied_button_do_nothing(
    house: House, notes: Path
) -> None:
    token = await written(house, notes)
    [row] = await rows(house, "SELECT shown_key, expires_at FROM actions")
    async with house.stores.main.write() as tx:  # as the channel would have noted where it is
        await outbox.enqueue(tx, str(row["shown_key"]), LOCAL, {}, house.clock.now())
        assert await outbox.claim_next(tx, LOCAL.channel, now=house.clock.now())
        await outbox.mark_sent(tx, str(row["shown_key"]), "15", house.clock.now())

    for forged in ("", "x" * 64, token[:-1], token + "x"):
        assert end_of(await press(house, forged)).turn_id == ""
    copied = end_of(await press(house, token, message_id="16"))
    assert copied.reply.plain == "Questo bottone è già stato usato."
    async with house.stores.main.write() as tx:
        await tx.execute("UPDATE actions SET expires_at = created_at", {})
    expired = end_of(await press(house, token, message_id="15"))

    assert expired.reply.plain == "Questo bottone è scaduto."
    assert (notes / "a.md").exists()
    assert await rows(house, "SELECT key FROM effects WHERE tool = 'undo_last_turn'") == []


async def test_undo_button_of_an_older_change_says_why_not(house: House, notes: Path) -> None:
    first = await written(house, notes)
    second = await written(house, notes, "sopra")

    refused = end_of(await press(house, first))

    assert "Dopo ho cambiato altro" in refused.reply.plain
    assert (notes / "a.md").exists()
    assert (notes / "b.md").exists()
    assert "Annullato" in end_of(await press(house, second)).reply.plain
    assert not (notes / "b.md").exists()


async def test_undo_button_after_the_command_says_that_it_is_done(
    house: House, notes: Path
) -> None:
    token = await written(house, notes)
    await ask(house, "/undo", data=ITALIAN)

    end = end_of(await press(house, token))

    assert "già annullata" in end.reply.plain
    undone = await rows(house, "SELECT key FROM effects WHERE tool = 'undo_last_turn'")
    assert len(undone) == 1


async def test_a_press_that_a_crash_cut_short_is_worked_when_it_comes_again(
    house: House, notes: Path
) -> None:
    """The press is used up and its turn begun in one commit; the walk itself never began."""
    token = await written(house, notes)
    said = inbound("", id="tap:9", kind=InboundKind.CHOICE, data={**ITALIAN, "token": token})
    async with house.stores.main.read() as tx:
        actor = await actors.find_actor(tx, LOCAL.channel, "local")
    assert actor is not None
    taken = await house.turns._actions.take(said, actor)
    assert taken is not None
    assert (notes / "a.md").exists()

    end = end_of(await events_of(house, said))

    assert "Annullato" in end.reply.plain
    assert not (notes / "a.md").exists()


async def test_small_talk_and_an_undo_have_no_buttons(house: House, notes: Path) -> None:
    assert (await ask(house, "che cosa sei")).reply.buttons == ()
    await written(house, notes)
    assert (await ask(house, "annulla")).reply.buttons == ()


async def test_tokens_are_not_stored_in_clear_with_their_action(house: House, notes: Path) -> None:
    token = await written(house, notes)

    [row] = await rows(house, "SELECT * FROM actions")

    assert token not in repr(row)
