"""Plans that somebody did not like for these words, for a while. Owns `disliked`."""

from __future__ import annotations

from datetime import datetime, timedelta

from core.clock import to_ts
from core.store.database import Transaction

FOR = timedelta(hours=1)


async def exclude(tx: Transaction, actor_id: str, exact: str, plan: str, now: datetime) -> None:
    """For an hour this plan (its fingerprint) neither serves these words of this person nor is
    learnt from them. Called again the hour begins anew."""
    await tx.execute("DELETE FROM disliked WHERE until <= :now", {"now": to_ts(now)})
    await tx.execute(
        """INSERT INTO disliked (actor_id, exact, plan, until)
           VALUES (:actor, :exact, :plan, :until)
           ON CONFLICT (actor_id, exact, plan) DO UPDATE SET until = excluded.until""",
        {"actor": actor_id, "exact": exact, "plan": plan, "until": to_ts(now + FOR)},
    )


async def plans(tx: Transaction, actor_id: str, exact: str, now: datetime) -> frozenset[str]:
    """The fingerprints that are excluded for these words of this person now."""
    rows = await tx.fetch_all(
        """SELECT plan FROM disliked
           WHERE actor_id = :actor AND exact = :exact AND until > :now""",
        {"actor": actor_id, "exact": exact, "now": to_ts(now)},
    )
    return frozenset(str(row["plan"]) for row in rows)


async def lift(tx: Transaction, actor_id: str, exact: str) -> int:
    """Nothing is excluded for these words any more; how much was."""
    return await tx.execute(
        "DELETE FROM disliked WHERE actor_id = :actor AND exact = :exact",
        {"actor": actor_id, "exact": exact},
    )


async def forget(tx: Transaction, actor_id: str) -> int:
    """Nothing of this person is kept here any more; how much was."""
    return await tx.execute("DELETE FROM disliked WHERE actor_id = :actor", {"actor": actor_id})
