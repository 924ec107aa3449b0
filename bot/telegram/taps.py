"""The answer to a tap: once, with a word if there is one by then, and never late.

A phone shows a waiting sign on the pressed button until it is answered; what a tap sets going may
have to wait for the turn that runs. So the answer is given by whoever comes first: the first thing
the engine says of the tap, or the end of a short wait.
"""

from __future__ import annotations

import asyncio
import logging

from telegram import Bot
from telegram.error import TelegramError

log = logging.getLogger(__name__)

WAIT_S = 0.4
# Telegram's limit for what an answer to a tap may say.
MAX_WORD = 200


class Taps:
    """The taps that are not answered yet, by their query's id."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._answered: set[asyncio.Task[None]] = set()

    def hear(self, query_id: str) -> None:
        """A tap came: it is answered without a word unless `answer` comes soon."""
        if query_id not in self._waiting:
            self._keep(query_id, asyncio.create_task(self._answer_late(query_id)))

    async def answer(self, query_id: str, word: str = "") -> bool:
        """Answer a tap, `word` as a short sign over the chat. False: that was done before, or the
        word is too long for it, or Telegram does not take it any more; then nobody has read it."""
        waiting = self._waiting.pop(query_id, None)
        if waiting is None:
            return False
        waiting.cancel()
        fits = len(word) <= MAX_WORD
        return await self._answer(query_id, word if fits else "") and fits

    async def close(self) -> None:
        """Answer at once what still waits."""
        await asyncio.gather(*(self.answer(query_id) for query_id in list(self._waiting)))

    def _keep(self, query_id: str, task: asyncio.Task[None]) -> None:
        self._waiting[query_id] = task
        self._answered.add(task)
        task.add_done_callback(self._answered.discard)

    async def _answer_late(self, query_id: str) -> None:
        await asyncio.sleep(WAIT_S)
        if self._waiting.pop(query_id, None) is not None:
            await self._answer(query_id, "")

    async def _answer(self, query_id: str, word: str) -> bool:
        try:
            await self._bot.answer_callback_query(query_id, text=word or None)
        except TelegramError as exc:
            log.info("tap not answered", extra={"error": type(exc).__name__})
            return False
        return True
