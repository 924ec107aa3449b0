"""Short work on the databases of the home, beside an engine that may be running."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from core.config import Settings
    from core.store.database import Transaction

T = TypeVar("T")
Work = Callable[["Transaction"], Awaitable[T]]


def read_store(settings: Settings, work: Work[T]) -> T:
    """Run `work` on a snapshot of the main database. Raises `StoreError`."""
    return asyncio.run(_work(settings, work, write=False))


def write_store(settings: Settings, work: Work[T]) -> T:
    """Run `work` in one write transaction of the main database. Raises `StoreError`."""
    return asyncio.run(_work(settings, work, write=True))


def read_memory(settings: Settings, work: Work[T]) -> T:
    """Run `work` on a snapshot of what was learnt. Raises `StoreError`."""
    return asyncio.run(_work(settings, work, write=False, memory=True))


def write_memory(settings: Settings, work: Work[T]) -> T:
    """Run `work` in one write transaction of what was learnt. Raises `StoreError`."""
    return asyncio.run(_work(settings, work, write=True, memory=True))


async def _work(settings: Settings, work: Work[T], *, write: bool, memory: bool = False) -> T:
    from core.clock import SystemClock
    from core.store.stores import open_stores

    stores = await open_stores(settings, SystemClock())
    try:
        store = stores.memory if memory else stores.main
        async with store.write() if write else store.read() as tx:
            return await work(tx)
    finally:
        await stores.close()
