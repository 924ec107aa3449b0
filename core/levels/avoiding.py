"""A proposer that is kept from what somebody disliked three times for this kind of request.

It asks once more, saying so. What comes again then may at most look at things: a change that was
turned down three times is not made a fourth time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.catalog.loaded import Catalog
from core.errors import ModelReplyInvalid
from core.execution.context import TurnContext
from core.i18n import Texts
from core.levels import champions, reuse
from core.levels.meaning import meaning_of
from core.levels.proposal import Proposal, Proposer
from core.levels.tracing import NotKept, trace, type_of
from core.plan import Plan
from core.turn_state import TurnState


@dataclass(frozen=True, slots=True)
class Avoiding:
    """Proposes what `inner` does, but for plans of these `forms` (`champions.form_of`)."""

    inner: Proposer
    forms: frozenset[str]
    texts: Texts

    @property
    def name(self) -> str:
        return self.inner.name

    async def propose(
        self, context: TurnContext, state: TurnState, *, advice: str | None = None
    ) -> Proposal:
        first = await self.inner.propose(context, state, advice=advice)
        disliked = self._disliked(first, context, state)
        if disliked is None:
            return first
        way = champions.way_of(disliked)
        said = self.texts.say("plan.again_disliked", context.lang, way=way)
        asked = said if advice is None else f"{advice}\n{said}"
        try:
            second = await self.inner.propose(context, state, advice=asked)
        except ModelReplyInvalid:
            if _changes(disliked, context.catalog):
                raise
            return first
        second = replace(
            second,
            usage=first.usage + second.usage,
            model_ms=first.model_ms + second.model_ms,
            asked=first.asked + second.asked,
        )
        again = self._disliked(second, context, state)
        if again is None or not _changes(again, context.catalog):
            return second
        words = self.texts.say("plan.only_disliked", context.lang)
        return replace(second, plan=None, calls=(), answer=words)

    async def warm(self, context: TurnContext) -> None:
        await self.inner.warm(context)

    def _disliked(self, proposal: Proposal, context: TurnContext, state: TurnState) -> Plan | None:
        """The plan that a proposal comes to, with what was done before it, when it is one of those
        that are kept away."""
        plan = proposal.plan
        if plan is None:
            if not proposal.calls or any(call.problem for call in proposal.calls):
                return None
            done = reuse.plan_of(state.steps, context.catalog).steps
            plan = Plan((*done, *(call.step for call in proposal.calls)))
        return plan if form_in(plan, context) in self.forms else None


def form_in(plan: Plan, context: TurnContext) -> str:
    """The form of a plan as the request's answer, the values of the request by their kind."""
    meaning = meaning_of(context.request)
    manifests = {name: one.manifest for name, one in context.catalog.executors.items()}
    try:
        bindings = trace(plan, meaning, manifests).bindings
    except NotKept:
        bindings = ()
    return champions.form_of(plan, bindings, [type_of(value) for value in meaning.values])


def _changes(plan: Plan, catalog: Catalog) -> bool:
    """Whether a plan changes something; of a tool that is not known it is to be feared."""
    found = (catalog.executors.get(step.tool) for step in plan.steps)
    return any(one is None or one.manifest.is_mutating for one in found)
