"""What people hear while the store takes nothing: said directly, once per chat and outage.

The outbox is in the store, so this is the only text that goes out without it. It may be lost;
what was written to us is not: it waits at Telegram or in the inbox.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from telegram import Bot
from telegram.error import TelegramError

from bot.telegram.screening import CHANNEL, Screened
from core.errors import StoreError
from core.i18n import Texts
from core.store import actors
from core.store.database import Database

log = logging.getLogger(__name__)


class Outage:
    """Whom we have told that nothing can be stored."""

    def __init__(self, *, bot: Bot, store: Database, texts: Texts, lang: str) -> None:
        self._bot = bot
        self._store = store
        self._texts = texts
        self._lang = lang
        self._told: set[str] = set()

    def over(self) -> None:
        """The store works: a later outage is told anew."""
        self._told.clear()

    async def tell(self, senders: Iterable[Screened], error: StoreError) -> None:
        """Tell the known ones among these what is wrong. Never raises but `CancelledError`."""
        for screened in senders:
            if screened.chat_id not in self._told:
                self._told.add(screened.chat_id)
                await self._tell(screened, error)

    async def _tell(self, screened: Screened, error: StoreError) -> None:
        try:
            async with self._store.read() as tx:
                actor = await actors.find_actor(tx, CHANNEL, screened.sender_id)
            if actor is None:
                return
            text = self._texts.say(f"error.{error.code.value}", actor.lang or self._lang)
            async with asyncio.timeout(10):
                await self._bot.send_message(int(screened.chat_id), text)
        except (StoreError, TelegramError, TimeoutError) as exc:
            log.warning("outage not told", extra={"error": type(exc).__name__})
