"""Groups in the store: their state, how often they are told something, and moving."""

from __future__ import annotations

from datetime import timedelta

from core.store import chats
from core.store.chats import ChatState


async def meet(tx, clock, chat_id="-5", title="Casa"):
    return await chats.meet(tx, "telegram", chat_id, title=title, is_forum=False, now=clock.now())


async def test_group_met_again_keeps_its_state_and_takes_its_new_name(stores, clock):
    async with stores.main.write() as tx:
        first = await meet(tx, clock)
        await chats.set_state(tx, "telegram", "-5", ChatState.ON, clock.now())
        again = await meet(tx, clock, title="Casa\nnuova \u202e")
        nameless = await meet(tx, clock, title="")

    assert (first.state, first.title) == (ChatState.NEW, "Casa")
    assert (again.state, again.title) == (ChatState.ON, "Casa nuova")
    assert nameless.title == "Casa nuova"


async def test_word_and_question_are_due_once_a_day_and_again_after_a_change(stores, clock):
    async with stores.main.write() as tx:
        await meet(tx, clock)
        told = [await chats.word_due(tx, "telegram", "-5", clock.now()) for _ in range(2)]
        asked = [await chats.question_due(tx, "telegram", "-5", clock.now()) for _ in range(2)]
        later = clock.now() + timedelta(hours=25)
        told.append(await chats.word_due(tx, "telegram", "-5", later))
        changed = [
            await chats.set_state(tx, "telegram", "-5", ChatState.OFF, later) for _ in range(2)
        ]
        told.append(await chats.word_due(tx, "telegram", "-5", later))
        unknown = await chats.word_due(tx, "telegram", "-6", later)

    assert told == [True, False, True, True]
    assert asked == [True, False]
    assert changed == [True, False]
    assert not unknown


async def test_group_that_moves_keeps_what_was_decided_and_moves_once(stores, clock):
    async with stores.main.write() as tx:
        await meet(tx, clock)
        await chats.set_state(tx, "telegram", "-5", ChatState.ON, clock.now())
        await meet(tx, clock, chat_id="-1005")
        moved = [await chats.move(tx, "telegram", "-5", "-1005", clock.now()) for _ in range(2)]
        found = await chats.list_chats(tx)

    assert moved == [True, False]
    assert [(chat.chat_id, chat.is_on) for chat in found] == [("-1005", True)]
