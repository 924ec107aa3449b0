"""Free times: where nothing stands in the calendars, by day, in the hours in which people do
things."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from executors._sdk.agenda import all_between
from executors._sdk.result import Failure, done, item
from executors._sdk.windows import NoWindow, read_window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from executors._sdk.call import Call

DAY = (time(8), time(20))
MINUTES = 60
_WEEKDAYS = {
    "it": ("lun", "mar", "mer", "gio", "ven", "sab", "dom"),
    "en": ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
}
MOST = 20
LONGEST = timedelta(days=62)


def run(call: Call) -> dict[str, Any]:
    """One entry a free time, the earliest first: `start`, `end`, `minutes` it is long,
    `wanted_minutes`, `name`. Whole days count from 8 to 20; a part of a day that was asked for
    counts as it is. Events that take whole days leave the hours free."""
    zone = ZoneInfo(call.tz)
    start, end = _window(call, zone)
    minutes = int(call.args.get("duration_minutes") or MINUTES)
    found, unreadable, unreached, is_more = all_between(call, start, end)
    if unreached:
        # What is not known to be free is not offered as free.
        raise Failure("network", "not every calendar could be read", host=", ".join(unreached))
    if is_more:
        raise Failure("too_many", "more events than are read: ask for a shorter time",
                      count=len(found), limit=len(found))  # fmt: skip
    busy = [f.one.span(zone) for f in found if f.one.busy and not f.one.all_day]
    free: list[dict[str, Any]] = []
    truncated = False
    for low, high in _hours(start, end, zone):
        for since, until in _gaps(low, high, busy):
            if until.timestamp() - since.timestamp() >= minutes * 60:
                if len(free) == MOST:
                    truncated = True
                    break
                free.append(_entry(call, since, until, minutes))
    facts: dict[str, Any] = {"unreadable": unreadable} if unreadable else {}
    return done(free, wanted_minutes=minutes, truncated=truncated, **facts)


def _entry(call: Call, since: datetime, until: datetime, minutes: int) -> dict[str, Any]:
    days = _WEEKDAYS.get(call.lang, _WEEKDAYS["en"])
    return item(
        start=since.isoformat(timespec="seconds"),
        end=until.isoformat(timespec="seconds"),
        minutes=int((until.timestamp() - since.timestamp()) // 60),
        wanted_minutes=minutes,
        free=True,
        id=since.isoformat(timespec="seconds"),
        name=f"{days[since.weekday()]} {since.day}, {since:%H:%M}–{until:%H:%M}",
    )


def _window(call: Call, zone: ZoneInfo) -> tuple[datetime, datetime]:
    now = call.now.astimezone(zone)
    said = call.args.get("time_window")
    if not said:
        midnight = datetime.combine(now.date() + timedelta(days=7), time(), zone)
        return _quarter(now), midnight
    try:
        start, end = read_window(said, call.now, zone, forward=True)
    except NoWindow as exc:
        raise Failure("invalid_args", f"time_window: {exc}") from exc
    start = max(start, _quarter(now))  # what is past is not free
    return start, min(end, start + LONGEST)


def _hours(start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[tuple[datetime, datetime]]:
    """The hours of each day that count. A window within one day that names hours counts whole."""
    if start >= end:
        return
    is_part = end - start < timedelta(hours=16) and (end.time() != time() or end.hour)
    asked_late = end.time() == time() and start.hour >= 16 and end - start < timedelta(hours=8)
    day = start.date()
    while datetime.combine(day, time(), zone) < end:
        low = max(start, datetime.combine(day, DAY[0], zone))
        high = min(end, datetime.combine(day, DAY[1], zone))
        if (is_part and start.date() == end.date()) or asked_late:
            low, high = start, end
        if low < high:
            yield low, high
        if asked_late or (is_part and start.date() == end.date()):
            return
        day += timedelta(days=1)


def _gaps(
    low: datetime, high: datetime, busy: list[tuple[datetime, datetime]]
) -> Iterator[tuple[datetime, datetime]]:
    at = low
    for start, end in busy:  # by their start
        if end <= at:
            continue
        if start >= high:
            break
        if start > at:
            yield at, start
        at = max(at, end)
        if at >= high:
            return
    yield at, high


def _quarter(now: datetime) -> datetime:
    """The next quarter of an hour: nobody begins at 10:07."""
    stamp = now.timestamp()
    return datetime.fromtimestamp(-(-stamp // 900) * 900, now.tzinfo)
