"""Answers to questions: which question an inbound is for, and how its turn goes on.

Nothing is parked: what a turn needs stands in the store. An answer is claimed once, in the
transaction that takes the buttons away; catalogue and rights are read anew before it goes on.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from core import dialogs
from core.clock import Clock
from core.dialogs import Answer, FieldKind, Suspension, SuspensionKind, SuspensionState
from core.errors import ErrorCode, ErrorInfo, StoreTooNew
from core.execution.consent import LIST, Decision
from core.execution.context import TurnContext
from core.i18n import Texts
from core.levels.runner import Resumption
from core.messages import (
    Actor,
    Block,
    ChatAddress,
    FinalKind,
    Inbound,
    InboundKind,
    QuestionSettled,
    Reply,
    TurnClosed,
    TurnEvent,
    TurnSuspended,
)
from core.store import actors, grants, kv, outbox, questions, suspensions, turns
from core.store.database import Transaction
from core.store.stores import Stores
from core.store.suspensions import Standing
from core.turn_ends import TurnEnds
from core.turn_question import CANCEL, again, are_same
from core.turn_setup import TurnSetup
from core.turn_state import TurnState


@dataclass(frozen=True, slots=True)
class Resumed:
    """A turn that goes on: with what was decided, or to its end with `error`."""

    context: TurnContext
    state: TurnState
    resumption: Resumption
    error: ErrorInfo | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of an answer: events to tell at once, and the turn that goes on, if one does."""

    events: tuple[TurnEvent, ...]
    resumed: Resumed | None = None


class TurnResume:
    """Matches answers with questions. Call it under the lock of the conversation."""

    def __init__(
        self, *, stores: Stores, clock: Clock, texts: Texts, ends: TurnEnds, setup: TurnSetup
    ) -> None:
        self._stores, self._clock, self._texts = stores, clock, texts
        self._ends, self._setup = ends, setup

    async def take(self, inbound: Inbound, actor: Actor) -> Taken | None:
        """Take an inbound as the answer to an open question of this person in this conversation.

        None: it is none, but a new request. A button always is an answer: forged, old, of another
        person or pressed twice it changes nothing and is told so.
        """
        now, here = self._clock.now(), inbound.address.key
        async with self._stores.main.read() as tx:
            taken_before = await kv.get(tx, _answered(inbound))
            if taken_before is not None:
                stored = await turns.get(tx, taken_before)
                return await self._told_again(stored, actor)
            if inbound.kind is InboundKind.CHOICE:
                pressed = await suspensions.find_by_token(
                    tx,
                    str(inbound.data.get("token") or ""),
                    actor_id=actor.id,
                    conversation=here,
                    message_id=_text(inbound.data.get("message_id")),
                    now=now,
                )
            open_ones = await suspensions.open_of(tx, here, actor.id, now)
        if inbound.kind is InboundKind.CHOICE:
            if pressed is None:
                expired = ErrorInfo(ErrorCode.QUESTION_EXPIRED)
                return Taken((self._ends.unkept(inbound, expired),))
            return await self._pressed(inbound, actor, pressed, now)
        if inbound.kind is InboundKind.LOCATION:
            return await self._located(inbound, actor, open_ones)
        if inbound.kind is not InboundKind.TEXT or not open_ones:
            return None
        lang = self._setup.lang(actor, inbound, inbound.text)
        today = self._today(actor, now)
        asked = dialogs.which(
            open_ones,
            inbound.text,
            _text(inbound.data.get("reply_to")),
            lang=lang,
            today=today,
        )
        if asked is None:
            return None
        if dialogs.is_cancel(inbound.text):
            return await self._answer(inbound, actor, asked, None)
        answer = dialogs.parse_answer(asked.asked, inbound.text, lang=lang, today=today)
        if answer is None:
            return await self._ask_again(inbound, actor, asked, "dialog.not_understood")
        return await self._answer(inbound, actor, asked, answer)

    async def expire(self) -> list[tuple[ChatAddress, TurnEvent]]:
        """End the turns whose questions ran out, each with a word; what to tell, and where.

        Safe to call at any time: a question that is claimed meanwhile is left alone.
        """
        now = self._clock.now()
        async with self._stores.main.read() as tx:
            due = await suspensions.due(tx, now)
        told: list[tuple[ChatAddress, TurnEvent]] = []
        for suspension in due:
            address = ChatAddress.from_key(suspension.conversation)
            told += [(address, event) for event in await self._expire(suspension)]
        return told

    async def recover(self) -> None:
        """End the turns that a crash cut short after a question, whatever their channel: their
        answer is not going to be given again. Only at the start of the engine."""
        async with self._stores.main.read() as tx:
            left = [turn for turn in await turns.running(tx) if turn.segment > 1]
            persons = [await actors.get_actor(tx, turn.actor_id) for turn in left]
        for stored, actor in zip(left, persons, strict=True):
            if actor is not None:
                await self.cut_short(stored, actor, ErrorCode.INTERRUPTED)

    # -- ways to answer ---------------------------------------------------------------------------

    async def _pressed(
        self, inbound: Inbound, actor: Actor, pressed: suspensions.Pressed, now: dt.datetime
    ) -> Taken:
        suspension, choice = pressed.suspension, pressed.choice
        if pressed.standing is Standing.FOREIGN:
            lang = self._setup.lang(actor, inbound, "")
            text = self._texts.say("dialog.not_yours", lang)
            reply = Reply((Block("text", text),), lang, None, FinalKind.ERROR)
            error = ErrorInfo(ErrorCode.NOT_AUTHORIZED)
            return Taken((TurnClosed("", FinalKind.ERROR, reply, error),))
        if pressed.standing is Standing.EXPIRED:
            events = await self._expire(suspension)
            if events:
                return Taken(tuple(events))
        if pressed.standing is not Standing.OPEN:
            async with self._stores.main.read() as tx:
                stored = await turns.get(tx, suspension.turn_id)
            return await self._told_again(stored, actor)
        if choice == LIST:
            return await self._ask_again(inbound, actor, suspension, "dialog.listed", whole=True)
        if choice == CANCEL:
            return await self._answer(inbound, actor, suspension, None)
        answer = dialogs.answer_of_choice(suspension.asked, choice)
        return await self._answer(inbound, actor, suspension, answer)

    async def _located(
        self, inbound: Inbound, actor: Actor, open_ones: list[Suspension]
    ) -> Taken | None:
        for suspension in open_ones:
            if suspension.asked.kind is FieldKind.LOCATION:
                place = {
                    name: inbound.data[name]
                    for name in ("lat", "lon", "accuracy")
                    if isinstance(inbound.data.get(name), (int, float))
                }
                if {"lat", "lon"} <= place.keys():
                    return await self._answer(inbound, actor, suspension, Answer(place))
        return None

    async def _answer(
        self, inbound: Inbound, actor: Actor, suspension: Suspension, answer: Answer | None
    ) -> Taken:
        """Go on with an answer, to the next field or with the turn. None: the question is dropped,
        which for an approval is a no."""
        if answer is not None and not suspension.is_last:
            return await self._next_field(inbound, actor, suspension, answer)
        approval = suspension.kind is SuspensionKind.APPROVAL and not suspension.fields
        agreed = answer is not None and (not approval or answer.value is True)
        values = {} if answer is None else dialogs.with_answer(suspension, answer)
        decision = Decision(agreed, suspension.digest if agreed else None, values)
        key = "dialog.answered"
        if approval:
            key = "dialog.approved" if agreed else "dialog.declined"
        elif answer is None:
            key = "dialog.cancelled"
        now = self._clock.now()
        async with self._stores.main.write() as tx:
            claimed = await suspensions.claim(tx, suspension.id, now)
            stored = await turns.get(tx, suspension.turn_id)
            taken = claimed is not None and stored is not None
            if stored is not None and taken and await turns.go_on(tx, stored.id):
                await kv.put(tx, _answered(inbound), stored.id)
                settled = await self._settle(tx, suspension, stored.lang, actor, key)
                granted = await grants.granted_to(tx, actor.id, now)
            else:
                claimed = None
        if claimed is None or stored is None:
            return await self._told_again(stored, actor)
        error = None
        if answer is None and not approval:
            error = ErrorInfo(ErrorCode.CANCELLED)
        try:
            state = TurnState.from_json(claimed.state)
        except StoreTooNew:
            state = TurnState(stored.id, stored.request)
            error = ErrorInfo(ErrorCode.INTERRUPTED)
        data = suspension.data
        context = self._setup.context(
            stored.id,
            actor,
            ChatAddress.from_key(suspension.conversation),
            stored.lang,
            now,
            state.request,
            talk=[(said, replied) for said, replied in data.get("talk", ())],
            quoted=data.get("quoted"),
            granted=granted,
        )
        if error is None and not are_same(data.get("programs") or {}, context):
            error = ErrorInfo(ErrorCode.EXECUTOR_CHANGED)
        asked_at = dt.datetime.fromisoformat(data["asked_at"])
        resumed = Resumed(context, state, Resumption(decision, asked_at), error)
        return Taken((settled,), resumed)

    async def _next_field(
        self, inbound: Inbound, actor: Actor, suspension: Suspension, answer: Answer
    ) -> Taken:
        values = dialogs.with_answer(suspension, answer)
        after = dialogs.advanced(suspension, values)
        return await self._move(inbound, actor, suspension, after, "dialog.answered")

    async def _ask_again(
        self,
        inbound: Inbound,
        actor: Actor,
        suspension: Suspension,
        key: str,
        *,
        whole: bool = False,
    ) -> Taken:
        """The same field once more, in a new message below; `key` stands in place of the old."""
        return await self._move(inbound, actor, suspension, suspension, key, whole=whole)

    async def _move(
        self,
        inbound: Inbound,
        actor: Actor,
        suspension: Suspension,
        after: Suspension,
        key: str,
        *,
        whole: bool = False,
    ) -> Taken:
        now = self._clock.now()
        async with self._stores.main.read() as tx:
            stored = await turns.get(tx, suspension.turn_id)
        if stored is None:
            return Taken((self._ends.unkept(inbound, ErrorInfo(ErrorCode.QUESTION_EXPIRED)),))
        context = self._setup.context(
            stored.id, actor, inbound.address, stored.lang, now, stored.request
        )
        asked = again(after, context, self._texts, question_id=self._clock.new_id(), whole=whole)
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
            )
            if moved is not None:
                await kv.put(tx, _answered(inbound), stored.id)
                settled = await self._settle(tx, suspension, stored.lang, actor, key)
                await turns.show_question(tx, stored.id, asked.reply.to_json())
                if queued and new_key is not None:
                    await outbox.enqueue(tx, new_key, inbound.address, asked.reply.to_json(), now)
        if moved is None:
            return await self._told_again(stored, actor)
        suspended = TurnSuspended(stored.id, asked.reply, new_key if queued else None)
        return Taken((settled, suspended))

    # -- ends -------------------------------------------------------------------------------------

    async def _expire(self, suspension: Suspension) -> list[TurnEvent]:
        now = self._clock.now()
        async with self._stores.main.write() as tx:
            stored = await turns.get(tx, suspension.turn_id)
            actor = await actors.get_actor(tx, suspension.actor_id)
            expired = await suspensions.settle(tx, suspension.id, SuspensionState.EXPIRED, now)
            if stored is None or actor is None or not expired:
                return []
            settled = await self._settle(tx, suspension, stored.lang, actor, "dialog.expired")
            await turns.go_on(tx, stored.id)
        # A crash here leaves a running turn of a later segment: `recover` ends it.
        return [settled, await self.cut_short(stored, actor, ErrorCode.QUESTION_EXPIRED)]

    async def cut_short(
        self, stored: turns.StoredTurn, actor: Actor, code: ErrorCode
    ) -> TurnClosed:
        """End a stored turn, from its state as it was kept and its journal."""
        try:
            state = TurnState.from_json(stored.state_data) if stored.state_data else None
        except StoreTooNew:
            state = None
        state = state or TurnState(stored.id, stored.request)
        address = ChatAddress.from_key(stored.conversation)
        now = self._clock.now()
        context = self._setup.context(stored.id, actor, address, stored.lang, now, state.request)
        return await self._ends.cut_short(context, state, ErrorInfo(code))

    async def _settle(
        self, tx: Transaction, suspension: Suspension, lang: str, actor: Actor, key: str
    ) -> QuestionSettled:
        """What stands in the question's place from now on."""
        now = self._clock.now()
        time = self._texts.time(now, lang, self._zone(actor))
        text = self._texts.say(key, lang, time=time)
        channel = ChatAddress.from_key(suspension.conversation).channel
        queued = channel in self._ends.outbox_channels
        shown = suspension.prompt_key if queued else None
        if shown is not None:
            await questions.settle(tx, shown, text, lang, now)
        return QuestionSettled(suspension.turn_id, text, shown)

    async def _told_again(self, stored: turns.StoredTurn | None, actor: Actor) -> Taken:
        """An answer that was taken before, or comes too late: what became of its turn."""
        if stored is None:
            return Taken(())
        if stored.state == "running":
            # Nobody works on it, since the conversation is ours: a crash cut it short.
            return Taken((await self.cut_short(stored, actor, ErrorCode.INTERRUPTED),))
        return Taken((await self.told_before(stored),))

    async def told_before(self, stored: turns.StoredTurn) -> TurnClosed | TurnSuspended:
        """The end, or the question, that a turn came to."""
        data = stored.reply
        reply = Reply.from_json(data) if data else Reply((), stored.lang, stored.id)
        if stored.state != "suspended":
            kind = stored.final_kind or FinalKind.ERROR
            return TurnClosed(stored.id, kind, reply, None, f"{stored.id}:final")
        async with self._stores.main.read() as tx:
            asked = await suspensions.of_turn(tx, stored.id)
        keys = [one.prompt_key for one, state in asked if state is SuspensionState.OPEN]
        channel = ChatAddress.from_key(stored.conversation).channel
        shown = keys[-1] if keys and channel in self._ends.outbox_channels else None
        return TurnSuspended(stored.id, reply, shown)

    def _zone(self, actor: Actor) -> str:
        return self._setup.zone(actor)

    def _today(self, actor: Actor, now: dt.datetime) -> dt.date:
        return now.astimezone(ZoneInfo(self._zone(actor))).date()


def _answered(inbound: Inbound) -> str:
    return f"answer:{inbound.id}"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
