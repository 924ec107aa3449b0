"""Files grow forward only, all or nothing, and keep a copy of what they were."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from pathlib import Path

import pytest

from core.errors import StoreCorrupt, StoreError, StoreTooNew
from core.store.database import Database
from core.store.migrations import MAIN, Migration, backups_of, migrate
from tests.support.clock import FrozenClock

ONE = Migration(1, "one", "-- a comment; with a semicolon\nCREATE TABLE a (x TEXT DEFAULT ';');")
TWO = Migration(2, "two", "CREATE TABLE b (y);\nCREATE INDEX b_y ON b (y);")
BROKEN = Migration(3, "broken", "CREATE TABLE c (z);\nCREATE TABLE a (again);")


async def tables(database: Database) -> set[str]:
    async with database.read() as tx:
        rows = await tx.fetch_all("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {row["name"] for row in rows}


async def test_migrate_new_file_applies_all_and_keeps_no_copy(tmp_path: Path, clock: FrozenClock):
    database = await Database.open(tmp_path / "a.db", durable=True)
    applied = await migrate(database, [ONE, TWO], clock)
    again = await migrate(database, [ONE, TWO], clock)
    found = await tables(database)
    await database.close()

    assert applied == [1, 2]
    assert again == []
    assert found == {"migrations", "a", "b"}
    assert backups_of(database.path) == []


async def test_migrate_filled_file_is_copied_before_it_changes(tmp_path: Path, clock: FrozenClock):
    database = await Database.open(tmp_path / "a.db", durable=True)
    await migrate(database, [ONE], clock)
    async with database.write() as tx:
        await tx.execute("INSERT INTO a (x) VALUES ('kept')")
    await migrate(database, [ONE, TWO], clock)
    await database.close()

    copy = tmp_path / "a.db.before-2"
    assert backups_of(database.path) == [copy]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    before = sqlite3.connect(copy)
    assert before.execute("SELECT x FROM a").fetchall() == [("kept",)]
    assert before.execute("SELECT number FROM migrations").fetchall() == [(1,)]
    before.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.db", "a.db.before-2"]


async def test_migrate_when_one_fails_changes_nothing(tmp_path: Path, clock: FrozenClock):
    database = await Database.open(tmp_path / "a.db", durable=True)
    await migrate(database, [ONE], clock)

    with pytest.raises(StoreError):
        await migrate(database, [ONE, TWO, BROKEN], clock)

    assert await tables(database) == {"migrations", "a"}
    assert await migrate(database, [ONE, TWO], clock) == [2]
    await database.close()


async def test_migrate_file_of_a_newer_version_is_refused(tmp_path: Path, clock: FrozenClock):
    database = await Database.open(tmp_path / "a.db", durable=True)
    await migrate(database, [ONE, TWO], clock)

    with pytest.raises(StoreTooNew):
        await migrate(database, [ONE], clock)
    await database.close()


async def test_migrate_when_a_table_is_gone_is_corrupt(tmp_path: Path, clock: FrozenClock):
    database = await Database.open(tmp_path / "a.db", durable=True)
    await migrate(database, [ONE, TWO], clock)
    async with database.write() as tx:
        await tx.execute("DROP TABLE b")

    with pytest.raises(StoreCorrupt):
        await migrate(database, [ONE, TWO], clock)
    await database.close()


async def test_migrate_in_two_at_once_applies_once(tmp_path: Path, clock: FrozenClock):
    async def start() -> list[int]:
        database = await Database.open(tmp_path / "a.db", durable=True)
        try:
            return await migrate(database, MAIN, clock)
        finally:
            await database.close()

    results = await asyncio.gather(*(start() for _ in range(4)))

    assert sorted(results) == [[], [], [], [m.number for m in MAIN]]


def test_numbers_are_in_order_and_statements_whole():
    assert [m.number for m in MAIN] == list(range(1, len(MAIN) + 1))
    for migration in MAIN:
        assert all(sqlite3.complete_statement(s) for s in migration.statements())
        assert migration.script.rstrip().endswith(";")
    assert len(ONE.statements()) == 1
