"""Which tools served which kinds of requests: numbers of features, never words (`memory.db`).

Owns `evidence` and `evidence_salts`. Everybody has rows of their own and a salt of their own, so
that nobody's turns say anything about another's, and equal words of two people have no number in
common.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.catalog.evidence import CAPACITY, FEATURE_BYTES, Features
from core.clock import to_ts
from core.store.database import Row, Transaction
from core.store.encoding import dump_json, load_json

MAX_ROWS = 5000
_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Served:
    """A request, by its features, and the tools that served it, the first of them first."""

    features: Features
    tools: tuple[str, ...]


async def salt_of(tx: Transaction, actor_id: str) -> bytes:
    """The salt of this person's features, made at the first call; needs a write transaction."""
    await tx.execute(
        """INSERT INTO evidence_salts (actor_id, salt) VALUES (:actor, :salt)
           ON CONFLICT (actor_id) DO UPDATE SET salt = excluded.salt
           WHERE typeof(evidence_salts.salt) <> 'blob'""",
        {"actor": actor_id, "salt": secrets.token_bytes(_SALT_BYTES)},
    )
    salt = await known_salt(tx, actor_id)
    assert salt is not None  # noqa: S101 - it was just made
    return salt


async def known_salt(tx: Transaction, actor_id: str) -> bytes | None:
    """The salt there is; None for somebody without one, or with a damaged one."""
    row = await tx.fetch_one(
        "SELECT salt FROM evidence_salts WHERE actor_id = :actor", {"actor": actor_id}
    )
    salt = None if row is None else row["salt"]
    return salt if isinstance(salt, bytes) else None


async def keep(
    tx: Transaction,
    actor_id: str,
    turn_id: str,
    features: Features,
    tools: Sequence[str],
    now: datetime,
) -> None:
    """Note what served a turn; once, however often it is told. The oldest rows beyond what is
    read of one person, and beyond `MAX_ROWS` of all, go."""
    await tx.execute(
        """INSERT OR IGNORE INTO evidence (actor_id, turn_id, features, tools, learnt_at)
           VALUES (:actor, :turn, :features, :tools, :now)""",
        {
            "actor": actor_id,
            "turn": turn_id,
            "features": b"".join(f.to_bytes(FEATURE_BYTES) for f in sorted(features)),
            "tools": dump_json(list(tools)),
            "now": to_ts(now),
        },
    )
    await tx.execute(
        """DELETE FROM evidence WHERE actor_id = :actor AND id <= (
               SELECT id FROM evidence WHERE actor_id = :actor
               ORDER BY id DESC LIMIT 1 OFFSET :most)""",
        {"actor": actor_id, "most": CAPACITY},
    )
    await tx.execute(
        """DELETE FROM evidence WHERE id <= (
               SELECT id FROM evidence ORDER BY id DESC LIMIT 1 OFFSET :most)""",
        {"most": MAX_ROWS},
    )


async def stamp(tx: Transaction, actor_id: str) -> tuple[int, int]:
    """Changes when a person's rows do: the newest row's number and how many there are."""
    row = await tx.fetch_one(
        """SELECT COALESCE(MAX(id), 0) AS newest, COUNT(*) AS n FROM evidence
           WHERE actor_id = :actor""",
        {"actor": actor_id},
    )
    assert row is not None  # noqa: S101 - an aggregate has one row
    return int(row["newest"]), int(row["n"])


async def of_actor(tx: Transaction, actor_id: str) -> list[Served]:
    """A person's rows, oldest first. A damaged one is passed over."""
    rows = await tx.fetch_all(
        "SELECT features, tools FROM evidence WHERE actor_id = :actor ORDER BY id",
        {"actor": actor_id},
    )
    return [served for row in rows if (served := _served(row)) is not None]


async def drop_turn(tx: Transaction, turn_id: str) -> int:
    """What served this turn was not what was wanted; how many rows went."""
    return await tx.execute("DELETE FROM evidence WHERE turn_id = :turn", {"turn": turn_id})


async def forget(tx: Transaction, actor_id: str) -> int:
    """Nothing is kept of this person; how many rows were."""
    await tx.execute("DELETE FROM evidence_salts WHERE actor_id = :actor", {"actor": actor_id})
    return await tx.execute("DELETE FROM evidence WHERE actor_id = :actor", {"actor": actor_id})


def _served(row: Row) -> Served | None:
    data, tools = row["features"], load_json(row["tools"])
    if not isinstance(data, bytes) or len(data) % FEATURE_BYTES or not isinstance(tools, list):
        return None
    starts = range(0, len(data), FEATURE_BYTES)
    features = frozenset(int.from_bytes(data[at : at + FEATURE_BYTES]) for at in starts)
    return Served(features, tuple(str(tool) for tool in tools))
