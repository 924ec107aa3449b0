"""Questions that are over: their words go when they are to be forgotten, they go with their time.

Owns `suspensions` and `suspension_tokens` together with `core.store.suspensions`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from core.clock import to_ts
from core.store.database import Transaction
from core.store.encoding import dump_json, load_json


async def purge(tx: Transaction, older_than: datetime) -> int:
    """Delete questions that were settled before then, with their tokens; how many."""
    return await tx.execute(
        "DELETE FROM suspensions WHERE settled_at < :before", {"before": to_ts(older_than)}
    )


async def forget(
    tx: Transaction, actor_id: str, before: datetime, now: datetime, *, ended: Collection[str]
) -> None:
    """Take the words from what this person was asked and answered by then, where it is settled or
    its turn is among the `ended`. What kind of answer was asked for stays, so that a late one is
    known for what it is."""
    about = {"actor": actor_id, "before": to_ts(before), "ended": dump_json(list(ended))}
    over = """actor_id = :actor AND created_at <= :before AND (
        state NOT IN ('open', 'claimed') OR turn_id IN (SELECT value FROM json_each(:ended)))"""
    rows = await tx.fetch_all(
        f"SELECT id, fields_json FROM suspensions WHERE {over}",  # noqa: S608
        about,
    )
    for row in rows:
        found = load_json(row["fields_json"]) or ()
        fields = [{"var": "", "prompt": "", "kind": field.get("kind", "text")} for field in found]
        await tx.execute(
            """UPDATE suspensions SET fields_json = :fields, values_json = NULL, data_json = NULL,
                   state_json = NULL, digest = NULL, settled_at = COALESCE(settled_at, :now),
                   state = CASE WHEN state IN ('open', 'claimed') THEN 'cancelled' ELSE state END
               WHERE id = :id""",
            {"id": row["id"], "fields": dump_json(fields), "now": to_ts(now)},
        )
        await tx.execute(
            "DELETE FROM suspension_tokens WHERE suspension_id = :id", {"id": row["id"]}
        )
