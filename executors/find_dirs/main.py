"""Find folders by name, beneath a folder or beneath every open one; also those that are empty."""

from __future__ import annotations

import os

from executors._sdk.files import folder, moment
from executors._sdk.globs import Patterns
from executors._sdk.result import Failure, done, item
from executors._sdk.walking import Found, Pace, Walk, searched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

MAX_RESULTS = 5000


def run(call: Call) -> dict[str, Any]:
    """One entry per folder: `path`, `name`, `modified`, `items` (how many things stand in it).

    Hidden folders are found when a pattern starts with a dot; links are never followed, and the
    trash is not searched. `metadata.available` counts what is beyond `max_results` too.
    """
    bases = searched(call, call.args.get("base_path"))
    patterns = Patterns(call.args.get("patterns") or ())
    empty = call.args.get("empty") is True
    most = min(call.args.get("max_results") or 1000, MAX_RESULTS)
    entries: list[dict[str, Any]] = []
    available = closed = unnamed = 0
    pace = Pace(call)
    for base in bases:
        hidden = patterns.wants_hidden or any(part.startswith(".") for part in base.parts)
        walk = Walk(
            base, skip=call.trash_name, hidden=hidden, may_be_closed=len(bases) > 1, call=call
        )
        for found in walk:
            if not pace.step(available):
                break
            if found.kind != "dir" or (found.place.name.startswith(".") and not hidden):
                continue
            if not patterns.match(found.place.parts[len(base.parts) :]):
                continue
            items = _items(call, found)
            if empty and items != 0:
                continue
            available += 1
            if len(entries) < most:
                entries.append(_entry(found, items))
        closed += walk.closed
        unnamed += walk.unnamed
        if pace.over:
            break
    metadata: dict[str, Any] = {
        "used": len(entries),
        "available": available,
        "truncated": len(entries) < available or pace.over,
    }
    if closed:
        metadata["unreadable_folders"] = closed
    if unnamed:
        metadata["unreadable_names"] = unnamed
    if pace.over:
        metadata["incomplete"] = True
    return done(entries, **metadata)


def _items(call: Call, found: Found) -> int | None:
    """How many things stand in it, the trash left out; None when it may not be looked into."""
    try:
        with folder(found.place, listing=True) as fd, os.scandir(fd) as listing:
            return sum(entry.name != call.trash_name for entry in listing)
    except (OSError, Failure):
        return None


def _entry(found: Found, items: int | None) -> dict[str, Any]:
    entry = item(
        path=found.place.path, name=found.place.name, modified=moment(found.info.st_mtime)
    )
    return entry if items is None else {**entry, "items": items}
