"""Times, lengths, names and addresses in a request; every time that is found can be read."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.levels.mentions import MOST_NAMES, find_mentions
from executors._sdk.windows import read_window

ROME = ZoneInfo("Europe/Rome")
NOW = datetime(2026, 3, 18, 10, 0, tzinfo=ROME)


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("le mail di oggi", ["oggi"]),
        ("che impegni ho dopodomani?", ["dopodomani"]),
        ("eventi della settimana prossima", ["settimana prossima"]),
        ("la posta di questa settimana", ["questa settimana"]),
        ("le mail degli ultimi 6 mesi", ["ultimi 6 mesi"]),
        ("cosa faccio venerdì sera", ["venerdì sera"]),
        ("gli appuntamenti dal 3 al 7 aprile", ["dal 3 al 7 aprile"]),
        ("che cosa c'è nel weekend?", ["weekend"]),
        ("le fatture di marzo", ["marzo"]),
        ("il 2026-05-04 sono libero?", ["2026-05-04"]),
        ("emails from the last 7 days", ["last 7 days"]),
        ("what is on next tuesday afternoon", ["next tuesday afternoon"]),
        ("anything on this weekend", ["this weekend"]),
        ("events between 3 and 7 May", ["between 3 and 7 May"]),
        ("yesterday's mail", ["yesterday"]),
        ("appointments in march 2027", ["march 2027"]),
        ("read notes/domani.md", []),
        ("apri ieri.txt", []),
    ],
)
def test_times_are_found_whole_and_can_be_read(text: str, times: list[str]) -> None:
    found = find_mentions(text).times

    assert list(found) == times
    for time in found:
        start, end = read_window(time, NOW, ROME)
        assert start < end


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("un'ora libera", [60]),
        ("mezz'ora domani", [30]),
        ("trova un'ora e mezza", [90]),
        ("due ore venerdì", [120]),
        ("45 minuti", [45]),
        ("a 2 hour gap", [120]),
        ("a free hour", [60]),
        ("half an hour", [30]),
        ("an hour and a half", [90]),
        ("30-minute slot", [30]),
        ("che ore sono", []),
    ],
)
def test_lengths_are_told_in_minutes(text: str, minutes: list[int]) -> None:
    assert list(find_mentions(text).minutes) == minutes


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mi dai l'email di Giulia Neri", {"Giulia Neri"}),
        ("che numero ha l'idraulico?", {"idraulico"}),
        ("le mail della banca", {"banca"}),
        ("emails from the landlord", {"landlord"}),
        ("the phone number of Tom Webb", {"Tom Webb"}),
        ("leggi la posta", set()),
    ],
)
def test_names_are_what_may_be_one(text: str, names: set[str]) -> None:
    assert names <= set(find_mentions(text).names)


def test_addresses_of_streets_and_of_mail_are_found() -> None:
    it = find_mentions("un bar vicino a via Garibaldi 12, scrivi a bar@caffe.example")
    en = find_mentions("a cafe near 12 Mill Lane, write to cafe@tea.example")

    assert (it.addresses, it.mails) == (("via Garibaldi 12",), ("bar@caffe.example",))
    assert (en.addresses, en.mails) == (("12 Mill Lane",), ("cafe@tea.example",))


@given(st.text(max_size=300))
def test_any_text_is_read_without_harm(text: str) -> None:
    found = find_mentions(text)

    assert len(found.names) <= MOST_NAMES
    assert all(minutes > 0 for minutes in found.minutes)
