"""Days, months and shifts on the wall of a time zone: the arithmetic of `windows`."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from executors._sdk.time_words import PARTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo


class NoWindow(ValueError):
    """The text names no span of time that is known here."""


def nearest_day(
    day: int, month: int, year: int | None, today: date, *, forward: bool, by_month: bool
) -> date:
    """A day of a month: without a year the next one, or the last within half a year."""
    try:
        if year is not None:
            return date(year, month, day)
        found = date(today.year, month, day)
        if forward and found < today:
            if by_month:
                index = today.year * 12 + today.month
                return date(index // 12, index % 12 + 1, day)
            return date(today.year + 1, month, day)
        if not forward and (found - today).days > 180:
            return date(today.year - 1, month, day)
        return found
    except ValueError as exc:
        raise NoWindow(f"there is no such day: {day}/{month}") from exc


def moved_by(local: datetime, count: int, unit: str) -> datetime:
    """So many units on, or back: days and longer keep the hour on the wall."""
    if unit in {"months", "years"}:
        index = local.year * 12 + local.month - 1 + count * (12 if unit == "years" else 1)
        year, month = index // 12, index % 12 + 1
        if not 1 <= year <= 9998:
            raise NoWindow("too far away")
        for day in range(local.day, 27, -1):
            try:
                return local.replace(year=year, month=month, day=day)
            except ValueError:
                continue
        return local.replace(year=year, month=month)
    try:
        if unit in {"hours", "minutes"}:
            utc = local.timestamp() + count * (3600 if unit == "hours" else 60)
            return datetime.fromtimestamp(utc, local.tzinfo)
        return local + timedelta(days=count * (7 if unit == "weeks" else 1))
    except (OverflowError, ValueError, OSError) as exc:
        raise NoWindow("too far away") from exc


def day_span(day: date, zone: tzinfo) -> tuple[datetime, datetime]:
    """A whole day."""
    return span_between(day, day + timedelta(days=1), zone)


def span_between(first: date, after: date, zone: tzinfo) -> tuple[datetime, datetime]:
    """From the beginning of one day to that of another."""
    return datetime.combine(first, time(), zone), datetime.combine(after, time(), zone)


def part_of_day(day: date, part: str, zone: tzinfo) -> tuple[datetime, datetime]:
    """The morning, afternoon, evening or night of a day."""
    low, high = PARTS[part]
    start = datetime.combine(day, time(low), zone)
    if high == 24:
        return start, datetime.combine(day + timedelta(days=1), time(), zone)
    return start, datetime.combine(day, time(high), zone)


def month_span(year: int, month: int, zone: tzinfo) -> tuple[datetime, datetime]:
    """A whole month. Raises `NoWindow` for one that is none."""
    if not 1 <= month <= 12 or not 1 <= year <= 9998:
        raise NoWindow("there is no such month")
    after = date(year + month // 12, month % 12 + 1, 1)
    return span_between(date(year, month, 1), after, zone)
