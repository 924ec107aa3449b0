"""Move or rename files and folders, also to another disk. Nothing is replaced unless asked for."""

from __future__ import annotations

import stat

from executors._sdk.files import (
    Place,
    arg_paths,
    is_top,
    kind_of,
    locate,
    look,
    shown,
    state_of,
)
from executors._sdk.result import Failure, done, failed_item, from_exception, item
from executors._sdk.trash import to_trash, transfer, trash_place
from executors._sdk.walking import tally
from executors._sdk.writing import make_folders, missing_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry per item: `path` (where it is now), `source`, `bytes`, `replaced` (kept there)."""
    entries: list[dict[str, Any]] = []
    moves = _moves(call)
    for number, move in enumerate(moves, 1):
        try:
            entries.append(_move(call, move))
        except (OSError, Failure) as exc:
            entries.append(_failed(move.path, exc))
        if len(moves) > 1:
            call.progress(number, len(moves))
    return done(entries, bytes=sum(entry.get("bytes", 0) for entry in entries))


def preview(call: Call) -> dict[str, Any]:
    """Where everything would be, without moving it. Raises `Failure` when nothing could be moved.

    `before` and `after` describe source and target of every move, in turn. `undo` is in the order
    to be done: what came last goes back first, so a replaced file finds its place free.
    """
    targets: list[str] = []
    before: list[dict[str, Any]] = []
    after: list[dict[str, Any]] = []
    undo: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    count = total = 0
    for move in _moves(call):
        try:
            source, target = move.places(call)
            info, there = _checked(call, move, source, target)
            missing_folders(target.parent)
            kept = trash_place(call, target, taken=[u["from"] for u in undo]) if there else None
        except (OSError, Failure) as exc:
            refused.append(_failed(move.path, exc))
            continue
        items, size = tally(source, info, skip=call.trash_name)
        count += items
        total += size
        targets += [source.path, target.path]
        before += [state_of(source, info), state_of(target, there)]
        after += [state_of(source, None), {**state_of(source, info), "path": target.path}]
        if kept is not None:
            undo.append({"do": "restore", "from": kept.path, "to": target.path})
        undo.append({"do": "move", "from": target.path, "to": source.path})
    if refused and not targets:
        error = refused[0]["error"]
        raise Failure(error["code"], error["detail"], path=refused[0]["path"])
    return {
        "targets": targets,
        "before": before,
        "after": after,
        "bytes": total,
        "count": count,
        "undo": undo[::-1],
        "refused": refused,
    }


class _Move:
    """One item to be moved to `target`. `why_not`: it cannot be, whatever the disk holds."""

    __slots__ = ("path", "target", "why_not")

    def __init__(self, path: object, target: Place, why_not: Failure | None = None) -> None:
        self.path = path
        self.target = target
        self.why_not = why_not

    def places(self, call: Call) -> tuple[Place, Place]:
        if self.why_not is not None:
            raise self.why_not
        # What is in the trash may be taken out of it, never put into it by hand.
        return locate(call, self.path, in_trash=True), self.target


def _moves(call: Call) -> list[_Move]:
    """The items with their targets: into `dst` when it is a folder or is to be one, else `dst`
    itself. Raises `Failure` for a `dst` that cannot take them."""
    paths = list(dict.fromkeys(arg_paths(call)))
    dst = locate(call, call.args.get("dst"))
    info = look(dst)
    if info is not None and stat.S_ISLNK(info.st_mode):
        raise Failure("out_of_scope", "links are not followed", path=dst.path)
    if info is None:
        into = len(paths) > 1 or _reads_as_folder(call, dst, paths)
    else:
        into = stat.S_ISDIR(info.st_mode)
        if not into and len(paths) > 1:
            raise Failure("not_directory", "several items cannot become one file", path=dst.path)
    moves: list[_Move] = []
    taken: set[str] = set()
    for path in paths:
        name = (path or "").rstrip("/").rpartition("/")[2]
        target = dst.child(name) if into and name else dst
        clash = target.path in taken
        taken.add(target.path)
        why_not = (
            Failure("already_exists", "two items would have the same name") if clash else None
        )
        moves.append(_Move(path, target, why_not))
    return moves


def _reads_as_folder(call: Call, dst: Place, paths: list[str | None]) -> bool:
    """Whether a `dst` that does not exist means a new folder: one file out of a search, with an
    extension, is put into what has none ("move the PDFs to Archive" when there is one PDF)."""
    if "entries" not in call.args or len(paths) != 1 or paths[0] is None:
        return False
    return "." in paths[0].rpartition("/")[2][1:] and "." not in dst.name


def _checked(call: Call, move: _Move, source: Place, target: Place) -> tuple[Any, Any]:
    """What is at the source and at the target. Raises `Failure` when they may not be moved so."""
    if is_top(call, source):
        raise Failure("out_of_scope", "an open folder itself is never moved")
    info = look(source)
    if info is None:
        raise Failure("not_found", "there is nothing at this path")
    if not target.parts or is_top(call, target):
        raise Failure("already_exists", "an open folder is there")
    if source.path == target.path:
        raise Failure("already_exists", "it is there already")
    if source.holds(target):
        raise Failure("into_itself", "a folder cannot be moved into itself")
    if target.holds(source):
        raise Failure("already_exists", "a folder is not replaced by what is in it")
    there = look(target)
    if there is not None:
        if not call.args.get("overwrite"):
            raise Failure("already_exists", f"{shown(target.path)} exists; overwrite is not set")
        if stat.S_ISDIR(there.st_mode) != stat.S_ISDIR(info.st_mode):
            raise Failure("already_exists", f"a {kind_of(there)} is not replaced by another kind")
    return info, there


def _move(call: Call, move: _Move) -> dict[str, Any]:
    source, target = move.places(call)
    info, there = _checked(call, move, source, target)
    items, size = tally(source, info, skip=call.trash_name)
    make_folders(target.parent)
    more = {}
    if there is not None:
        kept = to_trash(call, target)
        more["replaced"] = kept.path
    try:
        transfer(source, target)
    except (OSError, Failure):
        if there is not None and look(target) is None:
            transfer(kept, target)
        raise
    return item(path=target.path, source=source.path, bytes=size, items=items, **more)


def _failed(path: object, exc: OSError | Failure) -> dict[str, Any]:
    failed = from_exception(exc)
    code, detail = (failed.code, failed.detail) if failed else ("internal", "")
    return failed_item(code, detail, path=shown(path))
