"""The cosine below which a hit by meaning is none, for each embedder that was calibrated here.

Owns `embedder_floors` of `memory.db`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from core.clock import from_ts, to_ts
from core.levels.calibration import Calibration
from core.store.database import Transaction


@dataclass(frozen=True, slots=True)
class Floor:
    """`pairs` is how many it was calibrated on, `lost` how many of them lie below it, `source`
    where they came from: `shipped`, `plans` or `file`."""

    floor: float
    pairs: int
    lost: int
    source: str
    measured_at: datetime


async def find(tx: Transaction, embedder: str) -> Floor | None:
    """None: it was not calibrated here, or what is stored is damaged."""
    row = await tx.fetch_one(
        "SELECT * FROM embedder_floors WHERE embedder = :embedder", {"embedder": embedder}
    )
    try:
        if row is None or not math.isfinite(floor := float(row["floor"])):
            return None
        return Floor(
            floor,
            int(row["pairs"]),
            int(row["lost"]),
            str(row["source"]),
            from_ts(row["measured_at"]),
        )
    except (TypeError, ValueError, OverflowError, OSError):
        return None


async def keep(
    tx: Transaction, embedder: str, found: Calibration, *, source: str, now: datetime
) -> None:
    """Keep an embedder's floor in place of the one before."""
    await tx.execute(
        """INSERT OR REPLACE INTO embedder_floors
               (embedder, floor, pairs, lost, source, measured_at)
           VALUES (:embedder, :floor, :pairs, :lost, :source, :now)""",
        {
            "embedder": embedder,
            "floor": found.floor,
            "pairs": found.pairs,
            "lost": found.lost,
            "source": source,
            "now": to_ts(now),
        },
    )
