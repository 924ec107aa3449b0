"""Points of the earth as they come from outside, and requests that speak of "here"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.positions import Position, asks_where, read_position, speaks_of_here

NOW = datetime(2026, 3, 18, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"lat": 45.0},
        {"lat": None, "lon": 7.6},
        {"lat": "45", "lon": "7"},
        {"lat": True, "lon": 7.6},
        {"lat": 90.1, "lon": 7.6},
        {"lat": 45.0, "lon": -180.1},
        {"lat": float("nan"), "lon": 7.6},
        {"lat": 45.0, "lon": float("inf")},
        {"lat": [45.0], "lon": 7.6},
    ],
)
def test_what_is_no_point_of_the_earth_is_none(data: dict[str, Any]) -> None:
    assert read_position(data, at=NOW) is None


@pytest.mark.parametrize(
    ("accuracy", "kept"),
    [
        (12, 12.0),
        (0.5, 0.5),
        (0, None),
        (-1, None),
        (float("nan"), None),
        ("5", None),
        (1e9, None),
    ],
)
def test_accuracy_that_says_nothing_is_left_out(accuracy: Any, kept: float | None) -> None:
    found = read_position({"lat": 45, "lon": 7.6, "accuracy": accuracy}, at=NOW)

    assert found == Position(45.0, 7.6, NOW, kept)


def test_label_of_strangers_is_one_printable_line() -> None:
    found = read_position(
        {"lat": 0, "lon": -0.0}, at=NOW, label="Bar\n\x00 Sport \u202e" + "x" * 999
    )

    assert found is not None
    assert found.label.startswith("Bar Sport x")
    assert len(found.label) <= 200
    assert found.coords == "0,0"


def test_age_is_never_below_nothing() -> None:
    position = Position(0, 0, NOW)

    assert position.age_s(NOW + timedelta(minutes=2, seconds=0.9)) == 120
    assert position.age_s(NOW - timedelta(seconds=3)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "Dov'è la farmacia più vicina?",
        "farmacia qui vicino",
        "Cerca un ristorante vicino a me",
        "ristoranti nei dintorni",
        "un bar in zona",
        "il benzinaio più vicino a noi",
        "Dove sono?",
        "dove mi trovo adesso",
        "where is the nearest pharmacy",
        "find me a pharmacy near me",
        "what is the closest supermarket?",
        "any pharmacies nearby?",
        "Where am I?",
        "the nearest hospital to me",
        "coffee shops around here",
    ],
)
def test_request_for_the_surroundings_speaks_of_here(text: str) -> None:
    assert speaks_of_here(text)


@pytest.mark.parametrize(
    "text",
    [
        "la farmacia più vicina alla stazione di Bologna",
        "il parcheggio più vicino all'ospedale",
        "nearest petrol station to Porta Romana",
        "restaurants near the Duomo",
        "cerca una farmacia a Bologna",
        "una farmacia vicino a casa",
        "where is my passport scan",
        "dove ho messo le foto",
        "leggi il file vicino.txt",
        "what time is it",
        "",
    ],
)
def test_request_that_names_a_place_or_none_does_not(text: str) -> None:
    assert not speaks_of_here(text)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("dove sono?", True),
        ("dove mi trovo adesso", True),
        ("in che via sono??", True),
        ("dimmi dove siamo", True),
        ("la mia posizione attuale?", True),
        ("where am I right now?", True),
        ("what's my current location", True),
        ("what's the address where I'm standing", True),
        ("which street am I on?", True),
        ("dove sono i miei file?", False),
        ("dove sono le foto di Roma", False),
        ("where am I in the queue", False),
        ("where are we going tonight?", False),
        ("send my location to Anna", False),
        ("che tempo fa dove sono", False),
    ],
)
def test_asking_where_one_is_and_nothing_else(text: str, where: bool) -> None:
    assert asks_where(text) is where
