"""The end of a question in its channel: an outbox row that takes the place of its buttons.

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


def settled_key(body: Mapping[str, Any]) -> str | None:
    """The question that this outbox body ends; None for a message of its own."""
    key = body.get(_SETTLES)
    return key if isinstance(key, str) else None
