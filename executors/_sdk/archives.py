"""Archives: what one may bring, under which names, and how much; and making one as it is written.

What an archive says of its members was written by a stranger: names lead nowhere but into one new
folder, links and devices are left out, and no more comes out than may.
"""

from __future__ import annotations

import io
import os
import re
import stat
import tarfile
import zipfile
import zlib

from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

MOST_MEMBERS = 20_000
MOST_UNPACKED = 8 << 30
# Texts shrink to a twentieth; a thousandth is a bomb. Small archives may.
MOST_GROWTH = 200
_SMALL = 64 << 20
_BLOCK = 1 << 20
_MOST_NAME = 255
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, ValueError,
    RuntimeError, UnicodeDecodeError, OSError,
)  # fmt: skip
_KINDS = "archives are zip, tar, tar.gz, tar.bz2 or tar.xz"
_DRIVE = re.compile(r"^[A-Za-z]:")


class Member:
    """One thing in an archive. `parts`: its plain name; None: one that leads astray, see `why`.
    `size` in bytes as far as it is known."""

    __slots__ = ("is_dir", "parts", "shown", "size", "why")

    def __init__(
        self, name: str, size: int, *, is_dir: bool = False, why: str | None = None
    ) -> None:
        self.shown = name.encode("utf-8", "replace").decode()[:200]
        self.size = size
        self.is_dir = is_dir
        self.parts, self.why = (None, why) if why else parts_of(name)


def parts_of(name: str) -> tuple[tuple[str, ...] | None, str | None]:
    """The components of a member's name, or why it is none: it leads out, or cannot be a name."""
    plain = name.replace("\\", "/")
    parts = [part for part in plain.split("/") if part not in ("", ".")]
    if plain.startswith("/") or _DRIVE.match(plain) or ".." in parts or "\0" in plain:
        return None, "out_of_scope"
    if not parts:
        return None, "bad_text"
    if any(len(os.fsencode(part)) > _MOST_NAME for part in parts):
        return None, "name_too_long"
    return tuple(parts), None


class Archive:
    """An open archive, ZIP or tar (plain, gzip, bzip2 or xz), told by its bytes.

    Raises `Failure`: damaged, unsupported, password_needed, too_large.
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._size = size
        self._file = file
        head = file.read(8)
        file.seek(0)
        if head.startswith((b"Rar!", b"7z\xbc\xaf")):
            raise Failure("unsupported", _KINDS)
        try:
            self._zip = zipfile.ZipFile(file) if head.startswith(b"PK") else None
        except _BROKEN as exc:
            raise _damaged(exc) from exc

    def members(self) -> list[Member]:
        """All members, in order; what they would take is checked first."""
        try:
            found = list(self._in_tar() if self._zip is None else self._in_zip(self._zip))
        except _BROKEN as exc:
            raise _damaged(exc) from exc
        self._check(sum(member.size for member in found), len(found))
        return found

    def _check(self, unpacked: int, members: int) -> None:
        if members > MOST_MEMBERS:
            raise Failure("too_many", f"an archive may hold {MOST_MEMBERS} files")
        grown = unpacked > _SMALL and unpacked > self._size * MOST_GROWTH
        if unpacked > MOST_UNPACKED or grown:
            raise Failure("too_large", "what is packed in it grows beyond measure")

    def _in_zip(self, archive: zipfile.ZipFile) -> Iterator[Member]:
        for about in archive.infolist():
            if about.flag_bits & 1:
                raise Failure("password_needed", "the archive is locked with a password")
            kind = stat.S_IFMT(about.external_attr >> 16)
            odd = kind not in (0, stat.S_IFREG, stat.S_IFDIR)
            yield Member(
                _zip_name(about),
                about.file_size,
                is_dir=about.is_dir(),
                why="out_of_scope" if odd else None,
            )

    def _in_tar(self) -> Iterator[Member]:
        with self._tar() as archive:
            total = number = 0
            for number, about in enumerate(archive, 1):
                total += about.size
                # Reading on is unpacking: what grows beyond measure is not read to its end.
                self._check(total, number)
                plain = about.isreg() or about.isdir()
                yield Member(
                    _tar_name(about.name),
                    about.size if about.isreg() else 0,
                    is_dir=about.isdir(),
                    why=None if plain else "out_of_scope",
                )
            if not number and not self._is_empty_tar():
                raise Failure("unsupported", _KINDS)

    def _is_empty_tar(self) -> bool:
        self._file.seek(0)
        return self._size >= 1024 and not self._file.read(1024).strip(b"\0")

    def _tar(self) -> tarfile.TarFile:
        self._file.seek(0)
        try:
            return tarfile.open(fileobj=self._file, mode="r:*", errors="surrogateescape")
        except tarfile.ReadError as exc:
            raise Failure("unsupported", _KINDS) from exc

    def contents(self) -> Iterator[tuple[Member, Iterator[bytes]]]:
        """The members again, each file with its bytes, which must be read before going on.

        Raises `Failure` damaged when a member holds other bytes than it says, too_large when it
        holds more.
        """
        try:
            if self._zip is not None:
                for about, member in zip(
                    self._zip.infolist(), list(self._in_zip(self._zip)), strict=True
                ):
                    if member.parts is None or member.is_dir:
                        yield member, iter(())
                        continue
                    with self._zip.open(about) as source:
                        yield member, _limited(source, member.size)
                return
            with self._tar() as archive:
                for tarred in archive:
                    plain = tarred.isreg()
                    why = None if plain or tarred.isdir() else "out_of_scope"
                    member = Member(
                        _tar_name(tarred.name), tarred.size, is_dir=tarred.isdir(), why=why
                    )
                    body = archive.extractfile(tarred) if plain and member.parts else None
                    yield member, iter(()) if body is None else _limited(body, tarred.size)
        except _BROKEN as exc:
            raise _damaged(exc) from exc


def _damaged(exc: Exception) -> Exception:
    """What an archive that cannot be read is told as; faults of the disk are told as such."""
    if isinstance(exc, OSError) and exc.errno is not None:
        return exc
    return Failure("damaged", f"no readable archive: {type(exc).__name__}")


def _limited(source: IO[bytes], size: int) -> Iterator[bytes]:
    left = size
    while True:
        try:
            block = source.read(_BLOCK)
        except _BROKEN as exc:
            raise _damaged(exc) from exc
        if not block:
            return
        left -= len(block)
        if left < 0:
            raise Failure("too_large", "a file in the archive is larger than it says")
        yield block


def _zip_name(about: zipfile.ZipInfo) -> str:
    """The name as text. Names that do not say that they are UTF-8 are read as if of an old PC;
    most are UTF-8 all the same."""
    name = about.filename
    if about.flag_bits & 0x800 or name.isascii():
        return name
    try:
        raw = name.encode("cp437")
    except UnicodeEncodeError:
        return name
    for codec in ("utf-8", "cp850"):
        try:
            return raw.decode(codec)
        except UnicodeDecodeError:
            continue
    return name


def _tar_name(name: str) -> str:
    """The name as text; bytes that are no UTF-8 are read as Western European."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape").decode("cp1252", "replace")
    return name


# -- making one -----------------------------------------------------------------------------------


class Sink(io.RawIOBase):
    """Where an archive is written to, to be taken on as it grows."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        return self._at

    def write(self, data: Any, /) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._at += len(piece)
        return len(piece)

    def taken(self) -> bytes:
        """What was written since the last time."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
