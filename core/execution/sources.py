"""Where the values of a call come from: the person, this house, or the outside (C5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.catalog.manifest import Manifest
from core.errors import CallRefused
from core.execution.context import TurnContext, provenance_of_turn
from core.execution.policy import is_spoken_of
from core.observation import Provenance
from core.plan import FROM_STEP, steps_used
from core.turn_state import TurnState


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
