"""How values of entries are read: numbers in two languages, dates, fields, order."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors._sdk import fields, values

ROME = ZoneInfo("Europe/Rome")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    ("text", "comma", "expected"),
    [
        ("1.234,56 €", False, "1234.56"),
        ("1,234.56", True, "1234.56"),
        ("€ 1.234,56", False, "1234.56"),
        ("$1,234", False, "1234"),
        ("12,5", False, "12.5"),
        ("12.5", True, "12.5"),
        ("1.234", True, "1234"),
        ("1.234", False, "1.234"),
        ("1,234", True, "1.234"),
        ("0,123", False, "0.123"),
        ("1.234.567", False, "1234567"),
        ("1 234 567,8", True, "1234567.8"),
        ("1'234.50", False, "1234.50"),
        ("-3", False, "-3"),
        ("−3,5", False, "-3.5"),
        ("-€ 3", False, "-3"),
        ("(12.50)", False, "-12.50"),
        ("15 %", False, "15"),
        ("10 MB", False, "10000000"),
        ("1,5 GB", False, "1500000000"),
        ("2 KiB", False, "2048"),
        ("1e3", False, "1000"),
        (".5", False, "0.5"),
        (7, False, "7"),
        (0.1, False, "0.1"),
    ],
)
def test_number_reads_what_people_and_data_write(text, comma, expected):
    assert values.number(text, comma=comma) == Decimal(expected)


@pytest.mark.parametrize(
    "text",
    [
        "", "abc", "12 apples", "1.2.3", "10.0.0.1", "333 1234567", "2026-11-30", "1,23,4", "(5",
        "5)", "--5", True, None, [], {}, float("nan"), float("inf"), "1" * 61, "€", "MB",
    ],
)  # fmt: skip
def test_number_of_what_is_none_is_none(text):
    assert values.number(text) is None


def test_decimal_comma_follows_the_column_then_the_language():
    assert values.decimal_comma(["1.234", "12,50"], lang="en") is True
    assert values.decimal_comma(["1.234", "12.50"], lang="it") is False
    assert values.decimal_comma(["1.234", 5, None], lang="it") is True
    assert values.decimal_comma(["1.234"], lang="en") is False


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ("3", 3),
        ("3.00", 3),
        ("0.3", 0.3),
        ("9007199254740992", 2**53),
        ("9007199254740993", "9007199254740993"),
        ("12345678901234567.89", "12345678901234567.89"),
    ],
)
def test_json_number_loses_nothing(amount, expected):
    assert values.json_number(Decimal(amount)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30", "2026-11-29T23:00:00+00:00"),
        ("2026-11-30T10:00:00Z", "2026-11-30T10:00:00+00:00"),
        ("2026-11-30 10:00", "2026-11-30T09:00:00+00:00"),
        ("30/11/2026", "2026-11-29T23:00:00+00:00"),
        ("1.2.2026", "2026-01-31T23:00:00+00:00"),
    ],
)
def test_moment_reads_dates_in_the_zone_of_the_person(text, expected):
    assert values.moment(text, tz=ROME) == dt.datetime.fromisoformat(expected)


@pytest.mark.parametrize("text", ["2026-13-45", "0001-01-01", "20261130", "", 5, None, "domani"])
def test_moment_of_what_is_none_is_none(text):
    assert values.moment(text, tz=ROME) is None


def test_lookup_goes_by_dots_and_indices():
    entry = {"a": {"b": [{"c": 1}]}, "x.y": 2, "n": None}

    assert fields.lookup(entry, "a.b.0.c") == 1
    assert fields.lookup(entry, "x.y") == 2
    assert fields.lookup(entry, "n") is None
    assert fields.lookup(entry, "a.b.7") is values.MISSING
    assert fields.lookup(entry, "a.b.c") is values.MISSING


def test_field_names_are_dotted_and_bounded():
    assert fields.field_names([{"ok": True, "a": {"b": 1, "c": 2}}, {"d": 1}]) == [
        "a.b",
        "a.c",
        "d",
    ]
    assert len(fields.field_names([{str(i): i for i in range(99)}])) == 20


@given(st.lists(JSON, max_size=8))
def test_column_key_orders_anything(column):
    read = values.Column(column, lang="it", tz=ROME)

    ordered = sorted((value for value in column if not fields.is_missing(value)), key=read.key)

    assert len(ordered) <= len(column)


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-1e12, max_value=1e12)
)
def test_number_reads_back_both_spellings(amount):
    english = f"{amount:,.2f}"
    italian = english.translate(str.maketrans(",.", ".,"))

    assert values.number(english, comma=False) == amount
    assert values.number(italian, comma=True) == amount


@given(st.text(max_size=70))
def test_reading_any_text_never_raises(text):
    values.number(text)
    values.moment(text, tz=ROME)
    values.fold(text)
