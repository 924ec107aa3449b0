"""Files that a call makes of what it was given: where they go, and how they come to be, whole or
not at all.

A new file never takes another one's place: when its name is taken it gets a number. What is
replaced on purpose is kept in the trash of the turn first.
"""

from __future__ import annotations

import os
import re
import stat

from executors._sdk.files import Place, locate, look, opened, state_of
from executors._sdk.result import Failure, item
from executors._sdk.trash import drop_copy, keep_copy, own_copy, trash_place
from executors._sdk.writing import (
    Seen,
    check_writable,
    chunks_of,
    make_folders,
    missing_folders,
    sha256_of,
    write_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from executors._sdk.call import Call

_NOT_IN_NAMES = re.compile(r'[/\\:*?"<>|\x00-\x1f\x7f]+')
_MOST_NAME = 120
_MOST_NUMBER = 999


class Spot:
    """Where a new file goes. `wanted`: the place that was asked for, when it was taken."""

    __slots__ = ("place", "wanted")

    def __init__(self, place: Place, wanted: Place | None = None) -> None:
        self.place = place
        self.wanted = wanted


def file_name(title: str, default: str) -> str:
    """A title as the name of a file, without an ending."""
    name = " ".join(_NOT_IN_NAMES.sub(" ", title).split()).strip(" .")
    return name.encode("utf-8", "replace").decode()[:_MOST_NAME].strip(" .") or default


def spot_for(
    call: Call,
    path: object,
    *,
    ext: str,
    title: str = "",
    default: str = "",
    replace: bool = False,
    taken: Collection[str] = (),
) -> Spot:
    """Where the file that `path` asks for goes: there, with `ext` where it has no ending; into it
    when it is a folder; without a path into the first open folder, named by its title.

    Unless `replace`, a name that is taken (on disk, or in `taken`) gets a number behind it.
    Raises `Failure` as `locate`, and already_exists when a thousand names are taken.
    """
    own = file_name(title, default or ext) + f".{ext}"
    if path is None:
        place = locate(call, f"{call.roots[0].rstrip('/')}/{own}")
    else:
        place = locate(call, path)
        info = look(place)
        if not place.parts or (info is not None and stat.S_ISDIR(info.st_mode)):
            place = place.child(own)
        elif "." not in place.name[1:]:
            place = place.parent.child(f"{place.name}.{ext}")
    if replace or (look(place) is None and place.path not in taken):
        return Spot(place)
    stem, dot, ending = place.name.rpartition(".")
    if stem.endswith(".tar"):
        stem, ending = stem[:-4], f"tar.{ending}"
    for number in range(2, _MOST_NUMBER):
        name = f"{stem} {number}.{ending}" if dot and stem else f"{place.name} {number}"
        other = place.parent.child(name)
        if other.path not in taken and look(other) is None:
            return Spot(other, place)
    raise Failure("already_exists", "the name is taken, and so are those with a number")


def foreseen(call: Call, place: Place, data: bytes) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """What `put` would do, for a preview: the place before and after it, and the way back."""
    info = look(place)
    size, digest = len(data), sha256_of([data])
    after: dict[str, Any] = {"path": place.path, "exists": True, "size": size, "sha256": digest}
    if info is None:
        missing_folders(place.parent)
        return state_of(place, None), after, {"do": "remove", "path": place.path}
    links = _links(call, place, info)
    check_writable(place, info, links=links)
    with opened(place, links=links) as (fd, _):
        old = sha256_of(chunks_of(fd))
    after["kept"] = trash_place(call, place).path
    back = {"do": "restore", "from": after["kept"], "to": place.path}
    return state_of(place, info, sha256=old), after, back


def put(
    call: Call,
    place: Place,
    chunks: Iterable[bytes],
    *,
    since: Seen | None = None,
    **facts: Any,
) -> dict[str, Any]:
    """Write the file, and the entry about it: `path`, `bytes`, `created`, and `kept` where an
    older one was replaced. A new file takes its name exclusively: one that appears meanwhile
    survives (`Failure` already_exists). `since`: as of `write_file`.
    """
    info = look(place)
    if since is not None:
        since.check(info)
    if info is None:
        make_folders(place.parent)
        umask = os.umask(0)
        os.umask(umask)
        size = write_file(place, chunks, mode=0o666 & ~umask, replace=False)
        return item(path=place.path, bytes=size, created=True, **facts)
    links = _links(call, place, info)
    check_writable(place, info, links=links)
    with opened(place, links=links) as (_, now):
        kept: list[Place] = []
        try:
            mode = stat.S_IMODE(now.st_mode) & 0o777
            size = write_file(
                place, chunks, mode=mode, replace=True, since=since,
                keep=lambda: kept.append(keep_copy(call, place)),
            )  # fmt: skip
        except BaseException:
            for copy in kept:
                drop_copy(place, copy, now)
            raise
    return item(path=place.path, bytes=size, created=False, kept=kept[0].path, **facts)


def previewed(
    made: list[tuple[dict[str, Any], dict[str, Any], Any]], **more: Any
) -> dict[str, Any]:
    """The preview of several files that `foreseen` has looked at."""
    return {
        "targets": [after["path"] for _, after, _ in made],
        "before": [before for before, _, _ in made],
        "after": [after for _, after, _ in made],
        "bytes": sum(after.get("size") or 0 for _, after, _ in made),
        "count": len(made),
        "undo": [back for _, _, back in made],
        **more,
    }


def _links(call: Call, place: Place, info: os.stat_result) -> int:
    """How many names a file may have: one more when an interrupted write of this turn kept it."""
    return 2 if own_copy(call, place, info) else 1
