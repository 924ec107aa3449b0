"""Show what is in a folder, or in every open one: files and folders, hidden ones too."""

from __future__ import annotations

from executors._sdk.files import moment
from executors._sdk.result import done, item
from executors._sdk.walking import Found, Pace, Walk, searched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

MAX_RESULTS = 5000


def run(call: Call) -> dict[str, Any]:
    """One entry per file, folder or link; `metadata.available` counts all there are.

    Without `path` the open folders are listed one after the other. `recursive` also lists what is
    in the folders of a folder, but not in those whose name starts with a dot. What cannot be
    looked through in time is counted as far as it was seen, `incomplete`.
    """
    bases = searched(call, call.args.get("path"))
    most = min(call.args.get("max_results") or 1000, MAX_RESULTS)
    deep = call.args.get("recursive") is True
    entries: list[dict[str, Any]] = []
    available = closed = unnamed = files = dirs = 0
    pace = Pace(call)
    for base in bases:
        walk = Walk(
            base,
            skip=call.trash_name,
            deep=deep,
            hidden=False,
            may_be_closed=len(bases) > 1,
            call=call,
        )
        for found in walk:
            available += 1
            files += found.kind == "file"
            dirs += found.kind == "dir"
            if len(entries) < most:
                entries.append(_entry(found))
            if not pace.step(available):
                break
        closed += walk.closed
        unnamed += walk.unnamed
        if pace.over:
            break
    metadata: dict[str, Any] = {
        "used": len(entries),
        "available": available,
        "truncated": len(entries) < available or pace.over,
        "files": files,
        "dirs": dirs,
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


def _entry(found: Found) -> dict[str, Any]:
    return item(
        path=found.place.path,
        name=found.place.name,
        kind=found.kind,
        size=found.info.st_size if found.kind == "file" else None,
        modified=moment(found.info.st_mtime),
    )
