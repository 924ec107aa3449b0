"""Questions of everybody, for whoever looks at all of them: which stand open, and what became of
those of the last days.

Reads `suspensions` and writes nothing; how a question comes and goes is `core.store.suspensions`.
What was answered so far is never read here, only how much of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.clock import from_ts
from core.dialogs import SuspensionKind, SuspensionState
from core.store.database import Row, Transaction, row_reader

_COLUMNS = (
    "id, kind, state, turn_id, actor_id, conversation, cursor, created_at, expires_at, settled_at,"
    " json_array_length(fields_json) AS fields"
)


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question as lists tell of it: of `fields` things asked, `answered` are."""

    id: str
    kind: SuspensionKind
    state: SuspensionState
    turn_id: str
    actor_id: str
    conversation: str
    answered: int
    fields: int
    created_at: datetime
    expires_at: datetime
    settled_at: datetime | None


async def unsettled(tx: Transaction, *, limit: int) -> list[QuestionRow]:
    """Questions that are open or being worked on, the next to run out first; also those that ran
    out and have not been told so."""
    rows = await tx.fetch_all(
        f"""SELECT {_COLUMNS} FROM suspensions WHERE state = 'open'
            UNION ALL SELECT {_COLUMNS} FROM suspensions WHERE state = 'claimed'
            ORDER BY expires_at LIMIT :limit""",  # noqa: S608
        {"limit": limit},
    )
    return [_row(row) for row in rows]


async def settled(tx: Transaction, *, limit: int, offset: int = 0) -> list[QuestionRow]:
    """Questions that are over and not yet forgotten, the last one first."""
    rows = await tx.fetch_all(
        f"""SELECT {_COLUMNS} FROM suspensions WHERE settled_at IS NOT NULL
            ORDER BY settled_at DESC, rowid DESC LIMIT :limit OFFSET :offset""",  # noqa: S608
        {"limit": limit, "offset": offset},
    )
    return [_row(row) for row in rows]


@row_reader
def _row(row: Row) -> QuestionRow:
    return QuestionRow(
        id=row["id"],
        kind=SuspensionKind(row["kind"]),
        state=SuspensionState(row["state"]),
        turn_id=row["turn_id"],
        actor_id=row["actor_id"],
        conversation=row["conversation"],
        answered=row["cursor"],
        fields=row["fields"],
        created_at=from_ts(row["created_at"]),
        expires_at=from_ts(row["expires_at"]),
        settled_at=None if row["settled_at"] is None else from_ts(row["settled_at"]),
    )
