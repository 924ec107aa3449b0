"""One engine per home: the lock that `run`, `chat` and `restore` hold while they live."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import AlreadyRunning, StoreError

LOCK_FILE = "engine.lock"


@contextmanager
def engine_lock(home: Path, command: str) -> Iterator[None]:
    """Hold the home for this process; `command` is the name others are told.

    The kernel's lock decides, not the file's content: what a killed process left is no holder.
    The folder is locked too, so that somebody who takes the file away lets no second one in.
    Raises `AlreadyRunning` with the holder's `pid` and `command` (None when they cannot be read),
    `StoreError` when the file cannot be opened. Processes started with exec do not inherit it.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(
            home / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
    except OSError as exc:
        raise StoreError(f"the lock cannot be opened ({exc.strerror})", path=str(home)) from exc
    folder = _open_folder(home)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _lock_folder(folder)
        except BlockingIOError:
            pid, holder = _holder(fd)
            raise AlreadyRunning(
                f"{holder or 'another process'} holds {home}", pid=pid, command=holder
            ) from None
        _write(fd, f"{os.getpid()}\n{command}\n")
        try:
            yield
        finally:
            # The file stays: removing it would let a second one lock a new file of that name.
            _write(fd, "")
    finally:
        os.close(fd)
        if folder is not None:
            os.close(folder)


def _open_folder(home: Path) -> int | None:
    try:
        return os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _lock_folder(folder: int | None) -> None:
    """Raises `BlockingIOError` when another holds it. Where the file system locks no folders, as
    over a network, the file alone decides."""
    if folder is None:
        return
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def _write(fd: int, text: str) -> None:
    """Best effort: on a full disk the lock still locks, it only cannot say who holds it."""
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, text.encode(errors="replace"), 0)
    except OSError:
        return


def _holder(fd: int) -> tuple[int | None, str | None]:
    """Who holds the lock. The winner writes its name just after it has locked, so an empty file
    is read again for a moment."""
    for _ in range(20):
        lines = os.pread(fd, 4096, 0).decode(errors="replace").splitlines()
        if len(lines) >= 2 and lines[0].isdecimal():
            return int(lines[0]), lines[1]
        time.sleep(0.01)
    return None, None
