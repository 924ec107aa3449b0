"""The end of a question in its channel: an outbox row that takes the place of its buttons; and
other buttons in the place of those under an answer.

Written with the decision itself, so that a crash between the two leaves no buttons that mean
nothing. Knows no channel: how a question is taken back there is the channel's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.messages import Block, Reply
from core.store import outbox
from core.store.database import Transaction

_SETTLES = "settles"
_REDRAWS = "redraws"


async def settle(tx: Transaction, question_key: str, text: str, lang: str, now: datetime) -> bool:
    """Queue what stands in a question's place: `text` says the decision, in a line or two.

    `question_key` is the question's outbox row. False when there is no such row, or when its end
    is queued already, which then stays as it is. Goes out behind the question, however late.
    """
    question = await outbox.find(tx, question_key)
    if question is None:
        return False
    body = {**Reply((Block("text", text),), lang).to_json(), _SETTLES: question_key}
    return await outbox.enqueue(tx, f"{question_key}:settled", question.address, body, now)


async def asked_secret(tx: Transaction, conversation: str, message_id: str | None) -> bool:
    """Whether this message of the conversation asked for a secret, however long ago."""
    if message_id is None:
        return False
    item = await outbox.find_by_message(tx, conversation, message_id)
    return item is not None and item.body.get("secret") is True


def settled_key(body: Mapping[str, Any]) -> str | None:
    """The question that this outbox body ends; None for a message of its own."""
    key = body.get(_SETTLES)
    return key if isinstance(key, str) else None


async def redraw(
    tx: Transaction, shown_key: str, reply: Reply, now: datetime, *, change_id: str
) -> bool:
    """Queue other buttons, those of `reply`, under a message that stands. `change_id` tells one
    change of it from the next. False when there is no such row."""
    shown = await outbox.find(tx, shown_key)
    if shown is None:
        return False
    body = {**reply.to_json(), _REDRAWS: shown_key}
    return await outbox.enqueue(tx, f"{shown_key}:row:{change_id}", shown.address, body, now)


def redrawn_key(body: Mapping[str, Any]) -> str | None:
    """The message whose buttons this outbox body changes; None for a message of its own."""
    key = body.get(_REDRAWS)
    return key if isinstance(key, str) else None
