"""What memory proposes, and by which names it does."""

from __future__ import annotations

from dataclasses import dataclass

from core.execution.context import TurnContext
from core.levels.proposal import Proposal
from core.llm.client import Usage
from core.plan import FINAL_ANSWER, Plan
from core.turn_state import TurnState

FASTPATH, AUTOPATH = "fastpath", "autopath"

FROM_MEMORY = frozenset({FASTPATH, AUTOPATH})
"""Engines that ask no model."""


@dataclass(frozen=True, slots=True)
class Remembering:
    """A proposer that proposes what memory found, and nothing else. Asks no model. `name` is the
    level that found it."""

    plan: Plan
    name: str = FASTPATH

    async def propose(
        self, context: TurnContext, state: TurnState, *, advice: str | None = None
    ) -> Proposal:
        names = tuple(sorted({step.tool for step in self.plan.steps} - {FINAL_ANSWER}))
        return Proposal(names, plan=self.plan, usage=Usage(), engine=self.name, asked=0)

    async def warm(self, context: TurnContext) -> None:
        return None
