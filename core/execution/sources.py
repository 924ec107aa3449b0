"""Where the values of a call come from: the person, this house, or the outside (C5).

Knows the turn and looks whether a path exists; what follows from it is decided elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from core.catalog.manifest import Manifest
from core.errors import CallRefused, ErrorCode
from core.execution.addresses import doubt_about, reads_private
from core.execution.builtins import BUILTINS
from core.execution.context import TurnContext, provenance_of_turn
from core.execution.grounding import Ground
from core.execution.policy import is_spoken_of
from core.messages import Role
from core.observation import Provenance
from core.plan import FROM_STEP, steps_used
from core.turn_state import StepRecord, TurnState

MOST_TEXT = 200_000


def origin_of(
    values: Sequence[str],
    raw: Mapping[str, Any],
    manifest: Manifest,
    context: TurnContext,
    state: TurnState,
) -> Provenance:
    """The worst origin of the sink values of a change.

    `USER` when the person named them, or when nothing external was known to whoever wrote them:
    no step had read anything, or the plan was made before. A value that a plan takes by reference
    from something external was written by the outside all the same.
    """
    if all(is_spoken_of(value, context.said) for value in values):
        return Provenance.USER
    if state.plan is None:
        outside = provenance_of_turn(state)
    else:
        sinks = {name: raw[name] for name in (*manifest.sinks, FROM_STEP) if name in raw}
        outside = of_steps(sinks, state)
    return Provenance.EXTERNAL if outside is Provenance.EXTERNAL else Provenance.USER


def ground_of(context: TurnContext, state: TurnState) -> Ground:
    """What the next call of this turn may stand on."""
    talk = [
        text for exchange in context.conversation for text in (exchange.request, exchange.answer)
    ]
    said = (context.request, *talk, *([context.quoted] if context.quoted else []))
    worked = [record for record in state.steps if record.observation.ok]
    return Ground(
        said=said,
        seen=lambda: _texts_of(worked),
        roots=context.scope.roots,
        zone=context.tz,
        exists=os.path.lexists,
        external=provenance_of_turn(state) is Provenance.EXTERNAL,
        first=not worked,
    )


def _texts_of(records: Sequence[StepRecord]) -> list[str]:
    """Every text that these steps brought or worked on, long ones cut; bodies are no texts."""
    found: list[str] = []
    for record in records:
        observation = record.observation
        for value in (record.resolved_args, observation.metadata, observation.content):
            _collect(value, found)
        for entry in observation.entries or ():
            _collect(entry, found)
    return found


def _collect(value: Any, found: list[str]) -> None:
    if isinstance(value, str):
        found.append(value[:MOST_TEXT])
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key != "blob":
                _collect(item, found)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, found)


def of_steps(raw: Mapping[str, Any], state: TurnState) -> Provenance:
    """External when one of the steps that these arguments speak of brought something external."""
    try:
        used = steps_used(raw)
    except CallRefused:
        used = set()
    external = any(
        record.number in used and record.observation.provenance is Provenance.EXTERNAL
        for record in state.steps
    )
    return Provenance.EXTERNAL if external else Provenance.OWN


def of_entry(entry_id: str, state: TurnState) -> Provenance:
    """Where the text of a scratchpad entry came from: reading it again does not make it ours."""
    for record in state.steps:
        if record.shown.get("scratchpad_id") == entry_id:
            return record.observation.provenance
    return Provenance.OWN


def address_refusal(
    urls: Sequence[str], raw: Mapping[str, Any], context: TurnContext, state: TurnState
) -> CallRefused | None:
    """Why these addresses may not be contacted without the person's consent, which a guest cannot
    give; None when they may. `raw` are the arguments as they were proposed."""
    executors = context.catalog.executors

    def is_private(tool: str) -> bool:
        known = executors.get(tool)
        return tool not in BUILTINS and reads_private(known.manifest if known else None)

    for url in urls:
        doubt = doubt_about(
            url,
            said=context.said,
            quoted=() if context.quoted is None else (context.quoted,),
            steps=state.steps,
            is_private=is_private,
            # What a reference brings in was not in the plan when it was made.
            planned_blind=state.plan is not None and not steps_used(raw),
        )
        if doubt is None:
            continue
        if context.actor.role is Role.GUEST:
            return CallRefused(ErrorCode.NOT_AUTHORIZED, doubt.value)
        return CallRefused(
            ErrorCode.CONSENT_UNAVAILABLE,
            f"{doubt.value}: nobody but you wrote this address; the person must agree to contact"
            " it, which cannot be asked for yet: tell them, with the address",
            url=url[:300],
        )
    return None
