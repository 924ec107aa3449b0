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
from core.errors import CallRefused, ErrorCode, ErrorInfo, to_error_info
from core.execution import guards, handle
from core.execution.arguments import resolve_references
from core.execution.consent import Decision, Question
from core.execution.context import StateLookup, TurnContext
from core.execution.invoke import Gate
from core.levels.proposal import Proposal, Proposer
from core.levels.proposers.simple import offered
from core.levels.validator import problem_of
from core.llm.client import Usage
from core.messages import FinalKind, StepFinished, StepProgress, StepStarted, TurnEvent
from core.observation import Observation
from core.plan import FINAL_ANSWER, Plan, Step, steps_used
from core.turn_state import PendingCall, StepRecord, TurnState

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
    that was asked, since its arguments may speak of the time."""

    decision: Decision
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
            proposal = await self._propose()
            if proposal.plan is not None:
                proposal, problem = await self._valid(proposal, proposal.plan)
                if problem is not None:
                    return self._failed(problem)
            if proposal.plan is not None:
                await self._advance(replace(self._state, plan=proposal.plan))
                return await self._run_plan(proposal.plan, _spent(proposal))
            if not proposal.calls:
                return self._end(FinalKind.ANSWER, answer=self._filled(proposal.answer))
            end = await self._calls_of(_pending(proposal))
            if end is not None:
                return end

    # -- proposals --------------------------------------------------------------------------------

    async def _propose(self, advice: str | None = None) -> Proposal:
        proposal = await self._proposer.propose(self._context, self._state, advice=advice)
        self._usage += proposal.usage
        self._model_ms += proposal.model_ms
        self._calls += 1
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
                waiting = PendingCall(step.tool, step.args, spent=spent_here)
                return await self._wait(record, (waiting,))
            record = replace(record, **spent_here)
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
            await self._advance(replace(self._state.with_step(record), pending=()))
            error = record.observation.error
            if error is not None and error.code in _ENDS:
                return self._end(_ENDS[error.code], error=error)
            if guards.is_looping(self._state.steps):
                return self._end(FinalKind.LOOP_BREAK, error=error)
        return None

    async def _step(self, call: PendingCall) -> StepRecord | Question:
        if call.problem is not None:
            record: StepRecord | Question = _unreadable(call, self._state.steps)
        else:
            record = await self._invoke(Step(call.tool, call.args), call.call_id)
        return record if isinstance(record, Question) else replace(record, **call.spent)

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


def _spent(proposal: Proposal) -> dict[str, Any]:
    """What the proposal cost: it stands with the first of its steps."""
    return {
        "tokens_in": proposal.usage.tokens_in,
        "tokens_out": proposal.usage.tokens_out,
        "cached": proposal.usage.cached,
        "model_ms": proposal.model_ms,
    }


def _pending(proposal: Proposal) -> tuple[PendingCall, ...]:
    """The proposed calls, none of which has run."""
    return tuple(
        PendingCall(
            call.step.tool,
            call.step.args,
            call.call_id,
            call.problem,
            {} if position else _spent(proposal),
        )
        for position, call in enumerate(proposal.calls)
    )


def _unreadable(call: PendingCall, steps: Sequence[StepRecord]) -> StepRecord:
    """A call whose arguments are no JSON object: answered, not run, and counted like any other."""
    number = len(steps) + 1
    try:
        guards.check_steps(steps)
        observation = Observation.failed(ErrorCode.INVALID_ARGS, call.problem or "")
    except CallRefused as exc:
        observation = Observation.failed(to_error_info(exc))
    return StepRecord(
        number,
        call.tool,
        {},
        {},
        observation,
        handle.shown_small(observation) or {},
        {"validation": "unreadable"},
        call_id=call.call_id,
    )
