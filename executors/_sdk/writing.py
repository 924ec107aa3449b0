"""Changing files beneath a root so that a crash leaves the old or the new, never half of either.

A file is written beside its place under a temporary name, synced, renamed over the place, and the
folder synced. What a write replaces is kept in the trash of the turn first (`trash`).
"""

from __future__ import annotations

import binascii
import errno
import fcntl
import os
import stat
import time
from contextlib import contextmanager, suppress

from executors._sdk.files import TEMPORARY, Place, check_regular, check_single, folder, look
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    _Done = TypeVar("_Done")

BLOCK = 1 << 20
_MOST_AT_ONCE = 16
_TRIES = 50
_INSTANT_S = 0.002


def write_file(
    place: Place,
    chunks: Iterable[bytes],
    *,
    mode: int,
    replace: bool,
    since: Seen | None = None,
    keep: Callable[[], object] | None = None,
) -> int:
    """Write a whole file; the number of bytes. Its folder must exist.

    With `replace` whatever file stands there is replaced in one instant; without, the name must be
    free at the moment the file appears, else `FileExistsError`. `mode`: permission bits of the new
    file. `since`: what the new bytes were made from; when something else stands there by then,
    nothing is replaced (`Failure` changed_since). `keep` is called just before the new file takes
    its place: what stands there has two names only for that instant.

    Done twice it leaves the same; what an interrupted write of the same place left behind is
    removed. Several at once spoil nothing.
    """
    with folder(place.parent, listing=True) as fd:
        temporary, new = _begun(place.name, mode, fd)
        try:
            written = _filled(new, chunks)
            with _alone(fd):
                if since is not None:
                    since.check(_standing(place.name, fd))
                if keep is not None:
                    keep()
                if replace:
                    os.rename(temporary, place.name, src_dir_fd=fd, dst_dir_fd=fd)
                else:
                    _rename_to_free(temporary, place.name, fd, fd)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=fd)
            raise
        finally:
            os.close(new)
        os.fsync(fd)
        return written


class Seen:
    """What stood at a place when it was read, nothing included."""

    __slots__ = ("_then",)

    def __init__(self, info: os.stat_result | None) -> None:
        self._then = _mark(info)

    def check(self, info: os.stat_result | None) -> None:
        """Raises `Failure` changed_since when something else stands there now."""
        if _mark(info) != self._then:
            raise Failure("changed_since", "somebody else has changed it meanwhile")


def retried(work: Callable[[], _Done]) -> _Done:
    """What `work` gives, which reads, makes and writes anew while others write there too."""
    for _ in range(_TRIES):
        try:
            return work()
        except FileExistsError:
            continue
        except Failure as failure:
            if failure.code == "many_names":  # for an instant, while somebody keeps the old one
                time.sleep(_INSTANT_S)
            elif failure.code != "changed_since":
                raise
    return work()


def _mark(info: os.stat_result | None) -> tuple[int, ...] | None:
    return None if info is None else (info.st_ino, info.st_size, info.st_mtime_ns)


def _standing(name: str, folder_fd: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextmanager
def _alone(folder_fd: int) -> Iterator[None]:
    """While nobody else of us begins or ends a write in this folder. Held for an instant only; a
    file system without locks does without."""
    with suppress(OSError):
        fcntl.flock(folder_fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(folder_fd, fcntl.LOCK_UN)


def _begun(name: str, mode: int, folder_fd: int) -> tuple[str, int]:
    """A new file under a temporary name, locked as long as it is written; what lies there and is
    not locked was left behind."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    stem = f"{TEMPORARY}{binascii.crc32(os.fsencode(name)):08x}"
    with _alone(folder_fd):
        for number in range(_MOST_AT_ONCE):
            temporary = f"{stem}-{number}" if number else stem
            if _is_written(temporary, folder_fd):
                continue
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder_fd)
            # The cage refuses changes of mode, so the file is made with the one it is to have.
            umask = os.umask(0)
            try:
                fd = os.open(temporary, flags, mode, dir_fd=folder_fd)
            finally:
                os.umask(umask)
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return temporary, fd
    raise Failure("too_many", "too many write this file at once", count=_MOST_AT_ONCE + 1,
                  limit=_MOST_AT_ONCE)  # fmt: skip


def _is_written(name: str, folder_fd: int) -> bool:
    """Whether somebody writes this file right now."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


def _filled(fd: int, chunks: Iterable[bytes]) -> int:
    written = 0
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            done = os.write(fd, rest)
            rest = rest[done:]
            written += done
    os.fsync(fd)
    return written


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
