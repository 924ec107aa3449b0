"""Small named values that must survive a restart: a channel's state, the time of the last poll."""

from __future__ import annotations

from datetime import datetime

from core.clock import to_ts
from core.store.database import Transaction


async def get(tx: Transaction, key: str) -> str | None:
    row = await tx.fetch_one("SELECT value FROM kv WHERE key = :key", {"key": key})
    return None if row is None else str(row["value"])


async def put(tx: Transaction, key: str, value: str) -> None:
    await tx.execute(
        """INSERT INTO kv (key, value) VALUES (:key, :value)
           ON CONFLICT (key) DO UPDATE SET value = excluded.value""",
        {"key": key, "value": value},
    )


async def move(tx: Transaction, old: str, new: str) -> int:
    """Let values whose name holds a conversation's key that begins with `old` be named by `new`;
    one that has that name already stays."""
    return await tx.execute(
        """UPDATE OR IGNORE kv SET key = replace(key, :old, :new)
           WHERE instr(key, ':' || :old) > 0""",
        {"old": old, "new": new},
    )


async def delete(tx: Transaction, key: str) -> None:
    await tx.execute("DELETE FROM kv WHERE key = :key", {"key": key})


async def forget_answers(tx: Transaction, before: datetime) -> int:
    """Drop the notes that an answer was taken (`answer:ID` → its turn) once the turn has ended
    before that moment, when nobody delivers that answer again; how many."""
    return await tx.execute(
        """DELETE FROM kv WHERE key >= 'answer:' AND key < 'answer;'
               AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.id = kv.value
                               AND (ended_at IS NULL OR ended_at >= :before))""",
        {"before": to_ts(before)},
    )
