"""What runs in the thread of an SQLite connection: pragmas, statements, copies of a file.

Plain functions on `sqlite3`; they know no event loop, and their exceptions are SQLite's own.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.errors import StoreError

Parameters = Sequence[Any] | Mapping[str, Any]

BUSY_TIMEOUT_S = 10
WAL_LIMIT_BYTES = 4 * 1024 * 1024


def connect(path: Path) -> sqlite3.Connection:
    """Open a connection that begins no transaction by itself and waits for other processes."""
    return sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, cached_statements=256
    )


def prepare(durable: bool, conn: sqlite3.Connection) -> None:
    """Set a writing connection up and look for damage, which is a plain `DatabaseError`."""
    conn.row_factory = sqlite3.Row
    conn.execute("PRAGMA trusted_schema = OFF")
    conn.execute("PRAGMA cell_size_check = ON")
    _enter_wal(conn)
    conn.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    conn.execute("PRAGMA foreign_keys = ON")
    conn.execute("PRAGMA secure_delete = ON")  # what is forgotten leaves no bytes in free pages
    conn.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")
    found = conn.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise sqlite3.DatabaseError("quick_check found damage")


def _enter_wal(conn: sqlite3.Connection) -> None:
    """Switch to WAL once; SQLite does not wait its busy timeout for this, so we do."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            mode = conn.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
            continue
        if mode != "wal":
            raise sqlite3.OperationalError(f"journal mode is {mode}")
        return


def prepare_reader(conn: sqlite3.Connection) -> None:
    conn.row_factory = sqlite3.Row
    conn.execute("PRAGMA trusted_schema = OFF")
    conn.execute("PRAGMA cell_size_check = ON")
    conn.execute("PRAGMA query_only = ON")


def run_statement(
    begin: str | None,
    sql: str,
    params: Parameters,
    conn: sqlite3.Connection,
    *,
    outside: bool = False,
) -> tuple[list[sqlite3.Row], int]:
    """Run one statement, after `begin` if there is one; its rows and how many it changed.

    Without `begin` a transaction must be running, unless the statement stands `outside` of any.
    """
    if begin is not None:
        if conn.in_transaction:  # left by a caller whose event loop ended under it
            conn.rollback()
        conn.execute(begin)
    elif not conn.in_transaction and not outside:
        # A full disk makes SQLite roll back by itself; going on would write without a transaction.
        raise sqlite3.OperationalError("the transaction was given up")
    cursor = conn.execute(sql, params)
    return cursor.fetchall(), cursor.rowcount


def commit(conn: sqlite3.Connection) -> None:
    if not conn.in_transaction:
        raise sqlite3.OperationalError("the transaction was given up")
    conn.commit()


def roll_back(conn: sqlite3.Connection) -> None:
    conn.rollback()


def settle(conn: sqlite3.Connection) -> None:
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def back_up(target: Path, conn: sqlite3.Connection) -> None:
    """Copy what is committed to `target`, which appears whole or not at all."""
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    make_private(part)
    copy = sqlite3.connect(part)
    try:
        conn.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, no -wal beside it
    finally:
        copy.close()
    part.replace(target)


def make_private(path: Path) -> None:
    """Create the file with mode 0600 before SQLite does; its -wal and -shm follow that mode.

    An existing file is not opened here: closing it would drop the locks that SQLite holds on it
    elsewhere in this process.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path.name} is not a regular file")
    if found.st_mode & 0o077:
        path.chmod(0o600)
