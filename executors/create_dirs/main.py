"""Make folders, with those above them that are missing. One that is there stays as it is."""

from __future__ import annotations

import stat

from executors._sdk.files import arg_paths, locate, look, shown, state_of
from executors._sdk.result import Failure, done, failed_item, from_exception, item
from executors._sdk.writing import make_folders, missing_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.files import Place


def run(call: Call) -> dict[str, Any]:
    """One entry per folder: `path`, `created` (false: it was there), `made` (how many folders)."""
    entries = []
    for path in dict.fromkeys(arg_paths(call)):
        try:
            place = _place(call, path)
            made = make_folders(place)
            as_was = {} if made else {"unchanged": True}
            entries.append(item(path=place.path, created=bool(made), made=len(made), **as_was))
        except (OSError, Failure) as exc:
            entries.append(_failed(path, exc))
    new = sum(entry.get("made", 0) for entry in entries)
    there = sum(entry.get("created") is False for entry in entries)
    return done(entries, made=new, **({"there": there} if there else {}))


def preview(call: Call) -> dict[str, Any]:
    """Which folders would be made. Raises `Failure` when none of the paths can be one.

    The way back takes away the outermost folder of each path that is not there yet.
    """
    before, after, undo, refused = [], [], [], []
    known: set[str] = set()
    for path in dict.fromkeys(arg_paths(call)):
        try:
            place = _place(call, path)
            missing = [one for one in missing_folders(place) if one.path not in known]
        except (OSError, Failure) as exc:
            refused.append(_failed(path, exc))
            continue
        known.update(one.path for one in missing)
        before += [state_of(one, None) for one in missing]
        after += [{"path": one.path, "exists": True, "kind": "dir"} for one in missing]
        if missing and missing[0].parent.path not in known:
            undo.append({"do": "remove", "path": missing[0].path})
    if refused and not known and len(refused) == len(set(arg_paths(call))):
        error = refused[0]["error"]
        raise Failure(error["code"], error["detail"], path=refused[0]["path"])
    return {
        "targets": [one["path"] for one in after],
        "before": before,
        "after": after,
        "bytes": 0,
        "count": len(after),
        "undo": undo,
        "refused": refused,
    }


def _place(call: Call, path: object) -> Place:
    place = locate(call, path.rstrip("/") if isinstance(path, str) else path)
    info = look(place)
    if info is not None and not stat.S_ISDIR(info.st_mode):
        if stat.S_ISLNK(info.st_mode):
            raise Failure("out_of_scope", "links are not followed")
        raise Failure("already_exists", "a file is there")
    return place


def _failed(path: object, exc: OSError | Failure) -> dict[str, Any]:
    failed = from_exception(exc)
    code, detail = (failed.code, failed.detail) if failed else ("internal", "")
    return failed_item(code, detail, path=shown(path))
