"""How people find the answers they get: a sign under an answer becomes a vote about its turn.

Only who asked may say so, and nothing is said of it. What memory makes of it is what it makes of
the buttons' votes.
"""

from __future__ import annotations

from core.messages import Inbound
from core.store import actors, feedback, outbox, turns
from core.store.feedback import Vote
from core.store.stores import Stores
from core.turn_memory import TurnMemory

_FINAL = ":final"


async def take(stores: Stores, inbound: Inbound, memory: TurnMemory) -> bool:
    """Keep the vote of a `REACTION`: `data` holds the `message_id` of the answer and the `vote`,
    `up`, `down`, or anything else for one that was taken back.

    False: it is about no answer that is still known, of somebody else, or older than what was
    kept. Taken twice it is the same.
    """
    message_id, said = str(inbound.data.get("message_id")), inbound.data.get("vote")
    vote = Vote(said) if said in set(Vote) else None
    async with stores.main.write() as tx:
        actor = await actors.find_actor(tx, inbound.address.channel, inbound.sender_id)
        shown = await outbox.find_in_chat(
            tx, inbound.address.channel, inbound.address.chat_id, message_id
        )
        turn_id = "" if shown is None else str(shown.body.get("turn_id") or "")
        if actor is None or shown is None or not shown.key.startswith(turn_id + _FINAL):
            return False
        turn = await turns.get(tx, turn_id)
        if turn is None or turn.id != turn_id or turn.actor_id != actor.id:
            return False
        counts = await feedback.give(tx, turn_id, actor.id, vote, at=inbound.received_at)
    if counts:
        await memory.judge(turn, vote)
    return counts
