"""Somebody's right is withdrawn: what goes with it, in one transaction, from whichever process.

Owns no table. Their turns that wait are ended by the engine, which writes the log; their files
stay where they are, and nobody new ever gets them: whoever is let in again is somebody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.messages import Actor
from core.store import (
    accounts,
    actions,
    actors,
    approvals,
    console,
    credentials,
    grants,
    outbox,
    positions,
    suspensions,
    turns,
)
from core.store.database import Transaction


@dataclass(frozen=True, slots=True)
class Left:
    """Who left, and what they left: questions that are dropped and messages that are withheld."""

    actor: Actor
    questions: int
    messages: int


async def revoke(tx: Transaction, actor_id: str, now: datetime) -> Left | None:
    """Withdraw an actor's right; it counts from the next message, and nothing more is sent them.

    Their open questions and buttons are void, what they were granted, agreed to and entrusted is
    forgotten, and where they were. A turn that runs begins no change any more. None: there is no
    such actor (any more).
    """
    actor = await actors.get_actor(tx, actor_id)
    if actor is None:
        return None
    # A private chat has the number of its person.
    chats = [
        f"{channel}:{sender}:" for channel, sender in await actors.identities_of(tx, actor_id)
    ]
    open_turns = await turns.open_of_actor(tx, actor_id)
    await actors.revoke(tx, actor_id, now)
    questions = await suspensions.cancel_all(tx, actor_id, now)
    await actions.void_all(tx, actor_id, now)
    await grants.forget_all(tx, actor_id)
    await approvals.forget_all(tx, actor_id)
    await accounts.forget_all(tx, actor_id)
    await credentials.forget_all(tx, actor_id)
    await console.end_all(tx, actor_id)
    await positions.forget(tx, actor_id)
    messages = await outbox.withhold(tx, chats, open_turns, now)
    return Left(actor, questions, messages)
