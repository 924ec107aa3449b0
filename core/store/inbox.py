"""What channels have received and not yet finished: stored before it is acknowledged.

Owns `inbox` and `inbox_offsets`. Knows nothing of what a body means. Bodies are locked while they
wait: only when a message is worked it turns out whether it holds a secret.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from core.clock import from_ts, to_ts
from core.errors import SecretUnreadable
from core.messages import ChatAddress
from core.store.credentials import Vault
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import dump_json, load_object
from core.store.rekeying import rekey

log = logging.getLogger(__name__)

_SEALED = "sealed"


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

    @property
    def address(self) -> ChatAddress:
        return ChatAddress.from_key(self.chat_key)


async def add_batch(
    tx: Transaction,
    rows: Sequence[InboxRow],
    *,
    channel: str,
    bot_id: str,
    next_offset: int | None,
    now: datetime,
    vault: Vault | None = None,
) -> int:
    """Store a batch of updates and where to go on; how many of them were new.

    An update that is already there is left alone, whatever its state, so a batch delivered twice
    is worked once. The caller acknowledges after the commit. Without `next_offset` the stored one
    is forgotten: updates are brought, not fetched, and whoever fetches again begins anew.
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
                "rows": dump_json(
                    [
                        [
                            r.update_id,
                            r.chat_key,
                            _closed(r.body, vault, (channel, bot_id, str(r.update_id))),
                        ]
                        for r in rows
                    ]
                ),
            },
        )
    if next_offset is None:
        await tx.execute(
            "DELETE FROM inbox_offsets WHERE channel = :channel AND bot_id = :bot_id",
            {"channel": channel, "bot_id": bot_id},
        )
        return added
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
    tx: Transaction, channel: str, bot_id: str, *, after_id: int = 0, vault: Vault | None = None
) -> list[StoredInbox]:
    """What must still be worked, in the order of arrival: new, or running when a crash came.

    `after_id` leaves out what the caller has already seen. A locked body that does not open any
    more is empty; `KeyUnusable` when the key's file must be put right first.
    """
    rows = await tx.fetch_all(
        """SELECT * FROM inbox
           WHERE channel = :channel AND bot_id = :bot_id AND id > :after_id
             AND state IN ('new', 'running')
           ORDER BY id""",
        {"channel": channel, "bot_id": bot_id, "after_id": after_id},
    )
    return [_stored(row, vault) for row in rows]


async def move(tx: Transaction, old: str, new: str) -> int:
    """Let what belongs to a chat belong to its new key (`core.store.moves`)."""
    return await rekey(tx, "inbox", "chat_key", old, new)


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
    """Give a row up, with the reason: it is not worked again, and what was said is forgotten."""
    await tx.execute(
        """UPDATE inbox SET state = 'dead', note = :note, body = '{}'
           WHERE id = :id AND state IN ('new', 'running')""",
        {"id": id, "note": note},
    )


async def replace_body(
    tx: Transaction, row: StoredInbox, body: Mapping[str, Any], *, vault: Vault | None = None
) -> bool:
    """Put an edited message in the place of the first one; False when its work had begun."""
    bound = (row.channel, row.bot_id, str(row.update_id))
    changed = await tx.execute(
        "UPDATE inbox SET body = :body WHERE id = :id AND state = 'new'",
        {"id": row.id, "body": _closed(body, vault, bound)},
    )
    return changed == 1


async def join(
    tx: Transaction,
    first: StoredInbox,
    body: Mapping[str, Any],
    rest: Sequence[int],
    *,
    vault: Vault | None = None,
) -> None:
    """Let one row hold what several brought: `body` is what the first holds from now on, the
    `rest` are finished with it."""
    await keep(tx, first, body, vault=vault)
    for id in rest:
        await mark_done(tx, id)


async def keep(
    tx: Transaction, row: StoredInbox, body: Mapping[str, Any], *, vault: Vault | None = None
) -> None:
    """Give an open row another body, also one whose work has begun; no other."""
    bound = (row.channel, row.bot_id, str(row.update_id))
    await tx.execute(
        "UPDATE inbox SET body = :body WHERE id = :id AND state IN ('new', 'running')",
        {"id": row.id, "body": _closed(body, vault, bound)},
    )


async def forget(tx: Transaction, chats: Collection[str], before: datetime) -> int:
    """Take from finished rows of these chats (the beginnings of keys), received by then, what is
    left of what was said in them; how many."""
    return await tx.execute(
        """UPDATE inbox SET body = '{}', note = NULL
           WHERE state IN ('done', 'dead') AND received_at <= :before
             AND (body <> '{}' OR note IS NOT NULL)
             AND EXISTS (SELECT 1 FROM json_each(:chats)
                         WHERE substr(chat_key, 1, length(value)) = value)""",
        {"before": to_ts(before), "chats": dump_json(list(chats))},
    )


async def prune(tx: Transaction, older_than: datetime) -> int:
    """Delete finished rows received before that moment; how many."""
    return await tx.execute(
        "DELETE FROM inbox WHERE received_at < :before AND state IN ('done', 'dead')",
        {"before": to_ts(older_than)},
    )


async def relock(tx: Transaction, vault: Vault) -> int:
    """Lock what still waits anew, with the newest key; how many. What does not open stays."""
    moved = 0
    for row in await tx.fetch_all("SELECT * FROM inbox WHERE state IN ('new', 'running')"):
        if body := _opened(row, vault):
            bound = (row["channel"], row["bot_id"], str(row["update_id"]))
            await tx.execute(
                "UPDATE inbox SET body = :body WHERE id = :id",
                {"id": row["id"], "body": _closed(body, vault, bound)},
            )
            moved += 1
    return moved


def _closed(body: Mapping[str, Any], vault: Vault | None, bound: tuple[str, ...]) -> str:
    """The body as it is stored."""
    text = dump_json(body)
    if vault is None or not body:
        return text
    sealed = vault.seal(text.encode(), (_SEALED, *bound))
    return dump_json({_SEALED: base64.b64encode(sealed).decode("ascii")})


def _opened(row: Row, vault: Vault | None) -> dict[str, Any]:
    body = load_object(row["body"])
    sealed = body.get(_SEALED)
    if not isinstance(sealed, str):
        return body
    try:
        if vault is None:
            raise SecretUnreadable("no key at hand")
        bound = (_SEALED, row["channel"], row["bot_id"], str(row["update_id"]))
        return load_object(vault.open(base64.b64decode(sealed, validate=True), bound))
    except (SecretUnreadable, binascii.Error) as exc:
        log.warning("stored update does not open", extra={"inbox_id": row["id"], "why": str(exc)})
        return {}


def _stored(row: Row, vault: Vault | None) -> StoredInbox:
    return replace(_read(row), body=_opened(row, vault))


@row_reader
def _read(row: Row) -> StoredInbox:
    return StoredInbox(
        id=row["id"],
        channel=row["channel"],
        bot_id=row["bot_id"],
        update_id=row["update_id"],
        chat_key=row["chat_key"],
        body={},
        state=row["state"],
        attempts=row["attempts"],
        note=row["note"],
        received_at=from_ts(row["received_at"]),
    )
