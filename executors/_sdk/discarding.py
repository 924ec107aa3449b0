"""Putting files and folders into the trash of a turn, item by item, and foreseeing that.

Folders go with all that is in them. An open folder itself is never thrown away, nor what is in the
trash already.
"""

from __future__ import annotations

import stat

from executors._sdk.files import Place, arg_paths, is_top, locate, look, shown, state_of
from executors._sdk.result import Failure, done, failed_item, from_exception, item
from executors._sdk.trash import to_trash, trash_place
from executors._sdk.walking import tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Any

    from executors._sdk.call import Call


def discard(
    call: Call, *, folders_only: bool = False, paths: Sequence[str] | None = None
) -> dict[str, Any]:
    """One entry per item: `path`, `bytes` (of all in a folder), `items`, `trash` (where it is).
    `paths`: in place of those of the call."""
    entries: list[dict[str, Any]] = []
    gone: dict[str, str] = {}
    found = _distinct(call, paths)
    for number, path in enumerate(found, 1):
        try:
            entries.append(_discard(call, path, gone, folders_only))
        except (OSError, Failure) as exc:
            entries.append(_failed(path, exc))
        if len(found) > 1:
            call.progress(number, len(found))
    return done(
        entries,
        bytes=sum(entry.get("bytes", 0) for entry in entries),
        items=sum(entry.get("items", 0) for entry in entries),
    )


def foresee(
    call: Call, *, folders_only: bool = False, paths: Sequence[str] | None = None
) -> dict[str, Any]:
    """What would go, without touching it. Raises `Failure` when nothing could.

    `count` and `bytes` count what is inside folders; `refused` names what would not work.
    """
    before, after, undo, refused = [], [], [], []
    count = total = 0
    going: dict[str, str] = {}
    taken: set[str] = set()
    for path in _distinct(call, paths):
        try:
            place = _place(call, path)
            if _above(going, place) is not None:
                continue
            info = _look(place, folders_only)
            trash = trash_place(call, place, taken=taken).path
        except (OSError, Failure) as exc:
            refused.append(_failed(path, exc))
            continue
        items, size = tally(place, info, skip=call.trash_name)
        going[place.path] = trash
        taken.add(trash)
        count += items
        total += size
        before.append(state_of(place, info, items=items, bytes=size))
        after.append(state_of(place, None, trash=trash))
        undo.append({"do": "restore", "from": trash, "to": place.path})
    if refused and not going:
        error = refused[0]["error"]
        raise Failure(error["code"], error["detail"], path=refused[0]["path"])
    return {
        "targets": list(going),
        "before": before,
        "after": after,
        "bytes": total,
        "count": count,
        "undo": undo,
        "refused": refused,
    }


def _distinct(call: Call, paths: Sequence[str] | None) -> list[str | None]:
    """The paths once each, folders before what is in them."""
    wanted = arg_paths(call) if paths is None else paths
    whole = [path and (path.rstrip("/") or path) for path in wanted]
    return sorted(dict.fromkeys(whole), key=lambda path: (path or "").count("/"))


def _discard(call: Call, path: object, gone: dict[str, str], folders_only: bool) -> dict[str, Any]:
    place = _place(call, path)
    above = _above(gone, place)
    if above is not None:
        trash = gone[above] + place.path[len(above) :]
        return item(path=place.path, bytes=0, items=0, trash=trash)
    info = _look(place, folders_only)
    items, size = tally(place, info, skip=call.trash_name)
    trash = to_trash(call, place).path
    gone[place.path] = trash
    return item(path=place.path, bytes=size, items=items, trash=trash)


def _look(place: Place, folders_only: bool) -> os.stat_result:
    info = look(place)
    if info is None:
        raise Failure("not_found", "there is nothing at this path")
    if folders_only and not stat.S_ISDIR(info.st_mode):
        raise Failure("not_directory", "this is no folder")
    return info


def _place(call: Call, path: object) -> Place:
    place = locate(call, path)
    if is_top(call, place):
        raise Failure("out_of_scope", "an open folder itself is never deleted")
    return place


def _above(gone: dict[str, str], place: Place) -> str | None:
    """The deleted folder that took this place with it."""
    return next((path for path in gone if place.path.startswith(path + "/")), None)


def _failed(path: object, exc: OSError | Failure) -> dict[str, Any]:
    failed = from_exception(exc)
    code, detail = (failed.code, failed.detail) if failed else ("internal", "")
    return failed_item(code, detail, path=shown(path))
