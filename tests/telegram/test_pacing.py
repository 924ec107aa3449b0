"""The rate gate: bursts, refill, Telegram's own waits, and progress giving way to answers."""

from __future__ import annotations

import asyncio

import pytest

from bot.telegram.pacing import Gate
from tests.support.clock import FrozenClock


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
