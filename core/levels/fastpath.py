"""L0: a request that was served before, in these words or in others, gets its plan from memory.

Found by the same words, by the same shape with other values, or by the same meaning without any,
where the embedder holds both for near too; what is found serves only when its tools and their
families are as they were. The plan is served, never the old answer: it goes through the gate like
any other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from core.clock import Clock
from core.errors import ErrorCode, ErrorInfo, StoreError
from core.execution.context import TurnContext
from core.levels import reuse
from core.levels.borrowed import borrows
from core.levels.meaning import Meaning, meaning_of
from core.levels.nearness import UNMEASURED, Nearness
from core.levels.remembering import FASTPATH
from core.levels.reuse import Lesson
from core.levels.runner import Outcome
from core.levels.tracing import NotKept
from core.levels.vectors import Vector
from core.messages import FinalKind
from core.observation import Effects
from core.plan import FINAL_ANSWER, Plan
from core.store import disliked, plan_cache
from core.store.database import Transaction
from core.store.feedback import Vote
from core.store.plan_cache import StoredPlan
from core.store.stores import Stores
from core.store.turns import StoredTurn
from core.turn_state import Remembered

log = logging.getLogger(__name__)

UNUSED_FOR, STALE_AFTER = timedelta(days=14), timedelta(days=30)

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
    """A plan from memory, ready to run; `row` is where it came from, `how` it was found: `exact`,
    `template`, `meaning`. `own`: it was learnt from this very person; what others taught serves,
    and is not theirs to take away."""

    row: StoredPlan
    plan: Plan
    how: str
    own: bool = True

    @property
    def mark(self) -> Remembered:
        """What the turn that it serves keeps of it."""
        return self.row.mark(self.how)


@dataclass(slots=True)
class _Asked:
    """What is looked for; the vector of its words and the floor once somebody has asked."""

    meaning: Meaning
    exact: str
    unwanted: frozenset[str]
    floor: float | None = None
    vector: Vector | None = None
    embedded: bool = False


class Fastpath:
    """Finds and learns. What goes wrong in memory is a miss, never a turn's end."""

    def __init__(self, stores: Stores, clock: Clock, nearness: Nearness | None = None) -> None:
        """Without `nearness` nothing is found by its meaning."""
        self._stores, self._clock = stores, clock
        self._nearness = nearness or Nearness(None, stores, clock)

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
            return await self._first(context, _Asked(meaning, exact, unwanted), rows)
        except StoreError as exc:
            log.warning("memory not read", extra={"detail": exc.detail})
            return None

    async def _first(
        self, context: TurnContext, asked: _Asked, rows: Iterator[StoredPlan]
    ) -> Hit | None:
        refused: list[tuple[StoredPlan, str]] = []
        hit: Hit | None = None
        for row in rows:
            lesson = row.lesson
            why = reuse.staleness(lesson.tools, lesson.families, lesson.plan, context.catalog)
            own = row.actor_id == context.actor.id
            found = None if why else _hit(row, asked.meaning, asked.exact, context.lang)
            if found is not None and found.plan.fingerprint in asked.unwanted:
                why, found = "disliked", None
            if found is not None and found.how == "meaning":
                why = await self._far(context, asked, row)
                found = found if why is None else None
            if found is not None:
                hit = replace(found, own=own)
                break
            if own or why == UNMEASURED:  # what serves not here may serve whoever taught it
                refused.append((row, why or "other_values"))
        if refused:
            await self._note(context, refused, asked)
        return hit

    async def _far(self, context: TurnContext, asked: _Asked, row: StoredPlan) -> str | None:
        """Why a row of this meaning is too far from the request; None: it is near. The request
        is embedded once, and only when there is such a row."""
        if not asked.embedded:
            asked.embedded = True
            async with self._stores.memory.read() as tx:
                asked.floor = await self._nearness.floor(tx)
            if asked.floor is not None:
                asked.vector = await self._nearness.vector_of(reuse.normal(context.request))
        return self._nearness.refusal(row, asked.vector, asked.floor)

    async def _note(
        self, context: TurnContext, refused: Sequence[tuple[StoredPlan, str]], asked: _Asked
    ) -> None:
        """Keep why rows did not serve."""
        async with self._stores.memory.write() as tx:
            for row, why in refused:
                if why == UNMEASURED and asked.vector is not None:
                    await self._nearness.measure_again(tx, row)
                if row.actor_id != context.actor.id:
                    continue
                if why in {"tool_changed", "new_sibling", "tool_missing"}:
                    # Once: what the turn now teaches takes its place.
                    await plan_cache.retire(tx, row.id, why)
                else:
                    await plan_cache.note_refused(tx, row.id, why)

    async def failed(self, hit: Hit) -> None:
        """Forget a plan that failed, if it was this person's own and is still the same."""
        if hit.own:
            async with self._stores.memory.write() as tx:
                await plan_cache.forget_failed(tx, hit.mark, hit.row.actor_id)

    async def serving(self, context: TurnContext, by: Remembered) -> Hit | None:
        """What serves a turn, as it stands now; None when it is gone, or taught anew since."""
        async with self._stores.memory.read() as tx:
            row = await plan_cache.get(tx, by.row)
        if row is None or row.turn_id != by.taught_by:
            return None
        return Hit(row, row.lesson.plan, by.how, row.actor_id == context.actor.id)

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
            row_id = await plan_cache.keep(
                tx,
                context.actor.id,
                context.lang,
                lesson,
                turn_id=context.turn_id,
                now=self._clock.now(),
            )
        if lesson.meaning:
            await self._nearness.measured(row_id, lesson.text)
        return row_id

    async def _settle(self, context: TurnContext, outcome: Outcome) -> None:
        by, state = outcome.state.remembered, outcome.state
        if by is None:
            return
        if outcome.kind is FinalKind.ANSWER:
            async with self._stores.memory.write() as tx:
                await plan_cache.note_used(tx, by, self._clock.now(), turn_id=context.turn_id)
        elif state.effects is Effects.NONE and is_its_fault(outcome.error):
            async with self._stores.memory.write() as tx:
                await plan_cache.forget_failed(tx, by, context.actor.id)

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

    async def teach(self, turn: StoredTurn, lesson: Lesson) -> bool:
        """Keep what served a turn from elsewhere for its own words, approved."""
        async with self._stores.memory.write() as tx:
            row = await plan_cache.keep(
                tx, turn.actor_id, turn.lang, lesson, turn_id=turn.id, now=self._clock.now()
            )
            approved = await plan_cache.approve(tx, row, True)
        if lesson.meaning:
            self._nearness.soon()  # not here: a press is worked while the store is held
        return approved

    async def read_again(self) -> None:
        """After a new edition of the word list: read what was learnt by an earlier one. Until then
        it serves the same words only."""
        try:
            async with self._stores.memory.write() as tx:
                if count := await plan_cache.read_again(tx):
                    log.info("plans read again", extra={"count": count})
        except StoreError as exc:
            log.warning("plans not read again", extra={"detail": exc.detail})

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
    lesson = reuse.make_lesson(
        context.request,
        state.plan or reuse.plan_of(state.steps, context.catalog),
        state.steps,
        outcome.kind,
        context.catalog,
        quoted=_quoted(context),
        in_conversation=bool(context.conversation),
    )
    earlier = (text for one in context.conversation for text in (one.request, one.answer))
    if borrows(lesson.plan, context.request, (*earlier, *context.typed)):
        raise NotKept("from_conversation")
    return lesson


def _quoted(context: TurnContext) -> str:
    """What the request points at without saying it: words quoted, files sent along."""
    return context.quoted or " ".join(context.pointed_at)


async def _candidates(
    tx: Transaction, actor_id: str, meaning: Meaning, exact: str
) -> Iterator[StoredPlan]:
    """The rows that may serve a request of this meaning and these words."""
    shape, wording, same = reuse.keys_of(meaning)
    return await plan_cache.candidates(
        tx, actor_id, exact=exact, shape=shape, wording=wording, meaning=same
    )


def _hit(row: StoredPlan, meaning: Meaning, exact: str, lang: str) -> Hit | None:
    lesson = row.lesson
    if lesson.exact == exact:
        # Case and accents do not count in the words; in a name of a file they do.
        plan = reuse.serve_template(lesson, meaning)
        return None if plan is None else Hit(row, plan, "exact")
    if lang != row.lang and _speaks(lesson.plan):
        return None
    if lesson.meaning:
        # What was kept by an earlier word list may not mean that any more.
        same = meaning_of(lesson.text).key == meaning.key
        return Hit(row, lesson.plan, "meaning") if same else None
    plan = reuse.serve_template(lesson, meaning)
    return None if plan is None else Hit(row, plan, "template")


def is_its_fault(error: ErrorInfo | None) -> bool:
    """What a person declined, or the network refused, is no fault of the plan."""
    return error is not None and not error.retryable and error.code not in _NO_FAULT


def _speaks(plan: Plan) -> bool:
    """Whether the plan brings its own words, which are of one language."""
    return any(step.tool == FINAL_ANSWER for step in plan.steps)
