"""Questions that turns wait for: asked once, claimed once, settled once.

Owns `suspensions` and `suspension_tokens`. A row goes open → claimed → done | indeterminate, or is
cancelled or expired; nothing goes back. The state of the turn is an opaque JSON object here and is
wiped, with the values, when the question is settled. A secret is known here by its handle alone
(`core.store.credentials`). Knows nothing of what a choice means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from core.clock import from_ts, to_ts
from core.dialogs import Field, FieldKind, Suspension, SuspensionKind, SuspensionState
from core.store import outbox
from core.store.credentials import is_handle
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import dump_json, load_json, load_object
from core.store.rekeying import rekey


class Standing(StrEnum):
    """How a button stands that somebody pressed."""

    OPEN = "open"
    FOREIGN = "foreign"
    OVER = "over"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Pressed:
    """What a button means. Only with `OPEN` may it be acted on.

    `FOREIGN`: another person or another chat. `OVER`: decided, being worked on, or not of the
    message where the question stands now. `EXPIRED`: out of time, whether that was said or not.
    """

    standing: Standing
    choice: str
    suspension: Suspension


@dataclass(frozen=True, slots=True)
class Claimed:
    """A question taken for resuming, and the state of its turn as it was kept."""

    suspension: Suspension
    state: Mapping[str, Any]


_LOOKED_BACK = 8
_DECIDABLE = (SuspensionKind.APPROVAL, SuspensionKind.CAP)

# What each state may be entered from; the claim itself is `claim`'s.
_FROM = {
    SuspensionState.DONE: (SuspensionState.CLAIMED,),
    SuspensionState.INDETERMINATE: (SuspensionState.CLAIMED,),
    SuspensionState.CANCELLED: (SuspensionState.OPEN, SuspensionState.CLAIMED),
    SuspensionState.EXPIRED: (SuspensionState.OPEN,),
}


async def open(
    tx: Transaction,
    suspension: Suspension,
    state: Mapping[str, Any],
    tokens: Mapping[str, str],
) -> None:
    """Keep a question and the state of its turn; `tokens` are what its buttons carry → choice.

    Put it in one transaction with the turn's state and the question in the outbox. Only hashes of
    the tokens are stored. Raises `ValueError` when the values hold a secret in clear,
    `StoreError` when the id or a token is there already.
    """
    _refuse_secrets(suspension.fields, suspension.values)
    await tx.execute(
        """INSERT INTO suspensions
               (id, kind, turn_id, actor_id, conversation, prompt_key, digest, fields_json,
                cursor, values_json, data_json, state_json, created_at, expires_at)
           VALUES (:id, :kind, :turn_id, :actor_id, :conversation, :prompt_key, :digest,
                   :fields, :cursor, :values, :data, :state, :created, :expires)""",
        {
            "id": suspension.id,
            "kind": suspension.kind.value,
            "turn_id": suspension.turn_id,
            "actor_id": suspension.actor_id,
            "conversation": suspension.conversation,
            "prompt_key": suspension.prompt_key,
            "digest": suspension.digest,
            "fields": dump_json([one.to_json() for one in suspension.fields]),
            "cursor": suspension.cursor,
            "values": dump_json(suspension.values),
            "data": dump_json(suspension.data),
            "state": dump_json(state),
            "created": to_ts(suspension.created_at),
            "expires": to_ts(suspension.expires_at),
        },
    )
    await _add_tokens(tx, suspension, tokens)


async def find(tx: Transaction, suspension_id: str) -> tuple[Suspension, SuspensionState] | None:
    row = await tx.fetch_one("SELECT * FROM suspensions WHERE id = :id", {"id": suspension_id})
    return None if row is None else (_suspension(row), SuspensionState(row["state"]))


async def find_by_token(
    tx: Transaction,
    token: str,
    *,
    actor_id: str,
    conversation: str,
    message_id: str | None = None,
    decides: bool = False,
    now: datetime,
) -> Pressed | None:
    """What the button with this token means when this person presses it here; None: nothing.

    `message_id` is the message whose button was pressed, compared when it is known where the
    question stands, and nowhere else. `decides`: they may say yes or no for others who asked here.
    Changes nothing: `claim` or `advance` in the same transaction decides.
    """
    row = await tx.fetch_one(
        """SELECT suspensions.*, suspension_tokens.choice, suspension_tokens.cursor AS token_cursor
           FROM suspension_tokens JOIN suspensions ON id = suspension_id
           WHERE token_hash = :hash""",
        {"hash": _hash(token)},
    )
    if row is None:
        return None
    suspension = await _placed(tx, _suspension(row))
    theirs = suspension.actor_id == actor_id or (decides and suspension.kind in _DECIDABLE)
    elsewhere = message_id is not None and suspension.message_id not in (None, message_id)
    if elsewhere and suspension.prompt_key is not None:
        # Said twice, it stands in two messages of which one is not known: both may be pressed.
        first = await outbox.find(tx, suspension.prompt_key)
        elsewhere = first is None or first.state != "unknown"
    if not theirs or suspension.conversation != conversation:
        standing = Standing.FOREIGN
    elif row["state"] == SuspensionState.EXPIRED:
        standing = Standing.EXPIRED
    elif (
        row["state"] != SuspensionState.OPEN
        or row["token_cursor"] != suspension.cursor
        or elsewhere
    ):
        standing = Standing.OVER
    else:
        standing = Standing.OPEN if suspension.expires_at > now else Standing.EXPIRED
    return Pressed(standing, row["choice"], suspension)


async def find_by_message(
    tx: Transaction, conversation: str, actor_id: str, message: str
) -> tuple[Suspension, SuspensionState] | None:
    """The question of this person that stands, or stood, in this message (its id or outbox key).

    Also one that is over: a reply to it must be taken neither for the answer to another nor, when
    a secret was asked, for a request. Looks at the last few questions only.
    """
    rows = await tx.fetch_all(
        """SELECT * FROM suspensions WHERE conversation = :conversation AND actor_id = :actor
           ORDER BY created_at DESC, rowid DESC LIMIT :most""",
        {"conversation": conversation, "actor": actor_id, "most": _LOOKED_BACK},
    )
    for row in rows:
        suspension = await _placed(tx, _suspension(row))
        if message in (suspension.prompt_key, suspension.message_id):
            return suspension, SuspensionState(row["state"])
    return None


async def open_of(
    tx: Transaction, conversation: str, actor_id: str, now: datetime
) -> list[Suspension]:
    """What this person may answer here now, newest first, each with its message if it is out."""
    rows = await tx.fetch_all(
        """SELECT * FROM suspensions
           WHERE state = 'open' AND conversation = :conversation AND actor_id = :actor
             AND expires_at > :now
           ORDER BY created_at DESC, rowid DESC""",
        {"conversation": conversation, "actor": actor_id, "now": to_ts(now)},
    )
    return [await _placed(tx, _suspension(row)) for row in rows]


async def move(tx: Transaction, old: str, new: str) -> int:
    """See `core.store.moves`."""
    return await rekey(tx, "suspensions", "conversation", old, new)


async def claim(tx: Transaction, suspension_id: str, now: datetime) -> Claimed | None:
    """Take an open question for resuming. None if unknown, out of time, or taken or settled.

    Safe to call twice: of any number of callers exactly one gets it, and must settle it.
    """
    row = await tx.fetch_one(
        """UPDATE suspensions SET state = 'claimed', claimed_at = :now
           WHERE id = :id AND state = 'open' AND expires_at > :now RETURNING *""",
        {"id": suspension_id, "now": to_ts(now)},
    )
    return None if row is None else Claimed(_suspension(row), load_object(row["state_json"]))


async def advance(
    tx: Transaction,
    suspension: Suspension,
    values: Mapping[str, Any],
    *,
    now: datetime,
    to: int | None = None,
    tokens: Mapping[str, str] | None = None,
    prompt_key: str | None = None,
    missed: int = 0,
) -> Suspension | None:
    """Keep the answer to the field that is asked and ask the next one (or the field `to`).

    The question stays open and its end stays as it is; buttons of a field that is left are
    void, and `tokens` are those of the new one. With a `prompt_key` it stands in a new message.
    `missed`: how many answers had not the shape of the field that is asked from now on.
    None: this field was answered already, or the question is out of time or over. Raises
    `ValueError` when the values hold a secret.
    """
    _refuse_secrets(suspension.fields, values)
    moved = replace(
        suspension,
        cursor=suspension.cursor + 1 if to is None else to,
        values=dict(values),
        prompt_key=prompt_key or suspension.prompt_key,
        message_id=None if prompt_key else suspension.message_id,
        missed=missed,
    )
    changed = await tx.execute(
        """UPDATE suspensions SET cursor = :cursor, values_json = :values,
               prompt_key = :prompt_key, missed = :missed
           WHERE id = :id AND state = 'open' AND cursor = :before AND expires_at > :now""",
        {
            "id": suspension.id,
            "before": suspension.cursor,
            "cursor": moved.cursor,
            "values": dump_json(moved.values),
            "prompt_key": moved.prompt_key,
            "missed": missed,
            "now": to_ts(now),
        },
    )
    if not changed:
        return None
    await _add_tokens(tx, moved, tokens or {})
    return moved


async def settle(
    tx: Transaction, suspension_id: str, state: SuspensionState | str, now: datetime
) -> bool:
    """End a question for good. False: it was settled already, or may not end so from where it is
    (only what is open expires; only what is claimed is done or indeterminate; both may be
    cancelled). Raises `ValueError` for a state that is no end."""
    state = SuspensionState(state)
    if state not in _FROM:
        raise ValueError(f"{state} is no end")
    changed = await tx.execute(
        """UPDATE suspensions SET state = :state, settled_at = :now, state_json = NULL,
               values_json = NULL
           WHERE id = :id AND state IN (SELECT value FROM json_each(:from))""",
        {
            "id": suspension_id,
            "state": state.value,
            "now": to_ts(now),
            "from": dump_json([one.value for one in _FROM[state]]),
        },
    )
    return changed == 1


async def due(tx: Transaction, now: datetime) -> list[Suspension]:
    """Open questions that are out of time and have not been told so, oldest first."""
    rows = await tx.fetch_all(
        """SELECT * FROM suspensions WHERE state = 'open' AND expires_at <= :now
           ORDER BY expires_at, rowid""",
        {"now": to_ts(now)},
    )
    return [_suspension(row) for row in rows]


async def open_apart(tx: Transaction) -> list[tuple[Suspension, str]]:
    """Open questions that stand elsewhere than what they are asked for, each with the conversation
    of its turn, oldest first; also those that are out of time."""
    rows = await tx.fetch_all(
        """SELECT suspensions.*, turns.conversation AS home
           FROM suspensions JOIN turns ON turns.id = turn_id
           WHERE suspensions.state = 'open' AND turns.conversation <> suspensions.conversation
           ORDER BY suspensions.rowid"""
    )
    return [(_suspension(row), row["home"]) for row in rows]


async def next_expiry(tx: Transaction) -> datetime | None:
    """When the next open question runs out (perhaps long ago); None when none is open."""
    row = await tx.fetch_one(
        "SELECT MIN(expires_at) AS soonest FROM suspensions WHERE state = 'open'"
    )
    return None if row is None or row["soonest"] is None else from_ts(row["soonest"])


async def claimed_unsettled(tx: Transaction) -> list[Claimed]:
    """Questions that were claimed and never settled, oldest first: what a crash left."""
    rows = await tx.fetch_all(
        "SELECT * FROM suspensions WHERE state = 'claimed' ORDER BY claimed_at, rowid"
    )
    return [Claimed(_suspension(row), load_object(row["state_json"])) for row in rows]


async def of_turn(tx: Transaction, turn_id: str) -> list[tuple[Suspension, SuspensionState]]:
    """The questions of a turn in the order they were asked."""
    rows = await tx.fetch_all(
        "SELECT * FROM suspensions WHERE turn_id = :turn_id ORDER BY created_at, rowid",
        {"turn_id": turn_id},
    )
    return [(_suspension(row), SuspensionState(row["state"])) for row in rows]


async def cancel_all(tx: Transaction, actor_id: str, now: datetime) -> int:
    """Drop every open question of this person, wherever it stands; how many there were."""
    return await tx.execute(
        """UPDATE suspensions SET state = 'cancelled', settled_at = :now, state_json = NULL,
               values_json = NULL
           WHERE actor_id = :actor AND state = 'open'""",
        {"actor": actor_id, "now": to_ts(now)},
    )


async def _add_tokens(tx: Transaction, suspension: Suspension, tokens: Mapping[str, str]) -> None:
    for token, choice in tokens.items():
        await tx.execute(
            """INSERT INTO suspension_tokens (token_hash, suspension_id, cursor, choice)
               VALUES (:hash, :id, :cursor, :choice)""",
            {
                "hash": _hash(token),
                "id": suspension.id,
                "cursor": suspension.cursor,
                "choice": choice,
            },
        )


async def _placed(tx: Transaction, suspension: Suspension) -> Suspension:
    """With the message that shows the question, as the outbox knows it."""
    if suspension.prompt_key is None:
        return suspension
    return replace(suspension, message_id=await outbox.message_of(tx, suspension.prompt_key))


def _refuse_secrets(fields: tuple[Field, ...], values: Mapping[str, Any]) -> None:
    kept = [
        f.var
        for f in fields
        if f.kind is FieldKind.SECRET
        and values.get(f.var) is not None
        and not is_handle(values[f.var])
    ]
    if kept:
        raise ValueError(f"a secret would be stored in clear: {', '.join(kept)}")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


@row_reader
def _suspension(row: Row) -> Suspension:
    return Suspension(
        id=row["id"],
        kind=SuspensionKind(row["kind"]),
        turn_id=row["turn_id"],
        actor_id=row["actor_id"],
        conversation=row["conversation"],
        created_at=from_ts(row["created_at"]),
        expires_at=from_ts(row["expires_at"]),
        fields=tuple(Field.from_json(one) for one in load_json(row["fields_json"]) or ()),
        cursor=row["cursor"],
        values=load_object(row["values_json"]),
        digest=row["digest"],
        prompt_key=row["prompt_key"],
        data=load_object(row["data_json"]),
        missed=row["missed"],
    )
