"""The same question once more: at its next field, with other words, or because an answer was none.

The question stays open all the while; what was answered so far is kept with it.
"""

from __future__ import annotations

from dataclasses import replace

from core import dialogs
from core.clock import Clock
from core.dialogs import Suspension
from core.errors import ErrorCode, ErrorInfo
from core.i18n import Texts
from core.messages import (
    Actor,
    Block,
    ChatAddress,
    FinalKind,
    Inbound,
    Reply,
    TurnClosed,
    TurnSuspended,
)
from core.positions import Position
from core.store import credentials, kv, outbox, suspensions, turns
from core.store.credentials import SealedAnswer
from core.store.stores import Stores
from core.turn_ends import TurnEnds
from core.turn_places import Places
from core.turn_question import again, shape_of
from core.turn_setup import TurnSetup
from core.turn_taken import Taken
from core.turn_unanswered import Unanswered


def answered(inbound: Inbound) -> str:
    """Under which the store remembers the turn that an inbound was taken as an answer for."""
    return f"answer:{inbound.id}"


class Asking:
    """Asks on and asks again. Call it under the lock of the conversation."""

    def __init__(
        self,
        *,
        stores: Stores,
        clock: Clock,
        texts: Texts,
        ends: TurnEnds,
        setup: TurnSetup,
        late: Unanswered,
        places: Places,
    ) -> None:
        self._stores, self._clock, self._texts = stores, clock, texts
        self._ends, self._setup, self._late = ends, setup, late
        self._places = places

    async def missed(self, inbound: Inbound, actor: Actor, suspension: Suspension) -> Taken:
        """An answer that is none: the field is asked again with what would be one; a few times,
        then it is said how to leave it, and the question stays."""
        async with self._stores.main.read() as tx:
            stored = await turns.get(tx, suspension.turn_id)
        lang = self._setup.lang(actor, inbound, "") if stored is None else stored.lang
        shape = shape_of(suspension.asked, self._texts, lang)
        if suspension.missed < dialogs.MOST_MISSED:
            after = replace(suspension, missed=suspension.missed + 1)
            key = "dialog.not_understood"
            return await self.move(inbound, actor, suspension, after, key, hint=shape)
        text = self._texts.say("dialog.how_to_leave", lang, shape=shape)
        reply = Reply((Block("text", text),), lang, None, FinalKind.ERROR)
        error = ErrorInfo(ErrorCode.INVALID_ARGS)
        return Taken((TurnClosed("", FinalKind.ERROR, reply, error),))

    async def move(
        self,
        inbound: Inbound,
        actor: Actor,
        suspension: Suspension,
        after: Suspension,
        key: str,
        *,
        whole: bool = False,
        secret: SealedAnswer | None = None,
        position: Position | None = None,
        hint: str = "",
        **params: str,
    ) -> Taken:
        """Put `after`, what is asked from now on, in a new message; `key` is the word for what
        became of the old one, `hint` stands above the new. Nothing when the question has moved on.
        """
        now = self._clock.now()
        async with self._stores.main.read() as tx:
            stored = await turns.get(tx, suspension.turn_id)
        if stored is None:
            return Taken((self._ends.unkept(inbound, ErrorInfo(ErrorCode.QUESTION_EXPIRED)),))
        home = ChatAddress.from_key(stored.conversation)
        context = self._setup.context(stored.id, actor, home, stored.lang, now, stored.request)
        answers = stored.message_ref if inbound.address == home else None
        asked = again(after, context, self._texts, question_id=self._clock.new_id(), whole=whole)
        asked = replace(asked, reply=replace(asked.reply, answers=answers))
        if hint:
            blocks = (Block("text", hint), *asked.reply.blocks)
            asked = replace(asked, reply=replace(asked.reply, blocks=blocks))
        queued = inbound.address.channel in self._ends.outbox_channels
        new_key = asked.suspension.prompt_key
        async with self._stores.main.write() as tx:
            moved = await suspensions.advance(
                tx,
                suspension,
                after.values,
                now=now,
                to=after.cursor,
                tokens=asked.tokens,
                prompt_key=new_key,
                missed=after.missed,
            )
            if moved is not None:
                await kv.put(tx, answered(inbound), stored.id)
                if secret is not None:
                    await credentials.keep_answer(tx, secret, now)
                settled = await self._late.settle(
                    tx, suspension, stored.lang, actor, key, **params
                )
                if position is not None:
                    await self._places.keep(tx, actor, position)
                await turns.show_question(tx, stored.id, asked.reply.to_json())
                if queued and new_key is not None:
                    await outbox.enqueue(tx, new_key, inbound.address, asked.reply.to_json(), now)
        if moved is None:
            return Taken(await self._late.told_again(stored, actor, inbound.address))
        suspended = TurnSuspended(stored.id, asked.reply, new_key if queued else None)
        return Taken((settled, suspended))
