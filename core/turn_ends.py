"""How a turn ends: reply, journal and usage in one transaction, then the line in the log."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

from core.clock import Clock
from core.config import Settings
from core.dialogs import SuspensionKind, SuspensionState
from core.errors import ErrorCode, ErrorInfo, MetnosError
from core.execution.consent import Question
from core.execution.context import TurnContext
from core.execution.giving import given
from core.execution.guests import at_home
from core.execution.sources import reply_is_external
from core.execution.undo_steps import is_undoable
from core.i18n import Texts
from core.language import choose_lang
from core.levels.cap_words import words_at_cap
from core.levels.remembering import FROM_MEMORY
from core.levels.renderer import Renderer
from core.levels.runner import Outcome
from core.levels.terminator import Closing, Terminator
from core.llm.client import Usage
from core.llm.tiers import Tiers
from core.messages import (
    Block,
    ChatAddress,
    FinalKind,
    Inbound,
    Reply,
    Role,
    TurnClosed,
    TurnSuspended,
)
from core.observation import Effects, Observation
from core.redaction import hide_handles
from core.store import actors, credentials, effects, outbox, scratchpad, suspensions, turns, usage
from core.store.database import Transaction
from core.store.stores import Stores
from core.store.turn_log import TurnLog
from core.turn_offers import UNDO, UNDO_ENGINE, Offer, Rows, after_cut, draw, more_of, shown_key
from core.turn_question import ask
from core.turn_report import log_line
from core.turn_state import StepRecord, TurnState

log = logging.getLogger(__name__)

SCRATCHPAD_TTL = dt.timedelta(hours=1)
MEMORY_SIGN = "⚡"


class TurnEnds:
    """Closes turns. `outbox_channels`: channels whose replies go out through the outbox."""

    def __init__(
        self,
        *,
        settings: Settings,
        stores: Stores,
        clock: Clock,
        texts: Texts,
        tiers: Tiers,
        turn_log: TurnLog,
        outbox_channels: Collection[str],
    ) -> None:
        self._settings, self._stores, self._clock = settings, stores, clock
        self._texts, self._tiers, self._turn_log = texts, tiers, turn_log
        self._terminator = Terminator(texts)
        self.outbox_channels = frozenset(outbox_channels)
        self._to_mark: list[str] = []

    async def close(
        self,
        context: TurnContext,
        outcome: Outcome,
        *,
        closing: Closing | None = None,
        offers: Rows = (),
        below: Rows = (),
    ) -> TurnClosed:
        """Write the end: turn, reply with what its buttons do, journal and usage in one
        transaction, then the log line. `offers`: rows of buttons besides those every end has.
        `below`: what stands in the place of those.

        Nothing is sent, and nothing is left to tell, to somebody whose right was withdrawn."""
        made = closing or self._terminator.close(
            outcome,
            request=context.request,
            lang=context.lang,
            tz=context.tz,
            home=context.scope.home,
            catalog=context.catalog,
            given=given(context.request, outcome.state.steps, context.scope),
        )
        outcome = replace(outcome, error=made.error or outcome.error)
        blocks = tuple(Block(b.kind, self._told(context, b.text)) for b in made.reply.blocks)
        rows = [*offers, *(below or _offers_of(outcome))]
        rows += more_of(made.reply.blocks, alone=not rows)
        drawn = draw(rows, self._texts, context.lang)
        ref, now = context.message_ref, self._clock.now()
        reply = replace(made.reply, blocks=blocks, buttons=drawn.buttons, answers=ref)
        if outcome.state.engine in FROM_MEMORY:
            reply = remembered(reply)
        line, day = self._line(context, outcome, reply, now, made.unbacked)
        key = shown_key(context)
        queued = context.address.channel in self.outbox_channels
        async with self._stores.main.write() as tx:
            await self.mark_logged(tx)
            await turns.close_turn(
                tx,
                context.turn_id,
                reply.final_kind,
                line,
                now,
                answer=reply.plain,
                reply=reply.to_json(),
                log_day=day,
                external=reply_is_external(
                    context,
                    outcome.state,
                    by_model=any(block.kind == "prose" for block in reply.blocks),
                ),
            )
            await drawn.store(
                tx,
                turn_id=context.turn_id,
                actor_id=context.actor.id,
                conversation=context.address.key,
                shown_key=key,
                now=now,
            )
            if outcome.state.segment > 1:
                dropped = outcome.error is not None and outcome.error.code is ErrorCode.CANCELLED
                await self._settle(tx, context.turn_id, now, dropped=dropped)
            await credentials.forget_turn(tx, context.turn_id)
            if any("scratchpad_id" in record.shown for record in outcome.state.steps):
                await scratchpad.close_turn(tx, context.turn_id, now + SCRATCHPAD_TTL)
            if await actors.is_revoked(tx, context.actor.id):
                queued, reply = False, replace(reply, blocks=(), buttons=())
            if queued:
                await outbox.enqueue(tx, key, context.address, reply.to_json(), now)
            await self._count(tx, context, outcome, day, turns=1)
        self._log(context.turn_id, line, day)
        return TurnClosed(
            context.turn_id, reply.final_kind, reply, outcome.error, key if queued else None
        )

    async def suspend(
        self, context: TurnContext, outcome: Outcome, question: Question
    ) -> TurnSuspended:
        """Let the turn wait: its state, the suspension, its buttons and the question in the outbox
        in one transaction, then the log line of this segment."""
        state, now = outcome.state, self._clock.now()
        if question.kind is SuspensionKind.CAP:
            renderer = Renderer(self._texts, context.lang, context.tz, context.scope.home)
            text = words_at_cap(state, self._terminator, renderer, context.catalog)
            question = replace(question, text=text)
        asked = ask(
            question, context, state, self._texts, question_id=self._clock.new_id(), now=now
        )
        reply = asked.reply
        if asked.suspension.conversation == context.address.key:
            reply = replace(reply, answers=context.message_ref)
        line, day = self._line(context, outcome, reply, now)
        queued = context.address.channel in self.outbox_channels
        later = replace(state, segment=state.segment + 1, told_steps=len(state.steps))
        suspension = asked.suspension
        async with self._stores.main.write() as tx:
            await self.mark_logged(tx)
            await turns.suspend(
                tx,
                context.turn_id,
                later.to_json(),
                line,
                reply=reply.to_json(),
                log_day=day,
            )
            if state.segment > 1:
                await self._settle(tx, context.turn_id, now)
            await suspensions.open(tx, suspension, later.to_json(), asked.tokens)
            gone = await actors.is_revoked(tx, context.actor.id)
            if queued and suspension.prompt_key is not None and not gone:
                place = ChatAddress.from_key(suspension.conversation)
                await outbox.enqueue(tx, suspension.prompt_key, place, reply.to_json(), now)
                if place != context.address:
                    text = self._texts.say("dialog.asked_alone", context.lang)
                    notice = Reply((Block("text", text),), context.lang, context.turn_id)
                    notice = replace(notice, answers=context.message_ref)
                    key = f"{suspension.prompt_key}:notice"
                    await outbox.enqueue(tx, key, context.address, notice.to_json(), now)
            await self._count(tx, context, outcome, day, turns=0)
        self._log(context.turn_id, line, day)
        return TurnSuspended(context.turn_id, reply, suspension.prompt_key if queued else None)

    async def _settle(
        self, tx: Transaction, turn_id: str, now: dt.datetime, *, dropped: bool = False
    ) -> None:
        """Nothing waits any more: what was claimed is done, unless the person `dropped` it; what
        is open is dropped."""
        for suspension, state in await suspensions.of_turn(tx, turn_id):
            claimed = state is SuspensionState.CLAIMED and not dropped
            await suspensions.settle(
                tx,
                suspension.id,
                SuspensionState.DONE if claimed else SuspensionState.CANCELLED,
                now,
            )

    def _line(
        self,
        context: TurnContext,
        outcome: Outcome,
        reply: Reply,
        now: dt.datetime,
        unbacked: Sequence[str] = (),
    ) -> tuple[dict[str, Any], dt.date]:
        """The line for the log, and the person's day that it belongs to."""
        line = log_line(
            context=context,
            outcome=outcome,
            reply=reply,
            ended=now,
            mode="online" if outcome.state.engine == "frontier" else "local",
            match_source=_source(outcome.state),
            cost=self._cost(outcome),
            unbacked=unbacked,
            secrets=self._settings.secrets,
        )
        return line, context.now.astimezone(ZoneInfo(context.tz)).date()

    async def _count(
        self, tx: Transaction, context: TurnContext, outcome: Outcome, day: dt.date, *, turns: int
    ) -> None:
        await usage.add(
            tx,
            context.actor.id,
            day,
            tokens_in=outcome.usage.tokens_in,
            tokens_out=outcome.usage.tokens_out,
            cached=outcome.usage.cached,
            money=self._cost(outcome),
            turns=turns,
            from_memory=turns * (outcome.state.engine in FROM_MEMORY),
        )

    def _told(self, context: TurnContext, text: str) -> str:
        """A text for this person: no handle of a secret, and to a guest no place of the house."""
        text = hide_handles(text)
        return text if context.actor.role is Role.HOST else at_home(text, context.scope.home)

    def _log(self, turn_id: str, line: Mapping[str, object], day: dt.date) -> None:
        """The line is in the database already: a log that cannot be written now is written at
        the next start."""
        try:
            self._turn_log.append(line, day=day)
            self._to_mark.append(turn_id)
        except MetnosError:
            log.exception("turn log refused a line")

    async def mark_logged(self, tx: Transaction) -> None:
        """Mark what the log holds, along with the next commit that is due anyway."""
        while self._to_mark:
            await turns.mark_logged(tx, self._to_mark[-1])
            self._to_mark.pop()

    def _cost(self, outcome: Outcome) -> float:
        if not outcome.model_calls:
            return 0.0
        prices = self._tiers.settings_of("plan")
        used = outcome.usage
        return (
            used.tokens_in * prices.input_price + used.tokens_out * prices.output_price
        ) / 1_000_000

    async def knows_more(self, state: TurnState) -> bool:
        """Whether the journal holds a change that the state does not: its end was not kept."""
        async with self._stores.main.read() as tx:
            journal = await effects.of_turn(tx, state.turn_id)
        return bool({effect.step for effect in journal} - {one.number for one in state.steps})

    async def cut_short(
        self, context: TurnContext, state: TurnState, error: ErrorInfo, *, offers: Rows = ()
    ) -> TurnClosed:
        """Close a turn that did not come to its end, from what the journal knows.

        A change that was begun and not settled is unknown: said, and never run again. `offers`:
        rows of buttons for what may be done about it.
        """
        async with self._stores.main.write() as tx:
            journal = await effects.of_turn(tx, context.turn_id)
            for effect in journal:
                if effect.state is effects.EffectState.STARTED:
                    await effects.finish(
                        tx, effect.key, effects.EffectState.UNKNOWN, self._clock.now()
                    )
        if error.code in _CUT and journal:
            offers = (*offers, *after_cut(state, journal))
            at = self._texts.time(journal[-1].started_at, context.lang, context.tz)
            error = replace(error, params={**error.params, "time": at})
        known = {record.number for record in state.steps}
        told = [_from_journal(effect) for effect in journal if effect.step not in known]
        position = state.next_step + (len(told) if state.plan is not None else 0)
        state = replace(state, steps=(*state.steps, *told), next_step=position, pending=())
        outcome = Outcome(state, FinalKind.ERROR, error=error, **_spent(state))
        renderer = Renderer(self._texts, context.lang, context.tz, context.scope.home)
        blocks = self._terminator.failure(error, state, renderer)
        reply = Reply(tuple(blocks), context.lang, context.turn_id, FinalKind.ERROR)
        return await self.close(context, outcome, closing=Closing(reply), offers=offers)

    def unkept(self, inbound: Inbound, error: ErrorInfo, *, lang: str | None = None) -> TurnClosed:
        """An end that stands nowhere, for when there is no turn to close. Without a `lang` it is
        said in the language of the words."""
        lang = lang or choose_lang(
            inbound.lang,
            known=self._texts.langs,
            text=inbound.text[:1000],
            default=self._settings.metnos_lang,
        )
        text = self._texts.say(error.message_key, lang, **error.params)
        reply = Reply((Block("text", text),), lang, None, FinalKind.ERROR)
        return TurnClosed("", FinalKind.ERROR, reply, error)

    async def flush(self) -> None:
        """Mark what is still to be marked; at the end of the process."""
        if self._to_mark:
            async with self._stores.main.write() as tx:
                await self.mark_logged(tx)


_CUT = frozenset({ErrorCode.INTERRUPTED, ErrorCode.STOPPED})


def _offers_of(outcome: Outcome) -> Rows:
    """What every end offers: ↩️ where something of it can be taken back."""
    if outcome.state.engine == UNDO_ENGINE or not any(map(is_undoable, outcome.state.steps)):
        return ()
    return ((Offer(UNDO, "action.undo"),),)


def remembered(reply: Reply) -> Reply:
    """An answer that no model was asked for ends with a lone sign (UX)."""
    if reply.final_kind is not FinalKind.ANSWER or not reply.blocks:
        return reply
    *before, last = reply.blocks
    if last.kind in {"text", "prose"} and "\n" not in last.text.strip():
        return replace(
            reply, blocks=(*before, Block(last.kind, f"{last.text.rstrip()} {MEMORY_SIGN}"))
        )
    return replace(reply, blocks=(*reply.blocks, Block("text", MEMORY_SIGN)))


def _source(state: TurnState) -> str:
    if state.engine == UNDO_ENGINE:
        return "undo"
    if state.engine in FROM_MEMORY:
        return state.engine
    return "engine" if state.segment == 1 else "dialog"


def _spent(state: TurnState) -> dict[str, Any]:
    """What the model calls of these steps took; of a call that was cut nobody knows. The step
    that a question went before was proposed in the segment of the question, and counted there."""
    told = state.told_steps + (state.segment > 1)
    asked = [r for r in state.steps[told:] if r.tokens_in or r.tokens_out]
    used = sum((Usage(r.tokens_in, r.tokens_out, r.cached) for r in asked), Usage())
    model_ms = sum(record.model_ms for record in asked)
    return {"usage": used, "model_ms": model_ms, "model_calls": len(asked)}


def _from_journal(effect: effects.StoredEffect) -> StepRecord:
    """A step of which only the journal tells."""
    done = effect.state is effects.EffectState.DONE
    found = {
        effects.EffectState.DONE: Effects.DONE,
        effects.EffectState.FAILED: Effects.NONE,
    }.get(effect.state, Effects.UNKNOWN)
    summary = effect.summary if isinstance(effect.summary, Mapping) else {}
    items = summary.get("entries")
    observation = (
        Observation(ok=True, entries=tuple(items) if items else None, effects=found)
        if done
        else Observation.failed(ErrorCode.INTERRUPTED, effects=found)
    )
    way_back = effect.expected.get("undo") if isinstance(effect.expected, Mapping) else None
    preview = {**summary, "undo": way_back}
    meant = {"paths": list(summary.get("targets") or ())}
    return StepRecord(
        effect.step, effect.tool, {}, meant, observation, {}, ran=True, preview=preview
    )
