"""Observations too large for the model, kept whole while their turn needs them.

Owns `scratchpad`. An entry exists only for its actor and its turn; for others the id is unknown.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Literal

from core.clock import to_ts
from core.store.database import Transaction
from core.store.encoding import clean_text, dump_json

Kind = Literal["text", "json", "list"]


async def put(
    tx: Transaction,
    *,
    entry_id: str,
    actor_id: str,
    turn_id: str,
    step: int,
    tool: str,
    kind: Kind,
    content: str | bytes,
    now: datetime,
) -> None:
    """Keep an observation under a new id (16 hexadecimal digits). Texts are kept as UTF-8."""
    data = clean_text(content).encode() if isinstance(content, str) else content
    await tx.execute(
        """INSERT INTO scratchpad
               (id, actor_id, turn_id, step, tool, kind, content, size_bytes, created_at)
           VALUES (:id, :actor_id, :turn_id, :step, :tool, :kind, :content, :size, :now)""",
        {
            "id": entry_id,
            "actor_id": actor_id,
            "turn_id": turn_id,
            "step": step,
            "tool": tool,
            "kind": kind,
            "content": data,
            "size": len(data),
            "now": to_ts(now),
        },
    )


async def get(tx: Transaction, actor_id: str, turn_id: str, entry_id: str) -> bytes | None:
    """The whole content; None when this actor has no such entry in this turn."""
    row = await tx.fetch_one(
        """SELECT content FROM scratchpad
           WHERE id = :id AND actor_id = :actor_id AND turn_id = :turn_id""",
        {"id": entry_id, "actor_id": actor_id, "turn_id": turn_id},
    )
    return None if row is None else bytes(row["content"])


async def has_entries(tx: Transaction, actor_id: str, turn_id: str) -> bool:
    """Whether `scratchpad_read` has anything to read in this turn."""
    row = await tx.fetch_one(
        "SELECT 1 FROM scratchpad WHERE turn_id = :turn_id AND actor_id = :actor_id LIMIT 1",
        {"turn_id": turn_id, "actor_id": actor_id},
    )
    return row is not None


async def close_turn(tx: Transaction, turn_id: str, expires_at: datetime) -> None:
    """Let the entries of an ended turn go at that moment; an earlier word stays."""
    await tx.execute(
        """UPDATE scratchpad SET expires_at = :expires_at
           WHERE turn_id = :turn_id AND expires_at IS NULL""",
        {"turn_id": turn_id, "expires_at": to_ts(expires_at)},
    )


async def drop(tx: Transaction, entry_id: str) -> None:
    """Delete one entry that nobody is going to read."""
    await tx.execute("DELETE FROM scratchpad WHERE id = :id", {"id": entry_id})


async def purge(tx: Transaction, now: datetime) -> int:
    """Delete what has expired; how many entries."""
    return await tx.execute("DELETE FROM scratchpad WHERE expires_at <= :now", {"now": to_ts(now)})


async def forget(tx: Transaction, actor_id: str, turn_ids: Collection[str]) -> int:
    """Delete what this person's turns of these ids kept; how many entries."""
    return await tx.execute(
        """DELETE FROM scratchpad
           WHERE actor_id = :actor AND turn_id IN (SELECT value FROM json_each(:turns))""",
        {"actor": actor_id, "turns": dump_json(list(turn_ids))},
    )
