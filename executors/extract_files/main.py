"""Unpack archives (zip, tar, tar.gz …), each into a new folder of its own: all of it or nothing.

Nothing that exists is touched, and nothing lands outside the new folder: names that lead out,
links and devices are left out and counted.
"""

from __future__ import annotations

import binascii
import os
from contextlib import suppress

from executors._sdk.archives import Archive
from executors._sdk.files import (
    TEMPORARY,
    Place,
    arg_paths,
    folder,
    locate,
    look,
    opened,
    shown,
    state_of,
)
from executors._sdk.result import Failure, done, failed_item, from_exception, item
from executors._sdk.trash import remove
from executors._sdk.writing import make_folders, missing_folders, rename, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.archives import Member
    from executors._sdk.call import Call

_ENDINGS = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".txz", ".zip", ".tar", ".gz")


def run(call: Call) -> dict[str, Any]:
    """One entry per archive: `path` of the new folder, `archive`, `items` and `bytes` in it;
    `left_out` counts what was not unpacked, `first_left_out` names one."""
    entries = []
    taken: set[str] = set()
    for path in dict.fromkeys(arg_paths(call)):
        try:
            entries.append(_extract(call, path, taken))
        except (OSError, Failure) as exc:
            failed = from_exception(exc)
            code, detail = (failed.code, failed.detail) if failed else ("internal", "")
            entries.append(failed_item(code, detail, path=shown(path)))
    left_out = sum(entry.get("left_out", 0) for entry in entries)
    return done(
        entries,
        bytes=sum(entry.get("bytes", 0) for entry in entries),
        **({"left_out_in_all": left_out} if left_out else {}),
    )


def preview(call: Call) -> dict[str, Any]:
    """The folders that would be made. Raises `Failure` when nothing can be unpacked."""
    before, after, undo, refused = [], [], [], []
    taken: set[str] = set()
    total = 0
    for path in dict.fromkeys(arg_paths(call)):
        try:
            source = locate(call, path)
            with opened(source) as (fd, info), os.fdopen(os.dup(fd), "rb") as file:
                members = Archive(file, info.st_size).members()
            target = _target(call, source, taken)
            missing_folders(target.parent)
        except (OSError, Failure) as exc:
            failed = from_exception(exc)
            code, detail = (failed.code, failed.detail) if failed else ("internal", "")
            refused.append(failed_item(code, detail, path=shown(path)))
            continue
        taken.add(target.path)
        total += sum(member.size for member in members if member.parts)
        before.append(state_of(target, None))
        after.append({"path": target.path, "exists": True, "kind": "dir"})
        undo.append({"do": "remove", "path": target.path})
    if refused and not after:
        error = refused[0]["error"]
        raise Failure(error["code"], error["detail"], path=refused[0]["path"])
    return {
        "targets": [one["path"] for one in after],
        "before": before,
        "after": after,
        "bytes": total,
        "count": len(after),
        "undo": undo,
        "refused": refused,
    }


def _target(call: Call, source: Place, taken: set[str]) -> Place:
    """The new folder: `dest` when that is free, in it when it is a folder, else beside the
    archive, under its name."""
    lower = source.name.lower()
    ending = next((end for end in _ENDINGS if lower.endswith(end)), "")
    stem = source.name[: len(source.name) - len(ending)] or source.name
    if stem == source.name:
        stem += " 1"
    dest = call.args.get("dest")
    if dest is None:
        place = source.parent.child(stem)
    else:
        place = locate(call, dest.rstrip("/"))
        if not place.parts or look(place) is not None or place.path in taken:
            place = place.child(stem)
    number = 1
    free = place
    while look(free) is not None or free.path in taken:
        number += 1
        free = place.parent.child(f"{place.name} {number}")
        if number > 999:
            raise Failure("already_exists", "the name is taken, and so are those with a number")
    return free


def _extract(call: Call, path: object, taken: set[str]) -> dict[str, Any]:
    source = locate(call, path)
    with opened(source) as (fd, info), os.fdopen(os.dup(fd), "rb") as file:
        archive = Archive(file, info.st_size)
        members = archive.members()
        target = _target(call, source, taken)
        make_folders(target.parent)
        # Beside its place under a name of ours, then renamed: a kill leaves all of it or nothing.
        name = f"{TEMPORARY}{binascii.crc32(os.fsencode(target.name)):08x}"
        making_of = target.parent.child(name)
        with suppress(OSError, Failure):
            remove(making_of)
        try:
            with folder(target.parent) as parent:
                os.mkdir(name, 0o777, dir_fd=parent)
            written, size, left_out, first = _unpack(call, archive, making_of, len(members))
            if left_out and not written:
                raise Failure("damaged", "nothing of what is packed in it may be unpacked")
            rename(making_of, target)
        except BaseException:
            with suppress(OSError, Failure):
                remove(making_of)
            raise
    taken.add(target.path)
    entry = item(path=target.path, archive=source.path, items=written, bytes=size)
    if left_out:
        entry |= {"left_out": left_out, "first_left_out": first}
    return entry


def _unpack(
    call: Call, archive: Archive, top: Place, total: int
) -> tuple[int, int, int, str | None]:
    written = size = left_out = 0
    first: str | None = None
    umask = os.umask(0)
    os.umask(umask)
    bits = 0o666 & ~umask
    for number, (member, blocks) in enumerate(archive.contents(), 1):
        place = _place_of(top, member)
        if place is None or not _made(place, is_dir=member.is_dir):
            left_out += 1
            first = first or member.shown
            continue
        if not member.is_dir:
            try:
                size += write_file(place, blocks, mode=bits, replace=False)
            except FileExistsError:
                left_out += 1
                first = first or member.shown
                continue
            written += 1
        call.progress(number, total)
    return written, size, left_out, first


def _place_of(top: Place, member: Member) -> Place | None:
    return None if member.parts is None else top.child(*member.parts)


def _made(place: Place, *, is_dir: bool) -> bool:
    """Make the folders of a member; whether they are folders."""
    try:
        make_folders(place if is_dir else place.parent)
    except Failure:
        return False
    return True
