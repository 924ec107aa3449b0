"""Answers to questions: which question an inbound is for, and how its turn goes on.

Nothing is parked: what a turn needs stands in the store. An answer is claimed once, in the
transaction that takes the buttons away; catalogue and rights are read anew before it goes on.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from typing import Any
from zoneinfo import ZoneInfo

from core import dialog_answers, dialogs
from core import turn_fields as fields
from core.clock import Clock
from core.dialogs import Answer, FieldKind, Suspension, SuspensionKind
from core.errors import ErrorCode, ErrorInfo, StoreError
from core.execution import consent
from core.execution.invoke import Gate
from core.i18n import Texts
from core.levels.runner import Resumption
from core.messages import (
    Actor,
    Block,
    ChatAddress,
    FinalKind,
    Inbound,
    InboundKind,
    Reply,
    Role,
    TurnClosed,
)
from core.positions import Position
from core.store import actors, credentials, kv, suspensions, turns
from core.store.stores import Stores
from core.store.suspensions import Standing
from core.turn_asking import Asking, answered
from core.turn_ends import TurnEnds
from core.turn_given import as_path, from_stored, is_not_for_voice, is_wordless
from core.turn_keeping import is_late_secret, locked, toggle
from core.turn_places import Emit, Places, place_of
from core.turn_question import CANCEL, alone_of, are_same, decided, is_whole, talk_of
from core.turn_setup import TurnSetup
from core.turn_state import TurnState
from core.turn_taken import Resumed, Taken
from core.turn_typed import NOT_OFFERED, typed_button
from core.turn_unanswered import Unanswered, lost_state


class TurnResume:
    """Matches answers with questions. Call it under the lock of the conversation."""

    def __init__(
        self,
        *,
        stores: Stores,
        clock: Clock,
        texts: Texts,
        ends: TurnEnds,
        setup: TurnSetup,
        late: Unanswered,
        gate: Gate,
    ) -> None:
        self._stores, self._clock, self._texts = stores, clock, texts
        self._ends, self._setup, self._late = ends, setup, late
        self._places = Places(gate=gate, texts=texts, setup=setup)
        self._asking = Asking(
            stores=stores,
            clock=clock,
            texts=texts,
            ends=ends,
            setup=setup,
            late=late,
            places=self._places,
        )

    async def take(
        self, inbound: Inbound, actor: Actor, emit: Emit, *, held: Collection[str] = ()
    ) -> Taken | None:
        """Take an inbound as the answer to an open question of this person in this conversation.
        `emit` hears of what takes longer before it is done. `held`: other conversations that are
        the caller's too, so that questions of their turns may be answered here.

        None: it is none, but a new request. A button always is an answer: forged, old, of another
        person or pressed twice it changes nothing and is told so.
        """
        now, here = self._clock.now(), inbound.address.key
        async with self._stores.main.read() as tx:
            taken_before = await kv.get(tx, answered(inbound))
            former = None if taken_before is None else await turns.get(tx, taken_before)
            if inbound.kind is InboundKind.CHOICE:
                pressed = await suspensions.find_by_token(
                    tx,
                    str(inbound.data.get("token") or ""),
                    actor_id=actor.id,
                    conversation=here,
                    message_id=_text(inbound.data.get("message_id")),
                    decides=actor.role is Role.HOST,
                    now=now,
                )
            # One that was put here just now by a turn that nobody holds has not been seen yet.
            free = {q.id for q, home in await suspensions.open_apart(tx) if home not in held}
            all_open = await suspensions.open_of(tx, here, actor.id, now)
            open_ones = [one for one in all_open if one.id not in free]
            rights = await self._setup.rights(tx, actor, now)
        if taken_before is not None:
            return Taken(await self._late.told_again(former, actor, inbound.address))
        if inbound.kind is InboundKind.CHOICE:
            if pressed is None:
                expired = ErrorInfo(ErrorCode.QUESTION_EXPIRED)
                return Taken((self._ends.unkept(inbound, expired),))
            if pressed.standing is Standing.OPEN and pressed.suspension.actor_id != actor.id:
                return await self._decided(inbound, pressed, now, emit)
            return await self._pressed(inbound, actor, pressed, now, emit)
        if inbound.kind is InboundKind.LOCATION:
            return await self._located(inbound, actor, open_ones)
        if inbound.kind is InboundKind.FILE:
            inbound = as_path(inbound, open_ones)
        if inbound.kind not in {InboundKind.TEXT, InboundKind.VOICE}:
            return None
        if is_wordless(inbound, inbound.text.strip()):
            return None  # what others wrote answers nothing
        reply_to = _text(inbound.data.get("reply_to"))
        lang = self._setup.lang(actor, inbound, inbound.text)
        today = self._today(actor, now)
        if (typed := typed_button(open_ones, inbound.text, reply_to, self._texts)) is not None:
            card, choice = typed
            if choice == NOT_OFFERED:
                return await self._ask_again(inbound, actor, card, "dialog.not.always")
            standing = suspensions.Pressed(Standing.OPEN, choice, card)
            return await self._pressed(inbound, actor, standing, now, emit)
        asked = dialog_answers.which(open_ones, inbound.text, reply_to, lang=lang, today=today)
        if asked is None:
            # What answers a secret that is not asked any more is still nobody's request.
            if await is_late_secret(self._stores, inbound):
                late = ErrorInfo(ErrorCode.QUESTION_EXPIRED)
                return Taken((self._ends.unkept(inbound, late),))
            told = await self._late.answered_late(inbound, actor, reply_to)
            return Taken(told) if told else None
        # What is asked of a damaged row cannot be read any more: no text would ever fit it.
        if dialog_answers.is_cancel(inbound.text) or not is_whole(asked):
            return await self._answer(inbound, actor, asked, None)
        if inbound.kind is InboundKind.VOICE and is_not_for_voice(asked):
            text = self._texts.say("dialog.not_by_voice", lang)
            reply = Reply((Block("text", text),), lang, None, FinalKind.ERROR)
            return Taken(
                (TurnClosed("", FinalKind.ERROR, reply, ErrorInfo(ErrorCode.INVALID_ARGS)),)
            )
        answer = dialog_answers.read_answer(asked, inbound.text, lang=lang, today=today)
        if answer is None:
            return await self._asking.missed(inbound, actor, asked)
        if asked.wants_place and not answer.skipped:
            return await self._placed(inbound, actor, asked, answer.value, emit)
        if asked.asked.kind is FieldKind.FILE_PATH and not answer.skipped:
            context = self._setup.context(
                asked.turn_id, actor, inbound.address, lang, now, "", rights=rights
            )
            if not fields.is_within(context.scope, str(answer.value)):
                return await self._ask_again(inbound, actor, asked, "dialog.not.in_scope")
        return await self._answer(inbound, actor, asked, answer)

    async def follow(self, inbound: Inbound) -> None:
        """See `Places.follow`."""
        await self._places.follow(inbound)

    # -- ways to answer ---------------------------------------------------------------------------

    async def _decided(
        self, inbound: Inbound, pressed: suspensions.Pressed, now: dt.datetime, emit: Emit
    ) -> Taken:
        """The host says yes or no for somebody else: the turn goes on as that person's."""
        async with self._stores.main.read() as tx:
            owner = await actors.get_actor(tx, pressed.suspension.actor_id)
        if owner is None:
            expired = ErrorInfo(ErrorCode.QUESTION_EXPIRED)
            return Taken((self._ends.unkept(inbound, expired),))
        return await self._pressed(inbound, owner, pressed, now, emit, by_host=True)

    async def _pressed(
        self,
        inbound: Inbound,
        actor: Actor,
        pressed: suspensions.Pressed,
        now: dt.datetime,
        emit: Emit,
        *,
        by_host: bool = False,
    ) -> Taken:
        suspension, choice = pressed.suspension, pressed.choice
        if pressed.standing is Standing.FOREIGN:
            lang = self._setup.lang(actor, inbound, "")
            text = self._texts.say("dialog.not_yours", lang)
            reply = Reply((Block("text", text),), lang, None, FinalKind.ERROR)
            error = ErrorInfo(ErrorCode.NOT_AUTHORIZED)
            return Taken((TurnClosed("", FinalKind.ERROR, reply, error),))
        if pressed.standing is Standing.EXPIRED:
            events = await self._late.expire_one(suspension)
            if events:
                return Taken(tuple(events))
        if pressed.standing is not Standing.OPEN:
            async with self._stores.main.read() as tx:
                stored = await turns.get(tx, suspension.turn_id)
            return Taken(await self._late.told_again(stored, actor, inbound.address))
        if choice == consent.LIST:
            return await self._ask_again(inbound, actor, suspension, "dialog.listed", whole=True)
        if choice == CANCEL:
            return await self._answer(inbound, actor, suspension, None, by_host=by_host)
        if choice == consent.TYPE:
            after = dialogs.anew(suspension, typing=True)
            return await self._asking.move(inbound, actor, suspension, after, "dialog.typing")
        if fields.is_toggle(suspension, choice):
            key, queued = answered(inbound), self._ends.outbox_channels
            stored, drawn = await toggle(
                self._stores, self._clock, suspension, choice, key, queued=queued
            )
            return Taken(drawn or await self._late.told_again(stored, actor, inbound.address))
        # A yes with something more to it.
        plain = consent.YES if choice in {consent.ALWAYS, consent.CHANGE} else choice
        answer = fields.pressed(suspension, plain)
        if suspension.wants_place and choice != fields.SKIP:
            place = None if answer is None else dialogs.chosen(suspension, answer).value
            return await self._placed(inbound, actor, suspension, place, emit)
        return await self._answer(inbound, actor, suspension, answer, choice, by_host=by_host)

    async def _located(
        self, inbound: Inbound, actor: Actor, open_ones: list[Suspension]
    ) -> Taken | None:
        """A place that was shared: the answer to a question for one; else it is kept, and said."""
        position, asked = self._places.shared(inbound, open_ones)
        if position is None or asked is None:
            return Taken((await self._places.unasked(inbound, actor, position),))
        answer = Answer(place_of(position))
        return await self._answer(inbound, actor, asked, answer, position=position)

    async def _placed(
        self, inbound: Inbound, actor: Actor, suspension: Suspension, place: Any, emit: Emit
    ) -> Taken:
        """A place in words or chosen. Until it is clear the question stays open."""
        read = await self._places.read(inbound, actor, suspension, place, emit)
        if read.after is not None:
            return await self._asking.move(
                inbound, actor, suspension, read.after, read.key, address=read.address
            )
        answer = Answer(dict(read.place))
        return await self._answer(inbound, actor, suspension, answer, position=read.position)

    async def _answer(
        self,
        inbound: Inbound,
        actor: Actor,
        suspension: Suspension,
        answer: Answer | None,
        choice: str | None = None,
        *,
        position: Position | None = None,
        by_host: bool = False,
    ) -> Taken:
        """Go on with an answer, to the next field or with the turn. None: the question is dropped,
        which for an approval is a no. `choice`: the button that was pressed; `position`: where
        the person is then; `by_host`: it was the host who decided for them."""
        if answer is not None and not suspension.is_last:
            kept, secret = locked(self._stores, self._clock, suspension, answer)
            values = dialogs.with_answer(suspension, kept or answer)
            after = dialogs.advanced(suspension, values)
            key = "dialog.answered"
            return await self._asking.move(
                inbound, actor, suspension, after, key, secret=secret, position=position
            )
        at_cap = suspension.kind is SuspensionKind.CAP
        approval = at_cap or (suspension.kind is SuspensionKind.APPROVAL and not suspension.fields)
        answer, secret = locked(self._stores, self._clock, suspension, answer)
        decision, key = decided(suspension, answer, choice)
        place = "" if position is None or answer is None else position.label
        key = "dialog.placed" if place else key
        if by_host:
            key = "dialog.host_agreed" if decision.agreed else "dialog.host_declined"
        said = answer.said if answer is not None else ""
        now = self._clock.now()
        async with self._stores.main.write() as tx:
            claimed = await suspensions.claim(tx, suspension.id, now)
            stored = await turns.get(tx, suspension.turn_id)
            taken = claimed is not None and stored is not None
            if stored is not None and taken and await turns.go_on(tx, stored.id):
                await kv.put(tx, answered(inbound), stored.id)
                if secret is not None:
                    await credentials.keep_answer(tx, secret, now)
                if answer is not None and stored.conversation != suspension.conversation:
                    key = "dialog.goes_on_there"
                settled = await self._late.settle(
                    tx, suspension, stored.lang, actor, key, place=place, said=said
                )
                if position is not None:
                    await self._places.keep(tx, actor, position)
                rights = await self._setup.rights(tx, actor, now)
            else:
                claimed = None
        if claimed is None or stored is None:
            return Taken(await self._late.told_again(stored, actor, inbound.address))
        error = None
        if answer is None and not approval:
            error = ErrorInfo(ErrorCode.CANCELLED)
        try:
            state = TurnState.from_json(claimed.state)
        except StoreError:
            state = lost_state(stored)
            error = ErrorInfo(ErrorCode.INTERRUPTED)
        if not is_whole(suspension):
            error = ErrorInfo(ErrorCode.INTERRUPTED)
        data = suspension.data
        context = self._setup.context(
            stored.id,
            actor,
            ChatAddress.from_key(stored.conversation),
            stored.lang,
            now,
            state.request,
            talk=talk_of(data),
            **from_stored(data),
            rights=rights,
            interactive=inbound.is_interactive,
            scheduled=data.get("scheduled") is True,
            alone=alone_of(data),
            message_ref=stored.message_ref,
        )
        goes_on = decision.agreed or not at_cap
        if error is None and goes_on and not are_same(data.get("programs") or {}, context):
            error = ErrorInfo(ErrorCode.EXECUTOR_CHANGED)
        asked_at = dt.datetime.fromisoformat(data.get("asked_at") or now.isoformat())
        resumed = Resumed(context, state, Resumption(decision, asked_at), error)
        return Taken((settled,), resumed)

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
        if not is_whole(suspension):
            return await self._answer(inbound, actor, suspension, None)
        return await self._asking.move(inbound, actor, suspension, suspension, key, whole=whole)

    def _today(self, actor: Actor, now: dt.datetime) -> dt.date:
        return now.astimezone(ZoneInfo(self._setup.zone(actor))).date()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
