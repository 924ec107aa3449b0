"""Turns a page at a time, for whoever looks at all of them, and how long they took.

Reads `turns` and writes nothing; how a turn comes to its row is `core.store.turns`. Lists are
found in an index alone, so that the hundred-thousandth turn costs no more than the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.clock import from_ts, to_ts
from core.messages import FinalKind
from core.store.database import Row, Transaction, row_reader

# As the index has it, so that nothing is sorted.
_ORDER = "started_at DESC, actor_id DESC, final_kind DESC, source DESC"

OPEN = "open"
"""The kind of turns that have not ended."""


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn as lists tell of it. `source` is how its plan was found (`match_source` of its first
    segment), None for turns from before it was kept; `busy_s` leaves out the time in which it
    waited for a person."""

    id: str
    actor_id: str
    conversation: str
    request: str
    state: str
    kind: FinalKind | None
    source: str | None
    started_at: datetime
    ended_at: datetime | None
    tokens: int
    busy_s: float
    segments: int


async def page(
    tx: Transaction,
    *,
    limit: int,
    offset: int = 0,
    since: datetime | None = None,
    until: datetime | None = None,
    actor_id: str | None = None,
    kind: FinalKind | str | None = None,
    source: str | None = None,
) -> list[TurnRow]:
    """Turns that began from `since` on and before `until`, newest first; of one actor, kind (of
    its end, or `OPEN`) and source, or of all."""
    rows = await tx.fetch_all(
        f"""SELECT turns.* FROM (
               SELECT rowid AS row FROM turns INDEXED BY turns_listed
               WHERE started_at >= :since AND started_at < :until
                 AND (:actor IS NULL OR actor_id = :actor)
                 AND (:kind IS NULL OR COALESCE(final_kind, 'open') = :kind)
                 AND (:source IS NULL OR source = :source)
               ORDER BY {_ORDER}, rowid DESC LIMIT :limit OFFSET :offset
           ) JOIN turns ON turns.rowid = row ORDER BY {_ORDER}, turns.rowid DESC""",  # noqa: S608
        {
            "since": 0.0 if since is None else to_ts(since),
            "until": 1e12 if until is None else to_ts(until),
            "actor": actor_id,
            "kind": kind,
            "source": source,
            "limit": limit,
            "offset": offset,
        },
    )
    return [_row(row) for row in rows]


async def rows_of(tx: Transaction, turn_ids: list[str]) -> dict[str, TurnRow]:
    """Of these turns those that there are, by their ids."""
    found = {}
    for turn_id in turn_ids:
        row = await tx.fetch_one("SELECT * FROM turns WHERE id = :id", {"id": turn_id})
        if row is not None:
            found[turn_id] = _row(row)
    return found


async def durations(
    tx: Transaction, source: str, *, since: datetime, limit: int = 500
) -> list[float]:
    """How long the last turns of a source took, in seconds of work, those that were answered
    alone, newest first."""
    rows = await tx.fetch_all(
        """SELECT busy_ms FROM turns INDEXED BY turns_busy
           WHERE source = :source AND final_kind = 'answer' AND started_at >= :since
           ORDER BY started_at DESC LIMIT :limit""",
        {"source": source, "since": to_ts(since), "limit": limit},
    )
    return [float(row["busy_ms"]) / 1000 for row in rows]


@row_reader
def _row(row: Row) -> TurnRow:
    return TurnRow(
        id=row["id"],
        actor_id=row["actor_id"],
        conversation=row["conversation"],
        request=row["request"],
        state=row["state"],
        kind=FinalKind(row["final_kind"]) if row["final_kind"] else None,
        source=row["source"],
        started_at=from_ts(row["started_at"]),
        ended_at=None if row["ended_at"] is None else from_ts(row["ended_at"]),
        tokens=row["tokens"],
        busy_s=float(row["busy_ms"]) / 1000,
        segments=row["segment"],
    )
