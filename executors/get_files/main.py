"""What is known of files without reading them through: size, dates, kind; of photographs also
when, where and with what they were taken."""

from __future__ import annotations

import mimetypes
import os

from executors._sdk.files import (
    Place,
    arg_paths,
    folder,
    kind_of,
    locate,
    look,
    moment,
    opened,
    shown,
)
from executors._sdk.result import Failure, done, failed_item, from_exception, item
from executors._sdk.walking import tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

_PICTURES = frozenset("jpg jpeg png gif webp bmp tif tiff".split())
_MOST_PICTURE = 256 << 20


def run(call: Call) -> dict[str, Any]:
    """One entry per path: `name`, `size`, `modified`, `kind`, `media_type`; of a folder `items`
    and the size of all in it; of a picture `width`, `height`, `taken`, `camera`, `lat`, `lon`
    where it says so."""
    paths = arg_paths(call)
    entries = []
    for number, path in enumerate(paths, 1):
        entries.append(_about(call, path, alone=len(paths) == 1))
        if len(paths) > 1:
            call.progress(number, len(paths))
    return done(entries, total_bytes=sum(entry.get("size") or 0 for entry in entries))


def _about(call: Call, path: object, *, alone: bool) -> dict[str, Any]:
    try:
        place = locate(call, path)
        info = look(place)
        if info is None:
            raise Failure("not_found", "there is nothing at this path")
        kind = kind_of(info)
        entry = item(path=place.path, name=place.name, kind=kind, size=info.st_size)
        entry["modified"] = moment(info.st_mtime)
        if kind == "dir":
            # How far one folder is; of several things it is told how many of them are done.
            teller = call if alone else None
            counted = tally(place, info, skip=call.trash_name, teller=teller)
            entry["items"], entry["size"] = counted
            if entry["items"] == 1 and not _holds_something(place):
                entry["items"] = 0
        elif kind == "file":
            entry["media_type"] = mimetypes.guess_type(place.name)[0] or "application/octet-stream"
            entry |= _picture(place, info.st_size)
    except (OSError, Failure) as exc:
        failed = from_exception(exc)
        code, detail = (failed.code, failed.detail) if failed else ("internal", "")
        return failed_item(code, detail, path=shown(path), name=shown(path).rsplit("/", 1)[-1])
    return entry


def _holds_something(place: Place) -> bool:
    with folder(place, listing=True) as fd, os.scandir(fd) as listing:
        return any(True for _ in listing)


def _picture(place: Place, size: int) -> dict[str, Any]:
    if place.name.rpartition(".")[2].lower() not in _PICTURES or size > _MOST_PICTURE:
        return {}
    from executors._sdk.pictures import facts_of

    with opened(place) as (fd, _), os.fdopen(os.dup(fd), "rb") as file:
        return facts_of(file)
