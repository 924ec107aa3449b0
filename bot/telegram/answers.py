"""Answers to questions as they come from a chat: taps, typed labels, and secrets.

What a token means and whose it is the engine knows; here is only who pressed what, the word over
the chat that a tap gets, and what must not stay in the chat.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

from telegram import Bot
from telegram.error import TelegramError

from bot.telegram import standing
from bot.telegram.inbound import Tap
from bot.telegram.outbox_sender import OutboxSender
from bot.telegram.standing import Standing
from bot.telegram.taps import Taps
from core.clock import Clock
from core.i18n import Texts
from core.messages import (
    Block,
    Inbound,
    InboundKind,
    QuestionSettled,
    Reply,
    TurnClosed,
    TurnEvent,
    TurnSuspended,
)
from core.store import outbox, questions
from core.store.database import Database

log = logging.getLogger(__name__)

_NO_BUTTON = "telegram.button_expired"

Hears = Callable[[TurnEvent], Awaitable[None]]
Deliver = Callable[[Inbound, Hears | None], Awaitable[Reply | None]]


class Answers:
    """Hands answers to the engine by `deliver`, and returns what is still to be said of them."""

    def __init__(
        self,
        *,
        bot: Bot,
        store: Database,
        texts: Texts,
        clock: Clock,
        sender: OutboxSender,
        deliver: Deliver,
    ) -> None:
        self._bot, self._store, self._texts = bot, store, texts
        self._clock, self._sender, self._deliver = clock, sender, deliver
        self._taps = Taps(bot)

    def hear(self, query_id: str) -> None:
        """A tap has come: it is answered soon, with a word if there is one by then."""
        self._taps.hear(query_id)

    async def word(self, query_id: str, text: str) -> None:
        """Answer a tap with a word over the chat, or without one."""
        await self._taps.answer(query_id, text)

    async def refuse(self, tap: Tap, lang: str) -> None:
        """Say over the chat that the button is over."""
        await self._taps.answer(tap.query_id, self._texts.say(_NO_BUTTON, lang))

    async def settle(self, event: QuestionSettled, lang: str) -> None:
        """Have a question taken back; the engine may have queued that itself."""
        if event.outbox_key is None:
            return
        async with self._store.write() as tx:
            await questions.settle(tx, event.outbox_key, event.text, lang, self._clock.now())
        self._sender.wake()

    async def tap(self, tap: Tap, received_at: datetime, lang: str) -> Reply | None:
        """Work a tap that came at that moment. Returns a failure that nobody has read yet.

        What the engine says first of a tap that sets nothing going is a word over the chat.
        """
        if tap.inbound is None:
            await self.refuse(tap, lang)
            return None
        first, is_read, is_fault = True, False, False

        async def hears(event: TurnEvent) -> None:
            nonlocal first, is_read, is_fault
            if first:
                first = False
                is_read = await self._taps.answer(tap.query_id, self._word(event, lang))
            is_fault = isinstance(event, TurnClosed) and event.error is not None

        # Telegram does not say when a button was pressed.
        unkept = await self._deliver(replace(tap.inbound, received_at=received_at), hears)
        if first:
            await self.refuse(tap, lang)
        # A second press on a button that is gone by now needs no message, a failure does.
        return unkept if is_fault and not is_read else None

    async def said(
        self, row_id: int, inbound: Inbound | None, stands: list[Standing], lang: str
    ) -> Reply | None:
        """Run a request, or the answer to a question: a typed label is the tap that it means, and
        what answers a secret is taken out of the chat. None is no request. Returns the reply that
        is in no outbox."""
        if inbound is None:
            return None
        found = (
            standing.pressed(stands, inbound.text) if inbound.kind is InboundKind.TEXT else None
        )
        if found is not None:
            question, token = found
            data = {"token": token, "message_id": question.message_id}
            inbound = replace(inbound, kind=InboundKind.CHOICE, text="", data=data)
        if inbound.kind is not InboundKind.TEXT:
            return await self._deliver(inbound, None)
        secrets = {s.turn_id for s in stands if s.secret}
        # A reply goes before it is worked: the store has it, and a crash finds it gone already.
        if is_gone := await self._answers_secret(inbound):
            await self._take_away(row_id, inbound, lang)

        async def hears(event: TurnEvent) -> None:
            nonlocal is_gone
            # Of the turn that asked: so it was the answer, although no reply to the question.
            if not is_gone and event.turn_id in secrets:
                is_gone = True
                await self._take_away(row_id, inbound, lang)

        return await self._deliver(inbound, hears if secrets else None)

    async def _answers_secret(self, inbound: Inbound) -> bool:
        """Whether it is a reply to a message that asked for a secret, whatever became of that."""
        replied = inbound.data.get("reply_to")
        if replied is None:
            return False
        async with self._store.read() as tx:
            return await questions.asked_secret(tx, inbound.address.key, str(replied))

    def _word(self, event: TurnEvent, lang: str) -> str:
        """What a tap is answered when this is the first thing that comes of it."""
        match event:
            case TurnClosed(outbox_key=None, reply=reply):
                return reply.plain
            case TurnClosed(turn_id=""):  # a message of its own says it
                return ""
            case TurnClosed() | TurnSuspended():  # told again: the question is over
                return self._texts.say(_NO_BUTTON, lang)
            case _:
                return ""

    async def _take_away(self, row_id: int, inbound: Inbound, lang: str) -> None:
        """Delete a person's message that held a secret; its row forgets it when it is closed."""
        try:
            await self._bot.delete_message(
                int(inbound.address.chat_id), int(inbound.message_ref or 0)
            )
        except TelegramError as exc:
            if "not found" in exc.message:
                return  # the person was quicker, or the row is worked again
            log.warning("secret not deleted", extra={"error": type(exc).__name__})
            text = self._texts.say("telegram.secret.delete_it", lang)
            reply, now = Reply((Block("text", text),), lang), self._clock.now()
            async with self._store.write() as tx:
                await outbox.enqueue(
                    tx, f"inbox:{row_id}:secret", inbound.address, reply.to_json(), now
                )
            self._sender.wake()
