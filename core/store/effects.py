"""The journal of effects: what a changing step found, was to do, and did.

Owns `effects`. A row is written before the step runs, so that after a crash it is known what may
have happened.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from core.clock import from_ts, to_ts
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import dump_json, load_json

# The tool under whose name taking back a turn is journalled.
UNDO_LAST_TURN = "undo_last_turn"


class EffectState(StrEnum):
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StoredEffect:
    """One changing step. `before` and `expected` describe the world as the preview saw it,
    `summary` is what people and undo are told; each any JSON value, or None."""

    key: str
    turn_id: str
    step: int
    tool: str
    state: EffectState
    before: Any
    expected: Any
    summary: Any
    started_at: datetime
    ended_at: datetime | None


def effect_key(turn_id: str, step: int) -> str:
    return f"{turn_id}:{step}"


async def start(
    tx: Transaction,
    *,
    key: str,
    turn_id: str,
    step: int,
    tool: str,
    before: Any,
    expected: Any,
    now: datetime,
    summary: Any = None,
) -> None:
    """Journal a step that is about to change something, under `effect_key(turn_id, step)`.

    A step that is run again after a crash takes the place of its former row.
    """
    await tx.execute(
        """INSERT OR REPLACE INTO effects
               (key, turn_id, step, tool, state, before_json, expected_json, summary_json,
                started_at, undoes)
           VALUES (:key, :turn_id, :step, :tool, 'started', :before, :expected, :summary, :now,
                   :undoes)""",
        {
            "key": key,
            "turn_id": turn_id,
            "step": step,
            "tool": tool,
            "before": dump_json(before),
            "expected": dump_json(expected),
            "summary": dump_json(summary),
            "now": to_ts(now),
            "undoes": _undoes(tool, summary),
        },
    )


async def finish(
    tx: Transaction,
    key: str,
    state: EffectState | str,
    now: datetime,
    *,
    summary: Any = None,
) -> bool:
    """Settle a started effect, with a better summary if there is one. False: it was settled."""
    changed = await tx.execute(
        """UPDATE effects SET state = :state, ended_at = :now,
               summary_json = COALESCE(:summary, summary_json)
           WHERE key = :key AND state = 'started'""",
        {
            "key": key,
            "state": EffectState(state).value,
            "now": to_ts(now),
            "summary": None if summary is None else dump_json(summary),
        },
    )
    return changed == 1


async def note_made(tx: Transaction, key: str, made: Sequence[Mapping[str, Any]]) -> None:
    """Keep what a started step made, each with its `id`, if its tool is taken back by ids."""
    await tx.execute(
        """UPDATE effects SET summary_json = json_set(summary_json, '$.made', json(:made))
           WHERE key = :key AND state = 'started'
             AND json_extract(summary_json, '$.undo_tool') IS NOT NULL""",
        {"key": key, "made": dump_json([dict(one) for one in made])},
    )


async def resolve(tx: Transaction, key: str, state: EffectState | str, now: datetime) -> bool:
    """Write down what became of an unknown effect after all: `done` or `failed`. False: it was not
    unknown. Raises `ValueError` for any other state."""
    state = EffectState(state)
    if state not in {EffectState.DONE, EffectState.FAILED}:
        raise ValueError(f"{state} resolves nothing")
    changed = await tx.execute(
        """UPDATE effects SET state = :state, ended_at = :now
           WHERE key = :key AND state = 'unknown'""",
        {"key": key, "state": state.value, "now": to_ts(now)},
    )
    return changed == 1


async def of_turn(tx: Transaction, turn_id: str) -> list[StoredEffect]:
    """The effects of a turn in the order of its steps."""
    rows = await tx.fetch_all(
        "SELECT * FROM effects WHERE turn_id = :turn_id ORDER BY step", {"turn_id": turn_id}
    )
    return [_stored(row) for row in rows]


async def open_effects(tx: Transaction) -> list[StoredEffect]:
    """Effects that were started and never settled, oldest first: what a crash left."""
    rows = await tx.fetch_all(
        "SELECT * FROM effects WHERE state = 'started' ORDER BY started_at, rowid"
    )
    return [_stored(row) for row in rows]


async def last_to_undo(tx: Transaction, actor_id: str) -> list[StoredEffect]:
    """The effects of the last turn of an actor that changed something, or may have; a turn that
    runs and one that only took back another do not count. Empty: there is none."""
    rows = await tx.fetch_all(
        """SELECT * FROM effects WHERE turn_id = (
               SELECT turns.id FROM turns WHERE turns.actor_id = :actor_id
                   AND turns.state != 'running'
                   AND EXISTS (SELECT 1 FROM effects AS mine WHERE mine.turn_id = turns.id
                               AND mine.state IN ('done', 'unknown') AND mine.tool != :undo
                               AND mine.summary_json IS NOT NULL)
               ORDER BY turns.started_at DESC, turns.rowid DESC LIMIT 1)
           AND tool != :undo ORDER BY step""",
        {"actor_id": actor_id, "undo": UNDO_LAST_TURN},
    )
    return [_stored(row) for row in rows]


async def undone_at(tx: Transaction, turn_id: str) -> datetime | None:
    """When a turn was taken back, or began to be; None: it was not, or that was cut short."""
    row = await tx.fetch_one(
        """SELECT MAX(COALESCE(ended_at, started_at)) AS at FROM effects
           WHERE undoes = :id AND state IN ('started', 'done')
             AND json_extract(summary_json, '$.partial') IS NULL""",
        {"id": turn_id},
    )
    return None if row is None or row["at"] is None else from_ts(row["at"])


async def undo_cut_short(tx: Transaction, turn_id: str) -> bool:
    """Whether taking back a turn was begun once and not brought to its end."""
    row = await tx.fetch_one(
        """SELECT 1 FROM effects
           WHERE undoes = :id
             AND (state = 'unknown' OR json_extract(summary_json, '$.partial') IS NOT NULL)""",
        {"id": turn_id},
    )
    return row is not None


async def forget(tx: Transaction, turn_ids: Collection[str]) -> None:
    """Take from the settled effects of these turns what they were about. What was done, and when,
    stays; it can no longer be taken back. What an undo undid stays too: it is an id."""
    await tx.execute(
        """UPDATE effects SET before_json = NULL, expected_json = NULL,
               summary_json = CASE WHEN tool = :undo AND json_valid(summary_json) THEN
                   json_object('undoes', json_extract(summary_json, '$.undoes')) END
           WHERE turn_id IN (SELECT value FROM json_each(:turns)) AND state <> 'started'
             AND (before_json IS NOT NULL OR expected_json IS NOT NULL
                  OR summary_json IS NOT NULL)""",
        {"undo": UNDO_LAST_TURN, "turns": dump_json(list(turn_ids))},
    )


async def page(
    tx: Transaction, *, limit: int, offset: int = 0, state: EffectState | None = None
) -> list[StoredEffect]:
    """The effects of everybody, newest first; those of one state, or all. Takings back are among
    them."""
    rows = await tx.fetch_all(
        """SELECT * FROM effects INDEXED BY effects_listed
           WHERE (:state IS NULL OR state = :state)
           ORDER BY started_at DESC, state DESC, rowid DESC LIMIT :limit OFFSET :offset""",
        {"state": state, "limit": limit, "offset": offset},
    )
    return [_stored(row) for row in rows]


async def takings_back(
    tx: Transaction, turn_ids: Collection[str]
) -> dict[str, list[StoredEffect]]:
    """What was done to take back each of these turns, in order; turns that nobody took back are
    left out."""
    rows = await tx.fetch_all(
        """SELECT * FROM effects WHERE undoes IN (SELECT value FROM json_each(:ids))
           ORDER BY started_at, rowid""",
        {"ids": dump_json(list(turn_ids))},
    )
    found: dict[str, list[StoredEffect]] = {}
    for row in rows:
        found.setdefault(str(row["undoes"]), []).append(_stored(row))
    return found


def _undoes(tool: str, summary: Any) -> str | None:
    if tool != UNDO_LAST_TURN or not isinstance(summary, Mapping):
        return None
    return summary.get("undoes")


@row_reader
def _stored(row: Row) -> StoredEffect:
    return StoredEffect(
        key=row["key"],
        turn_id=row["turn_id"],
        step=row["step"],
        tool=row["tool"],
        state=EffectState(row["state"]),
        before=load_json(row["before_json"]),
        expected=load_json(row["expected_json"]),
        summary=load_json(row["summary_json"]),
        started_at=from_ts(row["started_at"]),
        ended_at=None if row["ended_at"] is None else from_ts(row["ended_at"]),
    )
