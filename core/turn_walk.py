"""One turn walked to its end or its question, whatever happens on the way."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from core import turn_accounts
from core.clock import Clock
from core.conversations import Conversations, Running
from core.errors import ErrorCode, ErrorInfo, ModelError, StoreError, to_error_info
from core.execution.context import TurnContext
from core.execution.undo import Undo
from core.execution.undo_steps import is_undo_request
from core.i18n import Texts
from core.levels.engines import Engines
from core.levels.proposal import Proposer
from core.levels.remembering import Remembering
from core.levels.runner import Outcome, Resumption, Runner
from core.messages import (
    ChatAddress,
    FinalKind,
    TextGrew,
    TurnClosed,
    TurnEvent,
    TurnStarted,
    TurnSuspended,
)
from core.turn_ends import TurnEnds
from core.turn_memory import TurnMemory, failed_by_itself
from core.turn_offers import UNDO_ENGINE
from core.turn_setup import TurnSetup
from core.turn_sharing import Sharing
from core.turn_state import TurnState
from core.turn_undo import undo_closing, undo_turn

log = logging.getLogger(__name__)


class TurnWalk:
    """Walks turns. Call it under the lock of the conversation, and of the one where an answer
    was given."""

    def __init__(
        self,
        *,
        clock: Clock,
        texts: Texts,
        runner: Runner,
        engines: Engines,
        undo: Undo,
        ends: TurnEnds,
        setup: TurnSetup,
        talks: Conversations,
        memory: TurnMemory,
        sharing: Sharing,
    ) -> None:
        self._clock, self._texts, self._setup, self._ends = clock, texts, setup, ends
        self._runner, self._engines, self._undo, self._talks = runner, engines, undo, talks
        self._memory, self._sharing = memory, sharing

    async def through(
        self,
        context: TurnContext,
        state: TurnState,
        queue: asyncio.Queue[TurnEvent | None],
        *,
        refusal: ErrorInfo | None = None,
        resumption: Resumption | None = None,
        here: ChatAddress | None = None,
    ) -> None:
        """Walk a turn to its end or its question, and tell it after the commit."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - we run in one
        began = self._clock.monotonic()
        running = Running(task, context.turn_id, context.request, began, state)
        running.actor_id = context.actor.id
        self._talks.begin(running, context.address.key, (here or context.address).key)
        queue.put_nowait(TurnStarted(context.turn_id, context.lang, context.message_ref))
        end: TurnClosed | TurnSuspended
        outcome: Outcome | None = None
        try:
            outcome = await self._outcome(context, running, queue, refusal, resumption)
            # From here on the turn has its end: a stop waits for it instead of making another.
            running.ending = True
            end = await self._ended(context, outcome)
        except asyncio.CancelledError:
            if not running.stopped or running.ending:
                raise
            task.uncancel()
            running.ending = True
            end = await self._ends.cut_short(context, running.state, ErrorInfo(ErrorCode.STOPPED))
            outcome = None
        queue.put_nowait(end)
        if outcome is not None and outcome.state.engine != turn_accounts.ENGINE:
            await self._memory.learn(context, outcome)

    async def _ended(self, context: TurnContext, outcome: Outcome) -> TurnClosed | TurnSuspended:
        """The end of a turn, or its question; when its words cannot be made, an end in the
        simplest words."""
        try:
            if outcome.question is not None:
                return await self._ends.suspend(context, outcome, outcome.question)
            if outcome.error is not None and await self._ends.knows_more(outcome.state):
                return await self._ends.cut_short(context, outcome.state, outcome.error)
            words = undo_closing(self._texts, context, outcome) or turn_accounts.closing(
                self._texts, context, outcome, key_file=self._setup.key_file
            )
            offers = turn_accounts.offers_of(context, outcome)
            # Where messages stay, so does what can be done about them.
            stays = context.address.channel in self._ends.outbox_channels
            stays = stays and outcome.state.engine != turn_accounts.ENGINE
            below = await self._memory.row(context, outcome) if stays else ()
            if stays:
                offers = (*offers, *await self._sharing.rows(context, outcome))
            return await self._ends.close(
                context, outcome, closing=words, offers=offers, below=below
            )
        except StoreError:
            raise
        except Exception as exc:
            log.exception("end failed", extra={"turn_id": context.turn_id})
            return await self._ends.cut_short(context, outcome.state, to_error_info(exc))

    async def _outcome(
        self,
        context: TurnContext,
        running: Running,
        queue: asyncio.Queue[TurnEvent | None],
        refusal: ErrorInfo | None,
        resumption: Resumption | None,
    ) -> Outcome:
        """Walk the turn; whatever goes wrong is an outcome."""

        def failed(error: ErrorInfo) -> Outcome:
            return Outcome(running.state, FinalKind.ERROR, error=error)

        if refusal is not None:
            return failed(refusal)

        async def on_state(new: TurnState) -> None:
            running.state = new

        def on_words(text: str) -> None:
            queue.put_nowait(TextGrew(context.turn_id, text))

        async def run(proposer: Proposer) -> Outcome:
            return await self._runner.run(
                replace(context, on_words=on_words),
                running.state,
                proposer,
                emit=queue.put_nowait,
                phrase=lambda tool: self._setup.phrase(context, tool),
                on_state=on_state,
                resumption=resumption,
            )

        try:
            undoing = running.state.engine == UNDO_ENGINE or is_undo_request(context.request)
            if resumption is None and undoing:
                return await undo_turn(
                    self._undo, self._texts, context, running.state, queue.put_nowait, on_state
                )
            running.state = state = turn_accounts.begun(running.state, context)
            if state.engine == turn_accounts.ENGINE and state.plan is not None:
                return await run(Remembering(state.plan, turn_accounts.ENGINE))
            found = None if resumption is not None else await self._memory.find(context, state)
            if found is not None:
                running.state = replace(state, remembered=found.mark)
                outcome = await run(Remembering(found.plan, found.level))
                if not failed_by_itself(outcome):
                    return outcome
                await self._memory.forget(context, found, outcome)
                running.state = state
            if resumption is None and (kind := self._engines.lacking(context)) is not None:
                return failed(ErrorInfo(ErrorCode.NEEDS_CREDENTIALS, {"kind": kind.value}))
            context = await self._memory.knowing(context)
            chosen = await self._engines.choose(context)
            return await run(await self._memory.avoiding(context, chosen))
        except ModelError as exc:
            log.warning("model failed", extra={"code": exc.code.value, "detail": exc.detail})
            return failed(to_error_info(exc))
        except Exception as exc:
            log.exception("walk failed", extra={"turn_id": context.turn_id})
            return failed(to_error_info(exc))
