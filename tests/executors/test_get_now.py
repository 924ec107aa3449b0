"""What time it is, here and anywhere people name."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

import pytest

from executors._sdk.call import Call
from executors._sdk.result import Failure
from executors.get_now import main

NOW = "2026-11-30T09:42:00.123456+00:00"


def ask(
    timezone: str | None = None, *, lang: str = "it", tz: str = "Europe/Rome"
) -> dict[str, Any]:
    args = {} if timezone is None else {"timezone": timezone}
    (entry,) = main.run(Call({"args": args, "lang": lang, "tz": tz, "now": NOW}))["entries"]
    return dict(entry)


def test_now_without_place_is_that_of_the_person():
    assert ask() == {
        "ok": True,
        "timezone": "Europe/Rome",
        "iso": "2026-11-30T10:42:00+01:00",
        "date": "2026-11-30",
        "time": "10:42",
        "weekday": "lunedì",
        "utc_offset": "+01:00",
    }


@pytest.mark.parametrize(
    ("asked", "key", "place", "label"),
    [
        ("Tokyo", "Asia/Tokyo", "Tokyo", None),
        ("tokyo", "Asia/Tokyo", "Tokyo", None),
        ("a Tokyo", "Asia/Tokyo", "Tokyo", None),
        ("Tokyo, Giappone", "Asia/Tokyo", "Tokyo", None),
        ("asia/tokyo", "Asia/Tokyo", "Tokyo", None),
        ("Londra", "Europe/London", "Londra", None),
        ("london", "Europe/London", "Londra", None),
        ("New York", "America/New_York", "New York", None),
        ("new york city", "America/New_York", "New York", None),
        ("America/new york", "America/New_York", "New York", None),
        ("Los Angeles", "America/Los_Angeles", "Los Angeles", None),
        ("San Paolo", "America/Sao_Paulo", "San Paolo", None),
        ("sao paulo", "America/Sao_Paulo", "San Paolo", None),
        ("Milano", "Europe/Rome", "Milano", None),
        ("Pechino", "Asia/Shanghai", "Pechino", None),
        ("Washington DC", "America/New_York", "Washington", None),
        ("Mumbai", "Asia/Kolkata", "Mumbai", None),
        ("Il Cairo", "Africa/Cairo", None, "Il Cairo"),
        ("Italia", "Europe/Rome", None, "Italia"),
        ("in Japan", "Asia/Tokyo", None, "Giappone"),
        ("Regno Unito", "Europe/London", None, "Regno Unito"),
        ("JST", "Asia/Tokyo", None, "JST"),
        ("CET", "Europe/Paris", None, "CET"),
        ("utc", "UTC", None, "UTC"),
        ("UTC+5:30", "UTC+5:30", None, "UTC+5:30"),
        ("-03:00", "UTC-3", None, "UTC-3"),
    ],
)
def test_now_of_a_place_finds_its_zone_and_its_name(asked, key, place, label):
    entry = ask(asked)

    assert (entry["timezone"], entry.get("place"), entry.get("label")) == (key, place, label)


def test_now_names_the_place_in_the_language_of_the_person():
    assert ask("Londra", lang="en")["place"] == "London"
    assert ask("Florence", lang="it")["place"] == "Firenze"
    assert ask("Tokyo", lang="en")["weekday"] == "Monday"


@pytest.mark.parametrize(
    "asked",
    [
        "Atlantide",
        "Stati Uniti",
        "Europe",
        "../../etc/passwd",
        "localtime",
        "+99",
        "\ud800",
        "x" * 99,
    ],
)
def test_now_of_an_unknown_place_says_so_with_advice(asked: str):
    with pytest.raises(Failure) as caught:
        ask(asked)

    assert caught.value.code == "unknown_place"
    assert caught.value.detail


def test_now_of_a_misspelt_place_suggests_the_near_one():
    with pytest.raises(Failure) as caught:
        ask("Singapoore")

    assert "Singapore" in caught.value.detail


def test_now_when_the_zone_of_the_person_is_broken_is_utc():
    assert ask(tz="Nowhere/None")["utc_offset"] == "+00:00"


def test_cities_name_only_zones_that_exist():
    book = main._book()

    assert {place[0] for place in book["places"]} <= available_timezones()
    assert set(book["names"].values()) == set(range(len(book["places"])))
    assert all(name == main.fold(name) for name in book["names"])
