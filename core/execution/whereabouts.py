"""Where the person is, for the calls that need it: a fresh position, or the question for it.

A program gets it only when its manifest asks for `location:read`. The builtin `get_location` tells
it to a model. Neither asks while a position is fresh; without one both ask the same question.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.catalog.manifest import Manifest
from core.dialogs import SuspensionKind
from core.errors import ErrorCode
from core.execution.consent import Decision, NeedsAnswer, Question
from core.execution.context import TurnContext
from core.execution.values import fold
from core.execution.wording import names_a_place
from core.llm.client import ToolSpec
from core.observation import Observation
from core.positions import Position, Source, read_position, speaks_of_here
from core.store import positions
from core.store.stores import Stores

GET_LOCATION = "get_location"
RIGHT = "location:read"

_TEXTS = {
    "it": "Dove si trova la persona; se non si sa, glielo chiede. Senza argomenti.",
    "en": "Where the person is; asks them if it is not known. No arguments.",
}


def location_spec(lang: str) -> ToolSpec:
    """The tool as a model sees it."""
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    return ToolSpec(GET_LOCATION, _TEXTS[lang], empty)


async def known(
    stores: Stores, context: TurnContext, now: datetime, decision: Decision | None
) -> Position | None:
    """Where the person is: what they have just answered, else what is kept and fresh."""
    answered = None if decision is None else decision.values.get(SuspensionKind.LOCATION.value)
    if isinstance(answered, Mapping):
        label = str(answered.get("address") or "")
        source = Source.TYPED if label else Source.SHARED
        position = read_position(answered, at=now, source=source, label=label)
        if position is not None:
            return position
    async with stores.main.read() as tx:
        return await positions.find_fresh(tx, context.actor.id, now)


async def told_to(
    manifest: Manifest,
    stores: Stores,
    context: TurnContext,
    now: datetime,
    decision: Decision | None,
) -> dict[str, Any]:
    """The part of a call document that a program with the right to it gets; else nothing.

    `about`: "here" when the request speaks of the person's surroundings, "open" when it names no
    place at all, else "elsewhere". `position` is there when it is known.
    """
    if all(right.name != RIGHT for right in manifest.capabilities):
        return {}
    about = "elsewhere"
    if speaks_of_here(context.request):
        about = "here"
    elif not names_a_place(fold(context.request)):
        about = "open"
    found = await known(stores, context, now, decision)
    told: dict[str, Any] = {"about": about}
    if found is not None:
        told["position"] = {"lat": found.lat, "lon": found.lon, "label": found.label}
    return {"whereabouts": told}


def ask_if_needed(
    seen: Observation, manifest: Manifest, args: Mapping[str, Any], decision: Decision | None
) -> None:
    """Raise `NeedsAnswer` when the program could not go on without knowing where the person is.
    Not a second time: then the failure stays what it is."""
    needed = seen.error is not None and seen.error.code is ErrorCode.NEEDS_LOCATION
    if not needed or decision is not None:
        return
    sought = [str(one) for name in manifest.vector for one in args.get(name) or ()]
    raise NeedsAnswer(_question(manifest.name, tuple(sought)))


async def get_location(
    stores: Stores, context: TurnContext, now: datetime, decision: Decision | None
) -> Observation:
    """Point, accuracy in metres, age in seconds and name, as far as they are known. Raises
    `NeedsAnswer` when nothing fresh is."""
    found = await known(stores, context, now, decision)
    if found is None:
        raise NeedsAnswer(_question(GET_LOCATION, ()))
    told: dict[str, Any] = {
        "coords": found.coords,
        "lat": found.lat,
        "lon": found.lon,
        "age_s": found.age_s(now),
        "source": found.source.value,
    }
    if found.accuracy_m is not None:
        told["accuracy_m"] = round(found.accuracy_m)
    if found.label:
        told["address"] = found.label
    return Observation(ok=True, content=told)


def _question(tool: str, sought: tuple[str, ...]) -> Question:
    return Question(SuspensionKind.LOCATION, tool, targets=sought[:3], count=len(sought))
