"""The runner: executes what any proposer proposes, through the gate, until the turn has an end.

Step-by-step proposals and whole plans walk the same way; a step-by-step turn can be read back as
a plan from its records.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from core.dialogs import SuspensionKind
from core.errors import CallRefused, ErrorCode, ErrorInfo
from core.execution import guards
from core.execution.arguments import resolve_references
from core.execution.consent import Decision, Question
from core.execution.context import StateLookup, TurnContext
from core.execution.invoke import Gate
from core.levels.pending import pending_of, spent_on, unreadable, waiting_at, with_spent
from core.levels.proposal import Proposal, Proposer
from core.levels.proposers.simple import offered
from core.levels.validator import problem_of
from core.llm.client import Usage
from core.messages import FinalKind, StepFinished, StepProgress, StepStarted, TurnEvent
from core.observation import Observation
from core.plan import FINAL_ANSWER, Plan, Step, steps_used
from core.turn_state import MAX_STEPS, MOST, Cap, PendingCall, StepRecord, TurnState

Emit = Callable[[TurnEvent], None]


class Phrases(Protocol):
    def __call__(self, tool: str) -> str:
        """What a step is doing, in the person's words."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the walk ended. `answer` is the model's prose, "" when there is none; a cap, loop or
    error has `error`, a turn that waits has `question` and what waits in `state.pending`."""

    state: TurnState
    kind: FinalKind
    answer: str = ""
    error: ErrorInfo | None = None
    usage: Usage = field(default_factory=Usage)
    model_ms: int = 0
    model_calls: int = 0
    model: str = ""
    question: Question | None = None


@dataclass(frozen=True, slots=True)
class Resumption:
    """How a turn that waits goes on: what was decided of the first of its pending calls, and when
    that was asked, since its arguments may speak of the time. No decision: the call has had no
    question of its own."""

    decision: Decision | None
    asked_at: dt.datetime


_ENDS = {
    ErrorCode.CAP_STEPS: FinalKind.CAP_STEPS,
    ErrorCode.CAP_SAME_EXECUTOR: FinalKind.CAP_SAME_EXECUTOR,
}
_REPEATED = frozenset({ErrorCode.DUPLICATE_CALL, ErrorCode.DUPLICATE_READ})


@dataclass(frozen=True, slots=True)
class Runner:
    gate: Gate

    async def run(
        self,
        context: TurnContext,
        state: TurnState,
        proposer: Proposer,
        *,
        emit: Emit,
        phrase: Phrases,
        on_state: Callable[[TurnState], Awaitable[None]] | None = None,
        resumption: Resumption | None = None,
    ) -> Outcome:
        """Walk from `state` to an end, or to a question. `on_state` sees every new state, also
        those that a cancellation leaves behind. `resumption`: the state waits, and goes on.

        Raises `ModelError` when the proposer gets no usable reply; what was done stands in the
        last state that `on_state` saw.
        """
        walk = _Walk(self.gate, context, state, proposer, emit, phrase, on_state)
        walk.resumption = resumption
        return await walk.go()


class _Walk:
    """One run; lives for one call of `Runner.run`."""

    def __init__(
        self,
        gate: Gate,
        context: TurnContext,
        state: TurnState,
        proposer: Proposer,
        emit: Emit,
        phrase: Phrases,
        on_state: Callable[[TurnState], Awaitable[None]] | None,
    ) -> None:
        self._gate, self._context, self._state = gate, context, state
        self._proposer, self._emit, self._phrase = proposer, emit, phrase
        self._on_state = on_state
        self._usage, self._model_ms, self._calls, self._model = Usage(), 0, 0, ""
        self.resumption: Resumption | None = None

    async def go(self) -> Outcome:
        if self._state.capped is not None and (end := await self._past_cap()) is not None:
            return end
        pending = self._state.pending
        if self._state.plan is not None:
            spent = pending[0].spent if pending else {}
            return await self._run_plan(self._state.plan, spent)
        if pending:
            end = await self._calls_of(pending)
            if end is not None:
                return end
        else:
            await self._advance(replace(self._state, engine=self._proposer.name))
        while True:
            if (end := await self._at_end_of_day()) is not None:
                return end
            proposal = await self._propose()
            if proposal.plan is not None:
                proposal, problem = await self._valid(proposal, proposal.plan)
                if problem is not None:
                    return await self._long(proposal, problem) or self._failed(problem)
            if proposal.plan is not None:
                await self._advance(replace(self._state, plan=proposal.plan))
                return await self._run_plan(proposal.plan, spent_on(proposal))
            if not proposal.calls:
                return self._end(FinalKind.ANSWER, answer=self._filled(proposal.answer))
            end = await self._calls_of(pending_of(proposal))
            if end is not None:
                return end

    # -- proposals --------------------------------------------------------------------------------

    async def _propose(self, advice: str | None = None) -> Proposal:
        proposal = await self._proposer.propose(self._context, self._state, advice=advice)
        self._usage += proposal.usage
        self._model_ms += proposal.model_ms
        self._calls += proposal.asked
        self._model = proposal.model or self._model
        if not self._state.candidates:
            engine = proposal.engine or self._state.engine
            await self._advance(
                replace(self._state, candidates=proposal.candidates, engine=engine)
            )
        return proposal

    async def _valid(self, proposal: Proposal, plan: Plan) -> tuple[Proposal, ErrorInfo | None]:
        """L2: the proposal, or the one re-proposal that may follow an invalid plan; what is wrong
        with that one too is the end."""
        problem = problem_of(plan, self._context.catalog)
        if problem is None:
            return proposal, None
        again = await self._propose(advice=problem.detail)
        if again.plan is None:
            return again, None
        if again.plan.fingerprint == plan.fingerprint:
            return again, problem
        return again, problem_of(again.plan, self._context.catalog)

    # -- caps -------------------------------------------------------------------------------------

    def _may_extend(self, record: StepRecord) -> bool:
        """Whether a call was refused by a cap that the person has not extended yet."""
        cap = guards.cap_of(record.observation.error)
        return (
            self._context.interactive
            and not record.ran
            and cap is not None
            and cap not in self._state.extended
        )

    async def _at_cap(self, record: StepRecord, pending: tuple[PendingCall, ...]) -> Outcome:
        """Ask whether to go on from the refused call, which is the first of these."""
        cap = guards.cap_of(record.observation.error) or Cap.STEPS
        await self._advance(replace(self._state, capped=record))
        return await self._wait(
            Question(SuspensionKind.CAP, record.tool, count=MOST.get(cap, 0)), pending
        )

    async def _at_end_of_day(self) -> Outcome | None:
        """The end, or the question to whom it may extend, when what the person may use in a day
        leaves no further model call."""
        allowance, extended = self._context.allowance, Cap.DAY in self._state.extended
        if not allowance.is_spent(self._usage, extended=extended):
            return None
        error = ErrorInfo(ErrorCode.QUOTA_DAY, {"cap": Cap.DAY.value})
        refused = Observation.failed(error)
        record = StepRecord(len(self._state.steps) + 1, "", {}, {}, refused, {})
        if not allowance.may_extend or not self._may_extend(record):
            return self._failed(error)
        return await self._at_cap(record, ())

    async def _long(self, proposal: Proposal, problem: ErrorInfo) -> Outcome | None:
        """Ask whether a plan may run that has more steps than a turn, and is right but for that;
        None: it may not be asked."""
        plan = proposal.plan
        if plan is None or len(plan.steps) <= MAX_STEPS:
            return None
        step, refused = plan.steps[0], Observation.failed(problem)
        record = StepRecord(len(self._state.steps) + 1, step.tool, step.args, {}, refused, {})
        well = problem_of(plan, self._context.catalog, most=2 * MAX_STEPS) is None
        if not well or not self._may_extend(record):
            return None
        await self._advance(replace(self._state, plan=plan))
        return await self._at_cap(record, (waiting_at(step, spent_on(proposal)),))

    async def _past_cap(self) -> Outcome | None:
        """What was said at the cap where the turn waited: None and on from the refused call, with
        the cap extended; or the end that the cap makes."""
        said, capped = self.resumption, self._state.capped
        cap = None if capped is None else guards.cap_of(capped.observation.error)
        if said is None or said.decision is None or not said.decision.agreed or cap is None:
            end = ended_at_cap(self._state) or self._end(FinalKind.ERROR)
            await self._advance(end.state)
            return end
        self.resumption = replace(said, decision=None)
        extended = (*self._state.extended, cap)
        await self._advance(replace(self._state, capped=None, extended=extended))
        return None

    # -- steps ------------------------------------------------------------------------------------

    async def _run_plan(self, plan: Plan, spent: Mapping[str, Any]) -> Outcome:
        """Run a whole plan from where the state stands. The first failure ends it: later steps
        were planned on what did not come. A step that only repeats an earlier one is passed over.
        `spent`: what the plan cost, if no step holds it yet.
        """
        start = self._state.next_step
        for index, step in enumerate(plan.steps[start:], start=start):
            if step.tool == FINAL_ANSWER:
                await self._answer(step)
                break
            record = await self._invoke(step, "")
            spent_here: Mapping[str, Any] = spent if index == start else {}
            if isinstance(record, Question):
                return await self._wait(record, (waiting_at(step, spent_here),))
            if self._may_extend(record):
                return await self._at_cap(record, (waiting_at(step, spent_here),))
            record = with_spent(record, spent_here)
            await self._advance(
                replace(self._state.with_step(record), next_step=index + 1, pending=())
            )
            error = record.observation.error
            if error is not None and not record.observation.ok and error.code not in _REPEATED:
                return self._failed(error)
        return self._end(FinalKind.ANSWER)

    async def _wait(self, question: Question, pending: tuple[PendingCall, ...]) -> Outcome:
        """The turn stops here; what waits is kept in its state."""
        await self._advance(replace(self._state, pending=pending))
        kind = (
            FinalKind.NEEDS_INPUTS
            if question.kind is SuspensionKind.INPUTS
            else FinalKind.AWAITING
        )
        return replace(self._end(kind), question=question)

    def _filled(self, answer: str) -> str:
        """The model's words with what their references to steps stand for. As they are when these
        lead nowhere: it may be speaking of the notation. "" for what is no text: the steps' own
        answers say it."""
        try:
            if not steps_used({"text": answer}):
                return answer
            lookup = StateLookup(self._context, self._state)
            found = resolve_references({"text": answer}, None, lookup)["text"]
        except CallRefused:
            return answer
        return found if isinstance(found, str) else ""

    async def _answer(self, step: Step) -> None:
        """The answer that a plan ends with, when it speaks of what the steps brought. What a model
        wrote without knowing any result is left to the answers of the steps; so is one whose
        references lead nowhere."""
        try:
            if not steps_used(step.args):
                return
        except CallRefused:
            return
        record = await self._gate.call(self._context, self._state, step, offered=frozenset())
        if isinstance(record, StepRecord) and record.observation.ok:
            await self._advance(self._state.with_step(record))

    async def _calls_of(self, calls: Sequence[PendingCall]) -> Outcome | None:
        """Calls of one proposal, in their order; an outcome when one of them ends the turn, or
        makes it wait."""
        for position, call in enumerate(calls):
            record = await self._step(call)
            if isinstance(record, Question):
                return await self._wait(record, tuple(calls[position:]))
            if self._may_extend(record):
                return await self._at_cap(record, tuple(calls[position:]))
            await self._advance(replace(self._state.with_step(record), pending=()))
            error = record.observation.error
            if error is not None and error.code in _ENDS:
                return self._end(_ENDS[error.code], error=error)
            if guards.is_looping(self._state.steps):
                return self._end(FinalKind.LOOP_BREAK, error=error)
        return None

    async def _step(self, call: PendingCall) -> StepRecord | Question:
        if call.problem is not None:
            record: StepRecord | Question = unreadable(call, self._state)
        else:
            record = await self._invoke(Step(call.tool, call.args), call.call_id)
        return record if isinstance(record, Question) else with_spent(record, call.spent)

    def _failed(self, error: ErrorInfo) -> Outcome:
        return self._end(_ENDS.get(error.code, FinalKind.ERROR), error=error)

    async def _invoke(self, step: Step, call_id: str) -> StepRecord | Question:
        turn_id, number = self._context.turn_id, len(self._state.steps) + 1
        self._emit(StepStarted(turn_id, number, step.tool, self._phrase(step.tool)))

        def progress(done: int | None, total: int | None) -> None:
            self._emit(StepProgress(turn_id, number, done, total))

        resumed, self.resumption = self.resumption, None
        context = self._context
        if resumed is not None:
            context = replace(context, now=resumed.asked_at)
        record = await self._gate.call(
            context,
            self._state,
            step,
            offered=offered(self._state.candidates, self._state),
            on_progress=progress,
            decision=None if resumed is None else resumed.decision,
        )
        if isinstance(record, Question):
            self._emit(StepFinished(turn_id, number, step.tool, True))
            return record
        self._emit(StepFinished(turn_id, number, step.tool, record.observation.ok))
        self._usage += Usage(record.tokens_in, record.tokens_out, record.cached)
        self._model_ms += record.model_ms
        self._calls += record.tokens_in > 0  # a model read in this step
        return replace(record, call_id=call_id)

    async def _advance(self, state: TurnState) -> None:
        self._state = state
        if self._on_state is not None:
            await self._on_state(state)

    def _end(
        self, kind: FinalKind, *, answer: str = "", error: ErrorInfo | None = None
    ) -> Outcome:
        return Outcome(
            self._state,
            kind,
            answer,
            error,
            self._usage,
            self._model_ms,
            self._calls,
            self._model,
        )


def ended_at_cap(state: TurnState) -> Outcome | None:
    """The end of a turn that waits at a cap and may not go past it: of the cap's own kind, the
    refused step among its steps. None: it waits for something else."""
    refused = state.capped
    error = None if refused is None else refused.observation.error
    if refused is None or error is None:
        return None
    if guards.cap_of(error) is Cap.DAY:  # no step was refused, only the next thought
        return Outcome(replace(state, pending=(), capped=None), FinalKind.ERROR, error=error)
    ended = replace(
        state.with_step(refused), pending=(), capped=None, next_step=state.next_step + 1
    )
    return Outcome(ended, _ENDS.get(error.code, FinalKind.ERROR), error=error)
