"""Strangers who asked to be let in, and what the host said: once each, few in an hour.

Owns `visitors`. Keeps nothing that they wrote but the name they go by. Knows no channel, and not
how the host is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from core.clock import from_ts, to_ts
from core.store.actors import clean_name
from core.store.database import Row, Transaction, row_reader

ASK_EVERY = timedelta(hours=24)
"""How long a request stands, and how soon the same stranger may ask again."""
MOST_ASKED = 5
PER = timedelta(hours=1)
SILENT_FOR = timedelta(days=30)
"""After a no. Who is blocked stays so until the host says otherwise."""


class VisitorState(StrEnum):
    WAITING = "waiting"
    ADMITTED = "admitted"
    REFUSED = "refused"
    BLOCKED = "blocked"


_SILENT = frozenset({VisitorState.REFUSED, VisitorState.BLOCKED})


@dataclass(frozen=True, slots=True)
class Visitor:
    """`name` is what they call themselves: data, never trusted. `lang` a language of ours."""

    channel: str
    sender_id: str
    name: str
    lang: str | None
    state: VisitorState
    asked_at: datetime
    decided_at: datetime | None = None


async def find(tx: Transaction, channel: str, sender_id: str) -> Visitor | None:
    row = await tx.fetch_one(
        "SELECT * FROM visitors WHERE channel = :channel AND sender_id = :sender",
        {"channel": channel, "sender": sender_id},
    )
    return None if row is None else _visitor(row)


async def silence(
    tx: Transaction, channel: str, sender_id: str, now: datetime
) -> VisitorState | None:
    """Why nothing this sender says is answered: the host said no a while ago, or blocked them,
    which holds for codes too. None: it may be."""
    found = await find(tx, channel, sender_id)
    if found is None or found.state not in _SILENT or _is_over(found, now):
        return None
    return found.state


async def may_ask(tx: Transaction, channel: str, sender_id: str, now: datetime) -> bool:
    """Whether this stranger may ask to be let in now: not when they asked in the last day, when
    the host said no, or when so many asked in this hour that the host is left in peace."""
    found = await find(tx, channel, sender_id)
    if found is not None and not _is_over(found, now):
        return False
    row = await tx.fetch_one(
        "SELECT COUNT(*) AS n FROM visitors WHERE asked_at > :since AND asked_at <= :now",
        {"since": to_ts(now - PER), "now": to_ts(now)},
    )
    return row is not None and int(row["n"]) < MOST_ASKED


async def ask(
    tx: Transaction, channel: str, sender_id: str, name: str, lang: str | None, now: datetime
) -> Visitor | None:
    """Note that a stranger asks to be let in. None: they may not (`may_ask`)."""
    if not await may_ask(tx, channel, sender_id, now):
        return None
    visitor = Visitor(
        channel, sender_id, clean_name(name), lang, VisitorState.WAITING, asked_at=now
    )
    await tx.execute(
        """INSERT INTO visitors (channel, sender_id, name, lang, state, asked_at)
           VALUES (:channel, :sender, :name, :lang, 'waiting', :now)
           ON CONFLICT (channel, sender_id) DO UPDATE SET name = excluded.name,
               lang = excluded.lang, state = 'waiting', asked_at = excluded.asked_at,
               decided_at = NULL""",
        {
            "channel": channel,
            "sender": sender_id,
            "name": visitor.name,
            "lang": lang,
            "now": to_ts(now),
        },
    )
    return visitor


async def decide(
    tx: Transaction, channel: str, sender_id: str, state: VisitorState, now: datetime
) -> Visitor | None:
    """The host's word on somebody who waits; None: nobody of this number does (any more). Of any
    number of words the first counts."""
    row = await tx.fetch_one(
        """UPDATE visitors SET state = :state, decided_at = :now
           WHERE channel = :channel AND sender_id = :sender AND state = 'waiting'
             AND asked_at > :since RETURNING *""",
        {
            "state": state.value,
            "now": to_ts(now),
            "channel": channel,
            "sender": sender_id,
            "since": to_ts(now - ASK_EVERY),
        },
    )
    return None if row is None else _visitor(row)


async def forget(tx: Transaction, channel: str, sender_id: str) -> bool:
    """Forget that somebody asked, or was refused or blocked; False: there is nothing."""
    gone = await tx.execute(
        "DELETE FROM visitors WHERE channel = :channel AND sender_id = :sender",
        {"channel": channel, "sender": sender_id},
    )
    return gone == 1


async def list_visitors(tx: Transaction, now: datetime) -> list[Visitor]:
    """Who waits, was refused or is blocked, in the order they asked."""
    rows = await tx.fetch_all(
        "SELECT * FROM visitors WHERE state != 'admitted' ORDER BY asked_at, sender_id"
    )
    return [one for one in map(_visitor, rows) if not _is_over(one, now)]


async def prune(tx: Transaction, now: datetime) -> None:
    """Forget what decides nothing any more. Who is blocked is kept."""
    await tx.execute(
        """DELETE FROM visitors WHERE (state IN ('waiting', 'admitted') AND asked_at < :day)
           OR (state = 'refused' AND decided_at < :month)""",
        {"day": to_ts(now - ASK_EVERY), "month": to_ts(now - SILENT_FOR)},
    )


def _is_over(visitor: Visitor, now: datetime) -> bool:
    """Whether a word was so long ago, or a clock set so far back, that it counts no more."""
    match visitor.state:
        case VisitorState.BLOCKED:
            return False
        case VisitorState.REFUSED:
            since = visitor.decided_at or visitor.asked_at
            return not -ASK_EVERY <= now - since < SILENT_FOR
        case _:
            return not -ASK_EVERY <= now - visitor.asked_at < ASK_EVERY


@row_reader
def _visitor(row: Row) -> Visitor:
    decided = row["decided_at"]
    return Visitor(
        channel=row["channel"],
        sender_id=row["sender_id"],
        name=row["name"],
        lang=row["lang"],
        state=VisitorState(row["state"]),
        asked_at=from_ts(row["asked_at"]),
        decided_at=None if decided is None else from_ts(decided),
    )
