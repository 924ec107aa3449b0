"""Find files by name, age and size beneath a folder or beneath every open one."""

from __future__ import annotations

from executors._sdk.files import Place, moment
from executors._sdk.globs import Patterns
from executors._sdk.result import done, item
from executors._sdk.walking import Found, Pace, Walk, searched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

MAX_RESULTS = 5000


def run(call: Call) -> dict[str, Any]:
    """One entry per file; `metadata.available` counts those beyond `max_results` too.

    Hidden files are found when a pattern starts with a dot or the folder searched is hidden
    itself; links are never followed, and the trash is not searched.
    """
    bases = searched(call, call.args.get("base_path"))
    patterns = Patterns(call.args.get("patterns") or ())
    most = min(call.args.get("max_results") or 1000, MAX_RESULTS)
    chosen = _Chosen(call)
    entries: list[dict[str, Any]] = []
    available = total_bytes = closed = unnamed = 0
    pace = Pace(call)
    for base in bases:
        hidden = patterns.wants_hidden or any(part.startswith(".") for part in base.parts)
        walk = Walk(
            base,
            skip=call.trash_name,
            deep=call.args.get("recursive") is not False,
            hidden=hidden,
            may_be_closed=len(bases) > 1,
            call=call,
        )
        for found in walk:
            if not pace.step(available):
                break
            if found.kind != "file" or (found.place.name.startswith(".") and not hidden):
                continue
            if not chosen.by_facts(found) or not patterns.match(_beneath(base, found)):
                continue
            available += 1
            total_bytes += found.info.st_size
            if len(entries) < most:
                entries.append(_entry(found))
        closed += walk.closed
        unnamed += walk.unnamed
        if pace.over:
            break
    metadata: dict[str, Any] = {
        "used": len(entries),
        "available": available,
        "truncated": len(entries) < available or pace.over,
        "total_bytes": total_bytes,
    }
    if len(bases) == 1:
        metadata["base_path"] = bases[0].path
    if closed:
        metadata["unreadable_folders"] = closed
    if unnamed:
        metadata["unreadable_names"] = unnamed
    if pace.over:
        metadata["incomplete"] = True
    return done(entries, **metadata)


class _Chosen:
    """The conditions on size and age of a call."""

    def __init__(self, call: Call) -> None:
        days = call.args.get("modified_within_days")
        self._since = None if days is None else call.now.timestamp() - days * 86400
        self._least = call.args.get("size_min")
        self._most = call.args.get("size_max")

    def by_facts(self, found: Found) -> bool:
        info = found.info
        return (
            (self._since is None or info.st_mtime >= self._since)
            and (self._least is None or info.st_size >= self._least)
            and (self._most is None or info.st_size <= self._most)
        )


def _beneath(base: Place, found: Found) -> tuple[str, ...]:
    return found.place.parts[len(base.parts) :]


def _entry(found: Found) -> dict[str, Any]:
    name = found.place.name
    stem, dot, ext = name.rpartition(".")
    return item(
        path=found.place.path,
        name=name,
        size=found.info.st_size,
        modified=moment(found.info.st_mtime),
        kind="file",
        ext=ext.lower() if dot and stem else "",
    )
