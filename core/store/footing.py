"""What stands on the disk under an open database, looked at before each transaction.

Other programs may take the file away, put another in its place or cut it, and SQLite does not
look. The index of its journal (`-shm`) is mapped into memory: to touch a page of it beyond the end
of the file ends the whole process (SIGBUS), so a cut index is made as long again before it is
touched, and SQLite fills it anew from the journal.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from core.errors import StoreCorrupt

log = logging.getLogger(__name__)

_PAGE = 512  # the smallest that SQLite knows: less is no database any more


class Footing:
    """The files of one database. `check` is for the threads of its connections."""

    def __init__(self, path: Path) -> None:
        self._path, self._index = str(path), f"{path}-shm"
        self._file: tuple[int, int] | None = None
        self._filled = False
        self._index_file: tuple[int, int] | None = None
        self._index_bytes = 0

    def check(self) -> None:
        """Mend the index. Raises `StoreCorrupt` when another program has taken the file or the
        index away, replaced or emptied it. What is merely wrong in it, SQLite finds."""
        self.mend_index()
        try:
            info = os.stat(self._path)  # noqa: PTH116
        except OSError as exc:
            raise StoreCorrupt("the database was taken away by another program") from exc
        identity = (info.st_dev, info.st_ino)
        if self._file is None:
            self._file = identity
        if identity != self._file:
            raise StoreCorrupt("the database was replaced by another program")
        self._filled = self._filled or info.st_size >= _PAGE  # SQLite begins a new one empty
        if self._filled and info.st_size < _PAGE:
            raise StoreCorrupt("the database was emptied by another program")
        if self._index_file is not None and _identity(self._index) != self._index_file:
            raise StoreCorrupt("the index of the journal was taken away by another program")

    def mend_index(self) -> None:
        """Make the index as long as it was. Twice is fine; when it cannot be, nothing happens."""
        with contextlib.suppress(OSError):
            info = os.stat(self._index)  # noqa: PTH116
            identity = (info.st_dev, info.st_ino)
            if self._index_file is None:
                self._index_file = identity
            if identity != self._index_file:
                return
            if info.st_size < self._index_bytes:
                os.truncate(self._index, self._index_bytes)
                log.error("the journal's index was cut by another program, and is made anew")
            self._index_bytes = max(self._index_bytes, info.st_size)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        info = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return info.st_dev, info.st_ino
