"""The groups that the bot is in or has been in: which of them the host has turned on.

Owns `chats`. A group that is not on is worth a word once a day and no more; what is said there is
kept nowhere. Knows nothing of the channel's rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from core.clock import from_ts, to_ts
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import clean_text

WORD_EVERY = timedelta(hours=24)
MAX_TITLE = 128


class ChatState(StrEnum):
    """`NEW`: the host has not decided. `OFF`: decided against. `GONE`: the bot was put out, and
    whoever lets it in again asks anew."""

    NEW = "new"
    ON = "on"
    OFF = "off"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Chat:
    """One group. `is_admin` None: not known. `changed_at`: when its state last changed.
    `moved_to`: the id that it has had since then."""

    channel: str
    chat_id: str
    title: str
    state: ChatState
    changed_at: datetime
    is_forum: bool = False
    is_admin: bool | None = None
    moved_to: str | None = None

    @property
    def is_on(self) -> bool:
        return self.state is ChatState.ON


async def meet(
    tx: Transaction,
    channel: str,
    chat_id: str,
    *,
    title: str,
    is_forum: bool,
    now: datetime,
) -> Chat:
    """The group as it stands, noted when it was not known; its name is kept up to date."""
    row = await tx.fetch_one(
        """INSERT INTO chats (channel, chat_id, title, is_forum, changed_at)
           VALUES (:channel, :chat, :title, :forum, :now)
           ON CONFLICT (channel, chat_id) DO UPDATE SET
               title = CASE WHEN excluded.title = '' THEN title ELSE excluded.title END,
               is_forum = excluded.is_forum
           RETURNING *""",
        {
            "channel": channel,
            "chat": chat_id,
            "title": _title(title),
            "forum": is_forum,
            "now": to_ts(now),
        },
    )
    assert row is not None  # noqa: S101 - it was inserted or updated
    return _chat(row)


async def find(tx: Transaction, channel: str, chat_id: str) -> Chat | None:
    row = await tx.fetch_one(
        "SELECT * FROM chats WHERE channel = :channel AND chat_id = :chat",
        {"channel": channel, "chat": chat_id},
    )
    return None if row is None else _chat(row)


async def list_chats(tx: Transaction) -> list[Chat]:
    """All groups ever met, each by the id it has now: those that are on first, then by name."""
    rows = await tx.fetch_all(
        """SELECT * FROM chats WHERE moved_to IS NULL
           ORDER BY CASE state WHEN 'on' THEN 0 WHEN 'new' THEN 1 WHEN 'off' THEN 2 ELSE 3 END,
                    title COLLATE NOCASE, chat_id"""
    )
    return [_chat(row) for row in rows]


async def set_state(
    tx: Transaction, channel: str, chat_id: str, state: ChatState, now: datetime
) -> bool:
    """False: the group is not known, or is in that state already. A group that changes may be
    told and asked about again at once."""
    changed = await tx.execute(
        """UPDATE chats SET state = :state, changed_at = :now, told_at = NULL, asked_at = NULL
           WHERE channel = :channel AND chat_id = :chat AND state <> :state""",
        {"channel": channel, "chat": chat_id, "state": state.value, "now": to_ts(now)},
    )
    return changed == 1


async def set_rights(tx: Transaction, channel: str, chat_id: str, *, is_admin: bool) -> None:
    """Note whether the bot is an administrator there, who is shown everything."""
    await tx.execute(
        "UPDATE chats SET is_admin = :admin WHERE channel = :channel AND chat_id = :chat",
        {"channel": channel, "chat": chat_id, "admin": is_admin},
    )


async def word_due(tx: Transaction, channel: str, chat_id: str, now: datetime) -> bool:
    """Whether a group that is not on may be told so now: once a day. True also notes it."""
    return await _due(tx, "told_at", channel, chat_id, now)


async def question_due(tx: Transaction, channel: str, chat_id: str, now: datetime) -> bool:
    """Whether the host may be asked about a group now: once a day. True also notes it."""
    return await _due(tx, "asked_at", channel, chat_id, now)


async def move(tx: Transaction, channel: str, old_id: str, new_id: str, now: datetime) -> bool:
    """The group has another id from now on; what was decided goes along. False: it was not known,
    or has moved already. What was noted of the new id in between gives way."""
    known = await find(tx, channel, old_id)
    if known is None or known.moved_to is not None:
        return False
    await tx.execute(
        "DELETE FROM chats WHERE channel = :channel AND chat_id = :new",
        {"channel": channel, "new": new_id},
    )
    await tx.execute(
        """UPDATE chats SET chat_id = :new, changed_at = :now
           WHERE channel = :channel AND chat_id = :old""",
        {"channel": channel, "old": old_id, "new": new_id, "now": to_ts(now)},
    )
    await tx.execute(
        """INSERT INTO chats (channel, chat_id, title, state, changed_at, moved_to)
           VALUES (:channel, :old, :title, 'gone', :now, :new)""",
        {
            "channel": channel,
            "old": old_id,
            "new": new_id,
            "title": known.title,
            "now": to_ts(now),
        },
    )
    return True


async def moved_to(tx: Transaction, channel: str, chat_id: str) -> str | None:
    """The id that a group has had since it moved; None: it has not."""
    chat = await find(tx, channel, chat_id)
    return None if chat is None else chat.moved_to


async def _due(tx: Transaction, column: str, channel: str, chat_id: str, now: datetime) -> bool:
    changed = await tx.execute(
        f"""UPDATE chats SET {column} = :now
            WHERE channel = :channel AND chat_id = :chat
              AND ({column} IS NULL OR {column} <= :before OR {column} > :now)""",  # noqa: S608
        {
            "channel": channel,
            "chat": chat_id,
            "now": to_ts(now),
            "before": to_ts(now - WORD_EVERY),
        },
    )
    return changed == 1


def _title(text: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in clean_text(text))
    return " ".join(printable.split())[:MAX_TITLE].strip()


@row_reader
def _chat(row: Row) -> Chat:
    return Chat(
        channel=row["channel"],
        chat_id=row["chat_id"],
        title=row["title"],
        state=ChatState(row["state"]),
        changed_at=from_ts(row["changed_at"]),
        is_forum=bool(row["is_forum"]),
        is_admin=None if row["is_admin"] is None else bool(row["is_admin"]),
        moved_to=row["moved_to"],
    )
