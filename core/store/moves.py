"""A chat that has another id from now on: everything that was kept under the old one follows.

Owns no table: each owner moves its own rows. Knows no channel.
"""

from __future__ import annotations

from datetime import datetime

from core.messages import ChatAddress
from core.store import actions, chats, inbox, kv, outbox, reach, suspensions, turns
from core.store.database import Transaction


async def move_chat(
    tx: Transaction, channel: str, old_id: str, new_id: str, now: datetime
) -> bool:
    """Let what belongs to a chat, with all its topics, belong to the new id: what was decided
    about the group, updates and messages that wait, turns, questions, buttons, and named values
    that end in a conversation's key.

    One transaction, the caller's. False: nothing was there any more. Called again, also after
    something was put under the old id meanwhile, it moves the rest.
    """
    if old_id == new_id:
        return False
    old, new = ChatAddress(channel, old_id).key, ChatAddress(channel, new_id).key
    moved = [
        await chats.move(tx, channel, old_id, new_id, now),
        await reach.move(tx, channel, old_id),
        await inbox.move(tx, old, new),
        await outbox.move(tx, old, new),
        await turns.move(tx, old, new),
        await suspensions.move(tx, old, new),
        await actions.move(tx, old, new),
        await kv.move(tx, old, new),
    ]
    return any(moved)


async def leave_topic(tx: Transaction, address: ChatAddress) -> bool:
    """Let what belongs to a topic that is closed or gone belong to its chat as a whole, where it
    can be said and answered. False: nothing was there."""
    old, new = address.key, ChatAddress(address.channel, address.chat_id).key
    if old == new:
        return False
    moved = [await owner.move(tx, old, new) for owner in (outbox, turns, suspensions, actions)]
    return any(moved)
