"""Changing events by their ids: title, time or place of one time of a series, or of all of it."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from executors._sdk import agenda_back, ics, ics_edit
from executors._sdk.agenda import EventId, agenda_of, scope_fields
from executors._sdk.moments import read_moment
from executors._sdk.result import Failure, done, failed_by, from_exception, item
from executors._sdk.windows import NoWindow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.agenda import Agenda, FileAgenda, Kept
    from executors._sdk.call import Call

_CHANGES = ("summary", "start", "end", "location")


def run(call: Call) -> dict[str, Any]:
    """One entry an event: `id`, `version`, `summary`, `start`, `end`, `scope` (`event`,
    `occurrence`, `series`). Where a change is taken back: `already` for what is as it was."""
    if call.put_back:
        return done(agenda_back.put_back(call))
    entries = []
    ids = _ids(call)
    for number, one in enumerate(ids, 1):
        try:
            with agenda_of(call, one.account) as agenda:
                kept, text, fields = _foresee(call, agenda, one)
                version = agenda.change(kept, text)
                entries.append(item(**fields, version=version))
        except (Failure, OSError) as exc:
            failed = from_exception(exc)
            if failed is None:
                raise
            entries.append(failed_by(failed, id=str(one)))
        if len(ids) > 1:
            call.progress(number, len(ids))
    return done(entries)


def preview(call: Call) -> dict[str, Any]:
    """What would change. Raises `Failure` when an event is not there, or cannot become so."""
    targets, after = [], []
    before = agenda_back.Before()
    for one in _ids(call):
        with agenda_of(call, one.account) as agenda:
            kept, _, fields = _foresee(call, agenda, one)
        targets.append(f"{fields['was']} ({fields['was_start'][:16].replace('T', ' ')})")
        before.note(agenda, one, kept)
        after.append({key: fields[key] for key in ("id", "summary", "start", "end", "scope")})
    return {"targets": targets, "count": len(targets), "before": before.states,
            "changes": after, "undo": before.undo}  # fmt: skip


def _ids(call: Call) -> list[EventId]:
    if not any(call.args.get(name) for name in _CHANGES):
        raise Failure("missing_input", "say what changes: summary, start, end or location")
    return [EventId.read(said) for said in dict.fromkeys(call.args["event_ids"])]


def _foresee(
    call: Call, agenda: Agenda | FileAgenda, one: EventId
) -> tuple[Kept, str, dict[str, Any]]:
    """The event, its new text, and what is to be said of it."""
    kept = agenda.get(one.place)
    if kept is None:
        raise Failure("not_found", "the event is not there any more", path=one.place[-60:])
    key = "" if call.args.get("series") else one.key
    zone = agenda.zone
    try:
        parsed = kept.text.calendar_of(kept.uid)
        old = ics.occurrence(kept.text, one.key, zone) if one.key else None
        if one.key and key and old is None:
            raise Failure("not_found", "this time of the series is not there any more")
        if old is None:
            old = ics.first(parsed, zone)
        changes = _changes(call, agenda, old, is_series=bool(one.key and not key), parsed=parsed)
        text = ics_edit.changed(parsed, key, changes, call.now, zone)
    except ics.BROKEN as exc:
        detail = (
            str(exc) if isinstance(exc, ValueError) else "this event cannot be read well enough"
        )
        raise Failure("unsupported", detail) from exc
    start = changes.get("start", old.start)
    end = changes.get("end") or ics_edit.ended(start, (old.start, old.end))
    since, until = ics.as_moment(start, zone), ics.as_moment(end, zone)
    # Some events have no length; nobody may be given one that ends before it begins.
    if until < since or (until == since and call.args.get("end")):
        raise Failure("invalid_args", "end: it lies before the start")
    scope = "occurrence" if key else "series" if one.key else "event"
    fields: dict[str, Any] = {
        "id": str(one),
        "name": old.summary,
        "was": old.summary,
        "was_start": old.start.isoformat(),
        "summary": changes.get("summary", old.summary),
        "start": start.isoformat(),
        "end": end.isoformat(),
        **scope_fields(call, scope),
    }
    if isinstance(start, datetime):
        fields |= {"begins": fields["start"], "ends": fields["end"]}
    else:
        fields["day"] = fields["start"]
    place = changes.get("location", old.location)
    if place:
        fields["location"] = place
    if agenda.name:
        fields["account"] = agenda.name
    return kept, text, fields


def _changes(
    call: Call, agenda: Agenda | FileAgenda, old: ics.Occurrence, *, is_series: bool, parsed: Any
) -> dict[str, Any]:
    args = call.args
    changes: dict[str, Any] = {
        name: " ".join(str(args[name]).split())[:200]
        for name in ("summary", "location")
        if args.get(name)
    }
    if args.get("start"):
        start = _moment(call, args["start"], old, agenda)
        if is_series:  # the same hour for all of them: the first one's day stays
            first = ics.first(parsed, agenda.zone).start
            if isinstance(start, datetime) and isinstance(first, datetime):
                shift = timedelta(days=(start.date() - ics.as_day(old.start)).days)
                if shift:
                    raise Failure("series_stays", "a series cannot move to another day here")
                start = first.replace(hour=start.hour, minute=start.minute)
        changes["start"] = start
        changes["end"] = ics_edit.ended(start, (old.start, old.end))
    if args.get("end"):
        if is_series:
            raise Failure("series_stays", "of a whole series only title, place and start change")
        changes["end"] = _moment(call, args["end"], old, agenda)
    return changes


def _moment(
    call: Call, said: Any, old: ics.Occurrence, agenda: Agenda | FileAgenda
) -> datetime | date:
    """A moment; an hour alone is one of the day on which the event stands, and a day alone keeps
    the hour."""
    day = ics.as_moment(ics.as_day(old.start), agenda.zone)
    try:
        found = read_moment(said, day - timedelta(seconds=1), agenda.zone)
        now = read_moment(said, call.now, agenda.zone)
    except NoWindow as exc:
        raise Failure("invalid_args", f"start or end: {exc}") from exc
    if not isinstance(now, datetime):
        if isinstance(old.start, datetime):
            return datetime.combine(now, old.start.timetz().replace(tzinfo=None), agenda.zone)
        return now
    # Only an hour was said when the two differ by the day they were read on, and it has no day.
    return found if isinstance(found, datetime) and _is_hour(str(said)) else now


def _is_hour(said: str) -> bool:
    return bool(re.fullmatch(r"(?:alle|all'|ore|at|@|a|le)?\s*\d{1,2}(?:[:.h]\d{2})?\s*"
                             r"(?:am|pm|a\.m\.|p\.m\.|e mezza|e un quarto)?", said.strip().lower())
                or said.strip().lower() in {"mezzogiorno", "noon", "a mezzogiorno"})  # fmt: skip
