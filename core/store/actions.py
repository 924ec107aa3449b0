"""Buttons under answers: what each does, whose it is, until when, and whether it was used.

Owns `actions`. A row of buttons belongs to one message, `shown_key` (its outbox key). Only hashes
of the tokens are stored. Knows nothing of what an action does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from core.clock import from_ts, to_ts
from core.store import outbox
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import dump_json, load_object
from core.store.rekeying import rekey
from core.store.suspensions import Standing


@dataclass(frozen=True, slots=True)
class Action:
    """What one button does. `params` is any JSON object that belongs to `name`."""

    turn_id: str
    actor_id: str
    conversation: str
    shown_key: str
    name: str
    created_at: datetime
    expires_at: datetime
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PressedAction:
    """A button as it stands for whoever pressed it here. Only with `OPEN` may it be acted on, and
    only by whom `consume` then says yes to.

    `FOREIGN`: another person or another chat. `OVER`: used, replaced, or not of the message where
    it was shown. `EXPIRED`: out of time.
    """

    id: str
    standing: Standing
    action: Action


async def offer(tx: Transaction, token: str, action: Action) -> None:
    """Keep what a button does, in the transaction that also keeps the message that shows it.
    Raises `StoreError` when the token is there already."""
    await tx.execute(
        """INSERT INTO actions (token_hash, turn_id, actor_id, conversation, shown_key, name,
                                params_json, created_at, expires_at)
           VALUES (:hash, :turn_id, :actor_id, :conversation, :shown_key, :name, :params,
                   :created, :expires)""",
        {
            "hash": _hash(token),
            "turn_id": action.turn_id,
            "actor_id": action.actor_id,
            "conversation": action.conversation,
            "shown_key": action.shown_key,
            "name": action.name,
            "params": dump_json(action.params),
            "created": to_ts(action.created_at),
            "expires": to_ts(action.expires_at),
        },
    )


async def find(
    tx: Transaction,
    token: str,
    *,
    actor_id: str,
    conversation: str,
    message_id: str | None = None,
    now: datetime,
) -> PressedAction | None:
    """What the button with this token does when this person presses it here; None: nothing.

    `message_id` is the message whose button was pressed; it is compared once it is known where
    the button stands. Changes nothing.
    """
    row = await tx.fetch_one(
        "SELECT * FROM actions WHERE token_hash = :hash", {"hash": _hash(token)}
    )
    if row is None:
        return None
    action = _action(row)
    shown = await outbox.message_of(tx, action.shown_key)
    if action.actor_id != actor_id or action.conversation != conversation:
        standing = Standing.FOREIGN
    elif row["used_at"] is not None or (message_id and shown and shown != message_id):
        standing = Standing.OVER
    elif action.expires_at <= now:
        standing = Standing.EXPIRED
    else:
        standing = Standing.OPEN
    return PressedAction(str(row["token_hash"]), standing, action)


async def consume(
    tx: Transaction, pressed: PressedAction, now: datetime, *, whole_row: bool
) -> bool:
    """Use a button up; what it was to act on is forgotten. False: it was, or is out of time.
    Of any number of callers one gets it.

    `whole_row`: the buttons beside it are void from then on too.
    """
    taken = await tx.execute(
        """UPDATE actions SET used_at = :now, params_json = NULL
           WHERE token_hash = :id AND used_at IS NULL AND expires_at > :now""",
        {"id": pressed.id, "now": to_ts(now)},
    )
    if taken == 1 and whole_row:
        await void(tx, pressed.action.shown_key, now)
    return taken == 1


async def void(tx: Transaction, shown_key: str, now: datetime) -> None:
    """The buttons under a message do nothing any more: they are gone, or others take their
    place."""
    await tx.execute(
        """UPDATE actions SET used_at = :now, params_json = NULL
           WHERE shown_key = :key AND used_at IS NULL""",
        {"key": shown_key, "now": to_ts(now)},
    )


async def names_under(tx: Transaction, shown_key: str, tokens: Iterable[str]) -> dict[str, str]:
    """Of these tokens those that still do something under a message, and the name of what."""
    rows = await tx.fetch_all(
        "SELECT token_hash, name FROM actions WHERE shown_key = :key AND used_at IS NULL",
        {"key": shown_key},
    )
    names = {str(row["token_hash"]): str(row["name"]) for row in rows}
    return {token: names[_hash(token)] for token in tokens if _hash(token) in names}


async def void_named(
    tx: Transaction, shown_key: str, names: Collection[str], now: datetime
) -> None:
    """The buttons with these names under a message do nothing any more."""
    await tx.execute(
        """UPDATE actions SET used_at = :now, params_json = NULL
           WHERE shown_key = :key AND used_at IS NULL
             AND name IN (SELECT value FROM json_each(:names))""",
        {"key": shown_key, "now": to_ts(now), "names": dump_json(list(names))},
    )


async def void_all(tx: Transaction, actor_id: str, now: datetime) -> int:
    """No button of this person does anything any more; how many there were."""
    return await tx.execute(
        """UPDATE actions SET used_at = :now, params_json = NULL
           WHERE actor_id = :actor AND used_at IS NULL""",
        {"actor": actor_id, "now": to_ts(now)},
    )


async def forget(tx: Transaction, actor_id: str, now: datetime, *, but_under: str | None) -> None:
    """No button of this person does anything any more, and what they were to act on is forgotten;
    but for those under the message `but_under`."""
    await tx.execute(
        """UPDATE actions SET used_at = COALESCE(used_at, :now), params_json = NULL
           WHERE actor_id = :actor AND shown_key IS NOT :card
             AND (used_at IS NULL OR params_json IS NOT NULL)""",
        {"actor": actor_id, "now": to_ts(now), "card": but_under},
    )


async def move(tx: Transaction, old: str, new: str) -> int:
    """Let what belongs to a chat belong to its new key (`core.store.moves`)."""
    return await rekey(tx, "actions", "conversation", old, new)


async def purge(tx: Transaction, before: datetime) -> int:
    """Forget buttons that ran out before then; how many. Later they are unknown."""
    return await tx.execute(
        "DELETE FROM actions WHERE expires_at < :before", {"before": to_ts(before)}
    )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


@row_reader
def _action(row: Row) -> Action:
    return Action(
        turn_id=row["turn_id"],
        actor_id=row["actor_id"],
        conversation=row["conversation"],
        shown_key=row["shown_key"],
        name=row["name"],
        created_at=from_ts(row["created_at"]),
        expires_at=from_ts(row["expires_at"]),
        params=load_object(row["params_json"]),
    )
