"""The whole-plan proposer: one call under a JSON schema, the plan as the reply's text.

The prompt holds one compact line per tool in a fixed order; what narrows the choice is the schema,
which is not in the prompt, so the server's prefix cache always meets the same bytes (C4).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.catalog.loader import Catalog
from core.catalog.manifest import Manifest
from core.errors import CallRefused, ModelReplyInvalid
from core.execution.context import TurnContext
from core.i18n import Texts
from core.levels import briefing
from core.levels.candidates import Candidates
from core.levels.proposal import Proposal
from core.llm.client import ChatReply, ChatRequest, Message
from core.llm.prompts import Prompts
from core.llm.tiers import Role, Tiers
from core.plan import FINAL_ANSWER, Plan
from core.turn_state import TurnState

MAX_PLAN_STEPS = 6


class MetisProposer:
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
        """One plan. A reply that is no plan is re-asked once. Raises `ModelError`."""
        names = self._candidates.choose(context, k_max=12)
        request = self.request(context, names, advice)
        model = self._tiers.for_role(self._role)
        reply = await model.complete(request)
        usage, model_ms = reply.usage, round(reply.latency_ms)
        plan = _read(reply)
        if plan is None:
            again = self._texts.say("model.again_plan", context.lang)
            reply = await model.complete(self.request(context, names, again))
            usage, model_ms = usage + reply.usage, model_ms + round(reply.latency_ms)
            plan = _read(reply)
            if plan is None:
                raise ModelReplyInvalid("no plan, twice")
        answer = _only_answer(plan)
        return Proposal(
            candidates=names,
            plan=None if answer is not None else plan,
            answer=answer or "",
            usage=usage,
            model_ms=model_ms,
            model=reply.model,
        )

    async def warm(self, context: TurnContext) -> None:
        """See `Proposer.warm`."""
        request = replace(self.request(context, ()), schema=None, max_tokens=1)
        with contextlib.suppress(ModelReplyInvalid):
            await self._tiers.for_role(self._role).complete(request)

    def request(
        self, context: TurnContext, names: tuple[str, ...], advice: str | None = None
    ) -> ChatRequest:
        """The call: static prompt, facts, the person's text; the schema narrows the tools."""
        system = self._prompts.render(
            "plan_metis", context.lang, tools=_lines(context.catalog, context.lang)
        )
        messages = briefing.opening(context, self._prompts, self._texts, system=system)
        if advice:
            messages.append(Message("system", advice))
        messages.append(Message("user", context.request))
        schema = _schema({n: context.catalog.offered[n].manifest for n in names}, context.lang)
        return ChatRequest(tuple(messages), schema=schema)


def _lines(catalog: Catalog, lang: str) -> list[str]:
    """`name(argument, optional?): what it does`, one per tool, in the catalogue's order."""
    lines = []
    for name, executor in catalog.offered.items():
        manifest = executor.manifest
        required = set(manifest.args.get("required", ()))
        args = ", ".join(
            ("from_step" if arg == "entries" else arg) + ("" if arg in required else "?")
            for arg in manifest.properties
            if arg not in manifest.runtime_args
        )
        lines.append(f"{name}({args}): {manifest.description[lang]}")
    return lines


def _schema(manifests: Mapping[str, Manifest], lang: str) -> dict[str, Any]:
    tools = [
        _step_schema(name, _bare(manifest.tool_schema(lang)))
        for name, manifest in manifests.items()
    ]
    answer = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "steps": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_PLAN_STEPS,
                "items": {"anyOf": [*tools, _step_schema(FINAL_ANSWER, answer)]},
            }
        },
        "required": ["steps"],
        "additionalProperties": False,
    }


def _step_schema(name: str, args: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, "args": args},
        "required": ["tool", "args"],
        "additionalProperties": False,
    }


def _bare(schema: Any) -> Any:
    """A schema without words: the grammar needs none."""
    if isinstance(schema, Mapping):
        return {k: _bare(v) for k, v in schema.items() if k not in {"description", "default"}}
    return [_bare(item) for item in schema] if isinstance(schema, list) else schema


def _read(reply: ChatReply) -> Plan | None:
    try:
        plan = Plan.from_json(json.loads(reply.text))
    except (ValueError, CallRefused):
        return None
    return plan if plan.steps else None


def _only_answer(plan: Plan) -> str | None:
    """The text of a plan that does nothing but answer."""
    if all(step.tool == FINAL_ANSWER for step in plan.steps):
        return " ".join(str(step.args.get("text", "")) for step in plan.steps).strip() or None
    return None
