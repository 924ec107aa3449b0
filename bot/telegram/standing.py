"""The questions that stand in a chat and whose answers come as plain messages.

A typed label is a tap, and the answer to a secret is to be taken out of the chat; both must be
known after a restart too, so they are noted in the store when the question has gone out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from bot.telegram.keyboards import asks_place, typed_labels
from core.messages import ChatAddress, Reply
from core.store import kv
from core.store.database import Transaction
from core.store.encoding import load_object

_KEY = "telegram.standing:"
_KEPT = 8


@dataclass(frozen=True, slots=True)
class Standing:
    """A question in a chat. `key` is its outbox row, `labels` what is typed for which token."""

    key: str
    turn_id: str
    message_id: str
    secret: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


async def note(
    tx: Transaction, address: ChatAddress, key: str, message_id: str, reply: Reply
) -> None:
    """Note a question that has just gone out, if its answer comes as a plain message."""
    if not (reply.secret or asks_place(reply)):
        return
    standing = Standing(
        key, reply.turn_id or "", message_id, reply.secret, dict(typed_labels(reply))
    )
    found = [other for other in await of_chat(tx, address) if other.key != key]
    await _put(tx, address, [*found, standing][-_KEPT:])


async def drop(tx: Transaction, address: ChatAddress, key: str) -> None:
    """The question is settled. Dropped twice it is gone all the same."""
    found = await of_chat(tx, address)
    if any(standing.key == key for standing in found):
        await _put(tx, address, [standing for standing in found if standing.key != key])


async def of_chat(tx: Transaction, address: ChatAddress) -> list[Standing]:
    """The questions noted in a chat, the newest last."""
    noted = load_object(await kv.get(tx, _KEY + address.key))
    return [Standing(**fields) for fields in noted.get("questions", ())]


def pressed(standing: list[Standing], text: str) -> tuple[Standing, str] | None:
    """The question and the token that a typed label means; the newest question wins."""
    for question in reversed(standing):
        if (token := question.labels.get(text.strip())) is not None:
            return question, token
    return None


async def _put(tx: Transaction, address: ChatAddress, standing: list[Standing]) -> None:
    if standing:
        questions = [asdict(question) for question in standing]
        await kv.put(tx, _KEY + address.key, json.dumps({"questions": questions}))
    else:
        await kv.delete(tx, _KEY + address.key)
