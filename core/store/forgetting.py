"""What is to be forgotten of a person, and doing it: the words of what they asked and were told,
what was learnt from it, what they agreed to, where they were.

Owns `forgetting`. An order is written down first and struck out when nothing is left to do; what
a crash leaves is finished at the next start. What still runs or waits, or is still to be said, is
left alone, and the order stands until that has ended too. Files, people and counts stay.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from core.clock import Clock, from_ts, to_ts
from core.errors import StoreError
from core.store import (
    actions,
    actors,
    approvals,
    autopath,
    credentials,
    disliked,
    effects,
    evidence,
    feedback,
    inbox,
    old_messages,
    old_questions,
    old_turns,
    plan_cache,
    positions,
    scratchpad,
)
from core.store.database import Row, Transaction, row_reader
from core.store.forgotten import changed_line, without_words
from core.store.migrations import backups_of
from core.store.stores import Stores, set_aside
from core.store.turn_log import TurnLog


@dataclass(frozen=True, slots=True)
class Order:
    """Forget what this person said by `before`. `card`: the outbox row of the question that asked
    them whether to, which is to stay as it is. `swept`: all was done but for what was open."""

    actor_id: str
    before: datetime
    card: str | None = None
    swept: bool = False


async def ask(tx: Transaction, actor_id: str, now: datetime, *, card: str | None = None) -> None:
    """Write down that this person is to be forgotten. Asked again, the later word counts."""
    await tx.execute(
        """INSERT INTO forgetting (actor_id, before, card) VALUES (:actor, :now, :card)
           ON CONFLICT (actor_id) DO UPDATE SET
               before = MAX(before, excluded.before), card = excluded.card, swept_at = NULL""",
        {"actor": actor_id, "now": to_ts(now), "card": card},
    )


async def orders(tx: Transaction, *, actor_id: str | None = None) -> list[Order]:
    """What is still to be forgotten, of everybody or of one person."""
    rows = await tx.fetch_all(
        """SELECT * FROM forgetting WHERE :actor IS NULL OR actor_id = :actor ORDER BY before""",
        {"actor": actor_id},
    )
    return [_order(row) for row in rows]


class Forgetting:
    """Carries orders out, one at a time, in the process that writes the logs."""

    def __init__(self, stores: Stores, clock: Clock, log: TurnLog) -> None:
        self._stores, self._clock, self._log = stores, clock, log
        self._alone = asyncio.Lock()

    async def forget(self, actor_id: str, *, card: str | None = None) -> bool:
        """Forget a person; False when something of theirs is open and goes when it ends.

        Called again it does what is left. Raises `StoreError`; the order then stands.
        """
        async with self._stores.main.write() as tx:
            await ask(tx, actor_id, self._clock.now(), card=card)
        await self.finish()
        async with self._stores.main.read() as tx:
            return not await orders(tx, actor_id=actor_id)

    async def finish(self) -> int:
        """Go on with every order there is; how many are done with. Costs one look when there is
        none. Raises `StoreError`."""
        done = 0
        async with self._alone:
            async with self._stores.main.read() as tx:
                found = await orders(tx)
            for order in found:
                done += await self._carry_out(order)
        return done

    async def _carry_out(self, order: Order) -> bool:
        if order.swept and await self._is_open(order):
            return False
        async with self._stores.main.write() as tx:
            ended, running, waiting = await _forget_words(tx, order, self._clock.now())
        async with self._stores.memory.write() as tx:
            await _forget_learnt(tx, order.actor_id)
        await asyncio.to_thread(self._rewrite, order, ended, running)
        self._drop_copies()
        await self._stores.memory.settle()
        is_done = not running and not waiting
        async with self._stores.main.write() as tx:
            await _note(tx, order, self._clock.now(), is_done=is_done)
        await self._stores.main.settle()
        return is_done

    async def _is_open(self, order: Order) -> bool:
        async with self._stores.main.read() as tx:
            if await old_turns.open_before(tx, order.actor_id, order.before):
                return True
            chats = await _chats(tx, order.actor_id)
            return await old_messages.waits(tx, order.actor_id, chats, order.before)

    def _drop_copies(self) -> None:
        """Delete what holds it all too: copies from before an upgrade, a damaged memory."""
        main, memory = self._stores.main.path, self._stores.memory.path
        try:
            for copy in (*backups_of(main), *backups_of(memory), set_aside(memory)):
                copy.unlink(missing_ok=True)
        except OSError as exc:
            raise StoreError(f"a copy cannot be deleted ({exc.strerror})") from exc

    def _rewrite(self, order: Order, ended: frozenset[str], running: frozenset[str]) -> None:
        change = partial(
            changed_line,
            actor_id=order.actor_id,
            before=to_ts(order.before),
            ended=ended,
            running=running,
        )
        for path in self._log.files():
            self._log.rewrite(path, change)


async def _forget_words(
    tx: Transaction, order: Order, now: datetime
) -> tuple[frozenset[str], frozenset[str], int]:
    """What the main database holds; the turns that are forgotten, those that go on, and how many
    messages are still to go out."""
    actor_id, before = order.actor_id, order.before
    running = await old_turns.open_before(tx, actor_id, before)
    ended = await old_turns.forget(tx, actor_id, before, without_words)
    chats = await _chats(tx, actor_id)
    await effects.forget(tx, ended)
    await scratchpad.forget(tx, actor_id, ended)
    await old_questions.forget(tx, actor_id, before, now, ended=ended)
    await actions.forget(tx, actor_id, now, but_under=order.card)
    await credentials.forget_answers(tx, actor_id, but_of=running)
    await inbox.forget(tx, chats, before)
    waiting = await old_messages.forget(tx, chats, ended, before, but=order.card)
    await feedback.forget(tx, actor_id)
    await approvals.forget_all(tx, actor_id)
    await positions.forget(tx, actor_id)
    return frozenset(ended), frozenset(running), waiting


async def _forget_learnt(tx: Transaction, actor_id: str) -> None:
    """What `memory.db` holds; each table that names an actor has its line here."""
    await plan_cache.flush(tx, actor_id=actor_id)
    await disliked.forget(tx, actor_id)
    await autopath.forget(tx, actor_id)
    await evidence.forget(tx, actor_id)


async def _chats(tx: Transaction, actor_id: str) -> list[str]:
    """A private chat has the number of its person; what was said in it goes, whoever said it."""
    return [f"{channel}:{sender}:" for channel, sender in await actors.identities_of(tx, actor_id)]


async def _note(tx: Transaction, order: Order, now: datetime, *, is_done: bool) -> None:
    """Strike an order out, or note that only what is open is left; one that was given anew
    meanwhile stays."""
    about = {"actor": order.actor_id, "before": to_ts(order.before)}
    mine = "actor_id = :actor AND before = :before"
    if is_done:
        await tx.execute(f"DELETE FROM forgetting WHERE {mine}", about)  # noqa: S608
    else:
        await tx.execute(
            f"UPDATE forgetting SET swept_at = :now WHERE {mine}",  # noqa: S608
            {**about, "now": to_ts(now)},
        )


@row_reader
def _order(row: Row) -> Order:
    return Order(
        row["actor_id"], from_ts(row["before"]), row["card"], swept=row["swept_at"] is not None
    )
