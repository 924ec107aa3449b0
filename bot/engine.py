"""A house on a thread of its own with its event loop, for a main thread that waits for a person.

Signals come to the main thread only, and reading a line with editing blocks it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from bot.app import House, open_house, warm
from core.config import Settings
from core.store import actors

_CLOSE_S = 20.0
T = TypeVar("T")


class Engine:
    """A house on a thread. Entering opens it and raises what `open_house` raises; leaving closes
    it in order, and a turn that still runs is taken up at the next start."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine", daemon=True)
        self._opened: concurrent.futures.Future[House] = concurrent.futures.Future()
        self._leave = asyncio.Event()
        self._life: concurrent.futures.Future[None] | None = None

    def __enter__(self) -> House:
        self._thread.start()
        self._life = self.start(self._live())
        either: list[concurrent.futures.Future[Any]] = [self._opened, self._life]
        done, _ = concurrent.futures.wait(either, return_when=concurrent.futures.FIRST_COMPLETED)
        if self._opened not in done:
            try:
                self._life.result()
            finally:
                self._end_thread()
        return self._opened.result()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._leave.set)
        try:
            if self._life is not None:
                with suppress(concurrent.futures.TimeoutError):
                    self._life.result(_CLOSE_S)
        finally:
            self._end_thread()

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run something on the engine's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _live(self) -> None:
        async with open_house(self._settings, "chat") as house:
            async with house.stores.main.write() as tx:
                await actors.ensure_local_host(tx, house.clock)
            warming = asyncio.create_task(warm(house))
            self._opened.set_result(house)
            await self._leave.wait()
            warming.cancel()
            await asyncio.wait([warming])

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2)
        if not self._thread.is_alive():
            self._loop.close()
