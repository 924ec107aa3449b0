"""Deleting events by their ids: one time of a series, or the series when that is asked for."""

from __future__ import annotations

from executors._sdk import agenda_back, ics, ics_edit
from executors._sdk.agenda import EventId, agenda_of, scope_fields
from executors._sdk.result import Failure, done, failed_by, from_exception, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.agenda import Agenda, FileAgenda, Kept
    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry an event: `id`, `summary`, `scope` (`event`, `occurrence`, `series`), `version` of
    what is left of a series; `gone` says that there was nothing left to delete. Where a deletion
    is taken back: `already` for what is as it was."""
    if call.put_back:
        return done(agenda_back.put_back(call))
    entries = []
    groups = _groups(call)
    for number, ((account, place), ids) in enumerate(groups.items(), 1):
        try:
            with agenda_of(call, account) as agenda:
                entries += _delete(call, agenda, place, ids)
        except (Failure, OSError) as exc:
            failed = from_exception(exc)
            if failed is None:
                raise
            entries += [_failed(failed, one) for one in ids]
        if len(groups) > 1:
            call.progress(number, len(groups))
    return done(entries)


def preview(call: Call) -> dict[str, Any]:
    """What would go: `targets` as people know them, `before` how each id stands now."""
    targets: list[str] = []
    before = agenda_back.Before()
    for (account, place), ids in _groups(call).items():
        with agenda_of(call, account) as agenda:
            kept = agenda.get(place)
            for one in ids:
                key = _key(call, one)
                there = kept if kept is not None and _has(kept, key, agenda) else None
                before.note(agenda, one, there)
                if there is not None:
                    targets.append(_label(there, key, agenda))
    return {"targets": targets, "count": len(targets), "before": before.states,
            "undo": before.undo}  # fmt: skip


def _groups(call: Call) -> dict[tuple[str, str], list[EventId]]:
    groups: dict[tuple[str, str], list[EventId]] = {}
    for said in dict.fromkeys(call.args["event_ids"]):
        one = EventId.read(said)
        groups.setdefault((one.account, one.place), []).append(one)
    return groups


def _delete(
    call: Call, agenda: Agenda | FileAgenda, place: str, ids: list[EventId]
) -> list[dict[str, Any]]:
    kept = agenda.get(place)
    if kept is None:
        return [item(id=str(one), summary="-", gone=True, scope="event") for one in ids]
    keys = [key for one in ids if (key := _key(call, one))]
    labels = {str(one): _label(kept, _key(call, one), agenda) for one in ids}
    repeats, version = _repeats(kept), None
    if len(keys) < len(ids):
        agenda.remove(kept)
        scope = "series" if repeats else "event"
    else:
        keys = [key for key in keys if _has(kept, key, agenda)]
        scope = "occurrence"
        if keys:
            try:
                text = ics_edit.without(kept.text.calendar_of(kept.uid), keys, agenda.zone)
            except ics.BROKEN as exc:
                raise Failure("damaged", "this event cannot be read well enough") from exc
            version = agenda.change(kept, text)
    entries = []
    for one in ids:
        label = labels[str(one)]
        fields: dict[str, Any] = {"id": str(one), "summary": label, "name": label}
        if version is not None:
            fields["version"] = version
        fields |= scope_fields(call, scope)
        if scope == "occurrence" and _key(call, one) not in keys:
            fields["gone"] = True
        if agenda.name:
            fields["account"] = agenda.name
        entries.append(item(**fields))
    return entries


def _key(call: Call, one: EventId) -> str:
    """Which time is meant; none when the series is to go as a whole."""
    return "" if call.args.get("series") else one.key


def _repeats(kept: Kept) -> bool:
    try:
        events = kept.text.calendar_of(kept.uid).walk("VEVENT")
    except ics.BROKEN:
        return False
    return any("RRULE" in event or "RDATE" in event for event in events)


def _has(kept: Kept, key: str, agenda: Agenda | FileAgenda) -> bool:
    return not key or _occurrence(kept, key, agenda) is not None


def _occurrence(kept: Kept, key: str, agenda: Agenda | FileAgenda) -> ics.Occurrence | None:
    return ics.occurrence(kept.text, key, agenda.zone)


def _label(kept: Kept, key: str, agenda: Agenda | FileAgenda) -> str:
    """What an event is called, with its day where it is one of several."""
    if key:
        one = _occurrence(kept, key, agenda)
        if one is not None:
            return f"{one.summary} ({one.start.isoformat()[:16].replace('T', ' ')})"
    return ics.title(kept.text, kept.uid)


def _failed(failed: Failure, one: EventId) -> dict[str, Any]:
    return failed_by(failed, id=str(one), summary=one.place)
