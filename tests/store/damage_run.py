"""What other programs do to an open database, done to one: run as a process of its own, because
what it is about ends processes. Prints one JSON document: file and harm → what came of it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from core.clock import SystemClock
from core.config import load_settings
from core.errors import StoreCorrupt, StoreError
from core.store.database import Database
from core.store.stores import MAIN_FILE, MEMORY_FILE, Stores, open_stores

_SUFFIXES = ("", "-wal", "-shm")


def _cut(*suffixes: str, to: int = 0) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        for suffix in suffixes:
            os.truncate(f"{path}{suffix}", to)

    return harm


def _noise(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(path.stat().st_size))


def _replaced(path: Path) -> None:
    other = path.with_suffix(".other")
    other.write_bytes(os.urandom(20_000))
    other.replace(path)


def _removed(*suffixes: str) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        for suffix in suffixes:
            Path(f"{path}{suffix}").unlink()

    return harm


HARMS: dict[str, Callable[[Path], None]] = {
    "emptied": _cut(""),
    "half a page": _cut("", to=2048),
    "noise": _noise,
    "replaced": _replaced,
    "removed": _removed(""),
    "all removed": _removed(*_SUFFIXES),
    "journal emptied": _cut("-wal"),
    "index emptied": _cut("-shm"),
    "index removed": _removed("-shm"),
    "all emptied": _cut(*_SUFFIXES),
}


async def _harmed(folder: Path, file: str, harm: Callable[[Path], None]) -> str:
    settings = load_settings(metnos_home=folder)
    stores = await open_stores(settings, SystemClock())
    try:
        database = stores.memory if file == MEMORY_FILE else stores.main
        for number in range(3):
            await _write(database, number)
            if number == 1:
                await database.settle()  # so that some of it stands in the file, some beside it
        harm(database.path)
        async with asyncio.timeout(60):
            return await (_memory_again(stores) if file == MEMORY_FILE else _main_told(stores))
    finally:
        await stores.close()


async def _write(database: Database, number: int) -> None:
    async with database.write() as tx:
        await tx.execute("CREATE TABLE IF NOT EXISTS tried (number INTEGER, text TEXT)")
        await tx.execute("INSERT INTO tried VALUES (?, ?)", (number, "x" * 5000))


async def _memory_again(stores: Stores) -> str:
    """Used like the engine does, which takes a failure for a miss; works again after a while."""
    good = 0
    while good < 3:
        try:
            async with stores.memory.read() as tx:
                await tx.fetch_all("SELECT * FROM plan_cache")
            await _write(stores.memory, 9)
            good += 1
        except StoreError:
            good = 0
        await asyncio.sleep(0.005)
    aside = stores.memory.path.with_name(f"{MEMORY_FILE}.damaged").exists()
    async with stores.memory.read() as tx:
        kept = await tx.fetch_all("SELECT number FROM tried WHERE number < 3")
    return f"works, {'set aside' if aside else 'nothing aside'}, {len(kept)} kept"


async def _main_told(stores: Stores) -> str:
    told = asyncio.ensure_future(stores.main.broken())
    for _ in range(200):
        try:
            async with stores.main.read() as tx:
                await tx.fetch_all("SELECT * FROM tried")
            await _write(stores.main, 9)
        except StoreError:
            pass
        if told.done():
            break
        await asyncio.sleep(0.005)
    told.cancel()
    try:
        await told
    except StoreCorrupt:
        return "told"
    except asyncio.CancelledError:
        return "goes on"


async def _all() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {MAIN_FILE: {}, MEMORY_FILE: {}}
    for file, results in found.items():
        for name, harm in HARMS.items():
            with tempfile.TemporaryDirectory() as folder:
                results[name] = await _harmed(Path(folder), file, harm)
    return found


if __name__ == "__main__":
    json.dump(asyncio.run(_all()), sys.stdout)
