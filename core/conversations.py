"""Which conversation works on what: one thing at a time in each, any number of them beside each
other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from core.turn_state import TurnState


@dataclass(slots=True)
class Running:
    """A turn that is being walked. `started` is monotonic; `stopped`: it is to end at the next
    await; `ending`: it has its end and only writes it."""

    task: asyncio.Task[None]
    turn_id: str
    request: str
    started: float
    state: TurnState
    stopped: bool = False
    ending: bool = False
    actor_id: str = ""


class Conversations:
    """The locks of the conversations, and the turns that run under them."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._running: dict[str, Running] = {}

    @asynccontextmanager
    async def alone(self, key: str) -> AsyncIterator[None]:
        """Wait until nothing else works in this conversation, in the order of coming."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            try:
                yield
            finally:
                self._running.pop(key, None)
        if not lock.locked() and not getattr(lock, "_waiters", None):
            self._locks.pop(key, None)

    def is_busy(self, key: str) -> bool:
        """Whether something works there. When not, `alone` does not wait."""
        lock = self._locks.get(key)
        return lock is not None and lock.locked()

    def begin(self, key: str, running: Running) -> None:
        """A turn is walked from now on; it ends with `alone`."""
        self._running[key] = running

    def running(self, key: str) -> Running | None:
        return self._running.get(key)

    def whose(self) -> dict[str, str]:
        """The actors whose turns are walked, by the key of their conversation."""
        return {key: running.actor_id for key, running in self._running.items()}

    async def stop(self, key: str) -> bool:
        """End the turn that runs, and wait until it is closed. False: none runs."""
        running = self._running.get(key)
        if running is None or running.task.done():
            return False
        if not running.ending:
            running.stopped = True
            running.task.cancel()
        await asyncio.wait([running.task])
        return True
