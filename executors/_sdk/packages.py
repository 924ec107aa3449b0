"""Documents that are packages (a ZIP of XML): reading one whole, and whether it may be opened."""

from __future__ import annotations

import io
import os
import zipfile

from executors._sdk.result import Failure

MOST_BYTES = 128 << 20
# What a package may grow to, and how many times its size: more is no document but a bomb.
MOST_UNPACKED = 768 << 20
_MOST_GROWTH = 150
_OLE = b"\xd0\xcf\x11\xe0"


def whole(fd: int, size: int) -> bytes:
    """All bytes of an open file of at most `MOST_BYTES`."""
    if size > MOST_BYTES:
        raise Failure("too_large", f"files up to {MOST_BYTES >> 20} MiB are read")
    pieces, at = [], 0
    while piece := os.pread(fd, 1 << 20, at):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def check_package(data: bytes) -> None:
    """Raise `Failure` for a package that no program should open: too_large for one that would
    grow beyond measure, password_needed for one that is locked, damaged for none at all."""
    if data.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in data:
            raise Failure("password_needed", "the file is locked with a password")
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            lists_secrets = any(m.filename == "META-INF/manifest.xml" for m in members)
            manifest = b""
            if lists_secrets and archive.getinfo("META-INF/manifest.xml").file_size < 1 << 20:
                manifest = archive.read("META-INF/manifest.xml")
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError) as exc:
        raise Failure("damaged", f"no readable file: {type(exc).__name__}") from exc
    unpacked = sum(member.file_size for member in members)
    if unpacked > MOST_UNPACKED or unpacked > max(len(data), 1 << 16) * _MOST_GROWTH:
        raise Failure("too_large", "what is packed in it grows beyond measure")
    if b"encryption-data" in manifest or any(member.flag_bits & 1 for member in members):
        raise Failure("password_needed", "the document is locked with a password")


def without_moments(data: bytes) -> bytes:
    """The same package with members that carry no moment: the same content, the same bytes."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w") as new:
        for about in old.infolist():
            plain = zipfile.ZipInfo(about.filename)
            plain.compress_type = about.compress_type
            new.writestr(plain, old.read(about))
    return target.getvalue()
