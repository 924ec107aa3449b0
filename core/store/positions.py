"""Where people last said they were: one position each, kept for a while.

Owns `positions`. Coarse history is nobody's business: a new position replaces the one before, and
what has had its time goes. How long that is, is for the caller to say.
"""

from __future__ import annotations

from datetime import datetime

from core.clock import from_ts, to_ts
from core.positions import Position, Source
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import clean_text


async def keep(
    tx: Transaction, actor_id: str, position: Position, *, expires_at: datetime
) -> bool:
    """Keep where an actor is, in place of what was known. False: something newer was known, which
    then stays. Kept again it is the same."""
    changed = await tx.execute(
        """INSERT INTO positions (actor_id, lat, lon, accuracy_m, source, label, at, expires_at)
           VALUES (:actor, :lat, :lon, :accuracy, :source, :label, :at, :expires)
           ON CONFLICT (actor_id) DO UPDATE SET lat = excluded.lat, lon = excluded.lon,
               accuracy_m = excluded.accuracy_m, source = excluded.source,
               label = excluded.label, at = excluded.at, expires_at = excluded.expires_at
           WHERE excluded.at >= positions.at""",
        {
            "actor": actor_id,
            "lat": position.lat,
            "lon": position.lon,
            "accuracy": position.accuracy_m,
            "source": position.source.value,
            "label": clean_text(position.label),
            "at": to_ts(position.at),
            "expires": to_ts(expires_at),
        },
    )
    return changed == 1


async def find_fresh(tx: Transaction, actor_id: str, now: datetime) -> Position | None:
    """Where the actor is, as far as that is still to be used; None: not known, or too old."""
    row = await tx.fetch_one(
        "SELECT * FROM positions WHERE actor_id = :actor AND expires_at > :now",
        {"actor": actor_id, "now": to_ts(now)},
    )
    return None if row is None else _position(row)


async def forget(tx: Transaction, actor_id: str) -> int:
    """Delete what is known of where an actor is; how many positions that were."""
    return await tx.execute("DELETE FROM positions WHERE actor_id = :actor", {"actor": actor_id})


async def purge(tx: Transaction, now: datetime) -> int:
    """Delete positions that have had their time; how many."""
    return await tx.execute("DELETE FROM positions WHERE expires_at <= :now", {"now": to_ts(now)})


@row_reader
def _position(row: Row) -> Position:
    return Position(
        lat=row["lat"],
        lon=row["lon"],
        at=from_ts(row["at"]),
        accuracy_m=row["accuracy_m"],
        source=Source(row["source"]),
        label=row["label"],
    )
