"""Where the sink values of a call come from, seen from the turn it is in (C5, S8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.catalog.manifest import Manifest
from core.errors import CallRefused, ErrorCode
from core.execution import addresses, policy
from core.execution.builtins import BUILTINS
from core.execution.context import TurnContext, provenance_of_turn
from core.messages import Role
from core.observation import Provenance
from core.plan import Step, steps_used
from core.turn_state import TurnState


def listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def urls_in(args: Mapping[str, Any], manifest: Manifest) -> list[str]:
    """The canonical web addresses among the sink arguments."""
    kinds = manifest.sinks
    return [str(v) for name in args if kinds.get(name) == "url" for v in listed(args[name])]


def origin_of(values: list[str], context: TurnContext, state: TurnState) -> Provenance:
    """Where the sink values come from: the person, the plan made before anything external was
    read, or possibly the outside (C5)."""
    planned_blind = state.plan is not None
    if planned_blind or provenance_of_turn(state) is not Provenance.EXTERNAL:
        return Provenance.USER
    if all(policy.is_spoken_of(value, context.said) for value in values):
        return Provenance.USER
    return Provenance.EXTERNAL


def address_refusal(
    step: Step,
    args: Mapping[str, Any],
    manifest: Manifest,
    context: TurnContext,
    state: TurnState,
) -> CallRefused | None:
    """Why the addresses of a call may not be contacted without the person's consent, which a
    guest cannot give; None when they may."""
    executors = context.catalog.executors

    def is_private(tool: str) -> bool:
        known = executors.get(tool)
        return tool not in BUILTINS and addresses.reads_private(known.manifest if known else None)

    for url in urls_in(args, manifest):
        doubt = addresses.doubt_about(
            url,
            said=context.said,
            quoted=() if context.quoted is None else (context.quoted,),
            steps=state.steps,
            is_private=is_private,
            # What a reference brings in was not in the plan when it was made.
            planned_blind=state.plan is not None and not steps_used(step.args),
        )
        if doubt is None:
            continue
        if context.actor.role is Role.GUEST:
            return CallRefused(ErrorCode.NOT_AUTHORIZED, doubt.value)
        return CallRefused(
            ErrorCode.CONSENT_UNAVAILABLE,
            f"{doubt.value}: this address was written by nobody but you; the person must agree to"
            " contact it, which cannot be asked for yet: tell them, with the address",
            url=url[:300],
        )
    return None
