"""How people found the answers they got: one vote each about a turn, the last one counting.

Owns `votes`. A vote that was taken back stays as an empty one, so that a late word of the earlier
vote does not bring it back. What comes of votes is for others to say.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from core.clock import to_ts
from core.store.database import Transaction


class Vote(StrEnum):
    UP = "up"
    DOWN = "down"


async def give(
    tx: Transaction, turn_id: str, actor_id: str, vote: Vote | None, *, at: datetime
) -> bool:
    """Keep how an actor found a turn at that moment, in place of what they found before; None
    takes it back. False: they voted later than that, which then stays. Given again it is the same.
    """
    changed = await tx.execute(
        """INSERT INTO votes (turn_id, actor_id, vote, at) VALUES (:turn, :actor, :vote, :at)
           ON CONFLICT (turn_id, actor_id) DO UPDATE SET vote = excluded.vote, at = excluded.at
           WHERE excluded.at >= votes.at""",
        {"turn": turn_id, "actor": actor_id, "vote": vote, "at": to_ts(at)},
    )
    return changed == 1


async def find(tx: Transaction, turn_id: str, actor_id: str) -> Vote | None:
    """How an actor found a turn; None: they did not say, or took it back."""
    row = await tx.fetch_one(
        "SELECT vote FROM votes WHERE turn_id = :turn AND actor_id = :actor",
        {"turn": turn_id, "actor": actor_id},
    )
    return None if row is None or row["vote"] is None else Vote(row["vote"])


async def forget(tx: Transaction, actor_id: str) -> int:
    """Nothing is known of what this person found; how many votes there were."""
    return await tx.execute("DELETE FROM votes WHERE actor_id = :actor", {"actor": actor_id})
