"""The floor of an embedder comes from pairs that mean the same and that it decides about."""

from __future__ import annotations

import json
import math

import pytest

from core.levels.calibration import (
    ENOUGH,
    Pair,
    calibrate,
    pairs_in,
    pairs_of_plans,
    shipped_pairs,
    texts_of,
)
from core.levels.vectors import Vector


def test_shipped_pairs_are_of_both_languages_and_decided_by_the_floor():
    pairs = shipped_pairs()

    assert len(pairs) >= 3 * ENOUGH
    assert all(one.is_decided and one.same for one in pairs)
    assert Pair("che ore sono?", "what time is it?") in pairs


def test_floor_decides_only_about_other_words_of_the_same_meaning():
    assert Pair("che ore sono?", "mi dici l'ora?").is_decided
    assert not Pair("che ore sono?", "Che ore sono").is_decided
    assert not Pair("copy the notes", "move the notes").is_decided
    assert not Pair("ciao", "hello").is_decided


def test_floor_lies_below_nearly_all_and_says_what_it_costs_and_lets_through():
    pairs = [
        *(Pair("che ore sono?", f"mi dici l'ora{' per favore' * n}?") for n in range(50)),
        Pair("che ore sono?", "what time is it?", same=False),
        Pair("copy the notes", "move the notes", same=False),
    ]
    texts = texts_of(pairs)
    vectors: dict[str, Vector] = dict.fromkeys(texts, (1.0, 0.0))
    far = pairs[0].texts[1]
    vectors[far] = (math.cos(1.0), math.sin(1.0))

    found = calibrate(pairs, vectors)

    assert (found.pairs, found.lost, found.others, found.passed) == (50, 1, 2, 1)
    assert found.floor == pytest.approx(0.995)
    assert "copy the notes" not in texts
    with pytest.raises(ValueError, match="too few"):
        calibrate(pairs[: ENOUGH - 1], vectors)


def test_file_of_pairs_is_read_and_what_is_none_named_by_its_line():
    good = json.dumps({"a": "x", "b": "y", "reusable": False})

    assert pairs_in(f'{good}\n\n{{"a": "x", "b": "z", "kind": "k"}}\n') == [
        Pair("x", "y", same=False),
        Pair("x", "z"),
    ]
    for bad in (
        "no json",
        "[]",
        '{"a": 1, "b": "x"}',
        '{"a": "x"}',
        '{"a":"","b":"","reusable":1}',
    ):
        with pytest.raises(ValueError, match=r"^2$"):
            pairs_in(f"{good}\n{bad}")


def test_plans_of_one_meaning_that_were_learnt_apart_are_pairs():
    found = pairs_of_plans(
        [
            ("che ore sono", "p"),
            ("mi dici l'ora", "p"),
            ("what time is it", "another plan"),
            ("svuota il cestino", "p"),
            ("ciao", "p"),
        ]
    )

    assert found == [Pair("che ore sono", "mi dici l'ora")]
