"""Events: what stands in the calendars between two moments, in the person's own zone, by time."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from executors._sdk.agenda import all_between, unreached_text
from executors._sdk.result import Failure, done, item
from executors._sdk.windows import NoWindow, read_window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.agenda import Found
    from executors._sdk.call import Call

MOST = 200
LONGEST = timedelta(days=800)
"""Of a window that has no end: a series has none either."""


def run(call: Call) -> dict[str, Any]:
    """One entry an event, a recurring one for each time: `id`, `summary`, `start`, `end` (a day
    when it takes whole days; `end` is the day after the last), `location`, `text`, `all_day`,
    `recurring`, `calendar`, `account`, `version`."""
    start, end = _window(call)
    found, unreadable, unreached, more = all_between(call, start, end)
    query = str(call.args.get("query") or "").casefold().split()
    found = [f for f in found if not query or _holds(f, query)]
    shown = found[:MOST]
    facts: dict[str, Any] = unreached_text(unreached)
    if unreadable:
        facts["unreadable"] = unreadable
    return done(
        [entry_of(f) for f in shown],
        available=len(found),
        truncated=more or len(found) > len(shown),
        **facts,
    )


def entry_of(found: Found) -> dict[str, Any]:
    one, kept = found.one, found.kept
    fields: dict[str, Any] = {
        "id": kept.id_of(one.key),
        "summary": one.summary,
        "start": _iso(one.start),
        "end": _iso(one.end),
        "all_day": one.all_day,
        "recurring": one.repeats,
        "version": kept.version,
    }
    if one.all_day:
        fields["day"] = _iso(one.start)
        last = one.end - timedelta(days=1)
        if last > one.start:
            fields["last_day"] = _iso(last)
    else:
        fields |= {"begins": fields["start"], "ends": fields["end"]}
    optional = {
        "location": one.location,
        "text": one.text,
        "calendar": kept.calendar,
        "account": kept.account,
    }
    return item(**fields, **{name: value for name, value in optional.items() if value})


def _window(call: Call) -> tuple[datetime, datetime]:
    zone = ZoneInfo(call.tz)
    said = call.args.get("time_window")
    if not said:
        start = call.now.astimezone(zone)
        return start, start + timedelta(days=7)
    try:
        start, end = read_window(said, call.now, zone, forward=True)
    except NoWindow as exc:
        raise Failure("invalid_args", f"time_window: {exc}") from exc
    if end - start > LONGEST:
        now = call.now.astimezone(zone)
        if start <= now < end:
            start = max(start, now - timedelta(days=400)) if start.year < now.year - 50 else start
        return start, min(end, start + LONGEST)
    return start, end


def _holds(found: Found, words: list[str]) -> bool:
    one = found.one
    text = f"{one.summary} {one.location} {one.text}".casefold()
    return all(word in text for word in words)


def _iso(value: Any) -> str:
    return str(
        value.isoformat(timespec="seconds") if isinstance(value, datetime) else value.isoformat()
    )
