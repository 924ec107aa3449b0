"""Putting things elsewhere: into the trash of a turn, or to another place, also on another disk.

The trash of a root is `<root>/<trash_name>/<turn>/` with the path kept beneath it, so what was
deleted or replaced can be put back where it was.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress

from executors._sdk.files import Place, folder, kind_of, look, opened
from executors._sdk.result import Failure
from executors._sdk.walking import Walk
from executors._sdk.writing import chunks_of, make_folders, rename, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from executors._sdk.call import Call


def trash_place(call: Call, place: Place, *, taken: Collection[str] = ()) -> Place:
    """Where `place` goes when it is thrown away: the first place that is free.

    `taken`: paths that are to be regarded as not free (given out already by a preview).
    """
    turn = re.sub(r"[^A-Za-z0-9_-]", "", call.turn_id)[:64] or "turn"
    number = 1
    while True:
        shelf = () if number == 1 else (f"~{number}",)
        target = Place(place.root, (call.trash_name, turn, *shelf, *place.parts))
        if target.path not in taken and _is_free(target):
            return target
        number += 1


def _is_free(place: Place) -> bool:
    """Nothing stands there, and only folders stand on the way."""
    here = place
    while (info := look(here)) is None:
        if not here.parts:
            raise Failure("not_found", "the open folder itself is missing")
        here = here.parent
    return here is not place and stat.S_ISDIR(info.st_mode)


def to_trash(call: Call, place: Place) -> Place:
    """Move the thing at `place` into the trash; where it is now."""
    target = trash_place(call, place)
    make_folders(target.parent, mode=0o700)
    transfer(place, target)
    return target


def keep_copy(call: Call, place: Place) -> Place:
    """Keep the file at `place` in the trash while it stays where it is: its second name there
    where the file system has such, else a copy. A second call of the same turn that finds its own
    second name (after a crash) keeps that one.
    """
    info = look(place)
    kept = own_copy(call, place, info)
    if kept is not None:
        return kept
    target = trash_place(call, place)
    make_folders(target.parent, mode=0o700)
    try:
        with folder(place.parent) as old, folder(target.parent) as new:
            os.link(place.name, target.name, src_dir_fd=old, dst_dir_fd=new, follow_symlinks=False)
    except OSError as exc:
        if exc.errno not in (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        _copy_file(place, target)
    return target


def drop_copy(place: Place, kept: Place, was: os.stat_result) -> None:
    """Take away what `keep_copy` kept of a file that then was not replaced: with a second name it
    would be read no more. `was`: the file as it was. One that was replaced keeps its copy."""
    now = look(place)
    if now is None or (now.st_dev, now.st_ino) != (was.st_dev, was.st_ino):
        return
    with suppress(OSError):
        with folder(kept.parent) as inside:
            os.unlink(kept.name, dir_fd=inside)
        # Folders that hold nothing else, up to the trash itself.
        for depth in range(len(kept.parts) - 1, 0, -1):
            empty = Place(kept.root, kept.parts[:depth])
            with folder(empty.parent) as above:
                os.rmdir(empty.name, dir_fd=above)


def own_copy(call: Call, place: Place, info: os.stat_result | None) -> Place | None:
    """The second name of this very file that an interrupted `keep_copy` of this turn left."""
    if info is None or info.st_nlink != 2:
        return None
    first = trash_place(call, place)
    if len(first.parts) == len(place.parts) + 2:  # the first shelf is free, so nothing was kept
        return None
    kept = Place(place.root, (*first.parts[:2], *place.parts))
    there = look(kept)
    if there is not None and (there.st_dev, there.st_ino) == (info.st_dev, info.st_ino):
        return kept
    return None


def transfer(source: Place, target: Place) -> None:
    """Move a file, link or folder to a free place whose folder exists, also across file systems.

    Across them everything is copied and synced under the new name before the old one is removed.
    Raises `FileExistsError` when the place is taken, `Failure` not_regular for a FIFO, a socket or
    a device that would have to be copied; then nothing has changed.
    """
    try:
        rename(source, target)
        return
    except OSError as exc:
        if exc.errno != errno.EXDEV:
            raise
    info = look(source)
    if info is None:
        raise FileNotFoundError(errno.ENOENT, "not found")
    if look(target) is not None:
        raise FileExistsError(errno.EEXIST, "already exists")
    try:
        _copy(source, info, target)
    except BaseException:
        with suppress(OSError, Failure):
            remove(target)
        raise
    try:
        remove(source)
    except OSError as exc:
        detail = "copied whole, but the old one could not be removed"
        raise Failure("write_failed", detail) from exc


def _copy(source: Place, info: os.stat_result, target: Place) -> None:
    match kind_of(info):
        case "file":
            _copy_file(source, target)
        case "link":
            with folder(source.parent) as old, folder(target.parent) as new:
                os.symlink(os.readlink(source.name, dir_fd=old), target.name, dir_fd=new)
        case "dir":
            _copy_folder(source, info, target)
        case _:
            raise Failure("not_regular", "this is no ordinary file")


def _copy_file(source: Place, target: Place) -> None:
    with opened(source) as (fd, info):
        write_file(target, chunks_of(fd), mode=stat.S_IMODE(info.st_mode) & 0o777, replace=False)
        after = os.fstat(fd)
        if (after.st_size, after.st_mtime_ns) != (info.st_size, info.st_mtime_ns):
            raise Failure("write_failed", "the file changed while it was copied")
    # By descriptor: the cage refuses to set times by name.
    with suppress(PermissionError), opened(target) as (fd, _):
        os.utime(fd, ns=(info.st_atime_ns, info.st_mtime_ns))


def _copy_folder(source: Place, info: os.stat_result, target: Place) -> None:
    _make_folder(target, info)
    walk = Walk(source, skip="", names="all")
    for one in walk:
        there = target.child(*one.place.parts[len(source.parts) :])
        if one.kind == "dir":
            _make_folder(there, one.info)
        else:
            _copy(one.place, one.info, there)
    if walk.closed:
        raise Failure("permission_denied", "part of the folder cannot be read")


def _make_folder(place: Place, info: os.stat_result) -> None:
    with folder(place.parent) as fd:
        os.mkdir(place.name, stat.S_IMODE(info.st_mode) & 0o777 | 0o700, dir_fd=fd)


def remove(place: Place) -> None:
    """Delete for good what stands at `place`, with all that is in it. Only for what was copied."""
    info = look(place)
    if info is None:
        return
    with folder(place.parent) as parent:
        if not stat.S_ISDIR(info.st_mode):
            os.unlink(place.name, dir_fd=parent)
            return
    folders = [place]
    for one in Walk(place, skip="", names="all"):
        if one.kind == "dir":
            folders.append(one.place)
            continue
        with folder(one.place.parent) as fd:
            os.unlink(one.place.name, dir_fd=fd)
    for here in reversed(folders):
        with folder(here.parent) as fd:
            os.rmdir(here.name, dir_fd=fd)
