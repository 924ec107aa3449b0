"""The row of buttons under an answer: how it was, whether its plan is kept, and more. Pure."""

from __future__ import annotations

from typing import Any

from core.execution.context import TurnContext
from core.execution.undo_steps import is_undoable
from core.levels.remembering import FROM_MEMORY
from core.levels.runner import Outcome
from core.messages import FinalKind
from core.turn_given import Given
from core.turn_offers import (
    ANEW,
    DOWN,
    OPEN,
    PIN,
    STEPS,
    UNDO,
    UNDO_ENGINE,
    UP,
    Offer,
    Rows,
    is_kept,
)
from core.turn_state import StepRecord
from core.vocabulary import META_TOOLS

# The key of each label, and of the same button once it counts.
LABELS = {UP: "vote.up", DOWN: "vote.down", PIN: "vote.pin"}
CHOSEN = {UP: "vote.up.chosen", DOWN: "vote.down.chosen", PIN: "vote.pin.chosen"}


def has_row(outcome: Outcome) -> bool:
    """Whether this end is an answer that tools were used for."""
    return (
        outcome.question is None
        and outcome.kind is FinalKind.ANSWER
        and outcome.state.engine != UNDO_ENGINE
        and any(map(_counts, outcome.state.steps))
    )


def row_of(context: TurnContext, outcome: Outcome, *, is_pinned: bool | None) -> Rows:
    """The row under such an answer. `is_pinned`: whether its plan is approved; None where there is
    none to approve. In a group others look on, and only the last button stands there."""
    state = outcome.state
    steps = [[r.tool, r.observation.ok, r.latency_ms] for r in state.steps if _counts(r)]
    params: dict[str, Any] = {"steps": steps, "calls": outcome.model_calls}
    if state.engine in FROM_MEMORY:
        params["remembered"] = True
    if any(map(is_undoable, state.steps)):
        params["undo"] = True
    if is_kept(context.request):
        given = Given(context.files, context.files_before, context.quoted)
        before = {"files_before": list(given.files_before)} if given.files_before else {}
        params |= {"again": True, "given": {**given.to_store(), **before}}
    opens = Offer(OPEN, "vote.open", params)
    if context.alone is not None:
        return ((opens,),)
    row = [Offer(UP, LABELS[UP]), Offer(DOWN, LABELS[DOWN])]
    if is_pinned is not None:
        row.append(pin_of(is_pinned))
    return ((*row, opens),)


def pin_of(is_pinned: bool) -> Offer:
    return Offer(PIN, CHOSEN[PIN] if is_pinned else LABELS[PIN], {"to": not is_pinned})


def below_of(params: dict[str, Any]) -> Rows:
    """The row that the last button opens."""
    row = [Offer(STEPS, "vote.steps", params)]
    if params.get("again") is True:
        row.append(Offer(ANEW, "vote.anew", params))
    if params.get("undo") is True:
        row.append(Offer(UNDO, "action.undo"))
    return (tuple(row),)


def _counts(record: StepRecord) -> bool:
    return record.ran and record.tool not in META_TOOLS
