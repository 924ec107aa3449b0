"""A few days of the month of a household: memory serves, and never what was not asked. All of it
is `python -m tests.bench month`."""

from __future__ import annotations

from typing import Any

import pytest

from core.levels import meaning, reuse
from core.levels.tracing import Binding
from core.plan import Plan
from tests.bench import month
from tests.bench.household import script
from tests.bench.household.life import MODEL, Lived

SEED = 7
TURNS = 100
ALIKE = (
    "pdfs photos texts how_many how_many_pdfs weight biggest_one newest read tail larger delete"
    " clock clock_there"
).split()


def wrong(lived: list[Lived]) -> list[Lived]:
    return [one for one in lived if one.wrong and one.source != MODEL]


def test_memory_serves_much_of_what_was_asked_before_and_nothing_else():
    figures = month.told(month.live(SEED, TURNS, memory=True))

    assert figures["wrong_ones"] == []
    assert figures["of_repeated_by_the_same"] >= 0.3
    assert sum(day["turns"] for day in figures["per_day"]) == figures["lived"] >= TURNS


def test_month_without_memory_reuses_nothing():
    assert month.told(month.live(SEED, 12, memory=False))["reused"] == 0


# -- what the comparison is worth -----------------------------------------------------------------


def ungrounded(plan: Plan, bindings: tuple[Binding, ...], values: Any) -> Plan:
    return plan


def deaf(self: meaning.Meaning, values: Any) -> str:
    """Only what is done counts, not to what."""
    return "" if self.moving else " ".join(("deeds", *self.deeds))


def hasty(self: meaning.Meaning, values: Any) -> str:
    """Which things and how does not count."""
    said = [f"{v.role}:{text}" for v, text in zip(self.values, values, strict=True)]
    return "|".join((*self.deeds, *self.things[:1], *said))


@pytest.mark.parametrize(
    ("where", "name", "mutant"),
    [
        (reuse, "fill", ungrounded),
        (meaning.Meaning, "key_with", deaf),
        (meaning.Meaning, "key_with", hasty),
    ],
    ids=["values of before", "deeds alone", "first thing alone"],
)
def test_wrong_reuse_would_be_seen(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, mutant: Any
):
    monkeypatch.setattr(where, name, mutant)

    assert wrong(month.live(SEED, 45, memory=True, only=ALIKE))


def test_same_month_of_requests_that_are_alike_is_served_rightly(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(script, "LIKED", 0.5)  # so that plans serve by merit, too

    lived = month.live(SEED, 45, memory=True, only=ALIKE)

    assert wrong(lived) == []
    assert sum(one.source != MODEL for one in lived) >= 10
    assert {"fastpath", "autopath"} <= {one.source for one in lived}
