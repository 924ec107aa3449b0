"""The shape of a plan (S6): data is brought before it is told or acted on. Pure.

A clause is `E+ (F|A)?`: steps that produce, then at most one that formats or acts. What formats or
acts may stand first, or after a clause has closed, when its own arguments say on what; or when it
takes an earlier step's results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core.catalog.manifest import Manifest
from core.errors import CallRefused, ErrorCode
from core.plan import Step, references_in, steps_used
from core.vocabulary import Category, category_of, verb_of

_FED_ONLY = frozenset("sort group filter classify compute compare extract".split())
_TARGET_TYPES = frozenset({"path", "url", "person", "recipient", "place"})


class Stage(StrEnum):
    """Where a pipeline stands: nothing brought yet, something brought, the clause closed."""

    START = "start"
    FED = "fed"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Call:
    """What counts of a step. `draws`: it takes results of an earlier one. `targeted`: its target
    arguments hold something concrete, or it has none."""

    tool: str
    draws: bool = False
    targeted: bool = True


def call_of(step: Step, manifest: Manifest | None) -> Call:
    """A step as it counts here. Raises `CallRefused(bad_reference)` for a broken reference."""
    draws = bool(steps_used(step.args))
    if manifest is None:
        return Call(step.tool, draws)
    must = set(manifest.args.get("required", ())) & set(manifest.properties)
    typed = {name for name in must if manifest.types.get(name) in _TARGET_TYPES}
    sinks = must & set(manifest.sinks)
    groups = {name for group in manifest.requires_one_of for name in group}
    targets = ({"entries", *manifest.vector, *groups} & set(manifest.properties)) | typed | sinks
    return Call(step.tool, draws, not targets or _holds_any(step.args, targets))


def next_state(state: Stage, call: Call) -> Stage:
    """The stage after a call.

    Raises `CallRefused` with `needs_data_source`, `needs_action_target` or
    `pipeline_already_closed`, and what is missing.
    """
    category = category_of(call.tool)
    if category is Category.META:
        return state
    grounded = call.draws or call.targeted
    if category is Category.PRODUCES:
        if not grounded and verb_of(call.tool) in _FED_ONLY:
            raise CallRefused(
                ErrorCode.NEEDS_DATA_SOURCE, f"{call.tool} takes the results of an earlier step"
            )
        return Stage.FED
    if not grounded:
        if state is Stage.CLOSED:
            raise CallRefused(
                ErrorCode.PIPELINE_CLOSED, f"before {call.tool} another step must bring data"
            )
        if category is Category.FORMATS:
            raise CallRefused(
                ErrorCode.NEEDS_DATA_SOURCE, f"{call.tool} takes the results of an earlier step"
            )
        raise CallRefused(
            ErrorCode.NEEDS_ACTION_TARGET, f"{call.tool} does not say on what it acts"
        )
    return Stage.CLOSED


def compute_state(history: Iterable[Call]) -> Stage:
    """The stage after these calls, in their order. Raises what `next_state` raises."""
    state = Stage.START
    for call in history:
        state = next_state(state, call)
    return state


def _holds_any(args: Mapping[str, Any], names: Iterable[str]) -> bool:
    return any(
        args.get(name) not in (None, "", [], {}) and not any(references_in({"v": args[name]}))
        for name in names
    )
