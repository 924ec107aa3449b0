"""Which conversation works on what: one thing at a time in each, any number of them beside each
other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
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


@dataclass(frozen=True, slots=True)
class TurnStatus:
    """What a conversation is working on. `seconds` since it began."""

    turn_id: str
    request: str
    seconds: float


class Conversations:
    """The locks of the conversations, and the turns that run under them."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._running: dict[str, Running] = {}

    @asynccontextmanager
    async def alone(self, *keys: str) -> AsyncIterator[None]:
        """Wait until nothing else works in these conversations, in the order of coming.

        Where a question stands apart from its turn, its own place is named before that of the
        turn, always, so that nobody waits in a circle.
        """
        async with AsyncExitStack() as held:
            for key in dict.fromkeys(keys):
                await held.enter_async_context(self._alone(key))
            yield

    @asynccontextmanager
    async def _alone(self, key: str) -> AsyncIterator[None]:
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            try:
                yield
            finally:
                self._running.pop(key, None)
        if not lock.locked() and not getattr(lock, "_waiters", None):
            self._locks.pop(key, None)

    def is_busy(self, *keys: str) -> bool:
        """Whether something works in one of them. When not, `alone` does not wait."""
        locks = [self._locks.get(key) for key in keys]
        return any(lock is not None and lock.locked() for lock in locks)

    def begin(self, running: Running, *keys: str) -> None:
        """A turn is walked from now on, in all of these; it ends with `alone`."""
        for key in keys:
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
