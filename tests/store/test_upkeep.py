"""The store does not grow for ever, and what is still open stays."""

from __future__ import annotations

from datetime import timedelta

from core.messages import ChatAddress
from core.store import inbox, outbox, scratchpad
from core.store.stores import Stores
from core.store.upkeep import Tidied, tidy
from tests.support.clock import FrozenClock

ADA = ChatAddress("telegram", "1")


async def test_tidy_drops_what_is_settled_and_keeps_what_is_open(
    stores: Stores, clock: FrozenClock
):
    now = clock.now()
    async with stores.main.write() as tx:
        rows = [inbox.InboxRow(n, ADA.key, {}) for n in (1, 2)]
        await inbox.add_batch(tx, rows, channel="telegram", bot_id="1", next_offset=3, now=now)
        opened = await inbox.open_rows(tx, "telegram", "1")
        await inbox.mark_done(tx, opened[0].id)
        for key in ("a", "b"):
            await outbox.enqueue(tx, key, ADA, {}, now)
        await outbox.claim_next(tx, "telegram", now=now)
        await outbox.mark_sent(tx, "a", "1", now)
        for turn_id in ("over", "open"):
            await scratchpad.put(
                tx,
                entry_id=turn_id,
                actor_id="ada",
                turn_id=turn_id,
                step=1,
                tool="read_files",
                kind="text",
                content="x",
                now=now,
            )
        await scratchpad.close_turn(tx, "over", now + timedelta(hours=1))

    at_once = await tidy(stores, clock.now())
    clock.advance(timedelta(days=8))
    later = await tidy(stores, clock.now())
    again = await tidy(stores, clock.now())

    assert at_once == Tidied(0, 0, 0)
    assert later == Tidied(1, 1, 1)
    assert again == Tidied(0, 0, 0)
    async with stores.main.read() as tx:
        left = await inbox.open_rows(tx, "telegram", "1")
        assert [row.update_id for row in left] == [2]
        assert await outbox.find(tx, "b") is not None
        assert await scratchpad.has_entries(tx, "ada", "open")
