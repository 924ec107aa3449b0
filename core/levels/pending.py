"""Calls that were proposed and have not run: what waits, and what cannot run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.errors import CallRefused, ErrorCode, to_error_info
from core.execution import guards, handle
from core.levels.proposal import Proposal
from core.observation import Observation
from core.plan import Step
from core.turn_state import PendingCall, StepRecord, TurnState


def spent_on(proposal: Proposal) -> dict[str, Any]:
    """What the proposal cost: it stands with the first of its steps."""
    return {
        "tokens_in": proposal.usage.tokens_in,
        "tokens_out": proposal.usage.tokens_out,
        "cached": proposal.usage.cached,
        "model_ms": proposal.model_ms,
    }


def with_spent(record: StepRecord, spent: Mapping[str, Any]) -> StepRecord:
    """A record with what its proposal cost beside what reading in it cost."""
    return replace(record, **{name: getattr(record, name) + spent[name] for name in spent})


def pending_of(proposal: Proposal) -> tuple[PendingCall, ...]:
    """The proposed calls, none of which has run."""
    return tuple(
        PendingCall(
            call.step.tool,
            call.step.args,
            call.call_id,
            call.problem,
            {} if position else spent_on(proposal),
        )
        for position, call in enumerate(proposal.calls)
    )


def waiting_at(step: Step, spent: Mapping[str, Any]) -> PendingCall:
    """A planned step before which the turn waits, and what its plan cost."""
    return PendingCall(step.tool, step.args, spent=spent)


def unreadable(call: PendingCall, state: TurnState) -> StepRecord:
    """A call whose arguments are no JSON object: answered, not run, and counted like any other."""
    number = len(state.steps) + 1
    try:
        guards.check_steps(state.steps, extended=state.extended)
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
