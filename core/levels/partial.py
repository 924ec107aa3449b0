"""What of a turn failed for good, and which changes were asked for and not made. Pure.

Reads the records, never the model's words, so that a partial end says all three: done, not done,
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from core.errors import CallRefused, ErrorCode, ErrorInfo
from core.observation import Effects
from core.plan import references_in
from core.turn_state import StepRecord, TurnState
from core.vocabulary import Category, category_of, verb_of

# The model's own slips: it is told and tries again, and the person is not concerned.
SLIPS = frozenset(
    {
        ErrorCode.UNKNOWN_TOOL,
        ErrorCode.INVALID_ARGS,
        ErrorCode.BAD_REFERENCE,
        ErrorCode.MISSING_INPUT,
        ErrorCode.DUPLICATE_CALL,
        ErrorCode.DUPLICATE_READ,
        ErrorCode.VECTORISE,
    }
)
# Where a change of that kind goes to or what it touches, as models write it.
_TARGETS = ("path", "paths", "dst", "url", "urls", "to", "recipients")


@dataclass(frozen=True, slots=True)
class Undone:
    """A change that was not made: the verb of its tool and the names of what it was meant for,
    none when they are not known."""

    verb: str
    names: tuple[str, ...] = ()


def acts(tool: str) -> bool:
    return category_of(tool) is Category.ACTS


def failure_of(steps: Sequence[StepRecord]) -> ErrorInfo | None:
    """The failure that a spoken answer must not hide: the last change that was refused or failed
    and did not work later either, or the last error of a turn in which nothing worked at all.
    Slips of the model do not count. None: the answer is one.
    """
    nothing_worked = not any(record.observation.ok for record in steps)
    for position in range(len(steps) - 1, -1, -1):
        record = steps[position]
        error = record.observation.error
        if record.observation.ok or error is None or error.code in SLIPS:
            continue
        if nothing_worked or (acts(record.tool) and not _worked_later(steps, position)):
            return error
    return None


def _worked_later(steps: Sequence[StepRecord], position: int) -> bool:
    tool = steps[position].tool
    return any(record.tool == tool and record.observation.ok for record in steps[position + 1 :])


def undone_of(state: TurnState) -> list[Undone]:
    """Changes that were not made: refused and failed steps, items that failed in a step that
    changed others, and what the rest of a plan would have changed."""
    found: list[Undone] = []
    for position, record in enumerate(state.steps):
        if not acts(record.tool) or record.observation.effects is Effects.UNKNOWN:
            continue
        if record.observation.ok or record.observation.effects is Effects.DONE:
            names = [_name(e) for e in record.observation.entries or () if e.get("ok") is False]
            if names:
                found.append(Undone(verb_of(record.tool), tuple(filter(None, names))))
        elif not _worked_later(state.steps, position):
            found.append(Undone(verb_of(record.tool), _names_in(record.resolved_args)))
    if state.plan is not None:
        rest = [step for step in state.plan.steps[state.next_step :] if acts(step.tool)]
        found += [Undone(verb_of(step.tool), _names_in(step.args)) for step in rest]
    return list(dict.fromkeys(found))


def _names_in(args: Mapping[str, Any]) -> tuple[str, ...]:
    """Targets that stand in the arguments as they are; a reference is no name."""
    names: list[str] = []
    for key in _TARGETS:
        value = args.get(key)
        names += filter(_is_name, value if isinstance(value, list) else [value])
    entries = args.get("entries")
    for item in entries if isinstance(entries, list) else ():
        if isinstance(item, Mapping) and _is_name(item.get("path")):
            names.append(item["path"])
    return tuple(names)


def _is_name(value: Any) -> TypeGuard[str]:
    if not isinstance(value, str) or not value.strip():
        return False
    try:
        return not any(True for _ in references_in(value))
    except CallRefused:
        return False


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("path") or entry.get("url") or entry.get("id") or entry.get("name") or "")
