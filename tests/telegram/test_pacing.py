"""The rate gate: bursts, refill, Telegram's own waits, and progress giving way to answers."""

from __future__ import annotations

import asyncio

import pytest
from telegram import InputMediaPhoto
from telegram.error import NetworkError, RetryAfter

from bot.telegram import pacing
from bot.telegram.client import build_bot
from bot.telegram.faults import retry_after_s
from bot.telegram.pacing import Gate, Pace
from tests.support.clock import FrozenClock

TOKEN = "7000000001:TEST-token-000000000000"


@pytest.fixture
def clock():
    return FrozenClock()


@pytest.fixture
def gate(clock):
    return Gate(clock.monotonic)


def test_chat_after_its_burst_gets_one_message_a_second(gate, clock):
    for _ in range(5):
        assert gate.wait_s("1") == 0
        gate.take("1")

    assert gate.wait_s("1") == pytest.approx(1.0)
    clock.advance(1)
    assert gate.wait_s("1") == 0


def test_group_after_its_burst_gets_twenty_messages_a_minute(gate):
    for _ in range(20):
        gate.take("-100")

    assert gate.wait_s("-100") == pytest.approx(3.0)


def test_bot_as_a_whole_sends_thirty_a_second_after_its_burst(gate):
    for n in range(100):
        gate.take(str(n))

    assert gate.wait_s("another") == pytest.approx(1 / 30)


def test_chat_that_telegram_closed_waits_and_others_go_on(gate, clock):
    gate.close("1", 7)

    assert gate.wait_s("1") == pytest.approx(7)
    assert gate.is_closed("1")
    assert gate.wait_s("2") == 0
    assert gate.waiting() == {"1": pytest.approx(7)}
    clock.advance(7)
    assert not gate.is_closed("1")
    assert gate.waiting() == {}


def test_progress_leaves_tokens_for_answers(gate):
    sent = [gate.try_take("1") for _ in range(5)]

    assert sent == [True, True, True, False, False]
    assert gate.wait_s("1") == 0


def test_sends_beyond_the_burst_queue_up_behind_each_other(gate):
    for _ in range(7):
        gate.take("1")

    assert gate.wait_s("1") == pytest.approx(3.0)


async def test_acquire_waits_for_its_turn():
    loop = asyncio.get_running_loop()
    gate = Gate(loop.time)
    for _ in range(5):
        gate.take("1")
    started = loop.time()
    gate.close("1", 0.2)

    async with asyncio.timeout(45):
        await gate.acquire("1")

    assert loop.time() - started >= 0.19


def test_typing_goes_where_progress_no_longer_may(gate):
    for _ in range(3):
        gate.take("1")

    assert not gate.has_room("1", Pace.PROGRESS)
    assert gate.has_room("1", Pace.TYPING)
    gate.take("1")
    assert not gate.has_room("1", Pace.TYPING)
    assert gate.has_room("1", Pace.ANSWER)


def test_group_keeps_half_of_its_minute_for_answers(gate):
    sent = [gate.try_take("-1") for _ in range(20)]

    assert sum(sent) == 10


def test_urgent_answer_goes_into_debt_and_no_further(gate):
    for _ in range(5):
        gate.take("1")

    assert gate.wait_s("1") > 0
    gone = [gate.try_take("1", Pace.URGENT) for _ in range(5)]
    assert gone == [True, True, True, False, False]
    assert gate.wait_s("1") == pytest.approx(4.0)


def test_urgent_answer_obeys_the_wait_that_telegram_names(gate):
    gate.close("1", 9)

    assert gate.wait_s("1", Pace.URGENT) == pytest.approx(9)


def test_refusals_in_several_chats_at_once_close_the_bot_for_the_shortest(gate, clock):
    gate.close("1", 30)
    gate.close("2", 4)
    assert gate.wait_s("9") == 0
    gate.close("3", 20)

    assert gate.all_closed_s() == pytest.approx(4)
    assert gate.wait_s("9", Pace.URGENT) == pytest.approx(4)
    clock.advance(4)
    assert gate.wait_s("9") == 0
    assert gate.wait_s("1") == pytest.approx(26)


def test_refusals_in_several_chats_one_after_the_other_are_theirs(gate, clock):
    for chat in ("1", "2", "3", "4"):
        gate.close(chat, 60)
        clock.advance(1.5)

    assert gate.all_closed_s() == 0


async def test_acquire_tells_a_long_wait_instead_of_sleeping_it(gate):
    gate.close("1", 60)

    with pytest.raises(RetryAfter) as told:
        await gate.acquire("1")

    assert retry_after_s(told.value) == pytest.approx(60)
    assert gate.wait_s("2") == 0


SENDERS = {
    "message": lambda bot: bot.send_message(7, "x"),
    "document": lambda bot: bot.send_document(7, "file-id"),
    "photo": lambda bot: bot.send_photo(7, "file-id"),
    "album": lambda bot: bot.send_media_group(7, [InputMediaPhoto("a"), InputMediaPhoto("b")]),
    "edit": lambda bot: bot.edit_message_text("x", 7, 1),
    "caption": lambda bot: bot.edit_message_caption(7, 1, caption="x"),
    "buttons": lambda bot: bot.edit_message_reply_markup(7, 1),
    "delete": lambda bot: bot.delete_message(7, 1),
    "several": lambda bot: bot.delete_messages(7, [1, 2]),
    "copy": lambda bot: bot.copy_message(7, 8, 1),
    "reaction": lambda bot: bot.set_message_reaction(7, 1, "👍"),
    "place": lambda bot: bot.send_location(7, 1.0, 2.0),
    "raw": lambda bot: bot.do_api_request("sendRichMessage", api_kwargs={"chat_id": 7}),
}


@pytest.mark.parametrize("sender", SENDERS)
async def test_no_sender_goes_round_the_gate(gate, sender):
    """Nothing listens at that address: a request that went out would fail otherwise."""
    bot = build_bot(TOKEN, "http://127.0.0.1:9/bot", "http://127.0.0.1:9/file/bot", gate)
    gate.close("7", 60)

    with pytest.raises(RetryAfter):
        await SENDERS[sender](bot)


async def test_typing_and_drafts_are_left_out_in_the_penalty(gate):
    bot = build_bot(TOKEN, "http://127.0.0.1:9/bot", "http://127.0.0.1:9/file/bot", gate)
    gate.close("7", 60)

    assert await bot.send_chat_action(7, "typing") is False
    with pytest.raises(RetryAfter):
        await bot.send_message_draft(7, 1, "x")


async def test_pace_is_that_of_the_block_and_of_nothing_after_it(gate):
    for _ in range(5):
        gate.take("1")

    async with asyncio.timeout(45):
        with pacing.at(Pace.URGENT):
            await gate.acquire("1")

    assert gate.wait_s("1") == pytest.approx(2.0)


async def test_album_counts_as_many_messages_as_it_has_files(gate):
    bot = build_bot(TOKEN, "http://127.0.0.1:9/bot", "http://127.0.0.1:9/file/bot", gate)

    with pytest.raises(NetworkError):
        await bot.send_media_group(7, [InputMediaPhoto(name) for name in "abcd"])

    assert [gate.try_take("7", Pace.ANSWER) for _ in range(2)] == [True, False]
