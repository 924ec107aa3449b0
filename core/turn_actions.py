"""Presses on buttons under answers: whose they are, once, and what each of them sets going.

Call it under the lock of the conversation. A press is used up in the transaction that begins what
it asks for; pressed again, by somebody else or too late it does nothing and is told so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.clock import Clock
from core.errors import ErrorCode, ErrorInfo
from core.execution.recovery import may_begin_again
from core.i18n import Texts
from core.messages import (
    Actor,
    Block,
    ButtonsChanged,
    FinalKind,
    Inbound,
    InboundKind,
    QuestionSettled,
    Reply,
    TurnClosed,
    TurnEvent,
)
from core.redaction import redact
from core.store import actions, effects, outbox, questions, turns
from core.store.actions import Action, PressedAction
from core.store.database import Transaction
from core.store.stores import Stores
from core.store.suspensions import Standing
from core.turn_ends import TurnEnds
from core.turn_offers import Drawn, Rows, draw
from core.turn_setup import TurnSetup
from core.turn_state import TurnState
from core.turn_taken import Resumed, Taken
from core.turn_unanswered import Unanswered


@dataclass(frozen=True, slots=True)
class Press:
    """A press that stands: by its owner, in time, where it was shown, for the first time."""

    inbound: Inbound
    actor: Actor
    action: Action
    lang: str


@dataclass(frozen=True, slots=True)
class Act:
    """What a press does, all of it in one transaction.

    `settles`: the text (a key; `{time}` and `params` are known) that takes the place of the whole
    row, whose buttons are used up. Without it the row stays, or becomes `row`; `again` leaves the
    very button usable. `begins`: a turn of its own that goes on from this state; its `turn_id` is
    given here. `talk` and `quoted` are what it knows besides. Without one, `tells` is said as a
    message, or else `says` as a word. `writes` is called in the transaction, and `redraws` after
    it: the buttons that stand from then on, with what the new ones among them offer; those that
    are left out are its own to void.
    """

    settles: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    row: Rows | None = None
    redraws: Callable[[Transaction], Awaitable[Drawn | None]] | None = None
    again: bool = False
    begins: TurnState | None = None
    talk: Sequence[tuple[str, str, bool]] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    says: str = ""
    tells: tuple[Block, ...] = ()
    writes: Callable[[Transaction], Awaitable[None]] | None = None


Handler = Callable[[Press], Awaitable[Act]]


@dataclass(frozen=True, slots=True)
class Said:
    """What a command without a turn says, and the buttons under it."""

    blocks: tuple[Block, ...]
    rows: Rows = ()


Command = Callable[[Inbound, Actor, str], Awaitable[Said]]

_WORDS = {
    Standing.FOREIGN: "action.not_yours",
    Standing.OVER: "action.over",
    Standing.EXPIRED: "action.expired",
}


class TurnActions:
    """Knows what the buttons mean: `handlers` by the name of the action."""

    def __init__(
        self,
        *,
        stores: Stores,
        clock: Clock,
        texts: Texts,
        ends: TurnEnds,
        setup: TurnSetup,
        late: Unanswered,
        handlers: Mapping[str, Handler],
        commands: Mapping[str, Command],
    ) -> None:
        self._stores, self._clock, self._texts = stores, clock, texts
        self._ends, self._setup, self._late = ends, setup, late
        self._handlers, self._commands = handlers, commands

    async def take(self, inbound: Inbound, actor: Actor) -> Taken | None:
        """Take a press, or a command that needs no turn. None: it is neither, or its token means
        no action."""
        if inbound.kind is InboundKind.TEXT and inbound.text.strip() in self._commands:
            return await self._command(inbound, actor, self._commands[inbound.text.strip()])
        if inbound.kind is not InboundKind.CHOICE:
            return None
        data, now = inbound.data, self._clock.now()
        message_id = data.get("message_id")
        async with self._stores.main.read() as tx:
            pressed = await actions.find(
                tx,
                str(data.get("token") or ""),
                actor_id=actor.id,
                conversation=inbound.address.key,
                message_id=message_id if isinstance(message_id, str) else None,
                now=now,
            )
            shown = None if pressed is None else await turns.get(tx, pressed.action.turn_id)
        if pressed is None:
            return None
        lang = self._setup.lang(actor, inbound, "") if shown is None else shown.lang
        if pressed.standing is not Standing.OPEN:
            lang = self._setup.lang(actor, inbound, "")
            return self._word(_WORDS[pressed.standing], lang, pressed.standing)
        handler = self._handlers.get(pressed.action.name)
        if handler is None:  # offered by a version that could do more
            return self._word("action.over", lang, Standing.OVER)
        press = Press(inbound, actor, pressed.action, lang)
        return await self._act(press, pressed, await handler(press))

    async def _command(self, inbound: Inbound, actor: Actor, command: Command) -> Taken:
        lang, now = self._setup.lang(actor, inbound, ""), self._clock.now()
        said = await command(inbound, actor, lang)
        drawn, key = draw(said.rows, self._texts, lang), f"press:{inbound.id}"
        reply = Reply(said.blocks, lang, buttons=drawn.buttons, answers=inbound.message_ref)
        queued = inbound.address.channel in self._ends.outbox_channels
        async with self._stores.main.write() as tx:
            if not queued or await outbox.enqueue(tx, key, inbound.address, reply.to_json(), now):
                await drawn.store(
                    tx,
                    turn_id="",
                    actor_id=actor.id,
                    conversation=inbound.address.key,
                    shown_key=key,
                    now=now,
                )
        return Taken((TurnClosed("", FinalKind.ANSWER, reply, None, key if queued else None),))

    async def take_up(
        self, former: turns.StoredTurn, actor: Actor
    ) -> tuple[Taken | None, TurnState | None]:
        """A turn that a crash cut short and whose inbound came again: its end when it may have
        changed something, else the state it had come to, if any was kept."""
        async with self._stores.main.read() as tx:
            journal = await effects.of_turn(tx, former.id)
        if former.segment > 1 or not may_begin_again(journal):
            return Taken((await self._late.cut_short(former, actor, ErrorCode.INTERRUPTED),)), None
        data = former.state_data
        return None, TurnState.from_json(data) if data else None

    async def _act(self, press: Press, pressed: PressedAction, act: Act) -> Taken:
        now, action = self._clock.now(), pressed.action
        row = None if act.row is None else draw(act.row, self._texts, press.lang)
        turn_id = self._clock.new_id()
        state = None if act.begins is None else replace(act.begins, turn_id=turn_id)
        events: list[TurnEvent] = []
        async with self._stores.main.write() as tx:
            whole = act.settles is not None or row is not None
            if not act.again and not await actions.consume(tx, pressed, now, whole_row=whole):
                return self._word("action.over", press.lang, Standing.OVER)
            if act.again and whole:
                await actions.void(tx, action.shown_key, now)
            if act.writes is not None:
                await act.writes(tx)
            if act.redraws is not None:
                row = await act.redraws(tx)
            if act.settles is not None:
                events.append(await self._settle(tx, press, act.settles, act.params))
            elif row is not None:
                key = self._shown(action)
                shown = Reply((), press.lang, action.turn_id, buttons=row.buttons)
                await row.store(
                    tx,
                    turn_id=action.turn_id,
                    actor_id=action.actor_id,
                    conversation=action.conversation,
                    shown_key=action.shown_key,
                    now=now,
                )
                await questions.redraw(tx, action.shown_key, shown, now, change_id=turn_id[:12])
                events.append(ButtonsChanged(action.turn_id, shown, key))
            if state is not None:
                await turns.open_turn(
                    tx,
                    turn_id=turn_id,
                    inbound_id=press.inbound.id,
                    actor_id=press.actor.id,
                    conversation=press.inbound.address.key,
                    lang=press.lang,
                    request=redact(state.request),
                    now=now,
                    state=state.to_json(),
                )
            told = await self._tell(tx, press, act.tells)
            rights = await self._setup.rights(tx, press.actor, now)
        if state is None:
            reply = Reply(act.tells or _said(act.says), press.lang)
            return Taken((*events, TurnClosed("", FinalKind.ANSWER, reply, None, told)))
        context = self._setup.context(
            turn_id,
            press.actor,
            press.inbound.address,
            press.lang,
            now,
            state.request,
            talk=act.talk,
            **act.given,
            rights=rights,
            interactive=press.inbound.is_interactive,
            alone=press.inbound.alone,
        )
        return Taken(tuple(events), Resumed(context, state))

    async def _settle(
        self, tx: Transaction, press: Press, key: str, params: Mapping[str, str]
    ) -> QuestionSettled:
        """What stands in the row's place from now on."""
        now, action = self._clock.now(), press.action
        time = self._texts.time(now, press.lang, self._setup.zone(press.actor))
        text = self._texts.say(key, press.lang, time=time, **params)
        shown = self._shown(action)
        if shown is not None:
            await questions.settle(tx, shown, text, press.lang, now)
        return QuestionSettled(action.turn_id, text, shown)

    async def _tell(self, tx: Transaction, press: Press, blocks: tuple[Block, ...]) -> str | None:
        """Queue a message, once however often this press is worked; its row."""
        address = press.inbound.address
        if not blocks or address.channel not in self._ends.outbox_channels:
            return None
        key = f"press:{press.inbound.id}"
        body = Reply(blocks, press.lang).to_json()
        await outbox.enqueue(tx, key, address, body, self._clock.now())
        return key

    def _shown(self, action: Action) -> str | None:
        channel = action.conversation.partition(":")[0]
        return action.shown_key if channel in self._ends.outbox_channels else None

    def _word(self, key: str, lang: str, standing: Standing) -> Taken:
        foreign = standing is Standing.FOREIGN
        error = ErrorInfo(ErrorCode.NOT_AUTHORIZED if foreign else ErrorCode.QUESTION_EXPIRED)
        reply = Reply((Block("text", self._texts.say(key, lang)),), lang, None, FinalKind.ERROR)
        return Taken((TurnClosed("", FinalKind.ERROR, reply, error),))


def _said(word: str) -> tuple[Block, ...]:
    return (Block("text", word),) if word else ()
