"""Transactions end, whatever happens inside them; files are private; damage has a name."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest

from core.errors import ErrorCode, StoreCorrupt, StoreError
from core.store.database import Database

NASTY = "a\0b \ud800 c \U0001f600 \u202e d"


@pytest.fixture
async def plain(tmp_path: Path) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "plain.db", durable=True)
    async with database.write() as tx:
        await tx.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    yield database
    await database.close()


async def count(database: Database) -> int:
    async with database.read() as tx:
        row = await tx.fetch_one("SELECT COUNT(*) AS n FROM notes")
    assert row is not None
    return int(row["n"])


async def test_write_commits_at_the_end(plain: Database):
    async with plain.write() as tx:
        changed = await tx.execute("INSERT INTO notes (text) VALUES (:text)", {"text": "one"})
        row = await tx.fetch_one("SELECT text FROM notes")

    assert changed == 1
    assert row is not None
    assert row["text"] == "one"
    assert await count(plain) == 1


async def test_write_when_the_body_raises_rolls_back_and_frees_the_lock(plain: Database):
    async def fail() -> None:
        async with plain.write() as tx:
            await tx.execute("INSERT INTO notes (text) VALUES ('lost')")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await fail()

    assert await count(plain) == 0
    async with asyncio.timeout(45), plain.write() as tx:
        await tx.execute("INSERT INTO notes (text) VALUES ('kept')")
    assert await count(plain) == 1


class CancelledAt:
    """A coroutine whose task is cancelled at its n-th suspension, as `Task.cancel` does it."""

    def __init__(self, work: Coroutine[Any, Any, None], at: int) -> None:
        self._work = work
        self._at = at
        self.suspensions = 0

    def __await__(self) -> Generator[Any, Any, None]:
        inner = self._work.__await__()
        step: Callable[[], Any] = lambda: next(inner)  # noqa: E731
        while True:
            try:
                waited = step()
            except StopIteration:
                return
            self.suspensions += 1
            if self.suspensions == self._at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                yield waited
            except BaseException as exc:  # noqa: BLE001,RUF100 - passed on as it came
                raised = exc
                step = lambda: inner.throw(raised)  # noqa: E731,B023
            else:
                step = lambda: next(inner)  # noqa: E731


async def test_write_cancelled_at_every_await_leaves_nothing_open(plain: Database):
    """All or nothing at each of its suspensions, and the next writer never waits."""

    async def work(mark: str) -> None:
        async with plain.write() as tx:
            await tx.execute("INSERT INTO notes (text) VALUES (:m)", {"m": f"{mark} a"})
            await tx.fetch_all("SELECT * FROM notes")
            await tx.execute("INSERT INTO notes (text) VALUES (:m)", {"m": f"{mark} b"})

    async def run(wrapped: CancelledAt) -> None:
        await wrapped

    outcomes = []
    for at in range(1, 12):
        wrapped = CancelledAt(work(f"try {at}"), at)
        task = asyncio.create_task(run(wrapped))
        done, _ = await asyncio.wait({task}, timeout=45)
        assert done, f"stuck when cancelled at await {at}"
        other = sqlite3.connect(plain.path, timeout=0, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")  # nothing was left open: another process may write
        other.close()
        async with asyncio.timeout(45), plain.write() as tx:
            rows = await tx.fetch_all(
                "SELECT text FROM notes WHERE text LIKE :m", {"m": f"try {at} %"}
            )
        assert len(rows) in {0, 2}
        outcomes.append((task.cancelled(), len(rows)))
        if wrapped.suspensions < at:
            break

    assert outcomes[:3] == [(True, 0)] * 3
    assert outcomes[-1] == (False, 2)


async def test_read_cancelled_at_every_await_leaves_the_reader_free(plain: Database):
    async def work() -> None:
        async with plain.read() as tx:
            await tx.fetch_all("SELECT * FROM notes")
            await tx.fetch_all("SELECT * FROM notes")

    async def run(wrapped: CancelledAt) -> None:
        await wrapped

    for at in range(1, 6):
        task = asyncio.create_task(run(CancelledAt(work(), at)))
        await asyncio.wait({task}, timeout=45)
        async with plain.write() as tx:
            await tx.execute("INSERT INTO notes (text) VALUES ('new')")
        async with asyncio.timeout(45):
            assert await count(plain) == at  # a fresh snapshot, not the cancelled one


async def test_open_cancelled_at_every_await_leaves_no_connection(tmp_path: Path):
    async def work() -> None:
        database = await Database.open(tmp_path / "a.db", durable=True)
        await database.close()

    async def run(wrapped: CancelledAt) -> None:
        await wrapped

    for at in range(1, 12):
        task = asyncio.create_task(run(CancelledAt(work(), at)))
        await asyncio.wait({task}, timeout=45)
        assert task.done()
    threads = [t for t in threading.enumerate() if "_connection_worker" in t.name]
    for thread in threads:
        thread.join(45)
    assert not any(thread.is_alive() for thread in threads)


async def test_write_cancelled_while_waiting_for_the_lock_lets_the_others_on(plain: Database):
    entered = asyncio.Event()
    leave = asyncio.Event()

    async def holder() -> None:
        async with plain.write() as tx:
            await tx.execute("INSERT INTO notes (text) VALUES ('holder')")
            entered.set()
            await leave.wait()

    async def waiter() -> None:
        async with plain.write() as tx:
            await tx.execute("INSERT INTO notes (text) VALUES ('waiter')")

    holding = asyncio.create_task(holder())
    await entered.wait()
    waiting = asyncio.create_task(waiter())
    await asyncio.sleep(0)
    waiting.cancel()
    third = asyncio.create_task(waiter())
    leave.set()
    await asyncio.wait({holding, waiting, third}, timeout=45)

    assert waiting.cancelled()
    assert await count(plain) == 2


async def test_write_cancelled_by_a_timeout_inside_rolls_back(plain: Database):
    async def dawdle() -> None:
        async with asyncio.timeout(0.01), plain.write() as tx:
            await tx.execute("INSERT INTO notes (text) VALUES ('slow')")
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await dawdle()

    assert await count(plain) == 0


async def test_write_inside_a_write_of_the_same_task_is_refused(plain: Database):
    async with plain.write():
        with pytest.raises(RuntimeError):
            async with plain.write():
                pass


async def test_transaction_after_its_end_refuses_statements(plain: Database):
    async with plain.write() as tx:
        await tx.execute("INSERT INTO notes (text) VALUES ('one')")

    with pytest.raises(StoreError):
        await tx.execute("INSERT INTO notes (text) VALUES ('two')")
    assert await count(plain) == 1


async def test_read_sees_one_snapshot_and_cannot_write(plain: Database):
    async with plain.read() as tx:
        before = await tx.fetch_all("SELECT * FROM notes")
        async with plain.write() as other:
            await other.execute("INSERT INTO notes (text) VALUES ('later')")
        after = await tx.fetch_all("SELECT * FROM notes")
        with pytest.raises(StoreError):
            await tx.execute("DELETE FROM notes")

    assert len(before) == len(after) == 0
    assert await count(plain) == 1


async def test_texts_with_surrogates_and_nul_are_stored(plain: Database):
    async with plain.write() as tx:
        await tx.execute("INSERT INTO notes (text) VALUES (:text)", {"text": NASTY})
        row = await tx.fetch_one("SELECT text FROM notes WHERE text = ?", [NASTY])

    assert row is not None
    assert row["text"] == "a\ufffdb \ufffd c \U0001f600 \u202e d"


async def test_disk_full_is_named_and_rolls_back(plain: Database):
    async with plain.write() as tx:
        row = await tx.fetch_one("PRAGMA page_count")
        assert row is not None
        await tx.fetch_all(f"PRAGMA max_page_count = {row[0] + 3}")

    async def fill() -> None:
        async with plain.write() as tx:
            await tx.execute("INSERT INTO notes (text) VALUES ('small')")
            await tx.execute("INSERT INTO notes (text) VALUES (:t)", {"t": "x" * 200_000})

    with pytest.raises(StoreError) as caught:
        await fill()

    assert caught.value.code is ErrorCode.DISK_FULL
    assert await count(plain) == 0
    async with plain.write() as tx:
        await tx.fetch_all("PRAGMA max_page_count = 100000")
        await tx.execute("INSERT INTO notes (text) VALUES (:t)", {"t": "x" * 200_000})
    assert await count(plain) == 1


async def test_disk_full_swallowed_by_the_body_still_does_not_commit_half(plain: Database):
    """SQLite may give the whole transaction up; what follows must not be written alone."""
    async with plain.write() as tx:
        row = await tx.fetch_one("PRAGMA page_count")
        assert row is not None
        await tx.fetch_all(f"PRAGMA max_page_count = {row[0] + 3}")

    outcome = "committed"
    try:
        async with plain.write() as tx:
            await tx.execute("INSERT INTO notes (text) VALUES ('first')")
            with pytest.raises(StoreError):
                await tx.execute("INSERT INTO notes (text) VALUES (:t)", {"t": "x" * 200_000})
            await tx.execute("INSERT INTO notes (text) VALUES ('second')")
    except StoreError:
        outcome = "refused"

    assert await count(plain) == (2 if outcome == "committed" else 0)


async def test_number_too_large_for_sqlite_is_a_store_error(plain: Database):
    with pytest.raises(StoreError):
        async with plain.write() as tx:
            await tx.execute("INSERT INTO notes (id) VALUES (?)", [2**70])


async def test_busy_database_of_another_process_is_waited_for(plain: Database):
    other = sqlite3.connect(plain.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO notes (text) VALUES ('other')")

    async def write() -> None:
        async with plain.write() as tx:
            await tx.execute("INSERT INTO notes (text) VALUES ('mine')")

    writing = asyncio.create_task(write())
    await asyncio.sleep(0.05)
    assert not writing.done()
    other.execute("COMMIT")
    other.close()
    await asyncio.wait_for(writing, 45)
    assert await count(plain) == 2


async def test_data_version_changes_by_others_and_not_by_us(plain: Database):
    first = await plain.data_version()
    async with plain.write() as tx:
        await tx.execute("INSERT INTO notes (text) VALUES ('mine')")
    after_ours = await plain.data_version()
    other = sqlite3.connect(plain.path)
    other.execute("INSERT INTO notes (text) VALUES ('theirs')")
    other.commit()
    other.close()
    after_theirs = await plain.data_version()

    assert first == after_ours
    assert after_theirs != after_ours


async def test_files_are_private(tmp_path: Path):
    path = tmp_path / "old.db"
    path.touch(mode=0o644)
    path.chmod(0o644)
    database = await Database.open(path, durable=True)
    async with database.write() as tx:
        await tx.execute("CREATE TABLE t (a)")
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()}
    await database.close()

    assert modes == {"old.db": 0o600, "old.db-wal": 0o600, "old.db-shm": 0o600}


@pytest.mark.parametrize(("durable", "level"), [(True, 2), (False, 1)], ids=["full", "normal"])
async def test_open_sets_what_was_promised(tmp_path: Path, durable: bool, level: int):
    database = await Database.open(tmp_path / "a.db", durable=durable)
    async with database.write() as tx:
        found = {
            name: (await tx.fetch_all(f"PRAGMA {name}"))[0][0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "trusted_schema")
        }
    await database.close()

    assert found == {
        "journal_mode": "wal",
        "synchronous": level,
        "foreign_keys": 1,
        "trusted_schema": 0,
    }


async def test_open_of_a_folder_or_a_link_is_refused(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere.db")

    for name in ("folder", "link", "missing/a.db"):
        with pytest.raises(StoreError):
            await Database.open(tmp_path / name, durable=True)
    assert not (tmp_path / "elsewhere.db").exists()


async def test_open_of_something_else_is_corrupt(tmp_path: Path):
    path = tmp_path / "text.db"
    path.write_text("this is no database, it is a text of some length\n" * 100)

    with pytest.raises(StoreCorrupt):
        await Database.open(path, durable=True)


async def test_closed_database_refuses_and_closes_twice(tmp_path: Path):
    database = await Database.open(tmp_path / "a.db", durable=True)
    await database.close()
    await database.close()

    with pytest.raises(StoreError):
        async with database.write() as tx:
            await tx.execute("SELECT 1")
    with pytest.raises(StoreError):
        await database.data_version()
