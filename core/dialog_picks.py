"""Options of which several may be picked, one press after the other. Pure."""

from __future__ import annotations

from dataclasses import replace

from core.dialogs import Answer, FieldKind, Suspension


def picked(suspension: Suspension) -> list[str]:
    """The keys of the options picked so far, where several may be, in the order of the options."""
    asked = suspension.asked
    chosen = suspension.values.get(asked.var) if asked.kind is FieldKind.MULTI_CHOICE else None
    return [o.key for o in asked.options if isinstance(chosen, list) and o.key in chosen]


def toggled(suspension: Suspension, key: str) -> Suspension:
    """The same question with one more option picked, or one less."""
    before = picked(suspension)
    after = [k for k in before if k != key] if key in before else [*before, key]
    values = {**suspension.values, suspension.asked.var: after}
    found = replace(suspension, values=values)
    return replace(found, values={**values, suspension.asked.var: picked(found)})


def answer_of_picked(suspension: Suspension) -> Answer:
    """The answer that says: these, and no more."""
    keys = picked(suspension)
    labels = [o.label for o in suspension.asked.options if o.key in keys]
    return Answer(keys, ", ".join(labels))
