"""L0: a request that was served before, in these words or in others, gets its plan from memory.

Found by the same words, by the same shape with other values, or by the same meaning without any;
what is found serves only when its tools and their families are as they were. The plan is served,
never the old answer: it goes through the gate like any other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from core.clock import Clock
from core.errors import ErrorCode, ErrorInfo, StoreError
from core.execution.context import TurnContext
from core.levels import reuse
from core.levels.meaning import Meaning, meaning_of
from core.levels.remembering import FASTPATH
from core.levels.reuse import Lesson
from core.levels.runner import Outcome
from core.levels.tracing import NotKept
from core.messages import FinalKind
from core.observation import Effects
from core.plan import FINAL_ANSWER, Plan
from core.store import disliked, plan_cache
from core.store.database import Transaction
from core.store.feedback import Vote
from core.store.plan_cache import StoredPlan
from core.store.stores import Stores
from core.store.turns import StoredTurn

log = logging.getLogger(__name__)

UNUSED_FOR, STALE_AFTER = timedelta(days=14), timedelta(days=30)

How = Literal["exact", "template", "meaning"]

_NO_FAULT = frozenset(
    {
        ErrorCode.DECLINED,
        ErrorCode.CANCELLED,
        ErrorCode.STOPPED,
        ErrorCode.QUESTION_EXPIRED,
        ErrorCode.INTERRUPTED,
        ErrorCode.NOT_AUTHORIZED,
    }
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A plan from memory, ready to run; `row` is where it came from. `own`: it was learnt from
    this very person; what others taught serves, and is not theirs to take away."""

    row: StoredPlan
    plan: Plan
    how: How
    own: bool = True


class Fastpath:
    """Finds and learns. What goes wrong in memory is a miss, never a turn's end."""

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores, self._clock = stores, clock

    async def find(self, context: TurnContext) -> Hit | None:
        """A plan for this request, None when memory has none that may serve. Rows that might have
        and may not keep the reason."""
        refusal = reuse.request_refusal(
            context.request,
            quoted=_quoted(context),
            in_conversation=bool(context.conversation),
        )
        if refusal is not None:
            return None
        meaning, exact = meaning_of(context.request), reuse.exact_key(context.request)
        try:
            async with self._stores.memory.read() as tx:
                rows = await _candidates(tx, context.actor.id, meaning, exact)
                unwanted = await disliked.plans(tx, context.actor.id, exact, self._clock.now())
            return await self._first(context, meaning, exact, rows, unwanted)
        except StoreError as exc:
            log.warning("memory not read", extra={"detail": exc.detail})
            return None

    async def _first(
        self,
        context: TurnContext,
        meaning: Meaning,
        exact: str,
        rows: Sequence[StoredPlan],
        unwanted: frozenset[str],
    ) -> Hit | None:
        refused: list[tuple[int, str]] = []
        hit: Hit | None = None
        for row in rows:
            lesson = row.lesson
            why = reuse.staleness(lesson.tools, lesson.families, lesson.plan, context.catalog)
            own = row.actor_id == context.actor.id
            found = None if why else _hit(row, meaning, exact, context.lang)
            if found is not None and found.plan.fingerprint in unwanted:
                why, found = "disliked", None
            if found is not None:
                hit = replace(found, own=own)
                break
            if own:  # what serves not here may serve whoever taught it
                refused.append((row.id, why or "other_values"))
        if refused:
            async with self._stores.memory.write() as tx:
                for row_id, why in refused:
                    if why in {"tool_changed", "new_sibling", "tool_missing"}:
                        # Once: what the turn now teaches takes its place.
                        await plan_cache.retire(tx, row_id, why)
                    else:
                        await plan_cache.note_refused(tx, row_id, why)
        return hit

    async def served(self, hit: Hit) -> None:
        """Count a use that ended well."""
        async with self._stores.memory.write() as tx:
            await plan_cache.note_used(tx, hit.row.id, self._clock.now(), why=hit.how)

    async def failed(self, hit: Hit) -> None:
        """Forget a plan that failed, if it was this person's own."""
        if not hit.own:
            return
        async with self._stores.memory.write() as tx:
            await plan_cache.delete(tx, hit.row.id)

    async def learn(self, context: TurnContext, outcome: Outcome) -> int | None:
        """Keep the plan of a turn that ended well; the row, or None when it is not to be kept.
        Of a turn that memory served itself the use is counted, or the plan forgotten when it
        failed before it did anything. Called twice with the same turn it keeps one row."""
        state = outcome.state
        if state.engine == FASTPATH:
            await self._settle(context, outcome)
            return None
        try:
            lesson = lesson_of(context, outcome)
        except NotKept as exc:
            log.info("plan not kept", extra={"turn_id": context.turn_id, "why": exc.reason})
            return None
        async with self._stores.memory.write() as tx:
            unwanted = await disliked.plans(tx, context.actor.id, lesson.exact, self._clock.now())
            if lesson.plan.fingerprint in unwanted:
                log.info("plan not kept", extra={"turn_id": context.turn_id, "why": "disliked"})
                return None
            return await plan_cache.keep(
                tx,
                context.actor.id,
                context.lang,
                lesson,
                turn_id=context.turn_id,
                now=self._clock.now(),
            )

    async def _settle(self, context: TurnContext, outcome: Outcome) -> None:
        hit = await self.find(context)
        if hit is None:
            return
        if outcome.kind is FinalKind.ANSWER:
            await self.served(hit)
        elif outcome.state.effects is Effects.NONE and _is_its_fault(outcome.error):
            await self.failed(hit)

    async def of_turn(self, turn: StoredTurn) -> Hit | None:
        """The person's own plan that a turn taught or was served by; None when there is none, or
        another turn has taught it anew since."""
        async with self._stores.memory.read() as tx:
            row = await plan_cache.of_turn(tx, turn.actor_id, turn.id)
            if row is not None:
                return Hit(row, row.lesson.plan, "exact")
            meaning, exact = meaning_of(turn.request), reuse.exact_key(turn.request)
            rows = await _candidates(tx, turn.actor_id, meaning, exact)
        for row in rows:
            hit = _hit(row, meaning, exact, turn.lang)
            known = row.actor_id == turn.actor_id and row.learnt_at <= turn.started_at
            if hit is not None and known:
                return hit
        return None

    async def judge(self, turn: StoredTurn, vote: Vote | None) -> bool:
        """What comes of a vote on a turn, the last one counting: a plan that was not liked is
        forgotten and kept away from these words for an hour; another vote, or none any more, lifts
        that. Whether a plan was forgotten."""
        exact, now = reuse.exact_key(turn.request), self._clock.now()
        if vote is not Vote.DOWN:
            async with self._stores.memory.write() as tx:
                await disliked.lift(tx, turn.actor_id, exact)
            return False
        hit = await self.of_turn(turn)
        if hit is None:
            return False
        async with self._stores.memory.write() as tx:
            await disliked.exclude(tx, turn.actor_id, exact, hit.plan.fingerprint, now)
            return await plan_cache.delete(tx, hit.row.id)

    async def is_approved(self, context: TurnContext, lesson: Lesson) -> bool:
        """Whether what this lesson takes the place of is approved."""
        async with self._stores.memory.read() as tx:
            row = await plan_cache.of_text(tx, context.actor.id, lesson.exact)
        return row is not None and row.approved

    async def pin(self, hit: Hit, pinned: bool) -> bool:
        """Approve a plan, or take that back; False when it is gone."""
        async with self._stores.memory.write() as tx:
            return await plan_cache.approve(tx, hit.row.id, pinned)

    async def age(self, tools: Sequence[str]) -> int:
        """Forget what has not been used for long, or cannot be any more; how many plans."""
        now = self._clock.now()
        async with self._stores.memory.write() as tx:
            return await plan_cache.prune(
                tx, unused_before=now - UNUSED_FOR, stale_before=now - STALE_AFTER, tools=tools
            )


def lesson_of(context: TurnContext, outcome: Outcome) -> Lesson:
    """What a turn that was planned teaches. Raises `NotKept`."""
    state = outcome.state
    return reuse.make_lesson(
        context.request,
        state.plan or reuse.plan_of(state.steps, context.catalog),
        state.steps,
        outcome.kind,
        context.catalog,
        quoted=_quoted(context),
        in_conversation=bool(context.conversation),
    )


def _quoted(context: TurnContext) -> str:
    """What the request points at without saying it: words quoted, files sent along."""
    return context.quoted or " ".join(context.pointed_at)


async def _candidates(
    tx: Transaction, actor_id: str, meaning: Meaning, exact: str
) -> list[StoredPlan]:
    """The rows that may serve a request of this meaning and these words."""
    shape, wording, same = reuse.keys_of(meaning)
    return await plan_cache.candidates(
        tx, actor_id, exact=exact, shape=shape, wording=wording, meaning=same
    )


def _hit(row: StoredPlan, meaning: Meaning, exact: str, lang: str) -> Hit | None:
    lesson = row.lesson
    if lesson.exact == exact:
        return Hit(row, lesson.plan, "exact")
    if lang != row.lang and _speaks(lesson.plan):
        return None
    if lesson.meaning:
        return Hit(row, lesson.plan, "meaning")
    plan = reuse.serve_template(lesson, meaning)
    return None if plan is None else Hit(row, plan, "template")


def _is_its_fault(error: ErrorInfo | None) -> bool:
    """What a person declined, or the network refused, is no fault of the plan."""
    return error is not None and not error.retryable and error.code not in _NO_FAULT


def _speaks(plan: Plan) -> bool:
    """Whether the plan brings its own words, which are of one language."""
    return any(step.tool == FINAL_ANSWER for step in plan.steps)
