"""Other names that a manifest declares for its arguments, `[aliases]`: read from what a model
wrote and, for those who compare calls by those names, written again.

Pure. An alias of one argument is that argument; one of several is an object of them, or a list of
one such object (`messages = [{to, subject, body}]`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.catalog.manifest import Manifest
from core.plan import Step


def called_by_name(step: Step, manifest: Manifest | None) -> Step:
    """The step with the manifest's own names. What was said under both names, or cannot be one
    call of it (a list of two messages), stays as it is: validation says what is wrong with it."""
    if manifest is None or manifest.aliases.keys().isdisjoint(step.args):
        return step
    args = dict(step.args)
    for alias, names in manifest.aliases.items():
        meant = _meant(args[alias], names) if alias in args else None
        if meant is not None and meant.keys().isdisjoint(args):
            del args[alias]
            args |= meant
    return replace(step, args=args)


def with_aliases(args: Mapping[str, Any], manifest: Manifest) -> dict[str, Any]:
    """Arguments together with what they are under the manifest's aliases."""
    found = dict(args)
    for alias, names in manifest.aliases.items():
        said = {name: args[name] for name in names if name in args}
        if said and alias not in args:
            found[alias] = said[names[0]] if len(names) == 1 else [said]
    return found


def _meant(value: Any, names: tuple[str, ...]) -> dict[str, Any] | None:
    if len(names) == 1:
        return {names[0]: value}
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping) or not value or not value.keys() <= set(names):
        return None
    return dict(value)
