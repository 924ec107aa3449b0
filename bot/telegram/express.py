"""The control lane while the store is busy: /stop stops, /status tells, taps lose their clock.

What is done here is done without a commit, which it does not wait for; the update is stored as
soon as that is possible, and then only closed. A crash in between answers a second time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from telegram import Bot

from bot.telegram import pacing
from bot.telegram.commands import Commands
from bot.telegram.inbound import Command, Tap, read
from bot.telegram.pacing import Pace
from bot.telegram.ports import Pending, Turns
from bot.telegram.screening import CHANNEL, Lane, lane
from core.errors import StoreError
from core.i18n import Texts
from core.messages import Actor
from core.store import actors, inbox, outbox
from core.store.database import Database
from core.store.inbox import StoredInbox

log = logging.getLogger(__name__)

_READ_S, _SEND_S = 2.0, 5.0
_REMEMBERED = 1000


class Express:
    """Answers for one bot. `told` are the updates that need no other answer."""

    def __init__(
        self,
        *,
        bot: Bot,
        bot_id: str,
        store: Database,
        turns: Turns,
        commands: Commands,
        pending: Callable[[], Pending],
        texts: Texts,
        lang: str,
    ) -> None:
        self._bot, self._bot_id, self._store, self._turns = bot, bot_id, store, turns
        self._commands, self._pending = commands, pending
        self._texts, self._lang = texts, lang
        # By number, the oldest first; a few are kept, so that what is brought again is known.
        self._told: dict[int, None] = {}
        self._stopping: set[asyncio.Task[bool]] = set()

    async def hurry(self, updates: list[Any]) -> None:
        """Do at once what cannot wait of these. Never raises but `CancelledError`."""
        for raw in updates:
            if lane(raw) in {Lane.PAST, Lane.TAP}:
                try:
                    async with asyncio.timeout(_READ_S + _SEND_S):
                        await self._hurry(raw)
                except Exception as exc:  # the commit goes on, whatever this was
                    log.warning("not answered at once", extra={"error": type(exc).__name__})

    def was_told(self, row: StoredInbox) -> bool:
        """Whether this row was answered before it was stored."""
        return row.update_id in self._told

    async def close(self, row: StoredInbox) -> None:
        """Finish a row that was answered before it was stored."""
        try:
            async with self._store.write() as tx:
                await inbox.mark_done(tx, row.id)
                await outbox.hasten(tx, row.address)
        except StoreError as exc:
            log.error("update not closed", extra={"inbox_id": row.id, "error": exc.detail})

    async def _hurry(self, raw: dict[str, Any]) -> None:
        heard = read(raw, bot_id=self._bot_id)
        if not isinstance(heard, Command | Tap):
            return
        address, sender = heard.origin.address, heard.origin.sender_id
        if address.chat_id != sender or int(raw["update_id"]) in self._told:
            return  # groups have rules of their own, which are in the store
        async with self._store.read() as tx:
            actor = await actors.find_actor(tx, CHANNEL, sender)
        if actor is None:
            return
        if isinstance(heard, Tap):
            self._note(raw)  # answered; worked when it is stored
            await self._bot.answer_callback_query(heard.query_id)
            return
        lang = actor.lang or heard.origin.lang or self._lang
        text = await self._answer(heard, actor, lang)
        if not text:
            return
        self._note(raw)
        thread = None if address.thread_id is None else int(address.thread_id)
        with pacing.at(Pace.URGENT):
            await self._bot.send_message(int(address.chat_id), text, message_thread_id=thread)

    def _note(self, raw: dict[str, Any]) -> None:
        self._told[int(raw["update_id"])] = None
        while len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]

    async def _answer(self, heard: Command, actor: Actor, lang: str) -> str:
        address, pending = heard.origin.address, self._pending()
        if heard.name == "status":
            return await self._commands.status(
                actor,
                lang,
                waiting=pending.waiting(),
                running=self._turns.status(address),
                poll_age_s=pending.poll_age_s(),
                rival=pending.rival(),
            )
        if heard.name != "stop" or self._turns.status(address) is None:
            return ""
        # It ends at once, and tells what it had done when that can be stored.
        task = asyncio.ensure_future(self._turns.stop(address, heard.origin.sender_id))
        self._stopping.add(task)
        task.add_done_callback(self._stopped)
        return self._texts.say("telegram.stop.at_once", lang)

    def _stopped(self, task: asyncio.Task[bool]) -> None:
        self._stopping.discard(task)
        if not task.cancelled() and (exc := task.exception()) is not None:
            log.error("turn not stopped", extra={"error": type(exc).__name__})
