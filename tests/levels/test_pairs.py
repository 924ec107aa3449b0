"""Pairs of requests as a household writes them: what may serve for what.

`pairs_own*.jsonl`: id, lang_a, lang_b, a, b, reusable, kind. Invented, each set written before it
was tried; what the first try gave stands in DECISIONS.md, and the list was widened on them since.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.levels.meaning import meaning_of
from core.levels.meaning_words import load_words, real_words, spelt
from core.levels.reuse import exact_key

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for path in sorted(Path(__file__).parent.glob("pairs_own*.jsonl"))
    for line in path.read_text("utf-8").splitlines()
]
LEAST_TRUE = 0.9
"""Of the pairs that mean the same, windows of time left out: the list was widened on them."""


def served(row: dict[str, Any]) -> bool:
    if exact_key(row["a"]) == exact_key(row["b"]):
        return True
    key = meaning_of(row["a"]).key
    return bool(key) and key == meaning_of(row["b"]).key


def test_near_misses_are_never_served():
    wrong = [f"{row['a']} | {row['b']}" for row in ROWS if not row["reusable"] and served(row)]

    assert not wrong, "\n".join(wrong)


def test_most_of_what_means_the_same_is_served():
    same = [row for row in ROWS if row["reusable"] and row["kind"] != "time_window_same"]

    assert len(same) > 560
    missed = [f"{row['a']} | {row['b']}" for row in same if not served(row)]
    assert len(missed) <= (1 - LEAST_TRUE) * len(same), "\n".join(missed)


def test_every_kind_of_difference_is_tried():
    kinds = {row["kind"] for row in ROWS if not row["reusable"]}

    assert kinds == set(
        """opposite_verb other_object other_value negation scope direction quantity recipient
        quoted time_window unrelated""".split()
    )


@pytest.mark.parametrize("word", "nonno donne figlio massage remainder".split())
def test_word_that_is_one_slip_from_another_is_not_taken_for_it(word: str):
    assert word in real_words()
    assert spelt(word, word, load_words()) == word


def test_no_real_word_is_listed_as_a_meaning():
    assert not real_words() & load_words().known
