"""Guest mode: somebody names the bot in a chat where it is no member, and is answered once.

What they ask is never stored: it is answered from memory with what is public, or lost with a
restart, after which Telegram does not take the answer anyway. A few questions an hour for each
person and for all together; who asks more is told so once and then hears nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from telegram import Bot, InlineQueryResultArticle, InputTextMessageContent, LinkPreviewOptions
from telegram.error import TelegramError

from bot.telegram.formatting import Words, render
from bot.telegram.groups import addressed
from bot.telegram.identity import Identity
from bot.telegram.inbound import lang_of
from bot.telegram.numbers import UNREADABLE
from bot.telegram.ports import Turns
from bot.telegram.screening import CHANNEL, screen
from core.clock import Clock
from core.errors import StoreError
from core.i18n import Texts
from core.messages import Block, Reply
from core.store import visitors
from core.store.database import Database

log = logging.getLogger(__name__)

KIND = "guest_message"
HOUR_S = 3600.0
PER_PERSON, PER_HOUSE = 5, 60
_AT_ONCE = 2
_PEOPLE_REMEMBERED = 500
_ANSWERED_REMEMBERED = 500


class Quota:
    """How often each person, and all together, were answered in the last hour."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._people: OrderedDict[str, deque[float]] = OrderedDict()
        self._all: deque[float] = deque()

    def take(self, sender_id: str) -> bool | None:
        """True: one more is fine, and counted. False: not now, to be said once. None: not now,
        and they have been told."""
        now = self._clock.monotonic()
        mine = self._people.setdefault(sender_id, deque())
        self._people.move_to_end(sender_id)
        while len(self._people) > _PEOPLE_REMEMBERED:
            self._people.popitem(last=False)
        for times in (mine, self._all):
            while times and times[0] <= now - HOUR_S:
                times.popleft()
        if len(mine) > PER_PERSON:
            return None
        is_full = len(mine) == PER_PERSON or len(self._all) >= PER_HOUSE
        mine.append(now)
        if is_full:
            # Told: from here on this person hears nothing until the hour is over.
            mine.extend([now] * (PER_PERSON + 1 - len(mine)))
            return False
        self._all.append(now)
        return True


class GuestMode:
    """Answers guest queries. Nothing here waits: `hear` only begins."""

    def __init__(
        self,
        *,
        bot: Bot,
        identity: Identity,
        store: Database,
        turns: Turns,
        texts: Texts,
        clock: Clock,
        lang: str,
    ) -> None:
        self._bot, self._identity, self._store = bot, identity, store
        self._turns, self._texts, self._clock, self._lang = turns, texts, clock, lang
        self._quota = Quota(clock)
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        # Telegram hands an update out again when a poll was cut short.
        self._heard: OrderedDict[str, None] = OrderedDict()

    def hear(self, updates: Collection[Any]) -> None:
        """Begin to answer the guest queries among these."""
        for raw in updates:
            with suppress(*UNREADABLE):
                if KIND in raw and (screened := screen(raw)) is not None:
                    self._begin(screened.sender_id, raw[KIND])

    async def close(self) -> None:
        """Give up what is not answered yet."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, sender_id: str, message: Mapping[str, Any]) -> None:
        query_id = str(message["guest_query_id"])
        if query_id in self._heard:
            return
        self._heard[query_id] = None
        while len(self._heard) > _ANSWERED_REMEMBERED:
            self._heard.popitem(last=False)
        lang = lang_of(message["from"].get("language_code")) or self._lang
        allowed = self._quota.take(sender_id)
        if allowed is None:
            return
        task = asyncio.create_task(self._answer(query_id, sender_id, message, lang, allowed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(
        self, query_id: str, sender_id: str, message: Mapping[str, Any], lang: str, allowed: bool
    ) -> None:
        try:
            async with self._slots:
                async with self._store.read() as tx:
                    now = self._clock.now()
                    if await visitors.silence(tx, CHANNEL, sender_id, now) is not None:
                        return
                reply = Reply((Block("text", self._texts.say("guest_mode.enough", lang)),), lang)
                if allowed:
                    request = await self._request(message)
                    reply = await self._turns.answer_public(request, lang)
                await self._send(query_id, reply)
        except (TelegramError, StoreError, *UNREADABLE) as exc:
            log.info("guest query not answered", extra={"error": type(exc).__name__})

    async def _request(self, message: Mapping[str, Any]) -> str:
        """What is asked, without the bot's name."""
        said = addressed(
            message,
            bot_id=self._identity.bot_id,
            username=await self._identity.known(),
            commands=(),
        )
        said = dict(message) if said is None else said
        return str(said.get("text") or said.get("caption") or "")

    async def _send(self, query_id: str, reply: Reply) -> None:
        part = render(reply, Words.of(self._texts, reply.lang)).parts[0]
        content = InputTextMessageContent(
            part.text,
            entities=part.entities,
            link_preview_options=LinkPreviewOptions(is_disabled=True),
        )
        title = self._texts.say("guest_mode.title", reply.lang)
        result = InlineQueryResultArticle("answer", title, content)
        await self._bot.answer_guest_query(query_id, result)
