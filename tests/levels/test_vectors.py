"""Vectors are of length 1 or none, also those that come back from the store."""

from __future__ import annotations

import math

import pytest

from core.levels.vectors import cosine, floor_of, packed, unit, unpacked


def test_vectors_of_other_lengths_are_never_near():
    assert cosine((1.0,), (1.0, 0.0)) == -1.0


@pytest.mark.parametrize(
    "values", [[], [0.0], [math.nan], [math.inf], [1e200] * 3 + [math.inf], [1.0] * 9000]
)
def test_values_without_direction_are_no_vector(values: list[float]):
    with pytest.raises(ValueError, match="no "):
        unit(values)


def test_huge_values_have_a_direction():
    assert unit([1e300, 0.0]) == (1.0, 0.0)


def test_vector_comes_back_from_the_store_as_near_as_it_was():
    vector = unit([0.1, -2.0, 3.5])
    again = unpacked(packed(vector))

    assert again is not None
    assert cosine(vector, again) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    "data",
    [
        None,
        "text",
        3,
        b"",
        b"123",
        b"\0" * 8,
        packed((math.nan, 1.0)),
        packed((math.inf,)),
        packed((0.5, 0.5)),
        packed((1.0,)) * 9000,
        b"\xff" * 1024,
    ],
)
def test_damaged_vector_is_none(data: object):
    assert unpacked(data) is None


def test_floor_lies_below_nearly_all_pairs_of_the_same_meaning():
    assert floor_of([0.95] * 98 + [0.5, 0.6]) == pytest.approx(0.945)
    with pytest.raises(ValueError, match="no pairs"):
        floor_of([])
