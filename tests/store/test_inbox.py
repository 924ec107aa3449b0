"""An update is stored once, worked in order, and still there after a crash."""

from __future__ import annotations

from datetime import timedelta

from core.store import inbox
from core.store.database import Database
from core.store.inbox import InboxRow
from tests.support.clock import FrozenClock

CHAT = "telegram:77:"


async def receive(db: Database, clock: FrozenClock, *ids: int, text: str = "ciao") -> int:
    async with db.write() as tx:
        return await inbox.add_batch(
            tx,
            [InboxRow(id, CHAT, {"text": f"{text} {id}"}) for id in ids],
            channel="telegram",
            bot_id="1",
            next_offset=(max(ids) if ids else 0) + 1,
            now=clock.now(),
        )


async def waiting(db: Database) -> list[inbox.StoredInbox]:
    async with db.read() as tx:
        return await inbox.open_rows(tx, "telegram", "1")


async def test_add_batch_twice_stores_once_and_keeps_order(db: Database, clock: FrozenClock):
    first = await receive(db, clock, 12, 10, 11)
    second = await receive(db, clock, 11, 13)

    rows = await waiting(db)
    assert (first, second) == (3, 1)
    assert [row.update_id for row in rows] == [12, 10, 11, 13]
    assert rows[0].body == {"text": "ciao 12"}
    assert rows[0].received_at == clock.now()


async def test_next_offset_follows_the_last_batch_also_backwards(db: Database, clock: FrozenClock):
    """Telegram begins anew at a random number after a week without updates."""
    async with db.read() as tx:
        before = await inbox.next_offset(tx, "telegram", "1")
    await receive(db, clock, 900)
    await receive(db, clock, 5)
    async with db.read() as tx:
        after = await inbox.next_offset(tx, "telegram", "1")
        other_bot = await inbox.next_offset(tx, "telegram", "2")

    assert (before, after, other_bot) == (None, 6, None)


async def test_add_batch_of_nothing_only_moves_the_offset(db: Database, clock: FrozenClock):
    assert await receive(db, clock) == 0
    async with db.read() as tx:
        assert await inbox.next_offset(tx, "telegram", "1") == 1


async def test_same_update_id_of_another_bot_is_another_update(db: Database, clock: FrozenClock):
    await receive(db, clock, 1)
    async with db.write() as tx:
        added = await inbox.add_batch(
            tx,
            [InboxRow(1, CHAT, {})],
            channel="telegram",
            bot_id="2",
            next_offset=2,
            now=clock.now(),
        )
    assert added == 1
    assert len(await waiting(db)) == 1


async def test_add_batch_with_odd_texts_keeps_what_can_be_kept(db: Database, clock: FrozenClock):
    await receive(db, clock, 1, text='a\0b \ud800 "q" \\u0041 \U0001f600')

    rows = await waiting(db)

    assert rows[0].body["text"] == 'a\0b \ufffd "q" \\u0041 \U0001f600 1'


async def test_running_row_is_open_until_it_is_done(db: Database, clock: FrozenClock):
    await receive(db, clock, 1, 2, 3)
    rows = await waiting(db)
    async with db.write() as tx:
        first = await inbox.mark_running(tx, rows[0].id)
        again = await inbox.mark_running(tx, rows[0].id)
        await inbox.mark_done(tx, rows[1].id)
        await inbox.mark_dead(tx, rows[2].id, "unreadable")
        finished = await inbox.mark_running(tx, rows[1].id)

    left = await waiting(db)
    assert (first, again, finished) == (1, 2, 0)
    assert [(row.update_id, row.state, row.attempts) for row in left] == [(1, "running", 2)]


async def test_open_rows_after_an_id_leaves_out_the_seen(db: Database, clock: FrozenClock):
    await receive(db, clock, 1, 2)
    seen = (await waiting(db))[0].id
    async with db.read() as tx:
        rows = await inbox.open_rows(tx, "telegram", "1", after_id=seen)

    assert [row.update_id for row in rows] == [2]


async def test_replace_body_only_before_the_work_begins(db: Database, clock: FrozenClock):
    await receive(db, clock, 1, 2)
    rows = await waiting(db)
    async with db.write() as tx:
        await inbox.mark_running(tx, rows[1].id)
        replaced = await inbox.replace_body(tx, rows[0], {"text": "edited"})
        refused = await inbox.replace_body(tx, rows[1], {"text": "edited"})

    assert (replaced, refused) == (True, False)
    assert [row.body["text"] for row in await waiting(db)] == ["edited", "ciao 2"]


async def test_prune_drops_old_finished_rows_and_ids_still_grow(db: Database, clock: FrozenClock):
    await receive(db, clock, 1, 2)
    old = await waiting(db)
    async with db.write() as tx:
        await inbox.mark_done(tx, old[1].id)
    clock.advance(timedelta(days=8))
    async with db.write() as tx:
        pruned = await inbox.prune(tx, clock.now() - timedelta(days=7))
    await receive(db, clock, 3)

    rows = await waiting(db)
    assert pruned == 1
    assert [row.update_id for row in rows] == [1, 3]
    assert rows[1].id > old[1].id


async def test_mark_done_forgets_the_words_and_still_knows_the_update(
    db: Database, clock: FrozenClock
) -> None:
    await receive(db, clock, 1)
    row = (await waiting(db))[0]

    async with db.write() as tx:
        await inbox.mark_done(tx, row.id)

    async with db.read() as tx:
        kept = await tx.fetch_one("SELECT body, state FROM inbox")
    assert kept is not None
    assert tuple(kept) == ("{}", "done")
