"""Events as iCalendar text: what falls between two moments, making one, changing and removing it.

A text is read piece by piece, so that a broken event, rule or time zone spoils nothing but itself.
What uses this declares `requires = ["icalendar", "recurring-ical-events", "tzdata"]`.
"""

from __future__ import annotations

import calendar
import hashlib
import math
import re
import warnings
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import available_timezones

import icalendar
import recurring_ical_events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any
    from zoneinfo import ZoneInfo

MOST_EVENTS = 5000
MAX_TEXT = 1000
# What these libraries raise for a text that breaks the rules of the format.
BROKEN = (ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError,
          NotImplementedError, RecursionError)  # fmt: skip
_BLOCK = re.compile(r"(?ims)^BEGIN:(VEVENT|VTIMEZONE)[ \t]*\r?$.*?^END:\1[ \t]*\r?$\n?")
_UID = re.compile(r"(?im)^UID[^:\n]*:(.*)$")
_DAY = re.compile(r"(?im)^DT(START|END)[^:\n]*:(\d{8})")
_REPEATS = re.compile(r"(?im)^(?:RRULE|RDATE|RECURRENCE-ID|DURATION)[;:]")
_TZID = re.compile(r"(?im)^TZID[^:\n]*:(.*)$")
_RULE = re.compile(r"(?im)^RRULE[^:\n]*:(.*)$")
_FOLD = re.compile(r"\r?\n[ \t]")
# How often a rule comes round a day; those that come round by the second are not worked out.
_A_DAY = {"YEARLY": 1, "MONTHLY": 1, "WEEKLY": 1, "DAILY": 1, "HOURLY": 24, "MINUTELY": 1440}
_RARE = {"BYSECOND", "BYYEARDAY", "BYWEEKNO", "BYSETPOS"}
_TIMES = ("BYHOUR", "BYMINUTE", "BYSECOND")
_MOST_STEPS = 60_000


class Occurrence:
    """One event, or one time of a recurring one.

    `start`, `end`: aware, in the person's zone, or both days (the end is the day after the last).
    `key`: which time of a series it is, "" for an event that does not recur.
    """

    __slots__ = ("busy", "end", "key", "location", "repeats", "start", "summary", "text", "uid")

    def __init__(self, event: Any, zone: ZoneInfo, *, repeats: bool) -> None:
        self.uid = _line(event.get("UID"))
        self.summary = _line(event.get("SUMMARY")) or "-"
        self.location = _line(event.get("LOCATION"))
        self.text = str(event.get("DESCRIPTION") or "").strip()[:MAX_TEXT]
        self.start, self.end = times_of(event, zone)
        self.repeats = repeats
        stamp = event.get("RECURRENCE-ID")
        self.key = key_of(stamp.dt if stamp is not None else self.start, zone) if repeats else ""
        free = _line(event.get("TRANSP")).upper() == "TRANSPARENT"
        self.busy = not free and _line(event.get("STATUS")).upper() != "CANCELLED"

    @property
    def all_day(self) -> bool:
        return not isinstance(self.start, datetime)

    def span(self, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """Start and end as moments."""
        return as_moment(self.start, zone), as_moment(self.end, zone)


class Text:
    """An iCalendar text cut into its events. `groups`: by UID, each with all its components."""

    def __init__(self, text: str) -> None:
        self.whole = text
        self.zones: list[str] = []
        self.groups: dict[str, list[str]] = {}
        for number, match in enumerate(_BLOCK.finditer(text)):
            if match[1].upper() == "VTIMEZONE":
                name = _TZID.search(match[0])
                # The zones of the world are known; one of that name may be out of date.
                if name and name[1].strip() not in _known_zones():
                    self.zones.append(match[0])
                continue
            found = _UID.search(_FOLD.sub("", match[0]))
            uid = found[1].strip() if found else ""
            self.groups.setdefault(uid or f"none-{number}", []).append(match[0])

    def document(self, blocks: Sequence[str], *, zones: bool = True) -> str:
        parts = [*(self.zones if zones else ()), *blocks]
        lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Metnos//EN"]
        return "\r\n".join([*lines, *(p.rstrip("\r\n") for p in parts), "END:VCALENDAR", ""])

    def between(
        self, start: datetime, end: datetime, zone: ZoneInfo
    ) -> tuple[list[Occurrence], int]:
        """What falls in the window, and how many events could not be read. At most 5000."""
        found: list[Occurrence] = []
        unreadable = 0
        for uid, blocks in self.groups.items():
            if _lies_outside(blocks, start, end):
                continue
            try:
                found += self._expanded(uid, blocks, start, end, zone)
            except BROKEN:
                unreadable += 1
            if len(found) >= MOST_EVENTS:
                return found[:MOST_EVENTS], unreadable
        return found, unreadable

    def _expanded(
        self, uid: str, blocks: list[str], start: datetime, end: datetime, zone: ZoneInfo
    ) -> Iterator[Occurrence]:
        # Which of the components breaks a rule of recurrence is not told: without it, once more.
        blocks = [b if _is_sane(b, end) else _without_rule(b) for b in blocks]
        parsed = self._parsed(blocks)
        repeats = any(repeats_in(event) for event in parsed.walk("VEVENT"))
        if not repeats:
            for event in parsed.walk("VEVENT"):
                one = Occurrence(event, zone, repeats=False)
                first, last = one.span(zone)
                if first < end and (last > start or (first == last and first >= start)):
                    one.uid = uid
                    yield one
            return
        for event in self._times(blocks, parsed, start, end)[:MOST_EVENTS]:
            one = Occurrence(event, zone, repeats=True)
            one.uid = uid
            yield one

    def _times(
        self, blocks: list[str], parsed: icalendar.Calendar, start: datetime, end: datetime
    ) -> list[Any]:
        """The times of a series. One whose exceptions cannot be read is told with all its times:
        better one too many than none. Raises one of `BROKEN`."""
        try:
            return list(recurring_ical_events.of(parsed).between(start, end))
        except BROKEN:
            whole = [_without_rule(block, "EXDATE|EXRULE") for block in blocks]
            return list(recurring_ical_events.of(self._parsed(whole)).between(start, end))

    def _parsed(self, blocks: Sequence[str]) -> icalendar.Calendar:
        try:
            return _parse(self.document(blocks))
        except BROKEN:
            if not self.zones:
                raise
            return _parse(self.document(blocks, zones=False))  # a zone that is broken

    def calendar_of(self, uid: str) -> icalendar.Calendar:
        """The components of one UID. Raises one of `BROKEN`, KeyError when it is not there."""
        return self._parsed(self.groups[uid])


def version_of(blocks: Sequence[str]) -> str:
    """A version of components that have no ETag."""
    return hashlib.sha256("\n".join(blocks).encode("utf-8", "replace")).hexdigest()[:16]


def blocks_of(text: str) -> list[str]:
    """The events of a text as they are written in it."""
    return [match[0] for match in _BLOCK.finditer(text) if match[1].upper() == "VEVENT"]


def zones_of(text: str) -> list[str]:
    """The time zones that a text defines, as they are written in it."""
    return [match[0] for match in _BLOCK.finditer(text) if match[1].upper() == "VTIMEZONE"]


def as_moment(value: datetime | date, zone: ZoneInfo) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time(), zone)


def as_day(value: datetime | date) -> date:
    return value.date() if isinstance(value, datetime) else value


def first(parsed: icalendar.Calendar, zone: ZoneInfo) -> Occurrence:
    """The event, or the first time of a series, as its master says. Raises one of `BROKEN`."""
    events = list(parsed.walk("VEVENT"))
    master = next((e for e in events if e.get("RECURRENCE-ID") is None), events[0])
    return Occurrence(master, zone, repeats=False)


# -- inside ---------------------------------------------------------------------------------------


def _parse(text: str) -> icalendar.Calendar:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return icalendar.Calendar.from_ical(text)


def times_of(event: Any, zone: ZoneInfo) -> tuple[datetime | date, datetime | date]:
    """Start and end of a component in the person's zone. Raises one of `BROKEN`."""
    start = in_zone(event["DTSTART"].dt, zone)
    if "DTEND" in event:
        end = in_zone(event["DTEND"].dt, zone)
    elif "DURATION" in event:
        end = start + event["DURATION"].dt
    else:
        end = start if isinstance(start, datetime) else start + timedelta(days=1)
    if isinstance(start, datetime) != isinstance(end, datetime):
        end = start if isinstance(start, datetime) else start + timedelta(days=1)
    if end < start or (end == start and not isinstance(start, datetime)):
        end = start if isinstance(start, datetime) else start + timedelta(days=1)
    return start, end


def in_zone(value: Any, zone: ZoneInfo) -> datetime | date:
    if not isinstance(value, datetime):
        if not isinstance(value, date):
            raise TypeError("neither a day nor a moment")
        return value
    # A zone that nobody knows is taken as the person's own.
    return value.replace(tzinfo=zone) if value.tzinfo is None else value.astimezone(zone)


def key_of(value: Any, zone: ZoneInfo) -> str:
    value = in_zone(value, zone)
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return str(value.strftime("%Y%m%d"))


def repeats_in(event: Any) -> bool:
    return any(name in event for name in ("RRULE", "RDATE", "RECURRENCE-ID"))


def _lies_outside(blocks: Sequence[str], start: datetime, end: datetime) -> bool:
    """Whether an event that does not recur is days away from the window: told from its text."""
    if len(blocks) != 1 or _REPEATS.search(blocks[0]):
        return False
    days = dict(_DAY.findall(blocks[0]))
    if "START" not in days:
        return False
    low = (start - timedelta(days=2)).strftime("%Y%m%d")
    high = (end + timedelta(days=2)).strftime("%Y%m%d")
    first, last = str(days["START"]), str(days.get("END", ""))
    return first > high or max(last, first) < low


def _is_sane(block: str, until: datetime) -> bool:
    """Whether working out a rule up to a moment comes to an end in good time."""
    flat = _FOLD.sub("", block)
    for rule in _RULE.findall(flat):
        parts = dict(part.partition("=")[::2] for part in rule.strip().upper().split(";"))
        a_day = _A_DAY.get(parts.get("FREQ", ""))
        interval = parts.get("INTERVAL", "1").strip("+")
        if a_day is None or not interval.isdigit() or not int(interval):
            return False
        if _RARE & set(parts) and parts["FREQ"] not in {"MONTHLY", "YEARLY"}:
            return False
        if not _has_a_day(parts.get("BYMONTH", ""), parts.get("BYMONTHDAY", "")):
            return False
        times = [len(parts[name].split(",")) for name in _TIMES if name in parts]
        if times or a_day > 1:
            began = _DAY.search(flat)
            try:
                days = (until.date() - date.fromisoformat(began[2] if began else "")).days + 2
            except ValueError:
                return False
            if max(days, 0) * a_day * math.prod(times) / int(interval) > _MOST_STEPS:
                return False
    return True


def _has_a_day(months: str, days: str) -> bool:
    try:
        listed = [int(day) for day in days.split(",")] if days else [1]
        known = [int(month) for month in months.split(",")] if months else list(range(1, 13))
        return any(
            0 < abs(day) <= calendar.monthrange(2024, month)[1]
            for month in known
            for day in listed
        )
    except ValueError:
        return False


def _without_rule(block: str, names: str = "RRULE|RDATE|EXRULE") -> str:
    flat = _FOLD.sub("", block)
    return re.sub(rf"(?im)^(?:{names})[;:].*\n?", "", flat)


def _line(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        value = value[0] if value else ""
    return " ".join(str(value).split())[:300]


@lru_cache(maxsize=1)
def _known_zones() -> frozenset[str]:
    return frozenset(available_timezones())


def occurrence(text: Text, key: str, zone: ZoneInfo) -> Occurrence | None:
    """The time of a series that a key names, wherever it was moved to; None: not there."""
    try:
        form = "%Y%m%dT%H%M%SZ" if "T" in key else "%Y%m%d"
        moment = datetime.strptime(key, form).replace(tzinfo=UTC)
        near = timedelta(days=400)
        found, _ = text.between(moment - timedelta(days=2), moment + timedelta(days=2), zone)
        one = next((one for one in found if one.key == key), None)
        if one is None:  # moved away from where it was
            found, _ = text.between(moment - near, moment + near, zone)
            one = next((one for one in found if one.key == key), None)
        return one
    except (ValueError, OverflowError):
        return None


def title(text: Text, uid: str) -> str:
    """What an event is called, as far as it can be read."""
    for block in text.groups.get(uid, ()):
        match = re.search(r"(?im)^SUMMARY[^:\n]*:(.*)$", _FOLD.sub("", block))
        if match:
            return _line(re.sub(r"\\([,;\\])", r"\1", match[1]).replace("\\n", " ")) or "-"
    return "-"
