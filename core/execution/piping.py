"""How the lists of earlier steps come into a call: `from_step`, and `other_step` for a second one.

Pure but for the caller's `Lookup`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from core.catalog.manifest import Manifest
from core.errors import CallRefused, ErrorCode
from core.observation import Observation
from core.plan import FROM_STEP, OTHER_STEP, PIPES, as_step_number

# The natural field of one item for a vector argument of a tool without `entries`.
_PROJECTIONS: Mapping[str, tuple[str, ...]] = {
    "paths": ("path",),
    "urls": ("url", "final_url"),
    "ids": ("id",),
    "event_ids": ("id",),
}


class Lookup(Protocol):
    """What references stand for; raises `CallRefused(bad_reference)` for what is not there."""

    def step(self, number: int) -> Observation: ...

    def runtime(self, key: str) -> Any: ...


def pipes_of(manifest: Manifest | None) -> frozenset[str]:
    """The names by which a call may speak of the lists of earlier steps. A tool that takes no
    second list has no `other_step`: its schema then refuses it like any unknown argument."""
    two = manifest is not None and PIPES[OTHER_STEP] in manifest.properties
    return frozenset(PIPES) if two else frozenset({FROM_STEP})


def piped(args: Mapping[str, Any], manifest: Manifest | None, lookup: Lookup) -> dict[str, Any]:
    """The lists that a call takes from earlier steps, by the arguments that hold them.

    Raises `CallRefused(bad_reference)` for what is no earlier step, brought no list, or is the
    same step twice.
    """
    found: dict[str, Any] = {}
    first, other = args.get(FROM_STEP), args.get(OTHER_STEP)
    if first is not None:
        _inject(found, first, manifest, lookup)
    if other is not None and OTHER_STEP in pipes_of(manifest):
        if first is not None and as_step_number(first) == as_step_number(other):
            raise CallRefused(ErrorCode.BAD_REFERENCE, "other_step is another step than from_step")
        found[PIPES[OTHER_STEP]] = _items(OTHER_STEP, other, lookup)
    return found


def _items(name: str, raw: Any, lookup: Lookup) -> list[Any]:
    number = as_step_number(raw)
    if number is None:
        raise CallRefused(ErrorCode.BAD_REFERENCE, f"{name} is the number of an earlier step")
    items = lookup.step(number).items()
    if items is None:
        raise CallRefused(ErrorCode.BAD_REFERENCE, f"step {number} produced no list")
    return items


def _inject(resolved: dict[str, Any], raw: Any, manifest: Manifest | None, lookup: Lookup) -> None:
    items = _items(FROM_STEP, raw, lookup)
    if manifest is None or manifest.takes_entries:
        resolved["entries"] = items
        return
    for name in manifest.vector:
        for field in _PROJECTIONS.get(name, ()):
            values = [i[field] for i in items if isinstance(i, Mapping) and field in i]
            if values or not items:
                resolved[name] = values
                return
    raise CallRefused(ErrorCode.BAD_REFERENCE, f"{manifest.name} cannot take a list from a step")
