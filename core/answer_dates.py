"""Days that a person said as an answer: `domani`, `12 marzo`, `next Friday`, `2026-03-12`.

Pure. Italian and English at once; days without a year are coming ones.
"""

from __future__ import annotations

import re
from datetime import date, timedelta

from core.answer_numbers import small_number
from core.answer_shapes import fold

MAX_CHARS = 60

# fmt: off
_MONTHS = {
    name: number
    for number, names in enumerate(
        [
            "gennaio gen january jan", "febbraio feb february", "marzo mar march",
            "aprile apr april", "maggio mag may", "giugno giu june jun", "luglio lug july jul",
            "agosto ago august aug", "settembre set sett september sep sept",
            "ottobre ott october oct", "novembre nov november", "dicembre dic december dec",
        ],
        start=1,
    )
    for name in names.split()
}
_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        [
            "lunedi lun monday mon", "martedi mar tuesday tue", "mercoledi mer wednesday wed",
            "giovedi gio thursday thu", "venerdi ven friday fri", "sabato sab saturday sat",
            "domenica dom sunday sun",
        ]
    )
    for name in names.split()
}
_DAYS = {
    "oggi": 0, "today": 0, "stasera": 0, "tonight": 0, "domani": 1, "tomorrow": 1,
    "dopodomani": 2, "dopo domani": 2, "the day after tomorrow": 2, "day after tomorrow": 2,
    "ieri": -1, "yesterday": -1, "l'altro ieri": -2, "ieri l'altro": -2, "altroieri": -2,
    "the day before yesterday": -2, "day before yesterday": -2,
}
_SPANS = {
    "giorno": 1, "giorni": 1, "day": 1, "days": 1,
    "settimana": 7, "settimane": 7, "week": 7, "weeks": 7,
}
# fmt: on


def read_date(text: str, *, today: date) -> date | None:
    """A day: `oggi`, `tomorrow`, `12 marzo`, `March 12 2027`, `12/03`, `2026-03-12`, `venerdì`,
    `fra 3 giorni`. Days of the year and of the week are the next ones, today included for the
    former. The day stands before the month, unless that is impossible."""
    if len(text) > MAX_CHARS:
        return None
    folded = fold(text)
    if folded in _DAYS:
        return today + timedelta(days=_DAYS[folded])
    try:
        return _numeric_date(folded, today) or _named_date(folded, today)
    except (ValueError, OverflowError):  # the 31st of February
        return None


def _numeric_date(folded: str, today: date) -> date | None:
    if match := re.fullmatch(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})", folded):
        return date(int(match[1]), int(match[2]), int(match[3]))
    match = re.fullmatch(r"(\d{1,2})[-/.](\d{1,2})(?:[-/.](\d{4}|\d{2}))?", folded)
    if match is None:
        return None
    day, month = int(match[1]), int(match[2])
    if month > 12 >= day:
        day, month = month, day
    return _day_of_year(day, month, match[3], today)


def _named_date(folded: str, today: date) -> date | None:
    words = [w.strip(".") for w in re.split(r"[\s,]+|\bl'(?=\d)", folded)]
    words = [w for w in words if w and w not in {"il", "the", "of", "di", "on", "l'"}]
    match words:
        case ["fra" | "tra" | "in", many, unit] if unit in _SPANS:
            number = 1 if many in {"un", "una", "a", "one"} else small_number(many)
            return None if number is None else today + timedelta(days=number * _SPANS[unit])
        case [name] | [name, "prossimo" | "prossima"] if name in _WEEKDAYS:
            return _next_weekday(_WEEKDAYS[name], today)
        case ["next" | "this" | "prossimo" | "prossima" | "questo" | "questa", name] if (
            name in _WEEKDAYS
        ):
            return _next_weekday(_WEEKDAYS[name], today)
        case [name, *rest] if name in _WEEKDAYS and rest:
            day = _month_date(rest, today)
            # "Monday the 12th of March" of a year in which that is a Tuesday: better ask again.
            return day if day is not None and day.weekday() == _WEEKDAYS[name] else None
    return _month_date(words, today)


def _next_weekday(weekday: int, today: date) -> date:
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def _month_date(words: list[str], today: date) -> date | None:
    match words:
        case [first, second, *year] if len(year) <= 1 and all(
            re.fullmatch(r"\d{4}", y) for y in year
        ):
            said = year[0] if year else None
            if second in _MONTHS and (day := _day(first)):
                return _day_of_year(day, _MONTHS[second], said, today)
            if first in _MONTHS and (day := _day(second)):
                return _day_of_year(day, _MONTHS[first], said, today)
    return None


def _day(word: str) -> int | None:
    word = re.sub(r"(?<=\d)(?:st|nd|rd|th|°|º)$", "", word)
    return 1 if word in {"primo", "first"} else small_number(word)


def _day_of_year(day: int, month: int, year: str | None, today: date) -> date:
    if year is not None:
        return date(int(year) + (2000 if len(year) == 2 else 0), month, day)
    for candidate in range(today.year, today.year + 9):  # the 29th of February waits for its year
        if (month, day) == (2, 29) and candidate % 4:
            continue
        found = date(candidate, month, day)
        if found >= today:
            return found
    raise ValueError("no such day")
