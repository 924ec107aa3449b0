"""Messages leave in the order of their chat, claimed once; unclear ones are repeated, marked."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta

import pytest

from core.messages import ChatAddress
from core.store import outbox
from core.store.database import Database
from core.store.outbox import OutboxItem
from tests.support.clock import FrozenClock

ADA = ChatAddress("telegram", "1")
BOB = ChatAddress("telegram", "2", "9")


async def say(db: Database, clock: FrozenClock, address: ChatAddress, *keys: str) -> None:
    async with db.write() as tx:
        for key in keys:
            await outbox.enqueue(tx, key, address, {"text": key}, clock.now())


async def claim(db: Database, clock: FrozenClock, *skip: ChatAddress) -> OutboxItem | None:
    async with db.write() as tx:
        return await outbox.claim_next(
            tx, "telegram", skip_chats=[a.key for a in skip], now=clock.now()
        )


async def sent(db: Database, clock: FrozenClock, key: str) -> None:
    async with db.write() as tx:
        await outbox.mark_sent(tx, key, "100", clock.now())


async def find(db: Database, key: str) -> OutboxItem | None:
    async with db.read() as tx:
        return await outbox.find(tx, key)


async def test_enqueue_twice_keeps_the_first(db: Database, clock: FrozenClock):
    async with db.write() as tx:
        first = await outbox.enqueue(tx, "k", ADA, {"text": "first"}, clock.now())
        second = await outbox.enqueue(tx, "k", ADA, {"text": "second"}, clock.now())

    item = await find(db, "k")
    assert (first, second) == (True, False)
    assert item is not None
    assert item.body == {"text": "first"}
    assert item.address == ADA


async def test_claim_keeps_order_in_a_chat_and_lets_others_pass(db: Database, clock: FrozenClock):
    await say(db, clock, ADA, "a1", "a2")
    await say(db, clock, BOB, "b1")

    first = await claim(db, clock)
    second = await claim(db, clock)
    third = await claim(db, clock)
    await sent(db, clock, "a1")
    fourth = await claim(db, clock)

    assert first is not None
    assert second is not None
    assert fourth is not None
    assert (first.key, second.key, third, fourth.key) == ("a1", "b1", None, "a2")
    assert second.address == BOB


async def test_claim_skips_chats_that_must_wait(db: Database, clock: FrozenClock):
    await say(db, clock, ADA, "a1")
    await say(db, clock, BOB, "b1")

    item = await claim(db, clock, ADA)

    assert item is not None
    assert item.key == "b1"
    assert await claim(db, clock, ADA) is None


async def test_released_message_waits_and_holds_back_its_chat(db: Database, clock: FrozenClock):
    await say(db, clock, ADA, "a1", "a2")
    await claim(db, clock)
    later = clock.now() + timedelta(seconds=30)
    async with db.write() as tx:
        await outbox.release(tx, "a1", later, "429", clock.now())

    held = await claim(db, clock)
    async with db.read() as tx:
        due = await outbox.next_due(tx, "telegram")
    clock.advance(30)
    again = await claim(db, clock)

    assert held is None
    assert due == later  # not the moment of a2, which has to wait for a1
    assert again is not None
    assert (again.key, again.attempts, again.error) == ("a1", 2, "429")


async def test_dead_message_lets_the_chat_go_on(db: Database, clock: FrozenClock):
    await say(db, clock, ADA, "a1", "a2")
    await claim(db, clock)
    async with db.write() as tx:
        await outbox.mark_dead(tx, "a1", "403", clock.now())

    item = await claim(db, clock)

    assert item is not None
    assert item.key == "a2"


async def test_claim_by_many_at_once_gives_each_message_to_one(db: Database, clock: FrozenClock):
    for n in range(10):
        await say(db, clock, ChatAddress("telegram", str(n)), f"k{n}")

    items = await asyncio.gather(*(claim(db, clock) for _ in range(15)))

    keys = [item.key for item in items if item is not None]
    assert sorted(keys) == [f"k{n}" for n in range(10)]


async def test_recover_repeats_marked_in_its_place_and_only_once(db: Database, clock: FrozenClock):
    await say(db, clock, ADA, "a1", "a2")
    await say(db, clock, BOB, "b1")
    await claim(db, clock)
    await claim(db, clock)
    await sent(db, clock, "b1")

    async with db.write() as tx:
        first = await outbox.recover(tx, "telegram", clock.now())
        second = await outbox.recover(tx, "telegram", clock.now())

    assert (first, second) == (1, 0)
    old = await find(db, "a1")
    assert old is not None
    assert old.state == "unknown"
    repeated = await claim(db, clock)
    assert repeated is not None
    assert (repeated.key, repeated.body) == ("a1:r", {"text": "a1", "repeated": True})
    assert repeated.attempts == 2
    await sent(db, clock, "a1:r")
    following = await claim(db, clock)
    assert following is not None
    assert (following.key, following.body) == ("a2", {"text": "a2"})


async def test_recover_rolled_back_loses_nothing(db: Database, clock: FrozenClock):
    await say(db, clock, ADA, "a1")
    await claim(db, clock)

    async def crash() -> None:
        async with db.write() as tx:
            await outbox.recover(tx, "telegram", clock.now())
            raise RuntimeError

    with contextlib.suppress(RuntimeError):
        await crash()
    async with db.write() as tx:
        recovered = await outbox.recover(tx, "telegram", clock.now())

    assert recovered == 1


async def test_recover_after_a_crash_of_the_repetition_repeats_that(
    db: Database, clock: FrozenClock
):
    await say(db, clock, ADA, "a1")
    for _ in range(2):
        await claim(db, clock)
        async with db.write() as tx:
            await outbox.recover(tx, "telegram", clock.now())

    item = await claim(db, clock)

    assert item is not None
    assert (item.key, item.attempts, item.body["repeated"]) == ("a1:r:r", 3, True)


async def test_unclear_send_is_repeated_on_demand_or_left(db: Database, clock: FrozenClock):
    await say(db, clock, ADA, "a1")
    await say(db, clock, BOB, "b1")
    await claim(db, clock)
    await claim(db, clock)
    async with db.write() as tx:
        again = await outbox.repeat(tx, "a1", clock.now())
        await outbox.mark_unknown(tx, "b1", "cut", clock.now())
        nothing = await outbox.repeat(tx, "b1", clock.now())

    item = await claim(db, clock)

    assert (again, nothing) == (True, False)
    assert item is not None
    assert item.key == "a1:r"
    assert await claim(db, clock) is None


async def test_settled_message_is_not_settled_again(db: Database, clock: FrozenClock):
    await say(db, clock, ADA, "a1")
    await claim(db, clock)
    await sent(db, clock, "a1")
    async with db.write() as tx:
        await outbox.release(tx, "a1", None, "late", clock.now())

    item = await find(db, "a1")

    assert item is not None
    assert (item.state, item.message_id) == ("sent", "100")


async def test_next_due_says_when_to_look_again(db: Database, clock: FrozenClock):
    async def due() -> datetime | None:
        async with db.read() as tx:
            return await outbox.next_due(tx, "telegram")

    assert await due() is None
    await say(db, clock, ADA, "a1")
    assert await due() == clock.now()
    await claim(db, clock)
    assert await due() is None
    later = clock.now() + timedelta(seconds=5)
    async with db.write() as tx:
        await outbox.release(tx, "a1", later, None, clock.now())
    assert await due() == later


async def test_prune_drops_old_settled_messages_and_new_ones_still_come_last(
    db: Database, clock: FrozenClock
):
    await say(db, clock, ADA, "a1", "a2")
    await claim(db, clock)
    await sent(db, clock, "a1")
    clock.advance(timedelta(days=8))
    async with db.write() as tx:
        pruned = await outbox.prune(tx, clock.now() - timedelta(days=7))
    await say(db, clock, ADA, "a3")

    item = await claim(db, clock)

    assert pruned == 1
    assert item is not None
    assert item.key == "a2"


@pytest.mark.parametrize("sql", [outbox._CLAIM, outbox._CLAIM_URGENT], ids=["usual", "urgent"])
async def test_claim_uses_the_indexes(db: Database, sql: str):
    """Thousands of sent rows must not slow a claim down."""
    params = {"channel": "telegram", "now": 0, "skip": "[]", "closed": "[]"}
    async with db.read() as tx:
        rows = await tx.fetch_all(f"EXPLAIN QUERY PLAN {sql}", params)
    plan = " | ".join(row["detail"] for row in rows)

    if sql == outbox._CLAIM:
        assert "mine USING INDEX outbox_open" in plan
        assert "outbox_open_chat" in plan
    else:
        assert "mine USING INDEX outbox_urgent" in plan
    assert "TEMP B-TREE" not in plan


async def test_urgent_message_overtakes_its_own_chat_and_holds_nothing_up(
    db: Database, clock: FrozenClock
):
    await say(db, clock, ADA, "first", "second")
    item = await claim(db, clock)
    assert item is not None
    async with db.write() as tx:
        await outbox.enqueue(tx, "now", ADA, {}, clock.now(), urgent=True)
        overtaking = await outbox.claim_next(tx, "telegram", urgent=True, now=clock.now())
        none = await outbox.claim_next(tx, "telegram", urgent=True, now=clock.now())
    await sent(db, clock, item.key)
    after = await claim(db, clock)

    assert overtaking is not None
    assert (overtaking.key, overtaking.urgent, none) == ("now", True, None)
    assert after is not None
    assert after.key == "second"  # while the urgent one is still on its way


async def test_closed_chat_is_closed_with_its_topics_and_others_are_not(
    db: Database, clock: FrozenClock
):
    await say(db, clock, BOB, "topic")
    await say(db, clock, ChatAddress("telegram", "22"), "other")
    async with db.write() as tx:
        item = await outbox.claim_next(tx, "telegram", closed=["telegram:2:"], now=clock.now())
        due = await outbox.next_due(tx, "telegram", closed=["telegram:2:"])

    assert item is not None
    assert item.key == "other"
    assert due is None


async def test_bury_gives_up_what_waits_in_a_chat_and_leaves_what_is_on_its_way(
    db: Database, clock: FrozenClock
):
    await say(db, clock, ADA, "going", "waiting")
    await say(db, clock, BOB, "other")
    await claim(db, clock)
    async with db.write() as tx:
        assert await outbox.bury(tx, "telegram", "telegram:1:", "blocked", clock.now()) == 1

    states = [(await find(db, key)).state for key in ("going", "waiting", "other")]  # type: ignore[union-attr]
    assert states == ["sending", "dead", "pending"]
