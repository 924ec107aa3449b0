"""Questions that get no answer any more: they ran out, a crash cut their turn short, or what comes
was answered before. Each is settled once and told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.clock import Clock
from core.dialogs import FieldKind, Suspension, SuspensionState
from core.errors import ErrorCode, ErrorInfo, StoreError
from core.i18n import Texts
from core.levels.runner import ended_at_cap
from core.messages import (
    Actor,
    ChatAddress,
    FinalKind,
    Inbound,
    QuestionSettled,
    Reply,
    TurnClosed,
    TurnEvent,
    TurnSuspended,
)
from core.observation import Effects
from core.redaction import redact
from core.store import actors, effects, outbox, questions, suspensions, turns
from core.store.database import Transaction
from core.store.stores import Stores
from core.turn_ends import TurnEnds
from core.turn_offers import Rows, again_of
from core.turn_setup import TurnSetup
from core.turn_state import TurnState

# A turn that waits at a cap then ends as the cap does.
_UNANSWERED = frozenset({ErrorCode.QUESTION_EXPIRED, ErrorCode.CANCELLED})
_MAY_ASK_AGAIN = frozenset({ErrorCode.QUESTION_EXPIRED, ErrorCode.PRIVATE_CHAT_CLOSED})
# Typed, and left there: to say that it was answered would only be one more message.
_SEEN_IN_THE_CHAT = frozenset(
    {
        FieldKind.TEXT,
        FieldKind.NUMBER,
        FieldKind.DATE,
        FieldKind.FILE_PATH,
        FieldKind.MULTI_CHOICE,
    }
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question that is to be ended, of a turn that belongs to the conversation `home`.
    `unread`: not because it ran out, but because it cannot be shown."""

    suspension: Suspension
    home: str
    unread: bool = False


class Unanswered:
    """Settles questions and tells what became of their turns. Call it under the lock of the
    conversation, but for `due`."""

    def __init__(
        self, *, stores: Stores, clock: Clock, texts: Texts, ends: TurnEnds, setup: TurnSetup
    ) -> None:
        self._stores, self._clock, self._texts = stores, clock, texts
        self._ends, self._setup = ends, setup

    async def due(self) -> list[Waiting]:
        """The questions that ran out and were not told so, and those that cannot be read where
        they were to be asked in private."""
        async with self._stores.main.read() as tx:
            late = await suspensions.due(tx, self._clock.now())
            apart = await suspensions.open_apart(tx)
            dead = await outbox.dead_among(tx, [one.prompt_key for one, _ in apart])
            found = []
            for one in late:
                stored = await turns.get(tx, one.turn_id)
                home = one.conversation if stored is None else stored.conversation
                found.append(Waiting(one, home))
        unread = [Waiting(one, home, unread=True) for one, home in apart if one.prompt_key in dead]
        return found + [one for one in unread if one.suspension not in late]

    async def homes(self, key: str, actor_id: str) -> list[str]:
        """Where the turns belong whose questions to this person stand here apart from them."""
        async with self._stores.main.read() as tx:
            apart = await suspensions.open_apart(tx)
        return sorted({h for q, h in apart if q.actor_id == actor_id and q.conversation == key})

    async def places(self, key: str, actor_id: str) -> list[str]:
        """This conversation and those that its open questions to this person touch, in the order
        in which they are to be held: where questions stand before where turns belong."""
        async with self._stores.main.read() as tx:
            apart = await suspensions.open_apart(tx)
        theirs = [(one.conversation, home) for one, home in apart if one.actor_id == actor_id]
        stand = sorted({place for place, home in theirs if home == key})
        return [*stand, key, *sorted({home for place, home in theirs if place == key})]

    async def drop(self, address: ChatAddress, actor: Actor) -> bool:
        """End the turns of this person that wait for an answer there, or elsewhere for what was
        asked there. False: none does."""
        now = self._clock.now()
        async with self._stores.main.read() as tx:
            waiting = await suspensions.open_of(tx, address.key, actor.id, now)
            waiting += [
                one
                for one, home in await suspensions.open_apart(tx)
                if home == address.key and one.actor_id == actor.id
            ]
        ended = [
            await self._end(one, SuspensionState.CANCELLED, ErrorCode.CANCELLED) for one in waiting
        ]
        return any(ended)

    async def leave(self, running: Mapping[str, str]) -> list[ChatAddress]:
        """End the turns that wait for people whose right was withdrawn, without a word; and where
        turns of such people still run. `running`: conversation → actor."""
        async with self._stores.main.read() as tx:
            waiting = await turns.waiting_for(tx)
            ids = {*waiting, *running.values()}
            gone = {one for one in ids if await actors.is_revoked(tx, one)}
            left = [
                turn for one in waiting if one in gone for turn in await turns.waiting_of(tx, one)
            ]
            former = {one: await actors.find_former(tx, one) for one in gone}
        for turn in left:
            async with self._stores.main.write() as tx:
                mine = await turns.go_on(tx, turn.id)
            if mine and (actor := former[turn.actor_id]) is not None:
                await self.cut_short(turn, actor, ErrorCode.CANCELLED)
        return [ChatAddress.from_key(key) for key, one in running.items() if one in gone]

    async def end(self, one: Waiting) -> list[TurnEvent]:
        """End one turn that waits in vain; [] when its question is no longer open."""
        if not one.unread:
            return await self.expire_one(one.suspension)
        code = ErrorCode.PRIVATE_CHAT_CLOSED
        return await self._end(one.suspension, SuspensionState.CANCELLED, code)

    async def expire_one(self, suspension: Suspension) -> list[TurnEvent]:
        """End one turn whose question ran out; [] when it is no longer open."""
        return await self._end(suspension, SuspensionState.EXPIRED, ErrorCode.QUESTION_EXPIRED)

    async def answered_late(
        self, inbound: Inbound, actor: Actor, message: str | None
    ) -> tuple[TurnEvent, ...]:
        """What an answer is told that replies to a question (the message or outbox row that shows
        it) which ran out: so, and a button to ask again. () when it replies to none such.

        What was meant for a secret is kept nowhere, whatever became of its question.
        """
        if message is None:
            return ()
        async with self._stores.main.read() as tx:
            found = await suspensions.find_by_message(tx, inbound.address.key, actor.id, message)
            stored = None if found is None else await turns.get(tx, found[0].turn_id)
            changed = stored is not None and bool(await effects.of_turn(tx, stored.id))
        if found is None or stored is None:
            return ()
        suspension, state = found
        if state is SuspensionState.OPEN and (told := await self.expire_one(suspension)):
            return tuple(told)
        if suspension.asked.kind is FieldKind.SECRET:
            return (self._ends.unkept(inbound, ErrorInfo(ErrorCode.QUESTION_EXPIRED)),)
        if state is not SuspensionState.EXPIRED:
            return ()
        turn_id, now = self._clock.new_id(), self._clock.now()
        text = redact(inbound.text)
        context = self._setup.context(turn_id, actor, inbound.address, stored.lang, now, text)
        async with self._stores.main.write() as tx:
            await turns.open_turn(
                tx,
                turn_id=turn_id,
                inbound_id=inbound.id,
                actor_id=actor.id,
                conversation=inbound.address.key,
                lang=stored.lang,
                request=text,
                now=now,
            )
        left = Effects.DONE if changed else Effects.NONE
        offers = again_of(stored.request, left, turn_id=stored.id)
        error = ErrorInfo(ErrorCode.QUESTION_EXPIRED)
        ended = TurnState(turn_id, text)
        return (await self._ends.cut_short(context, ended, error, offers=offers),)

    async def _end(
        self, suspension: Suspension, state: SuspensionState, code: ErrorCode
    ) -> list[TurnEvent]:
        now = self._clock.now()
        async with self._stores.main.write() as tx:
            stored = await turns.get(tx, suspension.turn_id)
            actor = await actors.get_actor(tx, suspension.actor_id)
            ended = await suspensions.settle(tx, suspension.id, state, now)
            if stored is None or actor is None or not ended:
                return []
            key = f"dialog.{state.value}"
            settled = await self.settle(tx, suspension, stored.lang, actor, key)
            await turns.go_on(tx, stored.id)
        # A crash here leaves a running turn of a later segment: `Turns.recover` ends it.
        return [settled, await self.cut_short(stored, actor, code)]

    async def cut_short(
        self, stored: turns.StoredTurn, actor: Actor, code: ErrorCode
    ) -> TurnClosed:
        """End a stored turn, from its state as it was kept and its journal."""
        try:
            state = TurnState.from_json(stored.state_data) if stored.state_data else None
        except StoreError:
            state = None
        state = state or lost_state(stored)
        address = ChatAddress.from_key(stored.conversation)
        now = self._clock.now()
        context = self._setup.context(
            stored.id,
            actor,
            address,
            stored.lang,
            now,
            state.request,
            message_ref=stored.message_ref,
        )
        offers: Rows = ()
        if code in _MAY_ASK_AGAIN:
            offers = again_of(state.request, state.effects, turn_id=stored.id)
        if code in _UNANSWERED and (end := ended_at_cap(state)) is not None:
            return await self._ends.close(context, end, offers=offers)
        return await self._ends.cut_short(context, state, ErrorInfo(code), offers=offers)

    async def settle(
        self,
        tx: Transaction,
        suspension: Suspension,
        lang: str,
        actor: Actor,
        key: str,
        **params: str,
    ) -> QuestionSettled:
        """What stands in the question's place from now on: nothing where the person's own words
        stand under it."""
        now = self._clock.now()
        time = self._texts.time(now, lang, self._setup.zone(actor))
        text = self._texts.say(key, lang, time=time, **params)
        if key == "dialog.answered" and suspension.asked.kind in _SEEN_IN_THE_CHAT:
            text = ""
        channel = ChatAddress.from_key(suspension.conversation).channel
        queued = channel in self._ends.outbox_channels
        shown = suspension.prompt_key if queued else None
        if shown is not None:
            await questions.settle(tx, shown, text, lang, now)
        return QuestionSettled(suspension.turn_id, text, shown)

    async def told_again(
        self, stored: turns.StoredTurn | None, actor: Actor, here: ChatAddress
    ) -> tuple[TurnEvent, ...]:
        """An answer that was taken before, or comes too late: what became of its turn. `here` is
        the conversation that is the caller's."""
        if stored is None:
            return ()
        if stored.state == "running" and stored.conversation == here.key:
            # Nobody works on it, since the conversation is ours: a crash cut it short.
            return (await self.cut_short(stored, actor, ErrorCode.INTERRUPTED),)
        return (await self.told_before(stored),)

    async def told_before(self, stored: turns.StoredTurn) -> TurnClosed | TurnSuspended:
        """The end, or the question, that a turn came to."""
        data = stored.reply
        reply = Reply.from_json(data) if data else Reply((), stored.lang, stored.id)
        queued = ChatAddress.from_key(stored.conversation).channel in self._ends.outbox_channels
        if stored.state != "suspended":
            kind = stored.final_kind or FinalKind.ERROR
            key = f"{stored.id}:final" if queued else None
            return TurnClosed(stored.id, kind, reply, None, key)
        async with self._stores.main.read() as tx:
            asked = await suspensions.of_turn(tx, stored.id)
        keys = [one.prompt_key for one, state in asked if state is SuspensionState.OPEN]
        return TurnSuspended(stored.id, reply, keys[-1] if keys and queued else None)


def lost_state(stored: turns.StoredTurn) -> TurnState:
    """The state of a turn whose own cannot be read: at the segment that ends now, with no step.
    `stored` as it was while the turn waited, or runs already."""
    waits = stored.state == "suspended"
    return TurnState(stored.id, stored.request, segment=stored.segment + waits)
