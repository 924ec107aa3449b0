"""How near requests of one meaning lie by an embedder: the floor below which a hit is none. Pure.

Calibrated on pairs that mean the same and that the word list holds for the same, since those are
the only ones that the floor decides about: those that are shipped (`words/same.txt`, Italian and
English), those of a file, or those that this installation's own plans make.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

from core.levels.meaning import meaning_of
from core.levels.reuse import normal
from core.levels.vectors import Vector, cosine, floor_of

ENOUGH = 30
"""Fewer pairs than this say too little about an embedder."""

MOST_PAIRS = 2000
_WORDS = Path(__file__).parent / "words"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two requests as people write them, and whether they mean the same."""

    one: str
    other: str
    same: bool = True

    @property
    def texts(self) -> tuple[str, str]:
        """Both as they are embedded."""
        return normal(self.one), normal(self.other)

    @property
    def is_decided(self) -> bool:
        """Whether the floor has a say: the words are others, the meaning is equal."""
        key = meaning_of(self.one).key
        equal = bool(key) and key == meaning_of(self.other).key
        return equal and len(set(self.texts)) == 2


@dataclass(frozen=True, slots=True)
class Calibration:
    """`pairs` mean the same and are decided by the floor; `lost` of them lie below it. Of `others`
    that mean something else, `passed` would be served all the same."""

    floor: float
    pairs: int
    lost: int
    others: int
    passed: int


@lru_cache(maxsize=1)
def shipped_pairs() -> tuple[Pair, ...]:
    """The pairs that come with the program, those that the word list holds for the same."""
    lines = (_WORDS / "same.txt").read_text("utf-8").splitlines()
    groups = (line.split(" | ") for line in lines if line and not line.startswith("#"))
    return tuple(
        found
        for group in groups
        for one, other in combinations(group, 2)
        if (found := Pair(one, other)).is_decided
    )


def pairs_in(text: str) -> list[Pair]:
    """The pairs of a file of JSON lines `{"a", "b", "reusable"}`; what has no `reusable` means the
    same. Raises `ValueError` with the number of the line that is no pair."""
    found: list[Pair] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row: Any = json.loads(line)
            one, other, same = row["a"], row["b"], row.get("reusable", True)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as exc:
            raise ValueError(str(number)) from exc
        if not (isinstance(one, str) and isinstance(other, str) and isinstance(same, bool)):
            raise ValueError(str(number))
        found.append(Pair(one, other, same))
    return found


def pairs_of_plans(plans: Iterable[tuple[str, str]]) -> list[Pair]:
    """The pairs that kept requests make: (text, fingerprint of its plan) of plans that hold no
    value. Two that were learnt apart with one plan and one meaning mean the same."""
    groups: dict[tuple[str, str], list[str]] = {}
    for text, plan in plans:
        groups.setdefault((meaning_of(text).key, plan), []).append(text)
    return [
        found
        for (key, _), texts in groups.items()
        if key
        for one, other in combinations(texts, 2)
        if (found := Pair(one, other)).is_decided
    ][:MOST_PAIRS]


def texts_of(pairs: Sequence[Pair]) -> list[str]:
    """Every text once, of the pairs that the floor decides about."""
    return list(dict.fromkeys(text for one in pairs if one.is_decided for text in one.texts))


def calibrate(pairs: Sequence[Pair], vectors: Mapping[str, Vector]) -> Calibration:
    """The floor by these pairs. Raises `ValueError` with fewer than `ENOUGH` that it decides."""

    def near(one: Pair) -> float:
        first, second = one.texts
        return cosine(vectors[first], vectors[second])

    decided = [one for one in pairs if one.is_decided]
    same = [near(one) for one in decided if one.same]
    if len(same) < ENOUGH:
        raise ValueError("too few pairs")
    floor = round(floor_of(same), 4)
    others = [near(one) for one in decided if not one.same]
    return Calibration(
        floor,
        len(same),
        sum(one < floor for one in same),
        sum(not one.same for one in pairs),
        sum(one >= floor for one in others),
    )
