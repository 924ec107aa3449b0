"""What must reach a person: written with the decision to say it, sent by one worker.

Owns `outbox`. A row goes pending → sending → sent; a send whose end is not known becomes
`unknown` and is said again, marked. Knows nothing of what a body means but its `repeated`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.clock import from_ts, to_ts
from core.messages import ChatAddress
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import dump_json, load_object
from core.store.rekeying import is_chat, rekey


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """A message to send. `attempts` counts the claims, this one included."""

    key: str
    address: ChatAddress
    body: Mapping[str, Any]
    state: str
    attempts: int
    message_id: str | None
    created_at: datetime
    error: str | None
    urgent: bool = False


# The states are named twice so that SQLite sees that the partial indexes hold all it needs.
_FIRST_OF_ITS_CHAT = """
    mine.channel = :channel AND mine.state IN ('pending', 'sending') AND mine.state = 'pending'
    AND NOT EXISTS (
        SELECT 1 FROM outbox AS earlier
        WHERE earlier.channel = :channel AND earlier.chat_key = mine.chat_key
          AND earlier.place < mine.place AND earlier.state IN ('pending', 'sending')
          AND earlier.urgent = 0)
    AND NOT EXISTS (
        SELECT 1 FROM json_each(:closed) AS shut
        WHERE substr(mine.chat_key, 1, length(shut.value)) = shut.value)"""

_CLAIM = f"""
    UPDATE outbox SET state = 'sending', attempts = attempts + 1, updated_at = :now
    WHERE key = (
        SELECT mine.key FROM outbox AS mine
        WHERE {_FIRST_OF_ITS_CHAT}
          AND (mine.not_before IS NULL OR mine.not_before <= :now)
          AND mine.chat_key NOT IN (SELECT value FROM json_each(:skip))
        ORDER BY mine.place LIMIT 1)
    RETURNING *"""  # noqa: S608

_CLAIM_URGENT = """
    UPDATE outbox SET state = 'sending', attempts = attempts + 1, updated_at = :now
    WHERE key = (
        SELECT mine.key FROM outbox AS mine
        WHERE mine.channel = :channel AND mine.urgent = 1 AND mine.state = 'pending'
          AND (mine.not_before IS NULL OR mine.not_before <= :now)
          AND mine.chat_key NOT IN (SELECT value FROM json_each(:skip))
          AND NOT EXISTS (
              SELECT 1 FROM json_each(:closed) AS shut
              WHERE substr(mine.chat_key, 1, length(shut.value)) = shut.value)
        ORDER BY mine.place LIMIT 1)
    RETURNING *"""


async def enqueue(
    tx: Transaction,
    key: str,
    address: ChatAddress,
    body: Mapping[str, Any],
    now: datetime,
    *,
    urgent: bool = False,
) -> bool:
    """Store a message to send; False when the key is there already, which then stays as it is.

    `urgent`: it overtakes what waits, in its own chat too.
    """
    added = await tx.execute(
        """INSERT OR IGNORE INTO outbox
               (key, place, channel, chat_key, body, urgent, created_at, updated_at)
           VALUES (:key, COALESCE((SELECT MAX(place) FROM outbox), 0) + 1,
                   :channel, :chat_key, :body, :urgent, :now, :now)""",
        {
            "urgent": int(urgent),
            "key": key,
            "channel": address.channel,
            "chat_key": address.key,
            "body": dump_json(body),
            "now": to_ts(now),
        },
    )
    return added == 1


async def claim_next(
    tx: Transaction,
    channel: str,
    *,
    skip_chats: Collection[str] = (),
    closed: Collection[str] = (),
    urgent: bool = False,
    now: datetime,
) -> OutboxItem | None:
    """Take the oldest message that may go out now, as `sending`. None: nothing is due.

    Never a message of a conversation while an earlier one of it waits or is being sent, but for
    `urgent` ones, which are taken alone. `skip_chats` are the keys of conversations, `closed` the
    beginnings of keys (a chat with all its topics) that may not be written to yet. Of several
    callers one gets it.
    """
    row = await tx.fetch_one(
        _CLAIM_URGENT if urgent else _CLAIM,
        {
            "channel": channel,
            "now": to_ts(now),
            "skip": dump_json(list(skip_chats)),
            "closed": dump_json(list(closed)),
        },
    )
    return None if row is None else _item(row)


async def count_open(tx: Transaction) -> int:
    """How many messages wait to be sent or are being sent."""
    row = await tx.fetch_one(
        "SELECT COUNT(*) AS n FROM outbox WHERE state IN ('pending', 'sending')"
    )
    assert row is not None  # noqa: S101 - an aggregate has one row
    return int(row["n"])


async def dead_among(tx: Transaction, keys: Collection[str | None]) -> set[str]:
    """Which of these messages will never go out."""
    if not keys:
        return set()
    rows = await tx.fetch_all(
        """SELECT key FROM outbox
           WHERE state = 'dead' AND key IN (SELECT value FROM json_each(:keys))""",
        {"keys": dump_json([key for key in keys if key is not None])},
    )
    return {row["key"] for row in rows}


async def next_due(
    tx: Transaction, channel: str, *, closed: Collection[str] = ()
) -> datetime | None:
    """When `claim_next` will next find something (perhaps long ago); None when nothing waits but
    behind a message that is being sent, or in a `closed` chat."""
    row = await tx.fetch_one(
        f"""SELECT MIN(COALESCE(not_before, created_at)) AS due FROM outbox AS mine
            WHERE {_FIRST_OF_ITS_CHAT}""",  # noqa: S608
        {"channel": channel, "closed": dump_json(list(closed))},
    )
    return None if row is None or row["due"] is None else from_ts(row["due"])


async def mark_sent(tx: Transaction, key: str, message_id: str, now: datetime) -> None:
    """`message_id` is the channel's name for the (last) message."""
    await _settle(tx, key, "sent", now, message_id=message_id)


async def release(
    tx: Transaction, key: str, not_before: datetime | None, error: str | None, now: datetime
) -> None:
    """Give a claimed message back: it certainly did not go out, and may be tried again then."""
    await _settle(tx, key, "pending", now, not_before=not_before, error=error)


async def mark_unknown(tx: Transaction, key: str, error: str, now: datetime) -> None:
    """It may have gone out or not; it is not sent again by itself. See also `repeat`."""
    await _settle(tx, key, "unknown", now, error=error)


async def mark_dead(tx: Transaction, key: str, error: str, now: datetime) -> None:
    """It will never go out: the person blocked the bot, the chat is gone. Its text is forgotten;
    the turn keeps its reply."""
    await _settle(tx, key, "dead", now, error=error)
    await tx.execute(
        "UPDATE outbox SET body = '{}' WHERE key = :key AND state = 'dead'", {"key": key}
    )


async def hasten(tx: Transaction, address: ChatAddress) -> int:
    """Let what waits in a conversation overtake what waits in others; how many messages."""
    return await tx.execute(
        """UPDATE outbox SET urgent = 1
           WHERE channel = :channel AND chat_key = :chat
             AND state IN ('pending', 'sending') AND state = 'pending'""",
        {"channel": address.channel, "chat": address.key},
    )


async def bury(tx: Transaction, channel: str, chat: str, error: str, now: datetime) -> int:
    """Give up all that waits for a chat (the beginning of its keys) that cannot be reached."""
    return await tx.execute(
        """UPDATE outbox SET state = 'dead', error = :error, updated_at = :now
           WHERE channel = :channel AND state IN ('pending', 'sending') AND state = 'pending'
             AND substr(chat_key, 1, length(:chat)) = :chat""",
        {"channel": channel, "chat": chat, "error": error, "now": to_ts(now)},
    )


async def withhold(
    tx: Transaction, chats: Collection[str], turn_ids: Collection[str], now: datetime
) -> int:
    """What is queued for these chats (`channel:chat:`, all their topics) or tells of these turns
    never goes out, and its text is forgotten; how many messages."""
    return await tx.execute(
        """UPDATE outbox SET state = 'dead', body = '{}', error = 'withheld', updated_at = :now
           WHERE state = 'pending' AND (
               EXISTS (SELECT 1 FROM json_each(:chats)
                       WHERE substr(chat_key, 1, length(value)) = value)
               OR substr(key, 1, instr(key, ':') - 1) IN (SELECT value FROM json_each(:turns)))""",
        {"now": to_ts(now), "chats": dump_json(list(chats)), "turns": dump_json(list(turn_ids))},
    )


async def repeat(tx: Transaction, key: str, now: datetime) -> bool:
    """Say an unclear message again: a copy marked as repeated waits in its place under `KEY:r`,
    and the claimed one becomes `unknown`. False when it was not being sent."""
    return await _repeat(tx, "key = :which", key, now) > 0


async def recover(tx: Transaction, channel: str, now: datetime) -> int:
    """Settle what a crash left in `sending`, as `repeat` does; how many.

    Run once at the start, before anything is claimed. The second run finds nothing to do.
    """
    return await _repeat(tx, "channel = :which", channel, now)


async def find(tx: Transaction, key: str) -> OutboxItem | None:
    row = await tx.fetch_one("SELECT * FROM outbox WHERE key = :key", {"key": key})
    return None if row is None else _item(row)


async def message_of(tx: Transaction, key: str) -> str | None:
    """The channel's name for the message that shows a row; None: it is not out, or not known."""
    item = await find(tx, key)
    if item is not None and item.state == "unknown":
        # It was said again, marked; where the first one went nobody knows.
        item = await find(tx, f"{key}:r") or item
    return None if item is None else item.message_id or None


async def find_by_message(tx: Transaction, chat_key: str, message_id: str) -> OutboxItem | None:
    """What went out last as this message of a chat."""
    row = await tx.fetch_one(
        """SELECT * FROM outbox WHERE chat_key = :chat AND message_id = :message
           ORDER BY json_valid(body) AND json_extract(body, '$.settles') IS NOT NULL, place DESC
           LIMIT 1""",
        {"chat": chat_key, "message": message_id},
    )
    return None if row is None else _item(row)


async def find_in_chat(
    tx: Transaction, channel: str, chat_id: str, message_id: str
) -> OutboxItem | None:
    """What went out first as this message of a chat, in whichever of its topics."""
    row = await tx.fetch_one(
        """SELECT * FROM outbox WHERE chat_key >= :chat || ':' AND chat_key < :chat || ';'
               AND message_id = :message ORDER BY place LIMIT 1""",
        {"chat": f"{channel}:{chat_id}", "message": message_id},
    )
    return None if row is None else _item(row)


async def rewrite(tx: Transaction, key: str, body: Mapping[str, Any]) -> None:
    """What a message looks like from now on: another change brings that before people."""
    await tx.execute(
        "UPDATE outbox SET body = :body WHERE key = :key", {"key": key, "body": dump_json(body)}
    )


async def move(tx: Transaction, old: str, new: str) -> int:
    """Let what belongs to a chat or topic belong to its new key (`core.store.moves`). Where the
    messages of a chat stood is forgotten: in the new one the same numbers are other messages. What
    waits for a topic says that it is gone (`note`)."""
    if is_chat(old):
        await tx.execute(
            "UPDATE outbox SET message_id = NULL WHERE substr(chat_key, 1, length(:old)) = :old",
            {"old": old},
        )
    else:
        await tx.execute(
            """UPDATE outbox SET body = json_set(body, '$.note', 'topic_gone')
               WHERE chat_key = :old AND state IN ('pending', 'sending') AND json_valid(body)""",
            {"old": old},
        )
    return await rekey(tx, "outbox", "chat_key", old, new)


async def prune(tx: Transaction, older_than: datetime) -> int:
    """Delete settled messages last touched before that moment; how many."""
    return await tx.execute(
        """DELETE FROM outbox
           WHERE updated_at < :before AND state IN ('sent', 'unknown', 'dead')""",
        {"before": to_ts(older_than)},
    )


async def _settle(
    tx: Transaction,
    key: str,
    state: str,
    now: datetime,
    *,
    message_id: str | None = None,
    not_before: datetime | None = None,
    error: str | None = None,
) -> None:
    await tx.execute(
        """UPDATE outbox SET state = :state, message_id = COALESCE(:message_id, message_id),
               not_before = :not_before, error = :error, updated_at = :now
           WHERE key = :key AND state = 'sending'""",
        {
            "key": key,
            "state": state,
            "message_id": message_id,
            "not_before": None if not_before is None else to_ts(not_before),
            "error": error,
            "now": to_ts(now),
        },
    )


async def _repeat(tx: Transaction, which: str, value: str, now: datetime) -> int:
    # The copy keeps the place: what the chat was to hear afterwards still comes afterwards.
    await tx.execute(
        f"""INSERT OR IGNORE INTO outbox
                (key, place, channel, chat_key, body, attempts, created_at, updated_at)
            SELECT key || ':r', place, channel, chat_key,
                   CASE WHEN json_valid(body) THEN json_set(body, '$.repeated', json('true'))
                        ELSE body END,
                   attempts, created_at, :now
            FROM outbox WHERE {which} AND state = 'sending' ORDER BY place""",  # noqa: S608
        {"which": value, "now": to_ts(now)},
    )
    return await tx.execute(
        f"""UPDATE outbox SET state = 'unknown', updated_at = :now
            WHERE {which} AND state = 'sending'""",  # noqa: S608
        {"which": value, "now": to_ts(now)},
    )


@row_reader
def _item(row: Row) -> OutboxItem:
    return OutboxItem(
        key=row["key"],
        address=ChatAddress.from_key(row["chat_key"]),
        body=load_object(row["body"]),
        state=row["state"],
        attempts=row["attempts"],
        message_id=row["message_id"],
        created_at=from_ts(row["created_at"]),
        error=row["error"],
        urgent=bool(row["urgent"]),
    )
