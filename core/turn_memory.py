"""What a turn has to do with the memory of plans: asked before, told after. Memory that cannot be
read or written is passed over, and never the end of a turn."""

from __future__ import annotations

import logging

from core.errors import StoreError
from core.execution.context import TurnContext
from core.levels.fastpath import Fastpath, Hit, lesson_of
from core.levels.remembering import FASTPATH
from core.levels.runner import Outcome
from core.levels.tracing import NotKept
from core.messages import FinalKind
from core.observation import Effects
from core.turn_offers import Rows
from core.turn_state import TurnState
from core.turn_votes import has_row, row_of

log = logging.getLogger(__name__)


class TurnMemory:
    """`fastpath` None: memory is turned off."""

    def __init__(self, fastpath: Fastpath | None) -> None:
        self._fastpath = fastpath

    async def find(self, context: TurnContext, state: TurnState) -> Hit | None:
        """What memory has for a request that has just come; nothing for a turn that is under
        way, or was begun with a plan or a wish of its own."""
        if self._fastpath is None or state.plan is not None or state.steps or state.engine:
            return None
        return await self._fastpath.find(context)

    async def row(self, context: TurnContext, outcome: Outcome) -> Rows:
        """The row of buttons under an answer that tools were used for; none under another. Without
        memory there is nothing that a vote could decide, and no row."""
        if self._fastpath is None or not has_row(outcome):
            return ()
        is_pinned: bool | None = None
        if context.alone is None:
            is_pinned = await self._is_pinned(self._fastpath, context, outcome)
        return row_of(context, outcome, is_pinned=is_pinned)

    async def _is_pinned(
        self, fastpath: Fastpath, context: TurnContext, outcome: Outcome
    ) -> bool | None:
        """Whether the plan of this turn is approved; None: it is not this person's to approve, or
        will not be kept."""
        by = outcome.state.remembered
        try:
            if outcome.state.engine == FASTPATH:
                hit = None if by is None else await fastpath.serving(context, by)
                return hit.row.approved if hit is not None and hit.own else None
            return await fastpath.is_approved(context, lesson_of(context, outcome))
        except NotKept:
            return None
        except StoreError as exc:
            log.warning("memory not read", extra={"detail": exc.detail})
            return None

    async def learn(self, context: TurnContext, outcome: Outcome) -> None:
        """After the end of a turn: keep its plan, count its use, or forget what failed."""
        if self._fastpath is None or outcome.question is not None:
            return
        try:
            await self._fastpath.learn(context, outcome)
        except StoreError as exc:
            log.warning("plan not kept", extra={"detail": exc.detail})

    async def forget(self, hit: Hit) -> None:
        """Forget a plan that failed before it did anything."""
        try:
            if self._fastpath is not None:
                await self._fastpath.failed(hit)
        except StoreError as exc:
            log.warning("plan not forgotten", extra={"detail": exc.detail})


def failed_by_itself(outcome: Outcome) -> bool:
    """Whether a plan from memory failed so that the request is to be planned anew: nothing was
    done, nothing is asked, and the fault is the plan's, not the world's (S7)."""
    return (
        outcome.question is None
        and outcome.kind is not FinalKind.ANSWER
        and outcome.state.effects is Effects.NONE
        and not (outcome.error is not None and outcome.error.retryable)
    )
