"""Watches that updates keep coming: a poll that is dead is begun anew, and at last given up.

A poll can hang while everything else works, so the sign of life is the last completed poll and
nothing else. Knows nothing of updates.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from telegram import Bot
from telegram.error import TelegramError

from core.clock import Clock
from core.errors import ChannelDeaf

log = logging.getLogger(__name__)

# Three polls without news, or one that hangs and the wait after it.
SILENT_S = 120.0
CHECK_S = 10.0
_ANSWER_S = 10.0
_RESTARTS = 1


class Ear(Protocol):
    """What is watched. `last_poll_at`: monotonic seconds of the last sign of life. `excuse`: why
    it is known to be silent, for a cause that no restart mends."""

    @property
    def last_poll_at(self) -> float | None: ...
    @property
    def excuse(self) -> str: ...


class Watchdog:
    """Watches one ear. `restart` begins its work anew, with new connections."""

    def __init__(
        self, *, bot: Bot, ear: Ear, clock: Clock, restart: Callable[[], Awaitable[None]]
    ) -> None:
        self._bot, self._ear, self._clock, self._restart = bot, ear, clock, restart

    async def run(self) -> None:
        """Watch until cancelled. Raises `ChannelDeaf` when a restart did not help either."""
        since, restarts = self._clock.monotonic(), 0
        while True:
            await asyncio.sleep(CHECK_S)
            now, last = self._clock.monotonic(), self._ear.last_poll_at
            if last is not None and last > since:
                since, restarts = last, 0
            if now - since < SILENT_S:
                continue
            if self._ear.excuse or not await self._telegram_answers():
                since = now  # no network, another program, a full disk: the loop waits that out
                continue
            silent = round(now - since)
            if restarts >= _RESTARTS:
                log.critical("updates do not come, given up", extra={"silent_s": silent})
                raise ChannelDeaf(seconds=silent)
            log.error("updates do not come, polling anew", extra={"silent_s": silent})
            restarts += 1
            since = self._clock.monotonic()
            await self._restart()

    async def _telegram_answers(self) -> bool:
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._bot.get_me()
        except (TelegramError, TimeoutError):
            return False
        return True
