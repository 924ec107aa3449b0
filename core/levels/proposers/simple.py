"""The step-by-step proposer: native tool calls, one model call per step.

A provider that refuses tools is asked for a whole plan under a schema instead (S4).
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace

from core.catalog.loader import Catalog
from core.errors import ModelError, ModelRefused, ModelReplyInvalid
from core.execution import asking
from core.execution.aliases import called_by_name
from core.execution.builtins import (
    SCRATCHPAD_READ,
    UNDO_LAST_TURN,
    has_scratchpad,
    scratchpad_spec,
    undo_spec,
)
from core.execution.context import TurnContext
from core.execution.undo_steps import speaks_of_undo
from core.execution.whereabouts import GET_LOCATION, location_spec
from core.i18n import Texts
from core.levels import briefing
from core.levels.candidates import Candidates
from core.levels.early_words import hearing
from core.levels.proposal import Proposal, ProposedCall, Proposer
from core.llm.client import ChatReply, ChatRequest, Message, ToolCall, ToolSpec, Usage
from core.llm.prompts import Prompts
from core.llm.tiers import Tiers
from core.plan import FINAL_ANSWER, Step
from core.turn_state import StepRecord, TurnState
from core.vocabulary import object_of

log = logging.getLogger(__name__)

# How providers say that a model takes no tools; or that it does not exist, which shows at once.
_NO_TOOLS = frozenset({400, 404, 422, 501})


# Where it helps to know where the person is.
_PLACED = frozenset({"places", "location", "weather"})


class SimpleProposer:
    """`without_tools` proposes in its place once the model's provider has refused tools."""

    name = "simple"

    def __init__(
        self,
        tiers: Tiers,
        prompts: Prompts,
        texts: Texts,
        candidates: Candidates,
        *,
        without_tools: Proposer | None = None,
    ) -> None:
        self._tiers = tiers
        self._prompts = prompts
        self._texts = texts
        self._candidates = candidates
        self._without_tools = without_tools
        self._tools_refused = False

    async def propose(
        self, context: TurnContext, state: TurnState, *, advice: str | None = None
    ) -> Proposal:
        """Ask for the next calls or the answer. An empty or tool-shaped reply is re-asked once.

        Raises `ModelError`.
        """
        other = self._without_tools
        if other is not None and self._tools_refused:
            return replace(await other.propose(context, state, advice=advice), engine=other.name)
        try:
            return await self._propose(context, state, advice)
        except ModelRefused as exc:
            refuses_tools = exc.params.get("status") in _NO_TOOLS and not state.steps
            if other is None or not refuses_tools:
                raise
            try:
                proposal = await other.propose(context, state, advice=advice)
            except ModelError:
                raise exc from None
            log.warning("no tools at this provider", extra={"status": exc.params["status"]})
            self._tools_refused = True
            return replace(proposal, engine=other.name)

    async def _propose(
        self, context: TurnContext, state: TurnState, advice: str | None
    ) -> Proposal:
        names = state.candidates or await self._choose(context)
        request = self._request(context, state, names, advice)
        model = self._tiers.for_role("plan")
        usage, model_ms = Usage(), 0
        try:
            reply = await model.complete(request)
            usage, model_ms = reply.usage, round(reply.latency_ms)
            problem = None if reply.tool_calls or reply.text.strip() else "empty"
        except ModelReplyInvalid as exc:
            problem = exc.detail
        if problem is not None:
            again = self._texts.say("model.again", context.lang)
            reply = await model.complete(self._request(context, state, names, again))
            usage, model_ms = usage + reply.usage, model_ms + round(reply.latency_ms)
            if not reply.tool_calls and not reply.text.strip():
                raise ModelReplyInvalid("empty reply, twice")
        return self._proposal(reply, names, usage, model_ms, context.catalog)

    async def warm(self, context: TurnContext) -> None:
        """See `Proposer.warm`."""
        names = await self._choose(context)
        request = self._request(context, TurnState("", ""), names, None)
        await self._tiers.for_role("plan").complete(replace(request, max_tokens=1))

    async def _choose(self, context: TurnContext) -> tuple[str, ...]:
        traits = await self._tiers.traits_of("plan")
        return self._candidates.choose(context, k_max=traits.k_max)

    def _proposal(
        self,
        reply: ChatReply,
        names: tuple[str, ...],
        usage: Usage,
        model_ms: int,
        catalog: Catalog,
    ) -> Proposal:
        answers = [c for c in reply.tool_calls if c.name == FINAL_ANSWER]
        calls = [c for c in reply.tool_calls if c.name != FINAL_ANSWER]
        text = reply.text
        if not calls and answers:
            # Some models call the answer: its text is the answer.
            text = str((answers[0].arguments or {}).get("text") or reply.text)
        return Proposal(
            candidates=names,
            calls=tuple(_proposed(call, catalog) for call in calls),
            answer="" if calls else text,
            usage=usage,
            model_ms=model_ms,
            model=reply.model,
        )

    def _request(
        self, context: TurnContext, state: TurnState, names: tuple[str, ...], advice: str | None
    ) -> ChatRequest:
        system = self._prompts.render("plan_simple", context.lang)
        messages = briefing.opening(context, self._prompts, self._texts, system=system)
        messages.append(Message("user", context.request))
        for record in state.steps:
            messages += _spoken(record)
        if advice:
            messages.append(Message("system", advice))
        tools = [self._candidates.spec(context.catalog, name, context.lang) for name in names]
        if has_scratchpad(state):
            tools.append(scratchpad_spec(context.lang))
        if speaks_of_undo(state.request):
            tools.append(undo_spec(context.lang))
        tools += self._asking(context, state)
        return ChatRequest(tuple(messages), tuple(tools), on_text=hearing(context, state))

    def _asking(self, context: TurnContext, state: TurnState) -> list[ToolSpec]:
        """The tools that ask the person, shown once a step has told what is missing: before that
        every request begins with the same tools, and a question can be asked in words."""
        if not state.steps:
            return []
        places = any(object_of(name) in _PLACED for name in state.candidates)
        where = [location_spec(context.lang)] if places else []
        return [*asking.specs(context.lang), *where]


def _proposed(call: ToolCall, catalog: Catalog) -> ProposedCall:
    if call.arguments is None:
        return ProposedCall(
            Step(call.name, {}), call.id, "the arguments are not one strict JSON object"
        )
    executor = catalog.executors.get(call.name)
    manifest = None if executor is None else executor.manifest
    return ProposedCall(called_by_name(Step(call.name, call.arguments), manifest), call.id)


def _spoken(record: StepRecord) -> list[Message]:
    """A step as the model sees it: its own call and what came back."""
    call_id = record.call_id or f"call_{record.number}"
    arguments = dict(record.raw_args)
    raw = json.dumps(arguments, ensure_ascii=False)
    shown = json.dumps({"step": record.number, **record.shown}, ensure_ascii=False, default=str)
    return [
        Message("assistant", "", (ToolCall(call_id, record.tool, arguments, raw),)),
        Message("tool", shown, tool_call_id=call_id, name=record.tool),
    ]


def offered(names: tuple[str, ...], state: TurnState) -> frozenset[str]:
    """What may be called now: the candidates, asking the person, the scratchpad when it holds
    something, and taking back when the request speaks of it."""
    scratchpad = (SCRATCHPAD_READ,) if has_scratchpad(state) else ()
    undo = (UNDO_LAST_TURN,) if speaks_of_undo(state.request) else ()
    return frozenset((*names, *scratchpad, *undo, GET_LOCATION)) | asking.ASKING
