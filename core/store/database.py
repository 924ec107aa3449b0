"""One SQLite file: one writer behind a lock, one reader, transactions that always end.

The only room of aiosqlite. Knows no table; owners get a `Transaction` and write their own SQL.
Each statement is one hop to the connection's thread; `BEGIN` travels with the first of them. Other
programs can damage a file that is open: then it is made anew where that is possible, or told.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import aiosqlite

from core.errors import StoreCorrupt, StoreError
from core.store import statements
from core.store.encoding import clean_text
from core.store.faults import is_of_file, refuse
from core.store.footing import Footing
from core.store.statements import Parameters

Row = sqlite3.Row
T = TypeVar("T")

log = logging.getLogger(__name__)

_WRITE = "BEGIN IMMEDIATE"
_READ = "BEGIN"


class Transaction:
    """A running transaction. Owners read and write through it; nobody else ends it.

    Texts are made storable on the way in (`clean_text`). A statement after the end, or after the
    database itself gave the transaction up (full disk), raises `StoreError`.
    """

    def __init__(self, connection: _Connection, begin: str) -> None:
        self._connection = connection
        self._begin: str | None = begin
        self._ended = False
        self.damage: StoreCorrupt | None = None

    async def execute(self, sql: str, params: Parameters = ()) -> int:
        """Run one statement; the number of rows it changed."""
        _, count = await self._run(sql, params)
        return count

    async def fetch_one(self, sql: str, params: Parameters = ()) -> Row | None:
        """The first row, or None. Also for statements with RETURNING."""
        rows, _ = await self._run(sql, params)
        return rows[0] if rows else None

    async def fetch_all(self, sql: str, params: Parameters = ()) -> list[Row]:
        rows, _ = await self._run(sql, params)
        return rows

    async def _run(self, sql: str, params: Parameters) -> tuple[list[Row], int]:
        if self._ended:
            raise StoreError("the transaction has ended")
        begin, self._begin = self._begin, None
        work = partial(statements.run_statement, begin, sql, _clean(params))
        return await self._told(_outcome(self._connection.submit(work, first=begin is not None)))

    async def end(self, *, commit: bool) -> None:
        """Commit or roll back, to the end: a cancellation waits until SQLite has answered, so a
        cancelled commit may well have been made."""
        self._ended = True
        if self._begin is not None:
            return
        end = statements.commit if commit else statements.roll_back
        await self._told(_uninterrupted(self._connection.submit(end, first=False)))

    async def _told(self, outcome: Awaitable[T]) -> T:
        try:
            return await outcome
        except StoreCorrupt as exc:
            self.damage = exc if is_of_file(exc) else self.damage
            raise


class Database:
    """An open database file. Made by `open`, ended by `close`; safe for any number of tasks."""

    def __init__(self, path: Path, writer: _Connection, reader: _Connection) -> None:
        self.path = path
        self._writer = writer
        self._reader = reader
        self._write_lock = asyncio.Lock()
        self._read_lock = asyncio.Lock()
        self._writing_task: asyncio.Task[Any] | None = None
        self._closed = False
        self._damage: StoreCorrupt | None = None
        self._broken = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None
        self.renew: Callable[[], Awaitable[Database]] | None = None
        """How the file is opened anew when it is found damaged while it is used."""

    @classmethod
    async def open(cls, path: Path, *, durable: bool) -> Database:
        """Open or create the file (mode 0600) and check it.

        `durable`: a commit is on the disk when it returns; otherwise the last commits may be lost
        with the power, never with the process. Raises `StoreCorrupt` when SQLite finds damage,
        `StoreError` when the file cannot be opened at all.
        """
        try:
            statements.make_private(path)
        except OSError as exc:
            refuse(exc)
        footing = Footing(path)
        writer = await _connect(path, footing)
        try:
            await _outcome(writer.submit(partial(statements.prepare, durable)), opening=True)
            reader = await _connect(path, footing)
        except BaseException:
            await writer.close()
            raise
        database = cls(path, writer, reader)
        try:
            await _outcome(reader.submit(statements.prepare_reader), opening=True)
        except BaseException:
            await database.close()
            raise
        return database

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """A write transaction, alone in this process and against others (10 s of waiting).

        Commits at the end; any exception, a cancellation too, rolls back and goes on. Never hold
        it across the network or a subprocess, and never open one inside another.
        """
        task = asyncio.current_task()
        if task is not None and self._writing_task is task:
            raise RuntimeError("a write transaction inside another would wait for itself")
        async with self._write_lock:
            self._writing_task = task
            try:
                async with self._transaction(self._writer, _WRITE) as tx:
                    yield tx
            finally:
                self._writing_task = None

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """A snapshot for reading: what was committed when its first statement ran."""
        async with self._read_lock, self._transaction(self._reader, _READ) as tx:
            yield tx

    async def data_version(self) -> int:
        """A number that changes when another process has committed, and not by our own writes."""
        rows, _ = await _outcome(
            self._open(self._writer).submit(
                partial(statements.run_statement, None, "PRAGMA data_version", (), outside=True)
            )
        )
        return int(rows[0][0])

    async def backup(self, target: Path) -> None:
        """Write the committed content as one sound file (mode 0600), replacing `target`."""
        await _outcome(self._open(self._reader).submit(partial(statements.back_up, target)))

    async def settle(self) -> None:
        """Bring what is committed into the file itself and empty the journal beside it, so that
        what was deleted stands nowhere. As far as no other process reads just now."""
        async with self._write_lock:
            await _outcome(self._open(self._writer).submit(statements.settle))

    async def close(self) -> None:
        """Wait for running transactions, then close. The second call does nothing."""
        if self._closed:
            return
        if self._renewing is not None:
            await asyncio.wait({self._renewing})
        async with self._write_lock, self._read_lock:
            self._closed = True
            await self._let_go()

    async def broken(self) -> NoReturn:
        """Wait until the file is found damaged and cannot be made anew; raises `StoreCorrupt`."""
        await self._broken.wait()
        raise self._damage or StoreCorrupt("the database is damaged")

    def _note(self, damage: StoreCorrupt) -> None:
        """Once for each damage: make the file anew, or let those know who wait for it."""
        if self._closed or (self._renewing is not None and not self._renewing.done()):
            return
        self._damage = damage
        if self.renew is None:
            self._broken.set()
        else:
            log.error(
                "a database is damaged and is opened anew",
                extra={"file": self.path.name, "detail": damage.detail},
            )
            self._renewing = asyncio.create_task(self._make_anew(self.renew), name="renew")

    async def _make_anew(self, renew: Callable[[], Awaitable[Database]]) -> None:
        """In a task of its own: whoever met the damage goes on without the file."""
        # Taken in one go, never waited for one by one: somebody may write while they read.
        while self._write_lock.locked() or self._read_lock.locked():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        async with self._write_lock, self._read_lock:
            if self._closed:
                return
            await self._let_go()
            try:
                fresh = await renew()
            except StoreError as exc:
                log.error("no new database", extra={"file": self.path.name, "detail": exc.detail})
                return
            self._writer, self._reader, self._damage = fresh._writer, fresh._reader, None

    async def _let_go(self) -> None:
        try:
            await self._reader.let_go()
        finally:
            await self._writer.let_go()

    @asynccontextmanager
    async def _transaction(
        self, connection: _Connection, begin: str
    ) -> AsyncIterator[Transaction]:
        tx = Transaction(self._open(connection), begin)
        try:
            yield tx
        except BaseException:
            if tx.damage is not None:
                self._note(tx.damage)
            with suppress(StoreError):  # the first failure is the one to tell
                await tx.end(commit=False)
            raise
        try:
            await tx.end(commit=True)
        except StoreError:
            if tx.damage is not None:
                self._note(tx.damage)
            with suppress(StoreError):
                await _uninterrupted(connection.submit(statements.roll_back, first=False))
            raise

    def _open(self, connection: _Connection) -> _Connection:
        if self._closed:
            raise StoreError("the database is closed")
        if connection.gone:
            self._note(self._damage or StoreCorrupt("the database is damaged"))
            raise StoreError("the database is being made anew")
        return connection


class _Connection(aiosqlite.Connection):
    """aiosqlite's thread, given whole pieces of work: one hop for what belongs together."""

    def __init__(self, connector: Callable[[], sqlite3.Connection], footing: Footing) -> None:
        super().__init__(connector, iter_chunk_size=64)
        self.footing = footing
        self.gone = False
        # Whoever dies without closing must not hang at the exit; what was awaited is committed.
        self._thread.daemon = True

    def submit(
        self, work: Callable[[sqlite3.Connection], T], *, first: bool = True
    ) -> asyncio.Future[T]:
        """Queue work at once, without an await: what is queued later runs later, also when the
        caller of the earlier work has been cancelled. `first`: no transaction runs, so the files
        under it are looked at."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        look = self.footing.check if first else self.footing.mend_index
        self._tx.put_nowait((future, partial(_on_its_footing, look, work, self._conn)))
        return future

    async def let_go(self) -> None:
        """Close, also when the file is damaged. Twice is fine."""
        if self.gone:
            return
        self.gone = True
        self.footing.mend_index()
        with suppress(sqlite3.Error):  # of a file that is damaged there is nothing to keep
            await self.close()


def _on_its_footing(
    look: Callable[[], None], work: Callable[[sqlite3.Connection], T], conn: sqlite3.Connection
) -> T:
    look()
    return work(conn)


async def _connect(path: Path, footing: Footing) -> _Connection:
    connection = _Connection(partial(statements.connect, path), footing)
    try:
        return await connection  # type: ignore[return-value]  # aiosqlite returns itself
    except sqlite3.Error as exc:
        refuse(exc, opening=True)


def row_reader(make: Callable[[Row], T]) -> Callable[[Row], T]:
    """Decorate what turns a row into a dataclass: a value it cannot read is damage
    (`StoreCorrupt`), not a crash of the caller."""

    @wraps(make)
    def read(row: Row) -> T:
        try:
            return make(row)
        except (ValueError, TypeError, IndexError, OverflowError) as exc:
            raise StoreCorrupt(f"a row cannot be read ({type(exc).__name__})") from exc

    return read


async def _outcome(future: Awaitable[T], *, opening: bool = False) -> T:
    try:
        return await future
    except (sqlite3.Error, OverflowError, OSError, UnicodeDecodeError) as exc:
        refuse(exc, opening=opening)


async def _uninterrupted(future: asyncio.Future[T]) -> T:
    """Await to the end; a cancellation is kept and raised afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        future.exception()  # looked at, so that asyncio does not report it as forgotten
        raise cancelled
    return await _outcome(future)


def _clean(params: Parameters) -> Parameters:
    if isinstance(params, Mapping):
        return {k: clean_text(v) if isinstance(v, str) else v for k, v in params.items()}
    return [clean_text(v) if isinstance(v, str) else v for v in params]
