"""Chats out of reach: told once, paused until they come back."""

from __future__ import annotations

from datetime import timedelta

from core.store import reach
from core.store.database import Database
from tests.support.clock import FrozenClock

CHANNEL = "telegram"


async def lose(db: Database, clock: FrozenClock, chat: str = "1", actor: str | None = "a") -> bool:
    async with db.write() as tx:
        return await reach.lose(tx, CHANNEL, chat, actor, "Forbidden", clock.now())


async def test_lost_chat_is_told_once_and_pauses_its_actor(db: Database, clock: FrozenClock):
    told = [await lose(db, clock), await lose(db, clock)]

    assert told == [True, False]
    async with db.read() as tx:
        assert await reach.is_paused(tx, "a")
        assert not await reach.is_paused(tx, "b")
        assert await reach.lost_chats(tx, CHANNEL) == {"1"}


async def test_regained_chat_resumes_and_is_told_again_only_after_a_day(
    db: Database, clock: FrozenClock
):
    await lose(db, clock)
    async with db.write() as tx:
        regained = [await reach.regain(tx, CHANNEL, "1"), await reach.regain(tx, CHANNEL, "1")]
    soon = await lose(db, clock)
    async with db.write() as tx:
        await reach.regain(tx, CHANNEL, "1")
    clock.advance(timedelta(hours=25).total_seconds())
    later = await lose(db, clock)

    assert regained == [True, False]
    assert (soon, later) == (False, True)


async def test_prune_forgets_who_came_back_and_keeps_who_is_lost(db: Database, clock: FrozenClock):
    await lose(db, clock)
    await lose(db, clock, "2", None)
    async with db.write() as tx:
        await reach.regain(tx, CHANNEL, "2")
        clock.advance(timedelta(days=3).total_seconds())
        await reach.prune(tx, clock.now())
        rows = await tx.fetch_all("SELECT chat_id FROM unreachable")

    assert [row["chat_id"] for row in rows] == ["1"]
