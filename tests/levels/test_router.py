"""Modes by the settings, and hybrid by its rules."""

from __future__ import annotations

import pytest

from core.config import Mode
from core.levels.router import Traits, choose_mode


def traits(
    *, chars: int = 40, clauses: int = 1, objects: str = "urls", budget: bool = True
) -> Traits:
    return Traits(chars, clauses, frozenset({"read"}), frozenset(objects.split()), budget)


@pytest.mark.parametrize(
    ("mode", "given", "has_frontier", "expected"),
    [
        ("local", traits(clauses=9), True, "local"),
        ("online", traits(), True, "online"),
        ("online", traits(objects="messages"), False, "online"),
        ("hybrid", traits(), True, "local"),
        ("hybrid", traits(clauses=3), True, "online"),
        ("hybrid", traits(chars=500), True, "online"),
        ("hybrid", traits(clauses=3, objects="messages urls"), True, "local"),
        ("hybrid", traits(clauses=3, budget=False), True, "local"),
        ("hybrid", traits(clauses=3), False, "local"),
    ],
)
def test_choose_mode_keeps_private_things_on_the_machine(
    mode: Mode, given: Traits, has_frontier: bool, expected: str
) -> None:
    assert choose_mode(mode, given, has_frontier=has_frontier) == expected
