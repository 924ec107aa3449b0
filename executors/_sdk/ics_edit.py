"""Making an event as iCalendar text, and changing or taking away one or one time of a series.

What uses this declares what `executors._sdk.ics` needs.
"""

from __future__ import annotations

import warnings
from datetime import UTC, date, datetime, timedelta

import icalendar

from executors._sdk.ics import as_moment, key_of, repeats_in, times_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any
    from zoneinfo import ZoneInfo


def made(
    uid: str,
    summary: str,
    start: datetime | date,
    end: datetime | date,
    now: datetime,
    **more: str,
) -> str:
    """The text of a new event; `more`: `location`, `description`."""
    event = icalendar.Event()
    event.add("UID", uid)
    event.add("DTSTAMP", now.astimezone(UTC).replace(microsecond=0))
    event.add("SUMMARY", summary)
    event.add("DTSTART", start)
    event.add("DTEND", end)
    for name, value in more.items():
        if value:
            event.add(name.upper(), value)
    return _document_of([event])


def without(parsed: icalendar.Calendar, keys: Sequence[str], zone: ZoneInfo) -> str:
    """The series without these times of it."""
    events = list(parsed.walk("VEVENT"))
    kept = []
    for event in events:
        stamp = event.get("RECURRENCE-ID")
        if stamp is not None and key_of(stamp.dt, zone) in keys:
            continue
        if stamp is None:
            for key in keys:
                event.add("EXDATE", _moment_of(key, event, zone))
        kept.append(event)
    return _document_of(kept, parsed)


def changed(
    parsed: icalendar.Calendar,
    key: str,
    changes: Mapping[str, Any],
    now: datetime,
    zone: ZoneInfo,
) -> str:
    """The text with changes in the event, in the whole series (no `key`), or in one time of it.

    `changes`: `summary`, `location`, `start`, `end`, as far as they change. Raises ValueError when
    a series would move to another day.
    """
    events = list(parsed.walk("VEVENT"))
    masters = [event for event in events if event.get("RECURRENCE-ID") is None]
    if key:
        target = next(
            (e for e in events if (s := e.get("RECURRENCE-ID")) is not None
             and key_of(s.dt, zone) == key), None,
        )  # fmt: skip
        if target is None:
            target = _one_time(masters[0], key, zone)
            events.append(target)
    else:
        target = masters[0]
    old = times_of(target, zone)
    start = changes.get("start", old[0])
    end = changes.get("end") or ended(start, old)
    if not key and "start" in changes and repeats_in(target):
        _move_series(events, target, start, zone)
    for name in ("summary", "location"):
        if name in changes:
            _set(target, name.upper(), changes[name])
    if "start" in changes or "end" in changes:
        target.pop("DURATION", None)
        _set(target, "DTSTART", start)
        _set(target, "DTEND", end)
    _set(target, "DTSTAMP", now.astimezone(UTC).replace(microsecond=0))
    _set(target, "SEQUENCE", int(target.get("SEQUENCE") or 0) + 1)
    return _document_of(events, parsed)


def ended(start: Any, old: tuple[Any, Any]) -> Any:
    """The end that keeps the length."""
    if isinstance(start, datetime) != isinstance(old[0], datetime):
        return start + (timedelta(hours=1) if isinstance(start, datetime) else timedelta(days=1))
    return start + (old[1] - old[0])


# -- inside ---------------------------------------------------------------------------------------


def _document_of(events: Sequence[Any], parsed: icalendar.Calendar | None = None) -> str:
    whole = icalendar.Calendar()
    whole.add("VERSION", "2.0")
    whole.add("PRODID", "-//Metnos//EN")
    for zone in parsed.walk("VTIMEZONE") if parsed is not None else ():
        whole.add_component(zone)
    for event in events:
        whole.add_component(event)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole.add_missing_timezones()
        return str(whole.to_ical().decode())


def _moment_of(key: str, master: Any, zone: ZoneInfo) -> datetime | date:
    """The time of a series that a key names, in the form in which its master counts."""
    if "T" not in key:
        return datetime.strptime(key, "%Y%m%d").date()  # noqa: DTZ007 - a day
    moment = datetime.strptime(key, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    first = master["DTSTART"].dt
    if not isinstance(first, datetime):
        return moment.astimezone(zone).date()
    if first.tzinfo is None:
        return moment.astimezone(zone).replace(tzinfo=None)
    return moment.astimezone(first.tzinfo)


def _one_time(master: Any, key: str, zone: ZoneInfo) -> Any:
    single = master.copy(recursive=True)
    start: Any
    start, end = times_of(master, zone)
    for name in ("RRULE", "RDATE", "EXDATE", "EXRULE", "DURATION"):
        single.pop(name, None)
    first = _moment_of(key, master, zone)
    _set(single, "RECURRENCE-ID", first)
    _set(single, "DTSTART", first)
    _set(single, "DTEND", first + (end - start))
    return single


def _move_series(events: list[Any], master: Any, start: Any, zone: ZoneInfo) -> None:
    """Another hour for a series: what names its times by the old hour names them by the new."""
    old: Any = times_of(master, zone)[0]
    if (
        isinstance(start, datetime) != isinstance(old, datetime)
        or as_moment(start, zone).date() != as_moment(old, zone).date()
    ):
        raise ValueError("a series cannot move to another day")
    shift: timedelta = start - old

    def moved(value: Any) -> Any:
        return value + shift if isinstance(value, datetime) else value

    listed = master.get("EXDATE") or []
    days = [stamp.dt for one in (listed if isinstance(listed, list) else [listed])
            for stamp in one.dts]  # fmt: skip
    if days:
        _set(master, "EXDATE", [moved(day) for day in days])
    for event in events:
        if event.get("RECURRENCE-ID") is not None:
            _set(event, "RECURRENCE-ID", moved(event["RECURRENCE-ID"].dt))


def _set(event: Any, name: str, value: Any) -> None:
    event.pop(name, None)
    if value not in (None, ""):
        event.add(name, value)
