"""New events: each made once, however often the call is repeated, under an id made from the turn
and from what it is."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from executors._sdk import ics, ics_edit
from executors._sdk.agenda import EventId, agendas, uid_for
from executors._sdk.moments import read_moment
from executors._sdk.result import Failure, done, failed_by, from_exception, item
from executors._sdk.windows import NoWindow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.agenda import Agenda, FileAgenda
    from executors._sdk.call import Call

MINUTES = 60


class _New:
    """One event to be made."""

    __slots__ = ("end", "location", "start", "summary", "uid")

    def __init__(
        self, call: Call, number: int, summary: str, start: Any, end: Any, location: str
    ) -> None:
        self.summary, self.start, self.end, self.location = summary, start, end, location
        self.uid = uid_for(call, number, summary, start.isoformat())


def run(call: Call) -> dict[str, Any]:
    """One entry an event: `id`, `version`, `name`, `summary`, `start`, `end`, `account`;
    `conflicts` names what stands at that time already; `already` says that this very event was
    made before."""
    entries = []
    new = _wanted(call)
    if not new:
        return done([])
    with agendas(call)[0] as agenda:
        for number, one in enumerate(new, 1):
            try:
                entries.append(_make(call, agenda, one))
            except (Failure, OSError) as exc:
                failed = from_exception(exc)
                if failed is None or len(new) == 1:
                    raise
                entries.append(failed_by(failed, summary=one.summary))
            if len(new) > 1:
                call.progress(number, len(new))
    return done(entries)


def preview(call: Call) -> dict[str, Any]:
    """What would be made. Raises `Failure` for what is no moment, or ends before it begins."""
    new = _wanted(call)
    return {
        "targets": [one.summary for one in new],
        "count": len(new),
        "events": [
            {"summary": one.summary, "start": one.start.isoformat(), "end": one.end.isoformat()}
            for one in new
        ],
        "undo": [{"do": "delete_by_id"}] if new else [],
    }


def _make(call: Call, agenda: Agenda | FileAgenda, one: _New) -> dict[str, Any]:
    zone = ZoneInfo(call.tz)
    text = ics_edit.made(one.uid, one.summary, one.start, one.end, call.now, location=one.location)
    start, end = ics.as_moment(one.start, zone), ics.as_moment(one.end, zone)
    there, _ = agenda.between(start, end)
    conflicts = [f.one.summary for f in there if f.one.busy and not f.one.all_day
                 and f.one.uid != one.uid]  # fmt: skip
    place, version, already = agenda.add(one.uid, text)
    fields: dict[str, Any] = {
        "id": str(EventId(agenda.name, place)),
        "version": version,
        "name": one.summary,
        "summary": one.summary,
        "start": one.start.isoformat(),
        "end": one.end.isoformat(),
    }
    if isinstance(one.start, datetime):
        fields |= {"begins": fields["start"], "ends": fields["end"]}
    else:
        fields["day"] = fields["start"]
    if one.location:
        fields["location"] = one.location
    if agenda.name:
        fields["account"] = agenda.name
    if conflicts and isinstance(one.start, datetime):
        fields["conflicts"] = ", ".join(dict.fromkeys(conflicts))[:300]
    if already:
        fields["already"] = True
    return item(**fields)


def _wanted(call: Call) -> list[_New]:
    """What is to be made: one event from the arguments, or one of each entry. Of free times, and
    of others without a name of their own, only the first becomes the event that was named."""
    args = call.args
    entries = args.get("entries")
    if args.get("start") or entries is None:
        return [_from(call, 0, args)]
    names = ("summary", "location", "duration_minutes")
    shared: dict[str, Any] = {key: args[key] for key in names if key in args}
    named = [e for e in entries if isinstance(e, dict) and e.get("summary")]
    if not named:
        timed = [e for e in entries if isinstance(e, dict) and e.get("start")][:1]
        return [_from(call, 0, {**_times_of(e, shared), **shared}) for e in timed]
    return [_from(call, n, {**_times_of(e, {}), **e, **shared}) for n, e in enumerate(named)]


def _times_of(entry: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """Of a free time that is longer than what is wanted, only its beginning."""
    found = {"start": entry.get("start"), "end": entry.get("end")}
    if "duration_minutes" in shared or entry.get("free"):
        found["end"] = None
        found["duration_minutes"] = entry.get("wanted_minutes")
    return found


def _from(call: Call, number: int, given: dict[str, Any]) -> _New:
    summary = " ".join(str(given.get("summary") or "").split())[:200]
    if not summary:
        raise Failure("missing_input", "summary: what is it")
    if not given.get("start"):
        raise Failure("missing_input", "start: when is it; ask the person for day and hour")
    start = _moment(call, "start", given["start"])
    end = _end(call, start, given)
    if ics.as_moment(end, ZoneInfo(call.tz)) <= ics.as_moment(start, ZoneInfo(call.tz)):
        raise Failure("invalid_args", "end: it lies before the start")
    location = " ".join(str(given.get("location") or "").split())[:200]
    return _New(call, number, summary, start, end, location)


def _end(call: Call, start: datetime | date, given: dict[str, Any]) -> datetime | date:
    minutes = given.get("duration_minutes")
    if not isinstance(start, datetime):
        if not given.get("end"):
            return start + timedelta(days=1)
        end = _moment(call, "end", given["end"])
        last = end.date() if isinstance(end, datetime) else end
        return last if last > start else start + timedelta(days=1)
    if not given.get("end"):
        return _later(start, int(minutes or MINUTES))
    end = _moment(call, "end", given["end"], start)
    if not isinstance(end, datetime):  # up to a day: to the end of it
        return datetime.combine(end + timedelta(days=1), time(), start.tzinfo)
    return end


def _moment(call: Call, name: str, said: Any, after: datetime | None = None) -> datetime | date:
    try:
        found = read_moment(said, after or call.now, ZoneInfo(call.tz))
    except NoWindow as exc:
        raise Failure("invalid_args", f"{name}: {exc}") from exc
    return found


def _later(start: datetime, minutes: int) -> datetime:
    return datetime.fromtimestamp(start.timestamp() + 60 * minutes, start.tzinfo)
