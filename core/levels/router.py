"""Which mode serves a request: on this machine, or by one call to the frontier tier.

`local` and `online` are what the settings say; `hybrid` picks by an ordered list of rules, the
first that fits decides. What concerns private things never leaves the machine. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from core.config import Mode

# Objects whose contents are a person's own.
PRIVATE_OBJECTS = frozenset(
    """files dirs messages events contacts images texts persons tasks credentials calendars lists
    preferences location""".split()
)


@dataclass(frozen=True, slots=True)
class Rule:
    """Fits when everything it names holds; `None` names nothing."""

    mode: Literal["local", "online"]
    private: bool | None = None
    min_clauses: int | None = None
    min_chars: int | None = None
    any_verb: frozenset[str] = frozenset()
    any_object: frozenset[str] = frozenset()
    budget_left: bool | None = None


HYBRID_RULES: tuple[Rule, ...] = (
    Rule("local", private=True),
    Rule("local", budget_left=False),
    Rule("online", min_clauses=3),
    Rule("online", min_chars=400),
    Rule("local"),
)


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of a request before any model sees it."""

    chars: int
    clauses: int
    verbs: frozenset[str]
    objects: frozenset[str]
    budget_left: bool = True

    @property
    def is_private(self) -> bool:
        return bool(self.objects & PRIVATE_OBJECTS)


def choose_mode(
    mode: Mode,
    traits: Traits,
    *,
    has_frontier: bool,
    rules: Collection[Rule] = HYBRID_RULES,
) -> Literal["local", "online"]:
    """The mode of one request. `hybrid` without a frontier tier is local."""
    if mode != "hybrid":
        return mode
    if not has_frontier:
        return "local"
    return next((rule.mode for rule in rules if _fits(rule, traits)), "local")


def _fits(rule: Rule, traits: Traits) -> bool:
    return (
        (rule.private is None or rule.private == traits.is_private)
        and (rule.min_clauses is None or traits.clauses >= rule.min_clauses)
        and (rule.min_chars is None or traits.chars >= rule.min_chars)
        and (not rule.any_verb or bool(rule.any_verb & traits.verbs))
        and (not rule.any_object or bool(rule.any_object & traits.objects))
        and (rule.budget_left is None or rule.budget_left == traits.budget_left)
    )
