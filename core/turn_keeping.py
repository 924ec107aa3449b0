"""What is kept of an answer while its question goes on: a secret one locked, options as picked."""

from __future__ import annotations

from collections.abc import Collection

from core import dialogs
from core.clock import Clock
from core.dialog_picks import toggled
from core.dialogs import Answer, FieldKind, Suspension
from core.messages import (
    ButtonsChanged,
    ChatAddress,
    Inbound,
    Reply,
    TurnEvent,
    TurnSuspended,
)
from core.store import credentials, kv, questions, suspensions, turns
from core.store.credentials import SealedAnswer
from core.store.stores import Stores
from core.turn_fields import remarked


def locked(
    stores: Stores, clock: Clock, suspension: Suspension, answer: Answer | None
) -> tuple[Answer | None, SealedAnswer | None]:
    """The answer as it may be stored, and what is to be stored with it: a secret one is its
    handle, and locked. Any other is itself. Raises `KeyUnusable`."""
    if (
        answer is None
        or answer.skipped
        or suspension.asked.kind is not FieldKind.SECRET
        or not isinstance(answer.value, str)
    ):
        return answer, None
    secret = credentials.seal_answer(
        stores.vault,
        answer_id=clock.new_id(),
        actor_id=suspension.actor_id,
        turn_id=suspension.turn_id,
        text=answer.value,
    )
    return Answer(secret.handle), secret


async def is_late_secret(stores: Stores, inbound: Inbound) -> bool:
    """Whether it answers a question for a secret, open or not, by what it replies to."""
    replied = inbound.data.get("reply_to")
    if inbound.data.get("secret") is True or not isinstance(replied, str):
        return inbound.data.get("secret") is True
    async with stores.main.read() as tx:
        return await questions.asked_secret(tx, inbound.address.key, replied)


async def toggle(
    stores: Stores,
    clock: Clock,
    suspension: Suspension,
    choice: str,
    answered: str,
    *,
    queued: Collection[str],
) -> tuple[turns.StoredTurn | None, tuple[TurnEvent, ...]]:
    """Pick the option of a button or let it go: the turn, and the question with other labels,
    whose redrawing is queued for the channels in `queued`. No events: the question has gone on or
    is over. `answered` is noted, so that the same press is known when it comes again."""
    after = toggled(suspension, choice.removeprefix(dialogs.OPTION))
    now, key = clock.now(), suspension.prompt_key
    async with stores.main.write() as tx:
        stored = await turns.get(tx, suspension.turn_id)
        moved = await suspensions.advance(
            tx, suspension, after.values, now=now, to=suspension.cursor
        )
        if moved is None or stored is None:
            return stored, ()
        reply = remarked(Reply.from_json(stored.reply), after)
        await kv.put(tx, answered, stored.id)
        await turns.show_question(tx, stored.id, reply.to_json())
        if key is not None:
            await questions.redraw(tx, key, reply, now, change_id=clock.new_id()[:12])
    channel = ChatAddress.from_key(suspension.conversation).channel
    shown = key if channel in queued else None
    return stored, (
        ButtonsChanged(stored.id, reply, shown),
        TurnSuspended(stored.id, reply, shown),
    )
