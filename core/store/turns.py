"""Every turn there was, open and closed: what was asked, how it ended, its line for the log.

Owns `turns`. The state of a running turn is an opaque JSON object here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from core.clock import from_ts, to_ts
from core.messages import FinalKind
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import dump_json, load_object
from core.store.rekeying import rekey

MIN_PREFIX = 4


class Exchange(NamedTuple):
    """What was asked and answered in an earlier turn. `external`: words from outside may stand in
    the answer."""

    request: str
    answer: str
    ended_at: datetime
    external: bool = False
    files: tuple[str, ...] = ()
    quoted: str | None = None


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn in the store. `state_data` is what a running turn needs to go on, `answer` the reply
    as plain text, `reply` the whole of it in its JSON form, `log_line` the line for the turn log
    of the day `log_day`, empty once it is logged. `message_ref` names the person's message in its
    channel."""

    id: str
    inbound_id: str
    actor_id: str
    conversation: str
    lang: str
    request: str
    answer: str | None
    reply: Mapping[str, Any]
    state: str
    state_data: Mapping[str, Any]
    final_kind: FinalKind | None
    started_at: datetime
    ended_at: datetime | None
    segment: int
    logged: bool
    log_line: Mapping[str, Any]
    log_day: date | None
    message_ref: str | None = None


async def move(tx: Transaction, old: str, new: str) -> int:
    """Let what belongs to a chat belong to its new key (`core.store.moves`)."""
    return await rekey(tx, "turns", "conversation", old, new)


async def open_turn(
    tx: Transaction,
    *,
    turn_id: str,
    inbound_id: str,
    actor_id: str,
    conversation: str,
    lang: str,
    request: str,
    now: datetime,
    state: Mapping[str, Any] | None = None,
    message_ref: str | None = None,
    given: Mapping[str, Any] | None = None,
) -> StoredTurn | None:
    """Begin the turn of an inbound; `given` is what came with it, for `recent`.

    None: it is begun; else the turn that this inbound already had, untouched, so an inbound
    delivered twice runs once."""
    added = await tx.execute(
        """INSERT OR IGNORE INTO turns
               (id, inbound_id, actor_id, conversation, lang, request, state_json, given_json,
                started_at, message_ref)
           VALUES (:id, :inbound_id, :actor_id, :conversation, :lang, :request, :state, :given,
                   :now, :ref)""",
        {
            "id": turn_id,
            "inbound_id": inbound_id,
            "actor_id": actor_id,
            "conversation": conversation,
            "lang": lang,
            "request": request,
            "state": None if state is None else dump_json(state),
            "given": dump_json(given) if given else None,
            "now": to_ts(now),
            "ref": message_ref,
        },
    )
    return None if added else await find_by_inbound(tx, inbound_id)


async def count_open(tx: Transaction) -> tuple[int, int]:
    """(running now, waiting for an answer)."""
    row = await tx.fetch_one(
        """SELECT (SELECT COUNT(*) FROM turns WHERE state = 'running') AS running,
                  (SELECT COUNT(*) FROM turns WHERE state = 'suspended') AS waiting"""
    )
    assert row is not None  # noqa: S101 - a select of values has one row
    return int(row["running"]), int(row["waiting"])


async def save_state(tx: Transaction, turn_id: str, state: Mapping[str, Any]) -> None:
    """Keep the state of a running turn; a closed one is left alone."""
    await tx.execute(
        "UPDATE turns SET state_json = :state WHERE id = :id AND state != 'closed'",
        {"id": turn_id, "state": dump_json(state)},
    )


async def close_turn(
    tx: Transaction,
    turn_id: str,
    final_kind: FinalKind,
    log_line: Mapping[str, Any],
    now: datetime,
    *,
    answer: str = "",
    reply: Mapping[str, Any] | None = None,
    log_day: date | None = None,
    external: bool = False,
) -> bool:
    """End a turn. False when it had ended before: the first end stays.

    `log_day` is the actor's local date, whose log file gets the line; the UTC date if None.
    `external`: words from outside may stand in the answer.
    """
    changed = await tx.execute(
        """UPDATE turns SET state = 'closed', final_kind = :final_kind, answer = :answer,
               reply_json = :reply, log_json = :log, log_day = :day, logged = 0,
               ended_at = :now, state_json = NULL, external = :external,
               source = COALESCE(source, :source), tokens = tokens + :tokens,
               busy_ms = busy_ms + :busy
           WHERE id = :id AND state != 'closed'""",
        {
            "external": external,
            "id": turn_id,
            "final_kind": final_kind.value,
            "answer": answer,
            "reply": None if reply is None else dump_json(reply),
            "log": dump_json(log_line),
            "day": (log_day or now.astimezone(UTC).date()).isoformat(),
            "now": to_ts(now),
            **_spent(log_line),
        },
    )
    return changed == 1


async def suspend(
    tx: Transaction,
    turn_id: str,
    state: Mapping[str, Any],
    log_line: Mapping[str, Any],
    *,
    reply: Mapping[str, Any],
    log_day: date,
) -> None:
    """Let an open turn wait: its state, the question as it is shown, and this segment's line."""
    await tx.execute(
        """UPDATE turns SET state = 'suspended', state_json = :state, reply_json = :reply,
               log_json = :log, log_day = :day, logged = 0,
               source = COALESCE(source, :source), tokens = tokens + :tokens,
               busy_ms = busy_ms + :busy
           WHERE id = :id AND state != 'closed'""",
        {
            "id": turn_id,
            "state": dump_json(state),
            "reply": dump_json(reply),
            "log": dump_json(log_line),
            "day": log_day.isoformat(),
            **_spent(log_line),
        },
    )


async def show_question(tx: Transaction, turn_id: str, reply: Mapping[str, Any]) -> None:
    """What a turn that waits asks now."""
    await tx.execute(
        "UPDATE turns SET reply_json = :reply WHERE id = :id AND state = 'suspended'",
        {"id": turn_id, "reply": dump_json(reply)},
    )


async def go_on(tx: Transaction, turn_id: str) -> bool:
    """Take up a turn that waits, as its next segment. False: it does not wait."""
    changed = await tx.execute(
        """UPDATE turns SET state = 'running', segment = segment + 1
           WHERE id = :id AND state = 'suspended'""",
        {"id": turn_id},
    )
    return changed == 1


async def find_by_inbound(tx: Transaction, inbound_id: str) -> StoredTurn | None:
    row = await tx.fetch_one(
        "SELECT * FROM turns WHERE inbound_id = :inbound_id", {"inbound_id": inbound_id}
    )
    return None if row is None else _stored(row)


async def find_by_message(
    tx: Transaction, conversation: str, actor_id: str, message_ref: str
) -> StoredTurn | None:
    """The newest turn that a message of this person there began."""
    row = await tx.fetch_one(
        """SELECT * FROM turns
           WHERE conversation = :conversation AND actor_id = :actor AND message_ref = :ref
           ORDER BY started_at DESC, rowid DESC LIMIT 1""",
        {"conversation": conversation, "actor": actor_id, "ref": message_ref},
    )
    return None if row is None else _stored(row)


async def running(tx: Transaction) -> list[StoredTurn]:
    """Turns that are open, oldest first; at the start of the engine those a crash cut short."""
    rows = await tx.fetch_all("SELECT * FROM turns WHERE state = 'running' ORDER BY started_at")
    return [_stored(row) for row in rows]


async def open_of_actor(tx: Transaction, actor_id: str) -> list[str]:
    """The ids of an actor's turns that run or wait."""
    rows = await tx.fetch_all(
        """SELECT id FROM turns WHERE actor_id = :actor AND state = 'running'
           UNION SELECT id FROM turns WHERE actor_id = :actor AND state = 'suspended'""",
        {"actor": actor_id},
    )
    return [str(row["id"]) for row in rows]


async def waiting_for(tx: Transaction) -> list[str]:
    """The ids of the actors who have turns that wait."""
    rows = await tx.fetch_all("SELECT DISTINCT actor_id FROM turns WHERE state = 'suspended'")
    return [str(row["actor_id"]) for row in rows]


async def waiting_of(tx: Transaction, actor_id: str) -> list[StoredTurn]:
    """An actor's turns that wait, oldest first."""
    rows = await tx.fetch_all(
        """SELECT * FROM turns WHERE actor_id = :actor AND state = 'suspended'
           ORDER BY started_at""",
        {"actor": actor_id},
    )
    return [_stored(row) for row in rows]


async def begun_at(
    tx: Transaction, actor_id: str, since: datetime, *, back: int
) -> datetime | None:
    """When an actor began the turn that is `back` turns ago, the newest being 1; None: they have
    begun fewer since then."""
    row = await tx.fetch_one(
        """SELECT started_at FROM turns WHERE actor_id = :actor AND started_at > :since
           ORDER BY started_at DESC LIMIT 1 OFFSET :skip""",
        {"actor": actor_id, "since": to_ts(since), "skip": back - 1},
    )
    return None if row is None else from_ts(row["started_at"])


async def unlogged(tx: Transaction) -> list[StoredTurn]:
    """Turns whose line is not yet known to be in the log, oldest first."""
    rows = await tx.fetch_all(
        """SELECT * FROM turns WHERE logged = 0 AND log_json IS NOT NULL
           ORDER BY ended_at, rowid"""
    )
    return [_stored(row) for row in rows]


async def mark_logged(tx: Transaction, turn_id: str) -> None:
    """The line is in the log file: the copy kept for it is dropped."""
    await tx.execute(
        "UPDATE turns SET logged = 1, log_json = NULL WHERE id = :id AND logged = 0",
        {"id": turn_id},
    )


async def recent(
    tx: Transaction,
    conversation: str,
    actor_id: str,
    limit: int,
    *,
    before: datetime | None = None,
) -> list[Exchange]:
    """The last exchanges of an actor in a conversation, oldest of them first; those that had
    ended `before` a moment, if one is named."""
    rows = await tx.fetch_all(
        """SELECT request, answer, ended_at, external, given_json FROM turns
           WHERE conversation = :conversation AND actor_id = :actor_id AND state = 'closed'
             AND answer != '' AND (:before IS NULL OR ended_at <= :before)
           ORDER BY ended_at DESC, rowid DESC LIMIT :limit""",
        {
            "conversation": conversation,
            "actor_id": actor_id,
            "limit": limit,
            "before": None if before is None else to_ts(before),
        },
    )
    return [_exchange(row) for row in reversed(rows)]


async def list_turns(
    tx: Transaction, limit: int = 20, actor_id: str | None = None
) -> list[StoredTurn]:
    """The newest turns, newest first; of one actor, or of all."""
    rows = await tx.fetch_all(
        """SELECT * FROM turns WHERE :actor_id IS NULL OR actor_id = :actor_id
           ORDER BY started_at DESC, rowid DESC LIMIT :limit""",
        {"actor_id": actor_id, "limit": limit},
    )
    return [_stored(row) for row in rows]


async def get(tx: Transaction, id_or_prefix: str) -> StoredTurn | None:
    """The turn with this id, or with the only id that begins so (4 characters at least)."""
    if len(id_or_prefix) < MIN_PREFIX:
        return None
    rows = await tx.fetch_all(
        """SELECT * FROM turns WHERE id >= :prefix AND id < :prefix || '~'
           ORDER BY id LIMIT 2""",
        {"prefix": id_or_prefix},
    )
    exact = [row for row in rows if row["id"] == id_or_prefix]
    found = exact or rows
    return _stored(found[0]) if len(found) == 1 else None


def _spent(line: Mapping[str, Any]) -> dict[str, Any]:
    """What a segment adds to its turn, from its line: where the plan was found, tokens, and the
    milliseconds of work."""
    seconds = (line.get("ts_end") or 0) - (line.get("ts_start") or 0)
    return {
        "source": line.get("match_source"),
        "tokens": (line.get("tokens_in") or 0) + (line.get("tokens_out") or 0),
        "busy": max(0.0, round(seconds * 1000, 3)),
    }


@row_reader
def _exchange(row: Row) -> Exchange:
    ended = from_ts(row["ended_at"])
    given = load_object(row["given_json"])
    return Exchange(
        row["request"],
        row["answer"],
        ended,
        bool(row["external"]),
        tuple(str(path) for path in given.get("files", ())),
        given.get("quoted"),
    )


@row_reader
def _stored(row: Row) -> StoredTurn:
    return StoredTurn(
        id=row["id"],
        inbound_id=row["inbound_id"],
        actor_id=row["actor_id"],
        conversation=row["conversation"],
        lang=row["lang"],
        request=row["request"],
        answer=row["answer"],
        reply=load_object(row["reply_json"]),
        state=row["state"],
        state_data=load_object(row["state_json"]),
        final_kind=FinalKind(row["final_kind"]) if row["final_kind"] else None,
        started_at=from_ts(row["started_at"]),
        ended_at=None if row["ended_at"] is None else from_ts(row["ended_at"]),
        segment=row["segment"],
        logged=bool(row["logged"]),
        log_line=load_object(row["log_json"]),
        log_day=date.fromisoformat(row["log_day"]) if row["log_day"] else None,
        message_ref=row["message_ref"],
    )
