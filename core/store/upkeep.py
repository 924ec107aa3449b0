"""What the store throws away by itself: settled messages and questions, expired entries,
grants, mandates and positions, old notices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from core.store import (
    actions,
    approvals,
    console,
    credentials,
    grants,
    inbox,
    kv,
    old_questions,
    outbox,
    pairing,
    positions,
    scratchpad,
)
from core.store.stores import Stores

KEEP_MESSAGES = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Tidied:
    """How many rows went."""

    inbox: int
    outbox: int
    scratchpad: int


async def tidy(stores: Stores, now: datetime) -> Tidied:
    """Delete what has had its time, in one short transaction; run at the start and now and then.

    Turns, effects and logs stay. Safe to run twice.
    """
    before = now - KEEP_MESSAGES
    async with stores.main.write() as tx:
        tidied = Tidied(
            inbox=await inbox.prune(tx, before),
            outbox=await outbox.prune(tx, before),
            scratchpad=await scratchpad.purge(tx, now),
        )
        await pairing.prune(tx, now)
        await grants.purge(tx, now)
        await approvals.purge(tx, now)
        await positions.purge(tx, now)
        await old_questions.purge(tx, before)
        await credentials.purge(tx, now)
        await console.prune(tx, now)
        await actions.purge(tx, before)
        await kv.forget_answers(tx, before)
    return tidied
