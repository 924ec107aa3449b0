"""Plans that somebody disliked for a kind of request (L1). Owns `anti_autopaths` of `memory.db`.

Three 👎 keep a plan away from this person for a month (`until`), also from what a model proposes;
planning anew keeps it out of what others taught for an hour (`soft_until`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from core.clock import from_ts, to_ts
from core.store.database import Row, Transaction

FORGOTTEN_AFTER = timedelta(days=90)
"""When 👎 that kept nothing away count no more."""

Reason = Literal["disliked", "anew", "counting"]


@dataclass(frozen=True, slots=True)
class Anti:
    """`fails`: 👎 since the last 👍. `reason`: why it is kept away, or that it is not yet."""

    actor_id: str
    intent: str
    fingerprint: str
    said: str
    way: str
    fails: int
    until: datetime | None
    soft_until: datetime | None
    reason: Reason

    @property
    def ends_at(self) -> datetime | None:
        """Until when it is kept away at all."""
        return max((t for t in (self.until, self.soft_until) if t is not None), default=None)


@dataclass(frozen=True, slots=True)
class Unwanted:
    """Fingerprints kept away from one person for one kind of request: `hard` from everything,
    `soft` from what memory serves to more than its own words."""

    hard: frozenset[str] = frozenset()
    soft: frozenset[str] = frozenset()

    def __or__(self, other: Unwanted) -> Unwanted:
        return Unwanted(self.hard | other.hard, self.soft | other.soft)


async def unwanted(tx: Transaction, actor_id: str, intent: str, now: datetime) -> Unwanted:
    rows = await tx.fetch_all(
        """SELECT fingerprint, COALESCE(until, 0) > :now AS hard,
                  COALESCE(soft_until, 0) > :now AS soft
           FROM anti_autopaths WHERE actor_id = :actor AND intent = :intent""",
        {"actor": actor_id, "intent": intent, "now": to_ts(now)},
    )
    return Unwanted(
        frozenset(str(row["fingerprint"]) for row in rows if row["hard"]),
        frozenset(str(row["fingerprint"]) for row in rows if row["soft"]),
    )


async def strike(
    tx: Transaction,
    actor_id: str,
    intent: str,
    fingerprint: str,
    *,
    said: str,
    way: str,
    fails: int,
    until: datetime | None,
    now: datetime,
) -> None:
    """Keep how often a plan was disliked, and until when it is kept away; None: not (yet)."""
    await tx.execute(
        """INSERT INTO anti_autopaths
               (actor_id, intent, fingerprint, said, way, fails, until, changed_at)
           VALUES (:actor, :intent, :fingerprint, :said, :way, :fails, :until, :now)
           ON CONFLICT (actor_id, intent, fingerprint) DO UPDATE SET
               fails = excluded.fails, until = excluded.until, changed_at = excluded.changed_at""",
        {
            "actor": actor_id,
            "intent": intent,
            "fingerprint": fingerprint,
            "said": said,
            "way": way,
            "fails": fails,
            "until": None if until is None else to_ts(until),
            "now": to_ts(now),
        },
    )


async def soften(
    tx: Transaction,
    actor_id: str,
    intent: str,
    fingerprint: str,
    *,
    said: str,
    way: str,
    until: datetime,
    now: datetime,
) -> None:
    """Keep a plan out for a while because its request was planned anew."""
    await tx.execute(
        """INSERT INTO anti_autopaths
               (actor_id, intent, fingerprint, said, way, soft_until, changed_at)
           VALUES (:actor, :intent, :fingerprint, :said, :way, :until, :now)
           ON CONFLICT (actor_id, intent, fingerprint) DO UPDATE SET
               soft_until = excluded.soft_until, changed_at = excluded.changed_at""",
        {
            "actor": actor_id,
            "intent": intent,
            "fingerprint": fingerprint,
            "said": said,
            "way": way,
            "until": to_ts(until),
            "now": to_ts(now),
        },
    )


async def lift(tx: Transaction, actor_id: str, intent: str, fingerprint: str) -> bool:
    """Nothing keeps this plan away any more; whether something did, or had begun to."""
    changed = await tx.execute(
        """DELETE FROM anti_autopaths
           WHERE actor_id = :actor AND intent = :intent AND fingerprint = :fingerprint""",
        {"actor": actor_id, "intent": intent, "fingerprint": fingerprint},
    )
    return changed == 1


async def listed(tx: Transaction, now: datetime, *, limit: int = 100) -> list[Anti]:
    """Those that keep something away now, the last changed first."""
    rows = await tx.fetch_all(
        """SELECT * FROM anti_autopaths
           WHERE COALESCE(until, 0) > :now OR COALESCE(soft_until, 0) > :now
           ORDER BY changed_at DESC, fingerprint LIMIT :limit""",
        {"now": to_ts(now), "limit": limit},
    )
    return [_anti(row, now) for row in rows]


async def find(
    tx: Transaction, actor_id: str, intent: str, fingerprint: str, now: datetime
) -> Anti | None:
    row = await tx.fetch_one(
        """SELECT * FROM anti_autopaths
           WHERE actor_id = :actor AND intent = :intent AND fingerprint = :fingerprint""",
        {"actor": actor_id, "intent": intent, "fingerprint": fingerprint},
    )
    return None if row is None else _anti(row, now)


async def count(tx: Transaction, now: datetime) -> int:
    """How many keep something away now."""
    row = await tx.fetch_one(
        """SELECT COUNT(*) AS n FROM anti_autopaths
           WHERE COALESCE(until, 0) > :now OR COALESCE(soft_until, 0) > :now""",
        {"now": to_ts(now)},
    )
    return 0 if row is None else int(row["n"])


async def flush(tx: Transaction) -> int:
    return await tx.execute("DELETE FROM anti_autopaths")


async def forget(tx: Transaction, actor_id: str) -> int:
    """Nothing of this person is kept here any more; how much was."""
    return await tx.execute("DELETE FROM anti_autopaths WHERE actor_id = :a", {"a": actor_id})


async def prune(tx: Transaction, now: datetime) -> int:
    """Drop what has had its time, and 👎 of long ago that kept nothing away; how many rows."""
    return await tx.execute(
        """DELETE FROM anti_autopaths
           WHERE COALESCE(soft_until, 0) <= :now AND (
               until <= :now OR (until IS NULL AND (fails = 0 OR changed_at < :old)))""",
        {"now": to_ts(now), "old": to_ts(now - FORGOTTEN_AFTER)},
    )


def _anti(row: Row, now: datetime) -> Anti:
    until, soft = (None if row[n] is None else from_ts(row[n]) for n in ("until", "soft_until"))
    reason: Reason = "counting"
    if until is not None and until > now:
        reason = "disliked"
    elif soft is not None and soft > now:
        reason = "anew"
    return Anti(
        actor_id=row["actor_id"],
        intent=row["intent"],
        fingerprint=row["fingerprint"],
        said=row["said"],
        way=row["way"],
        fails=int(row["fails"]),
        until=until,
        soft_until=soft,
        reason=reason,
    )
