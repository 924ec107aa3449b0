"""How one message of the outbox is said: laid out, part by part, with what Telegram may answer.

Knows nothing of when; that is the outbox worker's. Every end is an `Outcome`, never an exception.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from telegram import Bot, InlineKeyboardMarkup, InputFile, LinkPreviewOptions
from telegram.error import TelegramError

from bot.telegram import standing
from bot.telegram.faults import EditAgain, Fault, FaultKind, classify
from bot.telegram.formatting import render, with_note
from bot.telegram.keyboards import Markup, is_question, markup, may_settle
from bot.telegram.pacing import Gate
from bot.telegram.parts import Part, clean
from bot.telegram.presenter import Presenter
from bot.telegram.settling import ROOM, Settling
from core.errors import StoreError
from core.i18n import Texts
from core.messages import Reply
from core.store import kv, questions
from core.store.database import Database, Transaction
from core.store.outbox import OutboxItem

log = logging.getLogger(__name__)

# A younger progress message becomes the answer; an older one goes, for an edit rings no phone.
BECOMES_ANSWER_S = 15.0
REPEAT_MARK = ":r"
_FINAL = ":final"
_PARTS_KEY = "telegram.parts:"
_DELETE_TIMEOUT_S = 2.0
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a send ended: `message_id` of the last message, or the fault that stopped it."""

    item: OutboxItem
    message_id: int | None = None
    fault: Fault | None = None


class Delivery:
    """Says messages of one bot; progress messages of their turns become or make way for them."""

    def __init__(
        self, *, bot: Bot, store: Database, gate: Gate, texts: Texts, presenter: Presenter
    ) -> None:
        self._bot = bot
        self._store = store
        self._gate = gate
        self._texts = texts
        self._presenter = presenter
        self._settling = Settling(bot=bot, store=store, gate=gate, repeat_mark=REPEAT_MARK)
        # How many parts of a message have gone out, by its first key; kept on disk too.
        self._parts_sent: dict[str, int] = {}
        self._noted: set[str] = set()

    async def send(self, item: OutboxItem) -> Outcome:
        """Say one message, going on at the part that an earlier try had not said."""
        try:
            outcome = Outcome(item, message_id=await self._send_parts(item))
        except TelegramError as exc:
            outcome = await self._last_resort(item, classify(exc))
        except EditAgain as exc:
            outcome = Outcome(item, fault=exc.fault)
        except StoreError as exc:
            outcome = Outcome(item, fault=Fault(FaultKind.RETRY, detail=exc.detail))
        except (KeyError, TypeError, ValueError) as exc:
            log.exception("message not readable", extra={"key": item.key})
            outcome = Outcome(item, fault=Fault(FaultKind.GONE, detail=type(exc).__name__))
        if outcome.fault is not None and outcome.fault.kind is FaultKind.WAIT:
            self._gate.close(item.address.chat_id, outcome.fault.after_s)
        return outcome

    async def forget(self, tx: Transaction, item: OutboxItem) -> None:
        """Drop what was noted for a message that has been said or given up."""
        self._parts_sent.pop(_first_key(item), None)
        if item.attempts > 1 or _first_key(item) in self._noted:
            self._noted.discard(_first_key(item))
            await kv.delete(tx, _PARTS_KEY + _first_key(item))
        if (turn_id := _turn_of(item)) is not None:
            await self._presenter.forget(tx, turn_id)

    async def note(self, tx: Transaction, item: OutboxItem, message_id: int | None) -> None:
        """Keep what must be known of a message while it stands: a question's answer may come as
        a plain message."""
        if (settled := questions.settled_key(item.body)) is not None:
            await standing.drop(tx, item.address, settled)
        elif message_id is not None and (item.body.get("expects") or item.body.get("buttons")):
            reply = Reply.from_json(item.body)
            await standing.note(tx, item.address, _first_key(item), str(message_id), reply)

    async def _send_parts(self, item: OutboxItem) -> int | None:
        if (settled := questions.settled_key(item.body)) is not None:
            return await self._settling.settle(item, settled)
        if (shown := questions.redrawn_key(item.body)) is not None:
            return await self._settling.redraw(item, shown)
        reply = Reply.from_json(item.body)
        keyboard = self._keyboard(item, reply)
        rendered = render(
            reply,
            too_long=self._texts.say("telegram.too_long", reply.lang),
            empty=self._texts.say("telegram.empty", reply.lang),
            room=ROOM if may_settle(reply) else 0,
        )
        first_key = _first_key(item)
        at = await self._first_part(item, first_key)
        parts = rendered.parts[at:]
        if reply.repeated and parts:
            *alone, first = with_note(parts[0], self._texts.say("telegram.repeated", reply.lang))
            parts = (first, *parts[1:])
            for note in alone:
                await self._send_part(item, note)
        message_id: int | None = None
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1 and rendered.document is None
            under = keyboard if is_last else None
            edited = None
            if at == 0 and number == 0:
                edited = await self._into_progress(item, part, under)
            message_id = edited or await self._send_part(item, part, under)
            self._parts_sent[first_key] = at = at + 1
            if number < len(parts) - 1 or rendered.document is not None:
                self._noted.add(first_key)
                async with self._store.write() as tx:
                    await kv.put(tx, _PARTS_KEY + first_key, str(at))
        if rendered.document is not None:
            message_id = await self._send_document(item, reply.lang, rendered.document, keyboard)
        self._parts_sent.pop(first_key, None)
        return message_id

    async def _last_resort(self, item: OutboxItem, fault: Fault) -> Outcome:
        """What Telegram does not take as a message, not even plain, goes out as a file."""
        if fault.kind is not FaultKind.REFUSED:
            return Outcome(item, fault=fault)
        log.warning("message refused, sent as a file", extra={"detail": fault.detail})
        reply = Reply.from_json(item.body)
        try:
            keyboard = self._keyboard(item, reply)
            return Outcome(
                item, await self._send_document(item, reply.lang, reply.plain, keyboard)
            )
        except TelegramError as exc:
            return Outcome(item, fault=classify(exc))

    async def _first_part(self, item: OutboxItem, first_key: str) -> int:
        """The part at which to go on: 0, but for a message that was interrupted."""
        if item.attempts > 1 or item.key.endswith(REPEAT_MARK):
            if first_key not in self._parts_sent:
                async with self._store.read() as tx:
                    noted = await kv.get(tx, _PARTS_KEY + first_key)
                self._parts_sent[first_key] = int(noted) if noted else 0
            return self._parts_sent[first_key]
        return 0

    async def _into_progress(
        self, item: OutboxItem, part: Part, keyboard: Markup | None
    ) -> int | None:
        """Let a young progress message become the answer; delete an old one. None: send anew.

        A question is always sent anew: it must ring, and not every keyboard can be edited in.
        """
        turn_id = _turn_of(item)
        if turn_id is None:
            return None
        progress = await self._presenter.take_progress(turn_id)
        if progress is None:
            return None
        chat_id = int(item.address.chat_id)

        inline = keyboard if isinstance(keyboard, InlineKeyboardMarkup) else None

        async def edit(part: Part) -> int:
            return await self._edit(chat_id, progress.message_id, part, inline)

        if progress.age_s < BECOMES_ANSWER_S and not is_question(Reply.from_json(item.body)):
            try:
                return await self._formatted(item, part, edit)
            except TelegramError as exc:
                fault = classify(exc)
                if fault.kind in {FaultKind.WAIT, FaultKind.RETRY, FaultKind.UNKNOWN}:
                    # Carried out twice an edit changes nothing: a lost answer is no riddle here.
                    self._presenter.give_back(turn_id, progress)
                    raise EditAgain(fault) from exc
        with suppress(TelegramError, TimeoutError):
            async with asyncio.timeout(_DELETE_TIMEOUT_S):
                await self._bot.delete_message(chat_id, progress.message_id)
        return None

    async def _send_part(
        self, item: OutboxItem, part: Part, keyboard: Markup | None = None
    ) -> int:
        chat_id, thread = int(item.address.chat_id), _thread(item)

        async def send(part: Part) -> int:
            await self._gate.acquire(item.address.chat_id)
            message = await self._bot.send_message(
                chat_id,
                part.text,
                entities=part.entities,
                message_thread_id=thread,
                link_preview_options=_NO_PREVIEW,
                reply_markup=keyboard,
            )
            return message.message_id

        return await self._formatted(item, part, send)

    async def _formatted(
        self, item: OutboxItem, part: Part, say: Callable[[Part], Awaitable[int]]
    ) -> int:
        """Say a part; as plain text when Telegram refuses its formats."""
        try:
            return await say(part)
        except TelegramError as exc:
            if classify(exc).kind is not FaultKind.REFUSED or not part.spans:
                raise
            log.warning("formats refused", extra={"key": item.key, "detail": exc.message[:200]})
            return await say(Part(part.text))

    async def _edit(
        self, chat_id: int, message_id: int, part: Part, keyboard: InlineKeyboardMarkup | None
    ) -> int:
        await self._gate.acquire(str(chat_id))
        try:
            await self._bot.edit_message_text(
                part.text,
                chat_id,
                message_id,
                entities=part.entities,
                link_preview_options=_NO_PREVIEW,
                reply_markup=keyboard,
            )
        except TelegramError as exc:
            if classify(exc).kind is not FaultKind.UNCHANGED:
                raise
        return message_id

    def _keyboard(self, item: OutboxItem, reply: Reply) -> Markup | None:
        is_private = not item.address.chat_id.startswith("-")
        hint = self._texts.say(
            "telegram.question.hint_secret" if reply.secret else "telegram.question.hint",
            reply.lang,
        )
        return markup(reply, is_private=is_private, hint=hint)

    async def _send_document(
        self, item: OutboxItem, lang: str, text: str, keyboard: Markup | None
    ) -> int:
        name = self._texts.say("telegram.file_name", lang)
        await self._gate.acquire(item.address.chat_id)
        message = await self._bot.send_document(
            int(item.address.chat_id),
            InputFile(clean(text).encode(), filename=name),
            message_thread_id=_thread(item),
            reply_markup=keyboard,
        )
        return message.message_id


def _turn_of(item: OutboxItem) -> str | None:
    """The turn whose answer or question this is; None for the channel's own words."""
    turn_id, final, _ = item.key.partition(_FINAL)
    return turn_id if final else item.body.get("turn_id")


def _thread(item: OutboxItem) -> int | None:
    return None if item.address.thread_id is None else int(item.address.thread_id)


def _first_key(item: OutboxItem) -> str:
    return item.key.removesuffix(REPEAT_MARK)
