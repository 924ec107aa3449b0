"""Where the values of a call come from: the person, this house, or the outside (C5).

Knows the turn and looks whether a path exists; what follows from it is decided elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from core.catalog.manifest import Manifest
from core.errors import CallRefused
from core.execution.addresses import Doubt, doubt_about, reads_private
from core.execution.builtins import BUILTINS
from core.execution.consent import Source
from core.execution.context import TurnContext, provenance_of_turn
from core.execution.grounding import Ground
from core.execution.policy import is_spoken_of
from core.observation import Effects, Provenance
from core.plan import PIPES, steps_used
from core.turn_state import StepRecord, TurnState

MOST_TEXT = 200_000
MOST_QUOTED = 80
# What an item is called, best first.
_NAMES = ("final_url", "url", "path", "subject", "title", "sender", "name")


def origin_of(
    values: Sequence[str],
    raw: Mapping[str, Any],
    manifest: Manifest,
    context: TurnContext,
    state: TurnState,
) -> Provenance:
    """The worst origin of the sink values of a change.

    `USER` when the person named them, or when nothing external was known to whoever wrote them:
    nothing of the kind had been read, quoted or said before, or the plan was made before. A value
    that a plan takes by reference from something external was written by the outside all the same.
    """
    named = context.pointed_at
    if all(value in named or is_spoken_of(value, context.said) for value in values):
        return Provenance.USER
    if knew_external(context, state):
        return Provenance.EXTERNAL
    sinks = {name: raw[name] for name in (*manifest.sinks, *PIPES) if name in raw}
    outside = of_steps(sinks, state) is Provenance.EXTERNAL
    return Provenance.EXTERNAL if outside else Provenance.USER


def knew_external(context: TurnContext, state: TurnState) -> bool:
    """Whether whoever wrote the next call had words from outside before them. The author of a plan
    knows the steps before it, not those of the plan."""
    known = state.steps
    if state.plan is not None:
        known = known[: max(0, len(known) - state.next_step)]
    return context.is_external or any(
        record.observation.provenance is Provenance.EXTERNAL for record in known
    )


def reply_is_external(context: TurnContext, state: TurnState, *, by_model: bool) -> bool:
    """Whether words from outside may stand in what this turn answers: they were read or quoted in
    it, or a model that had them before it in the conversation wrote the answer."""
    read = provenance_of_turn(state) is Provenance.EXTERNAL
    return read or context.is_given_words or (by_model and context.is_external)


def typed_in(state: TurnState) -> tuple[str, ...]:
    """What the person has written in answers of this turn."""
    found: list[str] = []
    for record in state.steps:
        if record.observation.provenance is Provenance.USER:
            _collect(record.observation.content, found)
    return tuple(found)


def of_answer(args: Mapping[str, Any], context: TurnContext, state: TurnState) -> Provenance:
    """Whose words the answer to a question of a plan or model is: the person's. But what they
    picked from an offer they did not write, and from what the outside offered it is the outside's
    still: a label says little of what hangs on it. `args` are the asking tool's, as proposed."""
    fields = args.get("fields")
    offers = "fields" not in args or any(
        isinstance(field, Mapping) and "choice" in str(field.get("kind"))
        for field in (fields if isinstance(fields, list) else [])
    )
    outside = knew_external(context, state) or of_steps(args, state) is Provenance.EXTERNAL
    if not offers:
        return Provenance.USER
    return Provenance.EXTERNAL if outside else Provenance.OWN


def ground_of(context: TurnContext, state: TurnState) -> Ground:
    """What the next call of this turn may stand on."""
    talk = [
        text for exchange in context.conversation for text in (exchange.request, exchange.answer)
    ]
    quoted = [context.quoted] if context.quoted else []
    said = (context.request, *context.typed, *talk, *quoted)
    worked = [record for record in state.steps if record.observation.ok]
    return Ground(
        said=said,
        seen=lambda: [*context.pointed_at, *_texts_of(worked)],
        roots=context.scope.roots,
        zone=context.tz,
        exists=os.path.lexists,
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


def was_sent(paths: Sequence[str], inbox: str) -> bool:
    """Whether one of these lies where what people send is put: others may have written it."""
    return any(path == inbox or path.startswith(f"{inbox}/") for path in paths)


def doubts_about(
    urls: Sequence[str], raw: Mapping[str, Any], context: TurnContext, state: TurnState
) -> dict[str, Doubt]:
    """Those of these addresses that the person must agree to before they are contacted, each with
    the reason. `raw` are the arguments as they were proposed."""
    executors = context.catalog.executors

    def is_private(tool: str) -> bool:
        known = executors.get(tool)
        return tool not in BUILTINS and reads_private(known.manifest if known else None)

    # What a reference brings in was not in the plan when it was made.
    blind = state.plan is not None and not knew_external(context, state) and not steps_used(raw)
    found: dict[str, Doubt] = {}
    for url in urls:
        doubt = doubt_about(
            url,
            said=context.said,
            quoted=() if context.quoted is None else (context.quoted,),
            steps=state.steps,
            is_private=is_private,
            planned_blind=blind,
            told_before=context.is_external,
        )
        if doubt is not None:
            found[url] = doubt
    return found


def where_from(
    context: TurnContext, state: TurnState, values: Sequence[str] = (), *, private: bool = False
) -> Source | None:
    """What was read last from outside (or, with `private`, of the person's own): where a wish may
    have come from that the person did not utter. What holds one of `values` goes before."""
    wanted = {Provenance.OWN, Provenance.USER} if private else {Provenance.EXTERNAL}
    named: list[str] = []
    for record in reversed(state.steps):
        seen = record.observation
        if seen.provenance in wanted and seen.ok and seen.effects is Effects.NONE:
            for entry in record.observation.entries or ():
                name = next((str(entry[key]) for key in _NAMES if entry.get(key)), "")
                if not name:
                    continue
                texts: list[str] = []
                _collect(entry, texts)
                if any(value in text for value in values for text in texts):
                    return Source("read", name)
                named.append(name)
    if named:
        return Source("read", named[0])
    if private:
        return None
    if context.files or context.files_before:
        sent = (*context.files, *context.files_before)
        return Source("read", sent[0].rsplit("/", 1)[-1])
    if context.quoted:
        return Source("quoted", " ".join(context.quoted.split())[:MOST_QUOTED])
    return Source("talk" if context.is_external else "unknown")
