"""Disk work that the catalogue shares: files written whole or not at all, bytes read once.

Knows nothing of manifests and keys.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.catalog.reasons import Reason, refused

MAX_FILES = 64
MAX_TREE_BYTES = 1024 * 1024
MAX_DEPTH = 4
_COMPILED = (".pyc", ".pyo", ".pyd", ".pth", ".so")
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100

Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class FolderBytes:
    """Every file of a folder, read once. `stamps` are the paths and stamps to watch for change,
    the folder's own first."""

    files: Mapping[str, bytes]
    stamps: tuple[tuple[str, Stamp], ...]


def stamp_of(info: os.stat_result) -> Stamp:
    """What changes when a file changes. A modification time can be set back, ctime cannot."""
    return (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def stamp_at(path: str) -> Stamp | None:
    """The stamp of what is at `path` now, without following a link; None when nothing is."""
    try:
        return stamp_of(os.lstat(path))
    except OSError:
        return None


def read_folder(folder: Path) -> FolderBytes:
    """Read a folder that nobody else can have prepared. Raises `SignatureRefused` with a reason.

    Refuses links of both kinds, whatever is no regular file, compiled code, files that others may
    write, and more than `MAX_FILES` files or `MAX_TREE_BYTES` bytes. What it returns is what was
    checked: nothing is opened twice.
    """
    reader = _Reader(str(folder))
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as exc:
        raise _cannot_open(exc, folder.name) from exc
    try:
        reader.walk(descriptor, "")
    except OSError as exc:
        raise refused(Reason.UNREADABLE, f"{exc.strerror}") from exc
    finally:
        os.close(descriptor)
    return FolderBytes(reader.files, tuple(reader.stamps))


class _Reader:
    def __init__(self, root: str) -> None:
        self.root = root
        self.files: dict[str, bytes] = {}
        self.stamps: list[tuple[str, Stamp]] = []
        self.total = 0

    def walk(self, folder: int, prefix: str) -> None:
        info = os.fstat(folder)
        check_owner(info, prefix or "the folder")
        self._watch(prefix.rstrip("/"), info)
        if prefix.count("/") > MAX_DEPTH:
            raise refused(Reason.TOO_LARGE, f"{prefix} is nested too deep")
        names = sorted(os.listdir(folder))
        if not names and prefix:
            raise refused(Reason.UNDECLARED_FILE, f"{prefix} is an empty folder")
        for name in names:
            self._entry(folder, name, prefix + name)

    def _entry(self, folder: int, name: str, path: str) -> None:
        if name == "__pycache__" or name.casefold().endswith(_COMPILED):
            raise refused(Reason.BYTECODE, path)
        # O_NONBLOCK: opening a FIFO must not wait for its writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, dir_fd=folder)
        except OSError as exc:
            raise _cannot_open(exc, path) from exc
        try:
            info = os.fstat(descriptor)
            if stat.S_ISDIR(info.st_mode):
                self.walk(descriptor, path + "/")
            else:
                self._file(descriptor, info, path)
        finally:
            os.close(descriptor)

    def _file(self, descriptor: int, info: os.stat_result, path: str) -> None:
        if not stat.S_ISREG(info.st_mode):
            raise refused(Reason.UNDECLARED_FILE, f"{path} is no regular file")
        if info.st_nlink != 1:
            raise refused(Reason.HARDLINK, path)
        check_owner(info, path)
        self.total += info.st_size
        if self.total > MAX_TREE_BYTES or len(self.files) >= MAX_FILES:
            raise refused(
                Reason.TOO_LARGE, f"more than {MAX_FILES} files or {MAX_TREE_BYTES} bytes"
            )
        data = _read_exactly(descriptor, info.st_size)
        if data is None:
            raise refused(Reason.DIGEST_MISMATCH, f"{path} changed while it was read")
        self.files[path] = data
        self._watch(path, info)

    def _watch(self, path: str, info: os.stat_result) -> None:
        self.stamps.append((f"{self.root}/{path}" if path else self.root, stamp_of(info)))


def check_owner(info: os.stat_result, path: str) -> None:
    """Refuse what someone else than the running user (or root) could have written."""
    if info.st_mode & 0o022 or info.st_uid not in {0, os.geteuid()}:
        raise refused(Reason.WRITABLE_BY_OTHERS, path)


def _cannot_open(exc: OSError, path: str) -> Exception:
    if exc.errno in {errno.ELOOP, errno.ENOTDIR}:
        return refused(Reason.SYMLINK, path)
    # A socket cannot be opened at all.
    if exc.errno in {errno.ENXIO, errno.ENODEV}:
        return refused(Reason.UNDECLARED_FILE, f"{path} is no regular file")
    return refused(Reason.UNREADABLE, f"{path}: {exc.strerror}")


def _read_exactly(descriptor: int, size: int) -> bytes | None:
    """`size` bytes and then the end; None when there is more or less."""
    parts = []
    left = size + 1
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    data = b"".join(parts)
    return data if len(data) == size else None


def write_private(path: Path, data: bytes) -> None:
    """Replace a file as a whole, readable by its owner only, on disk before this returns."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        _write_new(temporary, data)
        temporary.rename(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def create_private(path: Path, data: bytes) -> bool:
    """Make a file as a whole unless there is one. False: someone was faster, theirs stays."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        _write_new(temporary, data)
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def install_folder(target: Path, files: Mapping[str, bytes], *, workshop: Path) -> None:
    """Put a folder with exactly these files at `target`, in one step.

    Built in `workshop` (same file system) and exchanged with what is there: whoever looks sees
    the old folder or the new one. A kill leaves at most rubbish in the workshop.
    """
    workshop.mkdir(mode=0o700, exist_ok=True)
    fresh = workshop / f"{target.name}-{secrets.token_hex(6)}"
    try:
        fresh.mkdir(mode=0o700)
        for path, data in files.items():
            place = fresh / path
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_new(place, data)
        for folder in {(fresh / path).parent for path in files} | {fresh}:
            sync_folder(folder)
        _exchange(fresh, target)
        sync_folder(target.parent)
    finally:
        remove_tree(fresh)


def remove_tree(path: Path) -> None:
    """Remove a folder, or a link or file that took its place. Nothing there: fine."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`, waiting for whoever has it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write_new(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _exchange(fresh: Path, target: Path) -> None:
    """Afterwards `target` is the new folder and `fresh` the old one, if there was one."""
    if not os.path.lexists(target):
        fresh.rename(target)
    elif not _exchange_in_one(fresh, target):
        # File systems without exchange: a moment without the folder, mended by the next staging.
        aside = fresh.with_name(fresh.name + "-old")
        target.rename(aside)
        fresh.rename(target)
        remove_tree(aside)


def _exchange_in_one(fresh: Path, target: Path) -> bool:
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    names = (os.fsencode(fresh), os.fsencode(target))
    done: int = renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)
    return done == 0
