"""Whole plans as a turn gets them, proposer and validator, without running anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from core.catalog.loader import Catalog
from core.execution.context import Exchange, TurnContext
from core.execution.paths import Scope
from core.i18n import Texts
from core.levels.candidates import Candidates
from core.levels.proposers.metis import MOST_CANDIDATES, MetisProposer
from core.levels.validator import problem_of
from core.levels.wish import Wish
from core.llm.client import ChatModel, Usage
from core.llm.prompts import Prompts
from core.llm.tiers import Role, Tiers
from core.messages import Actor, ChatAddress
from core.messages import Role as ActorRole
from core.plan import Plan
from core.turn_state import TurnState
from tests.support.executors import REPO

ZONE = "Europe/Rome"
NOW = datetime(2026, 3, 18, 10, 0, tzinfo=ZoneInfo(ZONE))
HOME = "/home/sam"

Call = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Planned:
    """What was proposed for one request: calls, or the answer in words."""

    calls: tuple[Call, ...]
    answer: str
    usage: Usage
    seconds: float
    problem: str = ""
    asked: int = 1


class OneModel(Tiers):
    """Tiers whose every role is played by one model."""

    def __init__(self, model: ChatModel) -> None:
        super().__init__({})
        self._only = model

    def for_role(self, role: Role) -> ChatModel:
        return self._only


class Planner:
    """The proposer and the validator behind it, as a turn has them, without running anything."""

    def __init__(self, model: ChatModel, catalog: Catalog, *, role: Role = "plan") -> None:
        locales = REPO / "locales"
        self._catalog = catalog
        self._candidates = Candidates()
        self.proposer = MetisProposer(
            OneModel(model), Prompts(locales), Texts.load(locales), self._candidates, role=role
        )

    def context(self, text: str, lang: str, earlier: Sequence[Exchange] = ()) -> TurnContext:
        return TurnContext(
            turn_id="bench",
            actor=Actor("bench", ActorRole.HOST, "bench"),
            address=ChatAddress("terminal", "bench"),
            lang=lang,
            tz=ZONE,
            now=NOW,
            request=text,
            catalog=self._catalog,
            conversation=tuple(earlier),
            scope=Scope((f"{HOME}/Documents", HOME), HOME, f"{HOME}/.metnos", HOME),
        )

    def wish(self, text: str, lang: str) -> Wish:
        """What the words of a request let its plan do."""
        context = self.context(text, lang)
        names = self._candidates.best(context, k_max=MOST_CANDIDATES)
        return self.proposer.wish(context, names)

    async def plan(self, text: str, lang: str) -> Planned:
        """One plan; an invalid one is proposed anew once, as the runner does."""
        context = self.context(text, lang)
        first = await self.proposer.propose(context, TurnState("bench", text))
        problem = problem_of(first.plan, self._catalog) if first.plan else None
        if problem is None:
            return _planned(first.plan, first.answer, first.usage, first.model_ms)
        again = await self.proposer.propose(
            context, TurnState("bench", text), advice=problem.detail
        )
        left = problem_of(again.plan, self._catalog) if again.plan else None
        planned = _planned(
            again.plan, again.answer, first.usage + again.usage, first.model_ms + again.model_ms
        )
        why = f"first: {problem.detail}" + (f"; then: {left.detail}" if left else "")
        calls = () if left else planned.calls
        return Planned(calls, planned.answer, planned.usage, planned.seconds, why, asked=2)


def _planned(plan: Plan | None, answer: str, usage: Usage, model_ms: int) -> Planned:
    calls = tuple(step.to_json() for step in plan.steps) if plan else ()
    return Planned(calls, answer, usage, model_ms / 1000)
