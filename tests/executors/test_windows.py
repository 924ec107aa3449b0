"""Spans of time as people say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors._sdk.windows import NoWindow, read_window

ROME = ZoneInfo("Europe/Rome")
# A Wednesday, 10:00 in Rome.
NOW = datetime(2026, 3, 18, 9, tzinfo=UTC)


def read(text, **about):
    start, end = read_window(text, NOW, ROME, **about)
    assert start.tzinfo is not None
    return start.strftime("%m-%d %H:%M"), end.strftime("%m-%d %H:%M")


TODAY = ("03-18 00:00", "03-19 00:00")
WEEK = ("03-16 00:00", "03-23 00:00")
LAST7 = ("03-11 10:00", "03-18 10:00")
BACK = [
    ("oggi", TODAY),
    ("di oggi", TODAY),
    ("today", TODAY),
    ("ieri", ("03-17 00:00", "03-18 00:00")),
    ("yesterday", ("03-17 00:00", "03-18 00:00")),
    ("l'altro ieri", ("03-16 00:00", "03-17 00:00")),
    ("questa settimana", WEEK),
    ("this week", WEEK),
    ("this_week", WEEK),
    ("della settimana scorsa", ("03-09 00:00", "03-16 00:00")),
    ("last week", ("03-09 00:00", "03-16 00:00")),
    ("ultimi 7 giorni", LAST7),
    ("negli ultimi sette giorni", LAST7),
    ("last 7 days", LAST7),
    ("the past week", LAST7),
    ("7d", LAST7),
    ("now-7d", LAST7),
    ("ultime 24 ore", ("03-17 10:00", "03-18 10:00")),
    ("the last hour", ("03-18 09:00", "03-18 10:00")),
    ("ultimo mese", ("02-18 10:00", "03-18 10:00")),
    ("il mese scorso", ("02-01 00:00", "03-01 00:00")),
    ("last month", ("02-01 00:00", "03-01 00:00")),
    ("questo mese", ("03-01 00:00", "04-01 00:00")),
    ("ultimi 6 mesi", ("09-18 10:00", "03-18 10:00")),
    ("quest'anno", ("01-01 00:00", "01-01 00:00")),
    ("3 giorni fa", ("03-15 00:00", "03-16 00:00")),
    ("two days ago", ("03-16 00:00", "03-17 00:00")),
    ("lunedì", ("03-16 00:00", "03-17 00:00")),
    ("venerdì scorso", ("03-13 00:00", "03-14 00:00")),
    ("last friday", ("03-13 00:00", "03-14 00:00")),
    ("da lunedì", ("03-16 00:00", "01-01 10:00")),
    ("since monday", ("03-16 00:00", "01-01 10:00")),
    ("stamattina", ("03-18 05:00", "03-18 12:00")),
    ("ieri sera", ("03-17 18:00", "03-18 00:00")),
    ("gennaio", ("01-01 00:00", "02-01 00:00")),
    ("in december", ("12-01 00:00", "01-01 00:00")),
    ("5 marzo", ("03-05 00:00", "03-06 00:00")),
    ("March 5th", ("03-05 00:00", "03-06 00:00")),
    ("05/03/2026", ("03-05 00:00", "03-06 00:00")),
    ("2026-03-05", ("03-05 00:00", "03-06 00:00")),
    ("2026-03-05/2026-03-07", ("03-05 00:00", "03-08 00:00")),
    ("dal 3 al 7 marzo", ("03-03 00:00", "03-08 00:00")),
    ("2026-02", ("02-01 00:00", "03-01 00:00")),
    ("weekend scorso", ("03-14 00:00", "03-16 00:00")),
]
AHEAD = [
    ("domani", ("03-19 00:00", "03-20 00:00")),
    ("tomorrow morning", ("03-19 05:00", "03-19 12:00")),
    ("domani pomeriggio", ("03-19 12:00", "03-19 18:00")),
    ("dopodomani", ("03-20 00:00", "03-21 00:00")),
    ("venerdì", ("03-20 00:00", "03-21 00:00")),
    ("lunedì", ("03-23 00:00", "03-24 00:00")),
    ("mercoledì", TODAY),
    ("next wednesday", ("03-25 00:00", "03-26 00:00")),
    ("la prossima settimana", ("03-23 00:00", "03-30 00:00")),
    ("next week", ("03-23 00:00", "03-30 00:00")),
    ("prossimi 3 giorni", ("03-18 10:00", "03-21 10:00")),
    ("next three days", ("03-18 10:00", "03-21 10:00")),
    ("questo weekend", ("03-21 00:00", "03-23 00:00")),
    ("fine settimana", ("03-21 00:00", "03-23 00:00")),
    ("il 5", ("04-05 00:00", "04-06 00:00")),
    ("25 aprile", ("04-25 00:00", "04-26 00:00")),
    ("1 febbraio", ("02-01 00:00", "02-02 00:00")),
    ("stasera", ("03-18 18:00", "03-19 00:00")),
    ("da lunedì a venerdì", ("03-23 00:00", "03-28 00:00")),
    ("sabato mattina", ("03-21 05:00", "03-21 12:00")),
]


@pytest.mark.parametrize(("text", "wanted"), BACK)
def test_span_of_the_past_is_read(text, wanted):
    assert read(text) == wanted


@pytest.mark.parametrize(("text", "wanted"), AHEAD)
def test_span_that_lies_ahead_is_read(text, wanted):
    assert read(text, forward=True) == wanted


def test_start_and_end_may_be_said_apart():
    assert read({"start": "2026-03-01", "end": "2026-03-02"}) == ("03-01 00:00", "03-03 00:00")
    start, end = read_window({"start": "2026-03-01T09:00:00+00:00"}, NOW, ROME)
    assert start == datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert end > NOW + timedelta(days=365)


def test_day_of_a_change_of_clocks_is_whole():
    start, end = read_window("2026-03-29", NOW, ROME)
    assert (end.timestamp() - start.timestamp()) / 3600 == 23


@pytest.mark.parametrize(
    "text",
    ["", "banana", "31 febbraio", "2026-13-01", "2026-02-30", "dal 7 al 3 marzo 2020 boh",
     {"start": "2026-03-05", "end": "2026-03-01"}, {}, "99/99", "0000", "9999 years ago"],
)  # fmt: skip
def test_what_is_no_span_is_refused(text):
    with pytest.raises(NoWindow):
        read_window(text, NOW, ROME)


@given(st.text(max_size=60), st.booleans())
def test_any_text_is_a_span_or_refused(text, forward):
    try:
        start, end = read_window(text, NOW, ROME, forward=forward)
    except NoWindow:
        return
    assert start < end


WORDS = (
    "da dal a al ultimi prossimi 3 sette giorni mesi fa lunedì marzo 2026 week last the / - oggi"
).split()


@given(st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join))
def test_any_words_of_time_are_a_span_or_refused(text):
    try:
        start, end = read_window(text, NOW, ROME)
    except NoWindow:
        return
    assert start < end
