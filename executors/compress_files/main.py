"""Pack files and folders into a new archive, zip or tar.gz. The originals stay where they are.

Links are left out; so is the trash. A name that is taken gets a number, so nothing is replaced.
"""

from __future__ import annotations

import gzip
import os
import stat
import tarfile
import time
import zipfile

from executors._sdk import making
from executors._sdk.archives import Sink
from executors._sdk.files import arg_paths, kind_of, locate, look, opened, shown, state_of
from executors._sdk.result import Failure, done, failed_item, from_exception
from executors._sdk.walking import Walk
from executors._sdk.writing import chunks_of, missing_folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.files import Place

KINDS = {"zip": "zip", "tar.gz": "tar.gz", "tgz": "tar.gz", "tar": "tar"}
MOST_FILES = 50_000
# Archives of so many bytes are made for a preview too, to tell afterwards whether they came to be.
_MADE_AHEAD = 32 << 20
_NAMES = {"it": "Archivio", "en": "Archive"}
_EARLIEST = (1980, 1, 1, 0, 0, 0)


def run(call: Call) -> dict[str, Any]:
    """One entry: `path`, `bytes` of the archive, `items` in it, `original_bytes`. `left_out`
    counts links and what is no file; what could not be read is an entry that failed."""
    packed = _Packed(call)
    if not packed.items:
        return done(packed.failed, left_out=packed.left_out)
    spot, kind = _spot(call, packed)
    entry = making.put(call, spot.place, packed.archive(kind))
    entry |= {
        "name": spot.place.name,
        "items": packed.count,
        "original_bytes": packed.size,
    }
    if spot.wanted is not None:
        entry["wanted"] = spot.wanted.path
    more = {"left_out": packed.left_out} if packed.left_out else {}
    return done([entry, *packed.failed], **more)


def preview(call: Call) -> dict[str, Any]:
    """The archive that would be made. Raises `Failure` when nothing can be packed."""
    packed = _Packed(call)
    if not packed.items:
        if packed.failed:
            error = packed.failed[0]["error"]
            raise Failure(error["code"], error["detail"], path=packed.failed[0]["path"])
        return making.previewed([])
    spot, kind = _spot(call, packed)
    if packed.size <= _MADE_AHEAD:
        data = b"".join(packed.archive(kind))
        return making.previewed([making.foreseen(call, spot.place, data)], refused=packed.failed)
    missing_folders(spot.place.parent)
    # How large it will be is not known before; that it is there says that it is whole.
    after = {"path": spot.place.path, "exists": True}
    back = {"do": "remove", "path": spot.place.path}
    return making.previewed([(state_of(spot.place, None), after, back)], refused=packed.failed)


def _spot(call: Call, packed: _Packed) -> tuple[making.Spot, str]:
    dest = call.args.get("dest")
    name = dest.rpartition("/")[2].lower() if isinstance(dest, str) else ""
    said = next((ext for ext in KINDS if name.endswith(f".{ext}")), None)
    kind = KINDS.get(call.args.get("format") or said or "zip")
    if kind is None:
        formats = ", ".join(KINDS)
        raise Failure("unsupported_format", f"format is one of {formats}", formats=formats)
    if dest is None:
        # Beside the first of what is packed, under its name.
        first = packed.tops[0]
        alone = len(packed.tops) == 1
        default = _NAMES.get(call.lang, _NAMES["en"])
        stem = first.name.rpartition(".")[0] or first.name if alone else default
        dest = first.parent.child(f"{making.file_name(stem, default)}.{kind}").path
    elif said is None and "." in name[1:] and look(locate(call, dest)) is None:
        dest = f"{dest}.{kind}"
    elif said is not None and KINDS[said] != kind:
        raise Failure("invalid_args", f"the name says {said}, the format {kind}")
    return making.spot_for(call, dest, ext=kind, default=_NAMES.get(call.lang, "")), kind


class _Packed:
    """What goes into an archive: `items` as pairs of a name and a place, in order."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.items: list[tuple[str, Place, os.stat_result]] = []
        self.failed: list[dict[str, Any]] = []
        self.tops: list[Place] = []
        self.left_out = self.size = self.count = 0
        self._names: set[str] = set()
        for path in dict.fromkeys(arg_paths(call)):
            try:
                self._add(path)
            except (OSError, Failure) as exc:
                failed = from_exception(exc)
                code, detail = (failed.code, failed.detail) if failed else ("internal", "")
                self.failed.append(failed_item(code, detail, path=shown(path)))

    def _add(self, path: object) -> None:
        place = locate(self._call, path)
        info = look(place)
        if info is None:
            raise Failure("not_found", "there is nothing at this path")
        kind = kind_of(info)
        top = self._free(_text(place.name))
        if kind == "file":
            with opened(place):
                pass  # what may not be read is said before anything is written
            self.tops.append(place)
            self._take(top, place, info)
        elif kind == "dir":
            self.tops.append(place)
            self.items.append((f"{top}/", place, info))
            walk = Walk(place, skip=self._call.trash_name, names="all", call=self._call)
            for found in walk:
                inner = "/".join(map(_text, found.place.parts[len(place.parts) :]))
                if found.kind == "dir":
                    self.items.append((f"{top}/{inner}/", found.place, found.info))
                elif found.kind == "file" and found.info.st_nlink == 1:
                    self._take(f"{top}/{inner}", found.place, found.info)
                else:
                    self.left_out += 1
            self.left_out += walk.closed
        else:
            raise Failure("out_of_scope", "links are not followed")

    def _take(self, name: str, place: Place, info: os.stat_result) -> None:
        if self.count >= MOST_FILES:
            raise Failure("too_many", f"at most {MOST_FILES} files go into one archive")
        self.items.append((name, place, info))
        self.count += 1
        self.size += info.st_size

    def _free(self, name: str) -> str:
        """Two things of one name from two folders both go in, the second with a number."""
        stem, dot, ending = name.rpartition(".")
        number = 2
        free = name
        while free in self._names:
            free = f"{stem} {number}.{ending}" if dot and stem else f"{name} {number}"
            number += 1
        self._names.add(free)
        return free

    def archive(self, kind: str) -> Iterator[bytes]:
        """The bytes of the archive as they come to be."""
        return self._zipped() if kind == "zip" else self._tarred(kind)

    def _zipped(self) -> Iterator[bytes]:
        sink = Sink()
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for number, (name, place, info) in enumerate(self.items, 1):
                about = zipfile.ZipInfo(name, _wall_clock(info.st_mtime))
                about.external_attr = (info.st_mode & 0xFFFF) << 16
                if name.endswith("/"):
                    about.external_attr |= 0x10
                    archive.writestr(about, b"")
                else:
                    about.compress_type = zipfile.ZIP_DEFLATED
                    large = info.st_size >= (1 << 31) - 1
                    with (
                        opened(place) as (fd, _),
                        archive.open(about, "w", force_zip64=large) as target,
                    ):
                        for block in chunks_of(fd):
                            target.write(block)
                            yield sink.taken()
                self._call.progress(number, len(self.items))
                yield sink.taken()
        yield sink.taken()

    def _tarred(self, kind: str) -> Iterator[bytes]:
        sink = Sink()
        # Without a moment in its head, so that the same files make the same archive.
        packer = gzip.GzipFile(fileobj=sink, mode="wb", mtime=0) if kind == "tar.gz" else sink
        with tarfile.open(fileobj=packer, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for number, (name, place, info) in enumerate(self.items, 1):
                about = tarfile.TarInfo(name.rstrip("/"))
                about.mtime = int(info.st_mtime)
                about.mode = stat.S_IMODE(info.st_mode) & 0o755
                if name.endswith("/"):
                    about.type = tarfile.DIRTYPE
                    archive.addfile(about)
                else:
                    with opened(place) as (fd, now), os.fdopen(os.dup(fd), "rb") as source:
                        about.size = now.st_size
                        archive.addfile(about, source)
                self._call.progress(number, len(self.items))
                yield sink.taken()
        if packer is not sink:
            packer.close()
        yield sink.taken()


def _text(name: str) -> str:
    """A name as archives hold it; bytes that are no text are shown as such."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _wall_clock(seconds: float) -> tuple[int, int, int, int, int, int]:
    try:
        made = time.gmtime(seconds)[:6]
    except (OverflowError, ValueError, OSError):
        return _EARLIEST
    return made if _EARLIEST <= made < (2108, 1, 1, 0, 0, 0) else _EARLIEST
