"""What a proposer hands to the runner: the next calls, a whole plan, or the answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from core.execution.context import TurnContext
from core.llm.client import Usage
from core.plan import Plan, Step
from core.turn_state import TurnState


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """One call. `problem` says why its arguments could not be read: it is answered, not run."""

    step: Step
    call_id: str = ""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """Exactly one of `plan`, `calls` and `answer` speaks, in that order.

    `plan` is whole: no model is asked between its steps. `candidates` are the tools that could be
    chosen from. An `answer` of "" with no calls is an empty reply. `engine` names who really
    proposed, when it was not the proposer that was asked. `asked`: how many models were.
    """

    candidates: tuple[str, ...]
    plan: Plan | None = None
    calls: tuple[ProposedCall, ...] = ()
    answer: str = ""
    usage: Usage = field(default_factory=Usage)
    model_ms: int = 0
    model: str = ""
    engine: str = ""
    asked: int = 1


class Proposer(Protocol):
    """`simple` proposes step by step, `metis` and `frontier` a whole plan."""

    @property
    def name(self) -> str: ...

    async def propose(
        self, context: TurnContext, state: TurnState, *, advice: str | None = None
    ) -> Proposal:
        """The next move. `advice` tells what was wrong with the proposal before.

        Raises `ModelError` when no usable reply came.
        """
        ...

    async def warm(self, context: TurnContext) -> None:
        """Let the server read what every prompt begins with. Raises `ModelError`."""
        ...
