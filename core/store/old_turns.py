"""Turns that have ended, when their words are to be forgotten.

Owns `turns` together with `core.store.turns`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from core.clock import to_ts
from core.store.database import Transaction
from core.store.encoding import dump_json, load_object


async def forget(
    tx: Transaction,
    actor_id: str,
    before: datetime,
    strip: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> list[str]:
    """Take the words from an actor's ended turns that began by then; the ids of all of these.

    When they were, how they ended and what they answer to stays. `strip`: what stays of a line
    that is not known to be in the log. Done again it changes nothing.
    """
    about = {"actor": actor_id, "before": to_ts(before)}
    mine = "actor_id = :actor AND state = 'closed' AND started_at <= :before"
    rows = await tx.fetch_all(f"SELECT id, log_json FROM turns WHERE {mine}", about)  # noqa: S608
    await tx.execute(
        f"""UPDATE turns SET request = '', answer = '', reply_json = NULL, given_json = NULL
            WHERE {mine} AND (request <> '' OR answer <> '' OR reply_json IS NOT NULL
                              OR given_json IS NOT NULL)""",  # noqa: S608
        about,
    )
    for row in rows:
        if row["log_json"] is not None:
            line = dump_json(strip(load_object(row["log_json"])))
            await tx.execute(
                "UPDATE turns SET log_json = :line WHERE id = :id", {"id": row["id"], "line": line}
            )
    return [str(row["id"]) for row in rows]


async def open_before(tx: Transaction, actor_id: str, before: datetime) -> list[str]:
    """The ids of an actor's turns that began by then and have not ended."""
    rows = await tx.fetch_all(
        """SELECT id FROM turns
           WHERE actor_id = :actor AND state <> 'closed' AND started_at <= :before""",
        {"actor": actor_id, "before": to_ts(before)},
    )
    return [str(row["id"]) for row in rows]
