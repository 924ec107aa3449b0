"""What a yes leaves behind: a mandate for good, a memory of the like, addresses that are known.

A mandate is bound to the request, the tool with its program, and what the change acts on: values
that were written out, or the way they were found when a reference brought them.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.catalog.manifest import Manifest
from core.errors import CallRefused
from core.execution.context import TurnContext
from core.plan import references_in, steps_used
from core.redaction import redact
from core.store import approvals
from core.store.approvals import Bond
from core.store.database import Transaction
from core.turn_state import TurnState
from core.vocabulary import is_foreign, verb_of

# What shows which items there are, and repeats no words of theirs.
_FINDING = frozenset({"find", "list", "filter", "sort"})
MOST_REQUEST = 500
MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Given:
    """What is kept of an approval, along with the journal of what it was given to. `bond`: a yes
    for good. `mandate`: the number of the one that was used instead of a question."""

    actor_id: str
    kind: str
    count: int
    recipients: tuple[str, ...] = ()
    bond: Bond | None = None
    mandate: int | None = None


async def keep(tx: Transaction, given: Given, now: datetime) -> None:
    """Write down what follows from a yes, or that a mandate was used."""
    if given.mandate is not None:
        await approvals.use(tx, given.mandate, now)
        return
    await approvals.count_agreed(tx, given.actor_id, given.kind, count=given.count, now=now)
    await approvals.remember_recipients(tx, given.actor_id, given.recipients, now)
    if given.bond is not None:
        await approvals.grant(tx, given.actor_id, given.bond, most=given.count, now=now)


def kind_of(manifest: Manifest, args: Mapping[str, Any], targets: Sequence[str]) -> str:
    """What makes two changes of one kind: the tool, and where it works when that is one place."""
    if is_foreign(manifest.name):
        return f"{manifest.name} *"  # its target is the whole call, with what is in it
    destination = args.get("dst")
    if isinstance(destination, str):
        return f"{manifest.name} {destination}"
    folders = {posixpath.dirname(target) for target in targets}
    return f"{manifest.name} {folders.pop() if len(folders) == 1 else '*'}"


def normal_request(text: str) -> str:
    """A request without what makes no difference: capitals, blanks, the sign at its end."""
    return " ".join(text.casefold().split()).rstrip(" .!?")


def bond_of(
    manifest: Manifest,
    raw: Mapping[str, Any],
    args: Mapping[str, Any],
    targets: Sequence[str],
    context: TurnContext,
    state: TurnState,
) -> Bond | None:
    """What a mandate for this change is bound to; None when it can be bound to nothing firm, since
    what it acts on was read out of something.

    Content is no part of it: every argument that names, chooses or counts is.
    """
    request = normal_request(context.request)
    try:
        found = [
            [number, _how_found(number, context, state)] for number in sorted(steps_used(raw))
        ]
        own = {
            name: raw[name] if _refers(raw.get(name)) else value
            for name, value in args.items()
            if _binds(name, manifest)
        }
    except (CallRefused, _NotFirm):
        return None
    if not request:
        return None
    data = json.dumps([request, own, found], sort_keys=True, ensure_ascii=False, default=str)
    return Bond(
        redact(request)[:MOST_REQUEST],
        manifest.name,
        manifest.digest,
        hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest(),
        _shown(args, targets, bool(found)),
    )


class _NotFirm(Exception):
    """What a change acts on was said by something that may say something else tomorrow."""


def _how_found(number: int, context: TurnContext, state: TurnState) -> list[Any]:
    """How a step found what it found: its tool and program, what it was asked, and the same of
    the steps that it worked with."""
    record = state.steps[number - 1] if 0 < number <= len(state.steps) else None
    executor = None if record is None else context.catalog.executors.get(record.tool)
    if record is None or executor is None or verb_of(record.tool) not in _FINDING:
        raise _NotFirm
    asked = {
        name: record.raw_args[name] if _refers(record.raw_args.get(name)) else value
        for name, value in record.resolved_args.items()
        if name != "entries"
    }
    before = [
        [used, _how_found(used, context, state)] for used in sorted(steps_used(record.raw_args))
    ]
    return [record.tool, executor.manifest.digest, asked, before]


def _binds(name: str, manifest: Manifest) -> bool:
    if name == "entries":
        return False
    spec = manifest.properties.get(name, {})
    chooses = "enum" in spec or spec.get("type") in {"boolean", "integer", "number"}
    return name in manifest.sinks or chooses or manifest.types.get(name, "free") != "free"


def _refers(value: Any) -> bool:
    return any(True for _ in references_in(value))


def _shown(args: Mapping[str, Any], targets: Sequence[str], by_reference: bool) -> tuple[str, ...]:
    """What a mandate is about, for people: the folders of what is found anew each time, else the
    things themselves; and where they go."""
    names = list(targets)
    if by_reference:
        names = sorted({posixpath.dirname(target) for target in targets})
    to = args.get("dst")
    shown = names[:MOST_SHOWN] + (["…"] if len(names) > MOST_SHOWN else [])
    return (*shown, *(["→", to] if isinstance(to, str) else []))
