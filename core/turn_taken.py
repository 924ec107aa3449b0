"""What came of an answer or a press: what is told at once, and the turn that goes on."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import ErrorInfo
from core.execution.context import TurnContext
from core.levels.runner import Resumption
from core.messages import TurnEvent
from core.turn_state import TurnState


@dataclass(frozen=True, slots=True)
class Resumed:
    """A turn that goes on: with what was decided, or to its end with `error`."""

    context: TurnContext
    state: TurnState
    resumption: Resumption | None = None
    error: ErrorInfo | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of an answer: events to tell at once, and the turn that goes on, if one does."""

    events: tuple[TurnEvent, ...]
    resumed: Resumed | None = None
