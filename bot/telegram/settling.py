"""A question that is answered, refused or over: its buttons go and the decision stands there.

Telegram edits only messages whose keyboard hangs under them. Where the buttons were the phone's
keyboard, or the phone was made to reply, a message of its own says the decision and takes that
keyboard away.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from telegram import Bot, InlineKeyboardMarkup, LinkPreviewOptions, ReplyKeyboardRemove
from telegram.error import TelegramError

from bot.telegram.faults import EditAgain, FaultKind, classify
from bot.telegram.formatting import Words, render
from bot.telegram.keyboards import asks_place, markup
from bot.telegram.parts import Part, clean, has_visible, joined
from core.i18n import Texts
from core.messages import Reply
from core.store import outbox
from core.store.database import Database
from core.store.outbox import OutboxItem

log = logging.getLogger(__name__)

# Kept free in a question's last message, in UTF-16 units, for the decision under it.
ROOM = 400
_MOST_CHARS = 180
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


class Settling:
    """Takes back the questions of one bot."""

    def __init__(self, *, bot: Bot, store: Database, texts: Texts, repeat_mark: str) -> None:
        self._bot, self._store, self._texts = bot, store, texts
        self._repeat_mark = repeat_mark

    async def settle(self, item: OutboxItem, question_key: str) -> int | None:
        """Put the decision of `item` in the place of a question; the id of the message that says
        it, None when the question was never seen.

        Done again it changes nothing more. Raises `EditAgain` or `TelegramError`.
        """
        shown = await self._shown(question_key)
        if shown is None:
            return None
        question = Reply.from_json(shown.body)
        decision = clean(Reply.from_json(item.body).plain).strip()[:_MOST_CHARS]
        is_private = not shown.address.chat_id.startswith("-")
        message_id = int(shown.message_id or 0)
        if isinstance(markup(question, is_private=is_private), InlineKeyboardMarkup):
            if await self._edit(item, message_id, self._with_decision(question, decision)):
                return message_id
            with suppress(TelegramError):  # it is gone, or a file: then only the buttons go
                await self._bot.edit_message_reply_markup(int(item.address.chat_id), message_id)
        return await self._say(item, decision, removes=is_private and asks_place(question))

    async def redraw(self, item: OutboxItem, shown_key: str) -> int | None:
        """Put the buttons of `item` under a message that stands, in the place of its own; its id,
        None when it was never seen. Done again it changes nothing more. Raises like `settle`."""
        shown = await self._shown(shown_key)
        if shown is None:
            return None
        is_private = not shown.address.chat_id.startswith("-")
        buttons = markup(Reply.from_json(item.body), is_private=is_private)
        message_id = int(shown.message_id or 0)
        inline = buttons if isinstance(buttons, InlineKeyboardMarkup) else None
        try:
            await self._bot.edit_message_reply_markup(
                int(item.address.chat_id), message_id, reply_markup=inline
            )
        except TelegramError as exc:
            fault = classify(exc)
            match fault.kind:
                case FaultKind.UNCHANGED | FaultKind.REFUSED:
                    log.info("buttons not redrawn", extra={"detail": fault.detail})
                case FaultKind.GONE:
                    raise
                case _:
                    raise EditAgain(fault) from exc
        return message_id

    async def _shown(self, key: str) -> OutboxItem | None:
        """The row whose message is the one to change; None when nobody has seen it."""
        async with self._store.read() as tx:
            rows = [await outbox.find(tx, one) for one in (key + self._repeat_mark, key)]
        shown = next((row for row in rows if row is not None and row.message_id), None)
        return shown if shown is not None and (shown.message_id or "").isdecimal() else None

    async def _edit(self, item: OutboxItem, message_id: int, part: Part) -> bool:
        """Whether the message now shows the part and no buttons; False: it cannot be edited."""
        try:
            await self._bot.edit_message_text(
                part.text,
                int(item.address.chat_id),
                message_id,
                entities=part.entities,
                link_preview_options=_NO_PREVIEW,
            )
        except TelegramError as exc:
            fault = classify(exc)
            match fault.kind:
                case FaultKind.UNCHANGED:
                    return True
                case FaultKind.REFUSED:
                    log.info("question not edited", extra={"detail": fault.detail})
                    return False
                case FaultKind.GONE:
                    raise
                case _:  # carried out twice an edit changes nothing
                    raise EditAgain(fault) from exc
        return True

    async def _say(self, item: OutboxItem, decision: str, *, removes: bool) -> int | None:
        """Say the decision as a message, without a sound: the person has just taken it."""
        if not has_visible(decision):
            if not removes:
                return None
            decision = "✓"  # a keyboard goes only with a message
        thread = item.address.thread_id
        message = await self._bot.send_message(
            int(item.address.chat_id),
            decision,
            message_thread_id=None if thread is None else int(thread),
            disable_notification=True,
            link_preview_options=_NO_PREVIEW,
            reply_markup=ReplyKeyboardRemove() if removes else None,
        )
        return message.message_id

    def _with_decision(self, question: Reply, decision: str) -> Part:
        """The question's last message with the decision under it, within Telegram's limit."""
        last = render(question, Words.of(self._texts, question.lang), room=ROOM).parts[-1]
        return joined(last, Part(decision), "\n\n") if decision else last
