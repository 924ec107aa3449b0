"""From what SQLite complains of to what the house calls it: full, damaged, busy, or failed."""

from __future__ import annotations

import errno
import sqlite3
from typing import NoReturn

from core.errors import ErrorCode, StoreCorrupt, StoreError


def refuse(exc: Exception, *, opening: bool = False) -> NoReturn:
    """Raise the project's word for what SQLite or the disk says.

    `opening`: until a file has been checked, whatever is not about rights, room or waiting is
    damage. Mistakes in our own SQL pass as they are.
    """
    if isinstance(exc, sqlite3.ProgrammingError):
        raise exc
    code = getattr(exc, "sqlite_errorcode", None)
    name = getattr(exc, "sqlite_errorname", None) or type(exc).__name__
    primary = None if code is None else code & 0xFF
    # With no room left the WAL's index cannot grow, which SQLite calls an I/O error.
    if (
        primary == sqlite3.SQLITE_FULL
        or code == sqlite3.SQLITE_IOERR_SHMSIZE
        or (isinstance(exc, OSError) and exc.errno == errno.ENOSPC)
    ):
        error = StoreError(f"the disk is full ({name})")
        error.code = ErrorCode.DISK_FULL
        raise error from exc
    if _is_damage(exc, primary, opening=opening):
        # Not SQLite's own words: about a text that is no UTF-8 they quote the text.
        raise StoreCorrupt(f"the database is damaged ({name})") from exc
    error = StoreError(f"the database failed ({name}: {exc})")
    error.retryable = primary in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    raise error from exc


def is_of_file(exc: StoreCorrupt) -> bool:
    """Whether the file itself is damaged, and not only what stands in a cell of it."""
    cause = exc.__cause__
    return cause is None or isinstance(cause, OSError) or _says_damage(cause)


def _says_damage(exc: BaseException) -> bool:
    """Whether SQLite found the file to be damaged, or shorter than it must be."""
    code = getattr(exc, "sqlite_errorcode", None)
    if code is None:
        return False
    return code == sqlite3.SQLITE_IOERR_SHORT_READ or (code & 0xFF) in {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
    }


_NOT_DAMAGE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_INTERRUPT,
    }
)


def _is_damage(exc: Exception, primary: int | None, *, opening: bool) -> bool:
    if isinstance(exc, UnicodeDecodeError):  # SQLite quotes damaged names in its complaints
        return True
    if not isinstance(exc, sqlite3.Error):
        return False
    if _says_damage(exc):
        return True
    if primary is None and "decode" in str(exc):  # bytes that are no UTF-8 in a text column
        return True
    return opening and primary not in _NOT_DAMAGE
