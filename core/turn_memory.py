"""What a turn has to do with the memory of plans: asked before, told after. Memory that cannot be
read or written is passed over, and never the end of a turn."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from core.errors import StoreError
from core.execution.context import TurnContext
from core.i18n import Texts
from core.levels import champions
from core.levels.autopath import Autopath, Look, Served
from core.levels.avoiding import Avoiding
from core.levels.fastpath import Fastpath, Hit, is_its_fault, lesson_of
from core.levels.past import Past
from core.levels.proposal import Proposer
from core.levels.remembering import AUTOPATH, FASTPATH
from core.levels.reuse import Lesson
from core.levels.runner import Outcome
from core.levels.tracing import NotKept
from core.messages import FinalKind
from core.observation import Effects
from core.plan import Plan
from core.store.antis import Unwanted
from core.store.feedback import Vote
from core.store.turns import StoredTurn
from core.turn_offers import Rows
from core.turn_state import Remembered, TurnState
from core.turn_votes import has_row, row_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """A plan from memory, ready to run, and the `level` that found it."""

    level: str
    hit: Hit | Served

    @property
    def plan(self) -> Plan:
        return self.hit.plan

    @property
    def mark(self) -> Remembered:
        """What the turn that it serves keeps of it."""
        return self.hit.mark


class TurnMemory:
    """`fastpath` None: memory is turned off. `autopath` None: nothing is served by merit."""

    def __init__(
        self,
        fastpath: Fastpath | None,
        autopath: Autopath | None = None,
        texts: Texts | None = None,
        past: Past | None = None,
    ) -> None:
        self._fastpath = fastpath
        self._autopath = None if fastpath is None else autopath
        self._texts, self._past = texts, past

    # -- asked before -----------------------------------------------------------------------------

    async def find(self, context: TurnContext, state: TurnState) -> Found | None:
        """What memory has for a request that has just come; nothing for a turn that is under
        way, or was begun with a plan or a wish of its own.

        What was approved comes first, then what this person was served for these very words, then
        the best plan for what is meant, then what else L0 knows.
        """
        if self._fastpath is None or state.plan is not None or state.steps or state.engine:
            return None
        hit = await self._fastpath.find(context)
        if hit is not None and hit.row.approved:
            return Found(FASTPATH, hit)
        if hit is not None and hit.own and hit.how == "exact":
            unwanted = await self._unwanted(context)
            if _form(hit) not in unwanted.hard:
                return Found(FASTPATH, hit)
            hit = None
        look = await self._look(context)
        if look.hit is not None:
            return Found(AUTOPATH, look.hit)
        if hit is not None and _form(hit) not in look.unwanted.hard | look.unwanted.soft:
            return Found(FASTPATH, hit)
        return None

    async def knowing(self, context: TurnContext) -> TurnContext:
        """The context for whoever plans: with what this person's own turns say about tools."""
        return context if self._past is None else await self._past.knowing(context)

    async def avoiding(self, context: TurnContext, proposer: Proposer) -> Proposer:
        """The proposer, kept from what this person disliked three times for such a request."""
        if self._autopath is None or self._texts is None:
            return proposer
        hard = (await self._unwanted(context)).hard
        return Avoiding(proposer, hard, self._texts) if hard else proposer

    async def _look(self, context: TurnContext) -> Look:
        try:
            return Look() if self._autopath is None else await self._autopath.look(context)
        except StoreError as exc:
            log.warning("memory not read", extra={"detail": exc.detail})
            return Look()

    async def _unwanted(self, context: TurnContext) -> Unwanted:
        try:
            if self._autopath is not None:
                return await self._autopath.unwanted(context)
        except StoreError as exc:
            log.warning("memory not read", extra={"detail": exc.detail})
        return Unwanted()

    # -- the row of buttons -----------------------------------------------------------------------

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

    # -- told after -------------------------------------------------------------------------------

    async def learn(self, context: TurnContext, outcome: Outcome) -> None:
        """After the end of a turn: keep its plan, count its use, or forget what failed."""
        if self._past is not None:
            await self._past.learn(context, outcome)
        if self._fastpath is None or outcome.question is not None:
            return
        by, by_merit = outcome.state.remembered, outcome.state.engine == AUTOPATH
        try:
            lesson = _lesson(context, outcome)
            if not by_merit and not await self._is_kept_away(context, lesson):
                await self._fastpath.learn(context, outcome)
            if self._autopath is None:
                return
            if lesson is not None:
                how = "" if by is None else by.how
                await self._autopath.observe(context, outcome, lesson, how=how)
            elif by is not None and by_merit and _is_at_fault(outcome):
                await self._autopath.broke(context, by)
        except StoreError as exc:
            log.warning("plan not kept", extra={"detail": exc.detail})

    async def _is_kept_away(self, context: TurnContext, lesson: Lesson | None) -> bool:
        """Whether this person disliked such a plan three times: it ran, and is not learnt."""
        if lesson is None or self._autopath is None:
            return False
        unwanted = await self._autopath.unwanted(context)
        return champions.form_of_lesson(lesson) in unwanted.hard

    async def forget(self, context: TurnContext, found: Found, outcome: Outcome) -> None:
        """Forget a plan that failed before it did anything, or count that against it."""
        try:
            if isinstance(found.hit, Hit) and self._fastpath is not None:
                await self._fastpath.failed(found.hit)
            if isinstance(found.hit, Served) and self._autopath and _is_at_fault(outcome):
                await self._autopath.broke(context, found.mark)
        except StoreError as exc:
            log.warning("plan not forgotten", extra={"detail": exc.detail})

    # -- what people say of it --------------------------------------------------------------------

    async def judge(self, turn: StoredTurn, vote: Vote | None) -> bool:
        """What comes of a vote on a turn, the last one counting; whether a plan was forgotten.

        What L1 served is L1's to count: the person's own row of L0 goes with it only when it holds
        that very plan.
        """
        if self._past is not None and vote is Vote.DOWN:
            await self._past.drop(turn.id)
        if self._fastpath is None:
            return False
        seen = None
        if self._autopath is not None:
            seen = await self._autopath.judge(turn, vote)
        if vote is Vote.DOWN and seen is not None and seen.level == AUTOPATH:
            hit = await self._fastpath.of_turn(turn)
            if hit is None or _form(hit) != seen.fingerprint:
                return False
        return await self._fastpath.judge(turn, vote)

    async def anew(self, turn: StoredTurn) -> None:
        """The request of a turn is going to be planned anew."""
        try:
            if self._autopath is not None:
                await self._autopath.anew(turn)
        except StoreError as exc:
            log.warning("plan not put aside", extra={"detail": exc.detail})

    async def to_pin(self, turn: StoredTurn) -> Hit | Lesson | None:
        """What would be approved of a turn: the person's own row, or what is to become one where
        L1 served; None when there is nothing (any more)."""
        if self._fastpath is None:
            return None
        hit = await self._fastpath.of_turn(turn)
        seen = None if self._autopath is None else await self._autopath.seen(turn)
        if seen is None or seen.level != AUTOPATH or not seen.cluster:
            return hit
        if hit is not None and _form(hit) == seen.fingerprint:
            return hit
        return champions.lesson_from(turn.request, seen.plan, seen.tools, seen.families)

    async def pin(self, turn: StoredTurn, what: Hit | Lesson, pinned: bool) -> bool:
        """Approve it, or take that back; False when it is gone."""
        if self._fastpath is None:
            return False
        if isinstance(what, Lesson):
            return pinned and await self._fastpath.teach(turn, what)
        return await self._fastpath.pin(what, pinned)


def _form(hit: Hit) -> str:
    return champions.form_of_lesson(hit.row.lesson)


def _lesson(context: TurnContext, outcome: Outcome) -> Lesson | None:
    try:
        return lesson_of(context, outcome)
    except NotKept:
        return None


def _is_at_fault(outcome: Outcome) -> bool:
    return outcome.kind is not FinalKind.ANSWER and is_its_fault(outcome.error)


def failed_by_itself(outcome: Outcome) -> bool:
    """Whether a plan from memory failed so that the request is to be planned anew: nothing was
    done, nothing is asked, and the fault is the plan's, not the world's (S7)."""
    return (
        outcome.question is None
        and outcome.kind is not FinalKind.ANSWER
        and outcome.state.effects is Effects.NONE
        and not (outcome.error is not None and outcome.error.retryable)
    )
