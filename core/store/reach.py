"""Which chats cannot be reached any more: the person blocked the bot, left, or is gone.

Owns `unreachable`. What waits for such a chat is given up, and what its person has planned rests
until they write again. Knows nothing of how a channel finds out.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from core.clock import to_ts
from core.store.database import Transaction

# Whoever blocks and comes back again and again is not told of each time.
TOLD_EVERY = timedelta(hours=24)


async def lose(
    tx: Transaction,
    channel: str,
    chat_id: str,
    actor_id: str | None,
    detail: str,
    now: datetime,
) -> bool:
    """Note that nothing reaches this chat; `actor_id` is whose private chat it is, if it is one.

    True when the host is to be told: the first time, and at most once a day. Called again while
    the chat is lost it changes nothing.
    """
    row = await tx.fetch_one(
        """SELECT lost_at, told_at FROM unreachable
           WHERE channel = :channel AND chat_id = :chat_id""",
        {"channel": channel, "chat_id": chat_id},
    )
    if row is not None and row["lost_at"] is not None:
        return False
    tell = row is None or row["told_at"] <= to_ts(now - TOLD_EVERY)
    await tx.execute(
        """INSERT INTO unreachable (channel, chat_id, actor_id, detail, lost_at, told_at)
           VALUES (:channel, :chat_id, :actor_id, :detail, :now, :now)
           ON CONFLICT (channel, chat_id) DO UPDATE SET actor_id = excluded.actor_id,
               detail = excluded.detail, lost_at = excluded.lost_at,
               told_at = CASE WHEN :tell THEN excluded.told_at ELSE told_at END""",
        {
            "channel": channel,
            "chat_id": chat_id,
            "actor_id": actor_id,
            "detail": detail[:300],
            "now": to_ts(now),
            "tell": int(tell),
        },
    )
    return tell


async def regain(tx: Transaction, channel: str, chat_id: str) -> bool:
    """Somebody writes from there again: everything resumes. False when it was not lost."""
    changed = await tx.execute(
        """UPDATE unreachable SET lost_at = NULL
           WHERE channel = :channel AND chat_id = :chat_id AND lost_at IS NOT NULL""",
        {"channel": channel, "chat_id": chat_id},
    )
    return changed == 1


async def move(tx: Transaction, channel: str, old_id: str) -> int:
    """A chat has another id, under which it can be reached (`core.store.moves`)."""
    return await tx.execute(
        "DELETE FROM unreachable WHERE channel = :channel AND chat_id = :old",
        {"channel": channel, "old": old_id},
    )


async def lost_chats(tx: Transaction, channel: str) -> set[str]:
    """The ids of the chats of a channel that cannot be reached now."""
    rows = await tx.fetch_all(
        "SELECT chat_id FROM unreachable WHERE channel = :channel AND lost_at IS NOT NULL",
        {"channel": channel},
    )
    return {str(row["chat_id"]) for row in rows}


async def is_paused(tx: Transaction, actor_id: str) -> bool:
    """Whether this actor cannot be reached, so that nothing is begun for them by itself."""
    row = await tx.fetch_one(
        "SELECT 1 FROM unreachable WHERE actor_id = :id AND lost_at IS NOT NULL LIMIT 1",
        {"id": actor_id},
    )
    return row is not None


async def prune(tx: Transaction, now: datetime) -> None:
    """Forget chats that came back long ago."""
    await tx.execute(
        "DELETE FROM unreachable WHERE lost_at IS NULL AND told_at < :before",
        {"before": to_ts(now - TOLD_EVERY)},
    )
