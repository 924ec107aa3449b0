"""Spans of time as people say them, in Italian and English: `oggi`, `last 7 days`, ISO spans.

A window is half open, [start, end), in the person's zone. Days begin at midnight on the wall, so
that a day of a change of clocks has 23 or 25 hours. Weeks begin on Monday.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date, datetime, timedelta

from executors._sdk.time_spans import NoWindow as NoWindow
from executors._sdk.time_spans import (
    day_span,
    month_span,
    moved_by,
    nearest_day,
    part_of_day,
    span_between,
)
from executors._sdk.time_words import (
    COUNT,
    DAYS,
    FILLER,
    ISO,
    ISO_DAY,
    LAST,
    MONTHS,
    NEXT,
    NUMBERS,
    PARTS,
    THIS,
    UNIT,
    UNITS,
    WEEKDAYS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo


def read_window(
    text: object, now: datetime, zone: tzinfo, *, forward: bool = False
) -> tuple[datetime, datetime]:
    """Start and end of the span that `text` names, aware, in `zone`.

    `text` may also be `{"start": …, "end": …}` with ISO moments, of which one may be missing:
    then the window is open until, or from, a century away. `forward`: a weekday or a day of a
    month without a year is the next one, not the last. Raises `NoWindow`.
    """
    local = now.astimezone(zone)
    if isinstance(text, dict):
        start, end = (str(text.get(key) or "").strip() for key in ("start", "end"))
        if not start and not end:
            raise NoWindow("a window has a start or an end")
        return _checked(
            _moment(start, local, zone) if start else _far(local, -100),
            _moment(end, local, zone, is_end=True) if end else _far(local, 100),
        )
    said = _folded(str(text))
    if not said:
        raise NoWindow("nothing is said")
    try:
        return _checked(*_read(said, local, zone, forward=forward))
    except (ValueError, OverflowError) as exc:
        raise NoWindow(str(exc)) from exc


def _read(said: str, local: datetime, zone: tzinfo, *, forward: bool) -> tuple[datetime, datetime]:
    found = _iso(said, local, zone) or _open_ended(said, local, zone, forward=forward)
    if found is not None:
        return found
    plain = said
    while (shorter := FILLER.sub("", plain)) != plain:
        plain = shorter
    for reader in (_named_day, _counted, _unit, _weekend, _weekday, _date, _month):
        found = reader(plain, local, zone, forward)
        if found is not None:
            return found
    raise NoWindow(f"no span of time: {said[:60]}")


# -- forms ----------------------------------------------------------------------------------------


def _iso(said: str, local: datetime, zone: tzinfo) -> tuple[datetime, datetime] | None:
    match = re.fullmatch(
        rf"(?:dal?\s+|from\s+|between\s+|tra\s+(?:il\s+)?)?({ISO})\s*"
        rf"(?:/|\.\.+|,|--?|\s(?:a|al|to|until|fino al?|e|and)\s)\s*({ISO})",
        said,
    )
    if match:
        start, end = _moment(match[1], local, zone), _moment(match[2], local, zone, is_end=True)
        return start, end
    if re.fullmatch(ISO_DAY, said):
        return day_span(_as_date(said), zone)
    if re.fullmatch(ISO, said):
        start = _moment(said, local, zone)
        return start, start + timedelta(hours=1)
    match = re.fullmatch(r"(\d{4})-(\d{2})", said)
    if match:
        return month_span(int(match[1]), int(match[2]), zone)
    match = re.fullmatch(r"(?:now|today)?\s*([+-])\s*(\d{1,4})\s*([a-z]+)", said)
    if match and _unit_of(match[3]):
        moved = moved_by(local, int(match[1] + match[2]), _unit_of(match[3]))
        return (moved, local) if moved < local else (local, moved)
    return None


def _open_ended(
    said: str, local: datetime, zone: tzinfo, *, forward: bool
) -> tuple[datetime, datetime] | None:
    """`da lunedì`, `since 1 march`, `fino a venerdì`, `dal 3 al 7 marzo`, `from monday to …`."""
    match = re.fullmatch(
        r"(?:dal?l?[aeo]?|dall'|from|between|tra|fra)\s+(.+?)\s+"
        r"(?:al?l?[aeo]?|all'|to|until|till|through|and|e|fino al?l?[aeo]?)\s+(.+)",
        said,
    )
    if match:
        first, last = match[1], match[2]
        if re.fullmatch(r"(?:il\s+)?\d{1,2}", first):  # the month is said once, at the end
            month = re.search(r"[a-z]{3,}.*", last)
            first = f"{first} {month[0]}" if month else first
        try:
            start, _ = _read(first, local, zone, forward=forward)
            _, end = _read(last, max(local, start) if forward else start, zone, forward=True)
        except NoWindow:
            return None
        return (start, end) if start < end else None
    match = re.fullmatch(r"(?:a partire da|since|starting|da quando|dopo|after|da)\s+(.+)", said)
    if match and not re.match(rf"(?:{COUNT})\s+(?:{UNIT})$", match[1]):
        try:
            start, end = _read(match[1], local, zone, forward=False)
        except NoWindow:
            return None
        return (end if said.startswith(("dopo", "after")) else start), _far(local, 100)
    match = re.fullmatch(r"(?:prima di|prima del|before|until|till|fino a|fino al)\s+(.+)", said)
    if match:
        try:
            start, end = _read(match[1], local, zone, forward=forward)
        except NoWindow:
            return None
        return _far(local, -100), (start if said.startswith(("prima", "before")) else end)
    return None


def _named_day(
    said: str, local: datetime, zone: tzinfo, forward: bool
) -> tuple[datetime, datetime] | None:
    if said in {"adesso", "ora", "now"}:
        return local, local + timedelta(hours=1)
    if said in {"stamattina", "stamane", "stamani", "this morning"}:
        said = "oggi mattina"
    elif said in {"stasera", "tonight", "this evening", "stanotte"}:
        said = "oggi sera"
    elif said in {"this afternoon", "oggi pomeriggio"}:
        said = "oggi pomeriggio"
    elif said == "last night":
        said = "ieri sera"
    for word, shift in sorted(DAYS.items(), key=lambda pair: -len(pair[0])):
        match = re.fullmatch(rf"{re.escape(word)}(?:\s+(?:in the\s+|di\s+)?([a-z]+))?", said)
        if match:
            day = local.date() + timedelta(days=shift)
            if match[1] is None:
                return day_span(day, zone)
            if match[1] in PARTS:
                return part_of_day(day, match[1], zone)
    return None


def _counted(
    said: str, local: datetime, zone: tzinfo, forward: bool
) -> tuple[datetime, datetime] | None:
    """`ultimi 7 giorni`, `last two weeks`, `next 3 days`, `3 giorni fa`, `7d`."""
    match = re.fullmatch(
        rf"(?:({LAST})|({NEXT}))?\s*({COUNT})\s*({UNIT})(?:\s+({LAST})|\s+({NEXT}))?"
        rf"(?:\s+(fa|ago))?",
        said,
    )
    if match is None:
        return None
    before, after = match[1] or match[5], match[2] or match[6]
    count, unit = _number(match[3]), _unit_of(match[4])
    if match[7]:
        moved = moved_by(local, -count, unit)
        return day_span(moved.date(), zone) if unit not in {"hours", "minutes"} else (moved, local)
    if after or (forward and not before):
        return local, moved_by(local, count, unit)
    return moved_by(local, -count, unit), local


def _unit(
    said: str, local: datetime, zone: tzinfo, forward: bool
) -> tuple[datetime, datetime] | None:
    """`questa settimana`, `last month`, `il mese prossimo`, `quest'anno`, `l'ultima ora`."""
    match = re.fullmatch(rf"(?:({THIS})|({LAST})|({NEXT}))[' ]*({UNIT})", said)
    where = match and (0 if match[1] else -1 if match[2] else 1)
    word = match[4] if match else ""
    if match is None:
        match = re.fullmatch(rf"({UNIT})\s+(?:({LAST})|({NEXT})|({THIS}))", said)
        if match is None:
            return None
        where = -1 if match[2] else 1 if match[3] else 0
        word = match[1]
    unit, today = _unit_of(word), local.date()
    rolling = bool(re.match(r"ultim|past", said))
    if unit in {"hours", "minutes"} or rolling:
        moved = moved_by(local, 1 if where == 1 else -1, unit)
        return (moved, local) if moved < local else (local, moved)
    shift = int(where or 0)
    if unit == "days":
        return day_span(today + timedelta(days=shift), zone)
    if unit == "weeks":
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=shift)
        return span_between(monday, monday + timedelta(days=7), zone)
    if unit == "months":
        index = today.year * 12 + today.month - 1 + shift
        return month_span(index // 12, index % 12 + 1, zone)
    return span_between(date(today.year + shift, 1, 1), date(today.year + shift + 1, 1, 1), zone)


def _weekend(
    said: str, local: datetime, zone: tzinfo, forward: bool
) -> tuple[datetime, datetime] | None:
    match = re.fullmatch(
        rf"(?:({LAST})|({NEXT})|(?:{THIS}))?\s*(?:week ?end|fine settimana)"
        rf"(?:\s+(?:({LAST})|({NEXT})))?",
        said,
    )
    if match is None:
        return None
    today = local.date()
    saturday = today - timedelta(days=today.weekday()) + timedelta(days=5)
    if match[1] or match[3]:
        saturday -= timedelta(days=7)
    elif match[2] or match[4]:
        saturday += timedelta(days=7)
    return span_between(saturday, saturday + timedelta(days=2), zone)


def _weekday(
    said: str, local: datetime, zone: tzinfo, forward: bool
) -> tuple[datetime, datetime] | None:
    """`lunedì`, `next friday`, `martedì scorso`, `sabato mattina`."""
    match = re.fullmatch(
        rf"(?:({LAST})|({NEXT})|(?:{THIS}))?\s*({'|'.join(WEEKDAYS)})"
        rf"(?:\s+(?:({LAST})|({NEXT})))?(?:\s+([a-z]+))?",
        said,
    )
    if match is None or (match[6] and match[6] not in PARTS):
        return None
    today, wanted = local.date(), WEEKDAYS[match[3]]
    ahead = (wanted - today.weekday()) % 7
    if match[1] or match[4]:
        day = today - timedelta(days=(today.weekday() - wanted) % 7 or 7)
    elif match[2] or match[5]:
        day = today + timedelta(days=ahead or 7)
    else:
        behind = (today.weekday() - wanted) % 7
        day = today + timedelta(days=ahead) if forward else today - timedelta(days=behind)
    return part_of_day(day, match[6], zone) if match[6] else day_span(day, zone)


def _date(
    said: str, local: datetime, zone: tzinfo, forward: bool
) -> tuple[datetime, datetime] | None:
    """`3 marzo`, `march 3rd 2026`, `3/4`, `03/04/2026` (the day first), `il 5`."""
    months = "|".join(MONTHS)
    patterns = (
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|º|°)?\s+(?:of\s+|di\s+)?(?P<month>{months})\.?"
        rf"(?:,?\s+(?:del\s+)?(?P<year>\d{{4}}))?",
        rf"(?P<month>{months})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{{4}}))?",
        r"(?P<day>\d{1,2})[/.](?P<month>\d{1,2})(?:[/.](?P<year>\d{4}|\d{2}))?",
        r"(?P<day>\d{1,2})(?:st|nd|rd|th)?",
    )
    for pattern in patterns:
        match = re.fullmatch(rf"{pattern}(?:\s+(?P<part>[a-z]+))?", said)
        if match is None or (match["part"] and match["part"] not in PARTS):
            continue
        given = match.groupdict()
        month = given.get("month")
        number = local.month if month is None else MONTHS.get(month) or int(month)
        year = given.get("year")
        day = nearest_day(
            int(match["day"]),
            number,
            None if year is None else int(year) + (2000 if len(year) == 2 else 0),
            local.date(),
            forward=forward,
            by_month=month is None,
        )
        return part_of_day(day, match["part"], zone) if match["part"] else day_span(day, zone)
    return None


def _month(
    said: str, local: datetime, zone: tzinfo, forward: bool
) -> tuple[datetime, datetime] | None:
    match = re.fullmatch(
        rf"(?:mese di\s+)?({'|'.join(MONTHS)})\.?(?:\s+(?:del\s+)?(\d{{4}}))?"
        rf"(?:\s+(?:({LAST})|({NEXT})))?|(\d{{4}})",
        said,
    )
    if match is None:
        return None
    if match[5]:
        return span_between(date(int(match[5]), 1, 1), date(int(match[5]) + 1, 1, 1), zone)
    number, today = MONTHS[match[1]], local.date()
    year = int(match[2]) if match[2] else today.year
    if not match[2]:
        if number > today.month and not forward and not match[4]:
            year -= 1
        elif number < today.month and (forward or match[4]):
            year += 1
    return month_span(year, number, zone)


# -- small things ---------------------------------------------------------------------------------


def _moment(text: str, local: datetime, zone: tzinfo, *, is_end: bool = False) -> datetime:
    """An ISO moment, or another span's start (its end for `is_end`)."""
    if re.fullmatch(ISO_DAY, text):
        return day_span(_as_date(text), zone)[1 if is_end else 0]
    try:
        found = datetime.fromisoformat(text.upper().replace(" ", "T"))
    except ValueError:
        return _read(_folded(text), local, zone, forward=False)[1 if is_end else 0]
    return found.replace(tzinfo=zone) if found.tzinfo is None else found.astimezone(zone)


def _as_date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as exc:
        raise NoWindow(f"there is no such day: {text}") from exc


def _far(local: datetime, years: int) -> datetime:
    return local.replace(year=max(2, min(9998, local.year + years)), month=1, day=1)


def _checked(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    if start >= end:
        raise NoWindow("the end lies before the start")
    return start, end


def _unit_of(word: str) -> str:
    known = sorted(UNITS, key=len, reverse=True)
    return next((UNITS[stem] for stem in known if _is_unit(word, stem)), "")


def _is_unit(word: str, stem: str) -> bool:
    return word == stem or (len(stem) > 1 and word.startswith(stem) and len(word) <= len(stem) + 2)


def _number(word: str) -> int:
    return int(word) if word.isdigit() else NUMBERS[word]


def _folded(text: str) -> str:
    """Lower case without accents; typographic apostrophes plain, blanks single."""
    flat = unicodedata.normalize("NFKD", text.casefold().replace("’", "'"))
    plain = "".join(c for c in flat if not unicodedata.combining(c))
    return " ".join(re.sub(r"(?<![\d])_|_(?![\d])|_", " ", plain).split()).strip(" .!?;")
