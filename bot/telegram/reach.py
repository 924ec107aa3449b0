"""Chats that Telegram says are closed to the bot: what waits there is given up, the host told.

Until somebody writes from such a chat again nothing is sent there, not even tried.
"""

from __future__ import annotations

import logging

from bot.telegram.screening import CHANNEL
from core.clock import Clock
from core.i18n import Texts
from core.messages import Block, ChatAddress, Reply, Role
from core.store import actors, outbox, reach
from core.store.database import Database, Transaction

log = logging.getLogger(__name__)


class Reach:
    """The lost chats of one bot. `load` it before anything is sent."""

    def __init__(self, *, store: Database, texts: Texts, clock: Clock, lang: str) -> None:
        self._store, self._texts, self._clock, self._lang = store, texts, clock, lang
        self._lost: set[str] = set()

    async def load(self) -> None:
        async with self._store.read() as tx:
            self._lost |= await reach.lost_chats(tx, CHANNEL)

    def is_lost(self, chat_id: str) -> bool:
        return chat_id in self._lost

    async def lose(self, tx: Transaction, chat_id: str, detail: str) -> None:
        """Give up what waits for this chat and tell the host once. Strangers are forgotten."""
        now = self._clock.now()
        await outbox.bury(tx, CHANNEL, f"{CHANNEL}:{chat_id}:", detail, now)
        is_group = chat_id.startswith("-")
        actor = None if is_group else await actors.find_actor(tx, CHANNEL, chat_id)
        if actor is None and not is_group:
            return
        log.warning("chat out of reach", extra={"detail": detail, "is_group": is_group})
        self._lost.add(chat_id)
        actor_id = None if actor is None else actor.id
        tell = await reach.lose(tx, CHANNEL, chat_id, actor_id, detail, now)
        if tell and (actor is None or actor.role is not Role.HOST):
            await self._tell_host(tx, chat_id, "" if actor is None else actor.display_name)

    async def regain(self, tx: Transaction, chat_id: str) -> None:
        """Somebody wrote from there: everything resumes."""
        self._lost.discard(chat_id)
        await reach.regain(tx, CHANNEL, chat_id)

    async def _tell_host(self, tx: Transaction, chat_id: str, name: str) -> None:
        host = await actors.find_host(tx)
        if host is None:
            return
        lang, now = host.lang or self._lang, self._clock.now()
        key = "telegram.reach.guest" if name else "telegram.reach.group"
        body = Reply((Block("text", self._texts.say(key, lang, name=name)),), lang).to_json()
        for channel, sender_id in await actors.identities_of(tx, host.id):
            if channel == CHANNEL and sender_id not in self._lost:
                address = ChatAddress(CHANNEL, sender_id, None)
                row = f"reach:{chat_id}:{sender_id}:{int(now.timestamp())}"
                await outbox.enqueue(tx, row, address, body, now)
