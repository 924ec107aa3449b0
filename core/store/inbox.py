"""What channels have received and not yet finished: stored before it is acknowledged.

Owns `inbox` and `inbox_offsets`. Knows nothing of what a body means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.clock import from_ts, to_ts
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import dump_json, load_object


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One update as it came. `chat_key` is the key of order (`ChatAddress.key`)."""

    update_id: int
    chat_key: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredInbox:
    """An update in the store. `id` grows in the order of arrival; `attempts` counts the times
    its work was begun."""

    id: int
    channel: str
    bot_id: str
    update_id: int
    chat_key: str
    body: Mapping[str, Any]
    state: str
    attempts: int
    note: str | None
    received_at: datetime


async def add_batch(
    tx: Transaction,
    rows: Sequence[InboxRow],
    *,
    channel: str,
    bot_id: str,
    next_offset: int,
    now: datetime,
) -> int:
    """Store a batch of updates and where to go on; how many of them were new.

    An update that is already there is left alone, whatever its state, so a batch delivered twice
    is worked once. The caller acknowledges after the commit.
    """
    added = 0
    if rows:
        added = await tx.execute(
            """INSERT OR IGNORE INTO inbox
                   (channel, bot_id, update_id, chat_key, body, received_at)
               SELECT :channel, :bot_id, json_extract(value, '$[0]'),
                      json_extract(value, '$[1]'), json_extract(value, '$[2]'), :now
               FROM json_each(:rows) ORDER BY key""",
            {
                "channel": channel,
                "bot_id": bot_id,
                "now": to_ts(now),
                "rows": dump_json([[r.update_id, r.chat_key, dump_json(r.body)] for r in rows]),
            },
        )
    # Not the maximum of old and new: after a quiet week Telegram begins anew at a random number.
    await tx.execute(
        """INSERT INTO inbox_offsets (channel, bot_id, next_offset)
           VALUES (:channel, :bot_id, :next_offset)
           ON CONFLICT (channel, bot_id) DO UPDATE SET next_offset = excluded.next_offset""",
        {"channel": channel, "bot_id": bot_id, "next_offset": next_offset},
    )
    return added


async def next_offset(tx: Transaction, channel: str, bot_id: str) -> int | None:
    """The offset to ask for, None before the first batch of this bot."""
    row = await tx.fetch_one(
        """SELECT next_offset FROM inbox_offsets
           WHERE channel = :channel AND bot_id = :bot_id""",
        {"channel": channel, "bot_id": bot_id},
    )
    return None if row is None else int(row["next_offset"])


async def open_rows(
    tx: Transaction, channel: str, bot_id: str, *, after_id: int = 0
) -> list[StoredInbox]:
    """What must still be worked, in the order of arrival: new, or running when a crash came.

    `after_id` leaves out what the caller has already seen.
    """
    rows = await tx.fetch_all(
        """SELECT * FROM inbox
           WHERE channel = :channel AND bot_id = :bot_id AND id > :after_id
             AND state IN ('new', 'running')
           ORDER BY id""",
        {"channel": channel, "bot_id": bot_id, "after_id": after_id},
    )
    return [_stored(row) for row in rows]


async def mark_running(tx: Transaction, id: int) -> int:
    """Begin the work of a row; how often it has been begun, this time included.

    0 when the row is finished already: then there is nothing to do.
    """
    row = await tx.fetch_one(
        """UPDATE inbox SET state = 'running', attempts = attempts + 1
           WHERE id = :id AND state IN ('new', 'running') RETURNING attempts""",
        {"id": id},
    )
    return 0 if row is None else int(row["attempts"])


async def mark_done(tx: Transaction, id: int) -> None:
    """Finish a row and forget what was said in it; its number stays, so that it is known again."""
    await tx.execute(
        """UPDATE inbox SET state = 'done', body = '{}'
           WHERE id = :id AND state IN ('new', 'running')""",
        {"id": id},
    )


async def mark_dead(tx: Transaction, id: int, note: str) -> None:
    """Give a row up, with the reason: it is not worked again."""
    await tx.execute(
        """UPDATE inbox SET state = 'dead', note = :note
           WHERE id = :id AND state IN ('new', 'running')""",
        {"id": id, "note": note},
    )


async def replace_body(tx: Transaction, id: int, body: Mapping[str, Any]) -> bool:
    """Put an edited message in the place of the first one; False when its work had begun."""
    changed = await tx.execute(
        "UPDATE inbox SET body = :body WHERE id = :id AND state = 'new'",
        {"id": id, "body": dump_json(body)},
    )
    return changed == 1


async def prune(tx: Transaction, older_than: datetime) -> int:
    """Delete finished rows received before that moment; how many."""
    return await tx.execute(
        "DELETE FROM inbox WHERE received_at < :before AND state IN ('done', 'dead')",
        {"before": to_ts(older_than)},
    )


@row_reader
def _stored(row: Row) -> StoredInbox:
    return StoredInbox(
        id=row["id"],
        channel=row["channel"],
        bot_id=row["bot_id"],
        update_id=row["update_id"],
        chat_key=row["chat_key"],
        body=load_object(row["body"]),
        state=row["state"],
        attempts=row["attempts"],
        note=row["note"],
        received_at=from_ts(row["received_at"]),
    )
