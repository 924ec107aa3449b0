"""The whole-plan proposer: one call under a JSON schema, the plan as the reply's text.

The prompt holds one compact line per tool in a fixed order (of a catalogue beyond sixty tools the
same part again and again) and examples; what narrows the choice
is the schema, which is made for each request and is not in the prompt, so the server's prefix
cache always meets the same bytes (C4).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace

from core.catalog.loader import Catalog
from core.catalog.manifest import Manifest
from core.errors import CallRefused, ModelReplyInvalid
from core.execution.context import TurnContext
from core.execution.giving import wants_files
from core.execution.undo_steps import UNDO_LAST_TURN, undo_and_rest
from core.execution.whereabouts import GET_LOCATION
from core.i18n import Texts
from core.levels import briefing
from core.levels.candidates import EVERYDAY, Candidates
from core.levels.early_words import hearing
from core.levels.mending import mended
from core.levels.plan_schema import may_use_tools, plan_schema
from core.levels.proposal import Proposal
from core.levels.spans import Spans
from core.levels.wish import Wish, make_wish
from core.llm.client import ChatReply, ChatRequest, Message
from core.llm.prompts import Prompts
from core.llm.tiers import Role, Tiers
from core.plan import FINAL_ANSWER, PIPES, Plan, Step, steps_used
from core.positions import asks_where
from core.turn_state import TurnState

MOST_CANDIDATES = 40  # they cost no tokens: the schema is not in the prompt
# Lines about tools, and their characters: with them a request stays below 2000 tokens.
MOST_LISTED, MOST_CHARS = 60, 4600
MOST_WORDS = 120  # tokens of an answer that no tool is needed for


_ADDRESSES = "get_places"


class MetisProposer:
    """Plans with the model of `role`: `plan`, or `plan_online` for the frontier tier."""

    def __init__(
        self,
        tiers: Tiers,
        prompts: Prompts,
        texts: Texts,
        candidates: Candidates,
        *,
        role: Role = "plan",
    ) -> None:
        self._tiers, self._prompts, self._texts = tiers, prompts, texts
        self._candidates, self._role = candidates, role

    @property
    def name(self) -> str:
        return "frontier" if self._role == "plan_online" else "metis"

    async def propose(
        self, context: TurnContext, state: TurnState, *, advice: str | None = None
    ) -> Proposal:
        """One plan, or the answer of a plan that does nothing else.

        A reply that is no plan is re-asked once. Raises `ModelError`.
        """
        if asks_where(context.request):
            return self._where(context)
        rest = undo_and_rest(context.request)
        if rest is not None:
            return await self._undo_first(context, rest, advice)
        return await self._whole(context, advice)

    def _where(self, context: TurnContext) -> Proposal:
        """Where the person is needs no model: their position, asked for if it is not known, and
        what is there."""
        names = self._candidates.best(context, k_max=MOST_CANDIDATES)
        steps = [Step(GET_LOCATION, {})]
        if _ADDRESSES in context.catalog.offered:
            steps.append(Step(_ADDRESSES, {"coords": ["{{step1.coords}}"]}))
        return Proposal(names, plan=Plan(tuple(steps)))

    async def _undo_first(self, context: TurnContext, rest: str, advice: str | None) -> Proposal:
        """Taking back is no model's to word: a step before, or, where the plan of the rest counts
        its steps, behind what else is asked for."""
        undo = Step(UNDO_LAST_TURN, {})
        if not rest:
            names = self._candidates.best(context, k_max=MOST_CANDIDATES)
            return Proposal(names, plan=Plan((undo,)))
        found = await self._whole(replace(context, request=rest), advice)
        steps = () if found.plan is None else found.plan.steps
        done = tuple(step for step in steps if step.tool != FINAL_ANSWER)
        counted = any(steps_used(step.args) for step in steps)
        return replace(found, plan=Plan((*done, undo) if counted else (undo, *done)), answer="")

    async def _whole(self, context: TurnContext, advice: str | None) -> Proposal:
        names = self._candidates.best(context, k_max=MOST_CANDIDATES)
        wish = self.wish(context, names)
        model = self._tiers.for_role(self._role)
        if not may_use_tools(wish):
            if wish.wants_target:
                return Proposal(names, answer=self._texts.say("plan.which_target", context.lang))
            return await self._talk(context, names)
        reply = await model.complete(self.request(context, wish, advice))
        usage, model_ms = reply.usage, round(reply.latency_ms)
        plan = read_plan(reply)
        if plan is None:
            again = self._texts.say("model.again_plan", context.lang)
            reply = await model.complete(self.request(context, wish, again))
            usage, model_ms = usage + reply.usage, model_ms + round(reply.latency_ms)
            plan = read_plan(reply)
            if plan is None:
                raise ModelReplyInvalid("no plan, twice")
        answer = _only_answer(plan)
        return Proposal(
            candidates=names,
            plan=None if answer is not None else mended(plan, manifests_of(context.catalog)),
            answer=answer or "",
            usage=usage,
            model_ms=model_ms,
            model=reply.model,
        )

    async def warm(self, context: TurnContext) -> None:
        """See `Proposer.warm`. The planning prompt comes last, so that it is the one at hand."""
        model = self._tiers.for_role(self._role)
        for request in (self._words(context), self.request(context, Wish(Spans(), {}))):
            with contextlib.suppress(ModelReplyInvalid):
                await model.complete(replace(request, schema=None, max_tokens=1))

    async def _talk(self, context: TurnContext, names: tuple[str, ...]) -> Proposal:
        """An answer in words to what no tool is for."""
        heard = hearing(context, TurnState(context.turn_id, context.request))
        asked = replace(self._words(context), on_text=heard)
        reply = await self._tiers.for_role(self._role).complete(asked)
        return Proposal(
            candidates=names,
            answer=reply.text,
            usage=reply.usage,
            model_ms=round(reply.latency_ms),
            model=reply.model,
        )

    def _words(self, context: TurnContext) -> ChatRequest:
        """The call for an answer in words. A prompt of its own: under the planning one a small
        model repeats the examples."""
        system = self._prompts.render(
            "small_talk", context.lang, abilities=abilities(context.catalog, context.lang)
        )
        messages = briefing.opening(context, self._prompts, self._texts, system=system)
        messages.append(Message("user", context.request))
        return ChatRequest(tuple(messages), max_tokens=MOST_WORDS)

    def request(self, context: TurnContext, wish: Wish, advice: str | None = None) -> ChatRequest:
        """The call: static prompt, facts, the person's text; the schema narrows the rest."""
        system = self._prompts.render(
            "plan_metis",
            context.lang,
            tools=self._lines(context),
        )
        messages = briefing.opening(context, self._prompts, self._texts, system=system)
        if advice:
            messages.append(Message("system", advice))
        messages.append(Message("user", context.request))
        return ChatRequest(tuple(messages), schema=plan_schema(wish))

    def _lines(self, context: TurnContext) -> list[str]:
        """A line for each tool, the same for every request. Where they would be too long the
        arguments that may be left out are, but for everyday tools, then what tools do, from the
        end. Of more than sixty tools those of every day and what the request needs."""
        catalog, lang = context.catalog, context.lang
        names: Sequence[str] = sorted(catalog.offered)
        if len(names) > MOST_LISTED:
            names = self._candidates.choose(context, k_max=MOST_LISTED, spare=0)
        lines = tool_lines(catalog, names, lang)
        if _fits(lines):
            return lines
        lines = tool_lines(catalog, names, lang, terse=True)
        for at in reversed(range(len(lines))):
            if _fits(lines):
                break
            if names[at] not in EVERYDAY:
                lines[at] = lines[at].partition(": ")[0]
        return lines

    def wish(self, context: TurnContext, names: tuple[str, ...]) -> Wish:
        """What the words of the request let a plan of these tools do."""
        points, clauses = self._candidates.relevance(context)
        return make_wish(
            context.request,
            {name: context.catalog.offered[name].manifest for name in names},
            points,
            clauses=clauses,
            wide=self._role == "plan_online",
            gives=wants_files(context.request),
            files=context.files or context.files_before,
            earlier=[exchange.request for exchange in reversed(context.conversation)],
        )


def manifests_of(catalog: Catalog) -> dict[str, Manifest]:
    return {name: executor.manifest for name, executor in catalog.offered.items()}


def tool_lines(
    catalog: Catalog, names: Sequence[str], lang: str, *, terse: bool = False
) -> list[str]:
    """`name(argument, optional?): what it does`, one per tool, in the order of `names`; what it
    does is the head of its description. `terse`: only everyday tools show what may be left out."""
    lines = []
    for name in names:
        manifest = catalog.offered[name].manifest
        args = _shown_args(manifest, needed=terse and name not in EVERYDAY)
        lines.append(f"{name}({', '.join(args)}): {manifest.head(lang)}")
    return lines


def _fits(lines: Sequence[str]) -> bool:
    return sum(len(line) + 1 for line in lines) <= MOST_CHARS


def abilities(catalog: Catalog, lang: str) -> list[str]:
    """What the house can do, in words: the tools that need no other tool's result."""
    return [
        executor.manifest.head(lang)
        for _, executor in sorted(catalog.offered.items())
        if "entries" not in executor.manifest.args.get("required", ())
    ]


_PIPED = {name: step for step, name in PIPES.items()}


def _shown_args(manifest: Manifest, *, needed: bool = False) -> list[str]:
    """The arguments, those that may be left out with a question mark, or left out (`needed`)."""
    must = {*manifest.args.get("required", ())}
    must.update(name for group in manifest.requires_one_of for name in group)
    return [
        _PIPED.get(name, name) + ("" if name in must else "?")
        for name in manifest.properties
        if name not in manifest.runtime_args and (name in must or not needed)
    ]


def read_plan(reply: ChatReply) -> Plan | None:
    """The plan that a reply is, None when it is none or has no steps."""
    try:
        plan = Plan.from_json(json.loads(reply.text))
    except (ValueError, RecursionError, CallRefused):
        return None
    return plan if plan.steps else None


def _only_answer(plan: Plan) -> str | None:
    """The text of a plan that does nothing but answer."""
    if all(step.tool == FINAL_ANSWER for step in plan.steps):
        return " ".join(str(step.args.get("text", "")) for step in plan.steps).strip() or None
    return None
