"""A stranger's one question, answered once: nothing of it is kept, nothing of the house reached.

No turn, no log line, no memory, no conversation: the reply is handed back and forgotten. What it
took is counted for all strangers together.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from zoneinfo import ZoneInfo

from core.clock import Clock
from core.errors import ErrorCode, ErrorInfo, MetnosError, to_error_info
from core.execution.context import TurnContext
from core.execution.guests import public_catalog
from core.execution.paths import Scope
from core.i18n import Texts
from core.language import clean_request
from core.levels.engines import Engines
from core.levels.runner import Outcome, Runner
from core.levels.terminator import Terminator
from core.messages import Actor, Autonomy, Block, ChatAddress, FinalKind, Reply, Role
from core.redaction import hide_handles
from core.store import scratchpad, usage
from core.store.stores import Stores
from core.turn_setup import TurnSetup
from core.turn_state import TurnState

log = logging.getLogger(__name__)

ACTOR_ID = "public"
MAX_REQUEST = 1000
MAX_S = 60.0


class PublicTurns:
    """Answers strangers with what is public of the catalogue (`core.execution.guests`)."""

    def __init__(
        self,
        *,
        stores: Stores,
        clock: Clock,
        texts: Texts,
        runner: Runner,
        engines: Engines,
        setup: TurnSetup,
    ) -> None:
        self._stores, self._clock, self._texts = stores, clock, texts
        self._runner, self._engines, self._setup = runner, engines, setup
        self._terminator = Terminator(texts)

    async def answer(self, request: str, lang: str) -> Reply:
        """The reply to a request of somebody who is not known. Raises only `CancelledError`; after
        a minute it gives up."""
        turn_id = self._clock.new_id()
        context = self._context(turn_id, clean_request(request)[:MAX_REQUEST], lang)
        state = TurnState(turn_id, context.request)
        if not context.request:
            return self._said("guest_mode.empty", lang)
        try:
            async with asyncio.timeout(MAX_S):
                outcome = await self._walk(context, state)
        except TimeoutError:
            error = ErrorInfo(ErrorCode.MODEL_TIMEOUT)
            outcome = Outcome(state, FinalKind.ERROR, error=error)
        except MetnosError as exc:
            outcome = Outcome(state, FinalKind.ERROR, error=to_error_info(exc))
        except Exception as exc:
            log.exception("public turn failed")
            outcome = Outcome(state, FinalKind.ERROR, error=to_error_info(exc))
        await self._forget(context, outcome)
        if outcome.question is not None:
            return self._said("guest_mode.cannot_ask", lang)
        closing = self._terminator.close(
            outcome,
            request=context.request,
            lang=lang,
            tz=context.tz,
            home=context.scope.home,
            catalog=context.catalog,
        )
        blocks = tuple(Block(b.kind, hide_handles(b.text)) for b in closing.reply.blocks)
        return Reply(blocks, lang, None, closing.reply.final_kind)

    def _context(self, turn_id: str, request: str, lang: str) -> TurnContext:
        actor = Actor(ACTOR_ID, Role.GUEST, ACTOR_ID, Autonomy.READ_ONLY)
        context = self._setup.context(
            turn_id,
            actor,
            ChatAddress(ACTOR_ID, turn_id),
            lang,
            self._clock.now(),
            request,
            interactive=False,
        )
        nowhere = Scope(
            (), context.scope.home, context.scope.product_home, context.scope.workspace
        )
        return replace(
            context, catalog=public_catalog(context.catalog), scope=nowhere, private_hosts=()
        )

    async def _walk(self, context: TurnContext, state: TurnState) -> Outcome:
        if not context.catalog.executors:
            return Outcome(state, FinalKind.ERROR, error=ErrorInfo(ErrorCode.CATALOG_EMPTY))
        proposer = await self._engines.local()
        return await self._runner.run(
            context,
            state,
            proposer,
            emit=lambda event: None,
            phrase=lambda tool: "",
        )

    async def _forget(self, context: TurnContext, outcome: Outcome) -> None:
        """Leave nothing of the request behind but what it took."""
        day = context.now.astimezone(ZoneInfo(context.tz)).date()
        try:
            async with self._stores.main.write() as tx:
                await scratchpad.close_turn(tx, context.turn_id, context.now)
                await scratchpad.purge(tx, context.now)
                await usage.add(
                    tx,
                    ACTOR_ID,
                    day,
                    tokens_in=outcome.usage.tokens_in,
                    tokens_out=outcome.usage.tokens_out,
                    cached=outcome.usage.cached,
                    money=0.0,
                    turns=1,
                )
        except MetnosError as exc:
            log.warning("public turn not counted", extra={"detail": exc.detail})

    def _said(self, key: str, lang: str) -> Reply:
        return Reply((Block("text", self._texts.say(key, lang)),), lang)
