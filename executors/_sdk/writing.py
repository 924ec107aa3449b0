"""Changing files beneath a root so that a crash leaves the old or the new, never half of either.

A file is written beside its place under a temporary name, synced, renamed over the place, and the
folder synced. What a write replaces is kept in the trash of the turn first (`trash`).
"""

from __future__ import annotations

import binascii
import errno
import os
import stat
from contextlib import suppress

from executors._sdk.files import TEMPORARY, Place, check_regular, check_single, folder, look
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK = 1 << 20


def write_file(place: Place, chunks: Iterable[bytes], *, mode: int, replace: bool) -> int:
    """Write a whole file; the number of bytes. Its folder must exist.

    With `replace` whatever file stands there is replaced in one instant; without, the name must be
    free at the moment the file appears, else `FileExistsError`. `mode`: permission bits of the new
    file. Done twice it leaves the same; what an interrupted write of the same place left behind is
    removed.
    """
    with folder(place.parent, listing=True) as fd:
        temporary = f"{TEMPORARY}{binascii.crc32(os.fsencode(place.name)):08x}"
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=fd)
        try:
            written = _write_new(temporary, chunks, mode, fd)
            if replace:
                os.rename(temporary, place.name, src_dir_fd=fd, dst_dir_fd=fd)
            else:
                _rename_to_free(temporary, place.name, fd, fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=fd)
            raise
        os.fsync(fd)
        return written


def _write_new(name: str, chunks: Iterable[bytes], mode: int, folder_fd: int) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    # The cage refuses changes of mode, so the file is made with the one it is to have.
    umask = os.umask(0)
    try:
        fd = os.open(name, flags, mode, dir_fd=folder_fd)
    finally:
        os.umask(umask)
    try:
        written = 0
        for chunk in chunks:
            rest = memoryview(chunk)
            while rest:
                done = os.write(fd, rest)
                rest = rest[done:]
                written += done
        os.fsync(fd)
        return written
    finally:
        os.close(fd)


def rename(source: Place, target: Place) -> None:
    """Give a file, link or folder another name; the target's folder must exist and its name be
    free (`FileExistsError` else). Raises `OSError` EXDEV when they are on different file systems.
    """
    with (
        folder(source.parent, listing=True) as old,
        folder(target.parent, listing=True) as new,
    ):
        info = os.stat(source.name, dir_fd=old, follow_symlinks=False)
        if os.fstat(new).st_dev != info.st_dev:
            raise OSError(errno.EXDEV, "different file systems")  # before a name is taken for it
        _rename_to_free(source.name, target.name, old, new, is_dir=stat.S_ISDIR(info.st_mode))
        os.fsync(new)
        os.fsync(old)


def _rename_to_free(
    source: str, target: str, source_fd: int, target_fd: int, *, is_dir: bool = False
) -> None:
    # rename() replaces silently. Taking the name first, exclusively, makes a file that appears in
    # between an error instead of a loss.
    if is_dir:
        os.mkdir(target, 0o700, dir_fd=target_fd)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(target, flags, 0o600, dir_fd=target_fd))
    try:
        os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
    except BaseException:
        with suppress(OSError):
            if is_dir:
                os.rmdir(target, dir_fd=target_fd)
            else:
                os.unlink(target, dir_fd=target_fd)
        raise


def missing_folders(place: Place) -> list[Place]:
    """The folders that would have to be made so that `place` is one, outermost first.

    Raises `Failure` not_directory when a file stands on the way, out_of_scope for a link.
    """
    missing: list[Place] = []
    here = place
    while True:
        info = look(here)
        if info is not None:
            if stat.S_ISLNK(info.st_mode):
                raise Failure("out_of_scope", "a link stands on the way")
            if not stat.S_ISDIR(info.st_mode):
                raise Failure("not_directory", "a file stands where a folder should be")
            return missing[::-1]
        if not here.parts:
            raise Failure("not_found", "the open folder itself is missing")
        missing.append(here)
        here = here.parent


def make_folders(place: Place, *, mode: int = 0o777) -> list[Place]:
    """Make the folder at `place` and those above it; the ones that were made, outermost first.

    What another process makes meanwhile is taken as it is. Raises like `missing_folders`.
    """
    made = missing_folders(place)
    for one in made:
        with folder(one.parent, listing=True) as fd:
            with suppress(FileExistsError):
                os.mkdir(one.name, mode, dir_fd=fd)
            os.fsync(fd)
    return made


def check_writable(place: Place, info: os.stat_result | None, *, links: int = 1) -> None:
    """Raise `Failure` when `info` is no ordinary file with a single name."""
    if not place.parts:
        raise Failure("is_directory", "this is a folder")
    if info is None:
        return
    check_regular(info)
    check_single(info, links=links)


def chunks_of(fd: int) -> Iterator[bytes]:
    """The bytes of an open file from its start, in blocks."""
    at = 0
    while block := os.pread(fd, BLOCK, at):
        yield block
        at += len(block)


def sha256_of(chunks: Iterable[bytes]) -> str:
    import hashlib  # only previews need it, and it is slow to load

    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
