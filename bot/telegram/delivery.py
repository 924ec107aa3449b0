"""How one message of the outbox is said: laid out, part by part, with what Telegram may answer.

Knows nothing of when; that is the outbox worker's. Every end is an `Outcome`, never an exception.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from telegram import Bot, InlineKeyboardMarkup, LinkPreviewOptions
from telegram.error import TelegramError

from bot.telegram import pacing, standing
from bot.telegram.faults import EditAgain, Fault, FaultKind, classify
from bot.telegram.files_out import File, FilesOut, parcels
from bot.telegram.formatting import Document, Words, render, unformatted, with_note
from bot.telegram.keyboards import Markup, is_question, markup, may_settle
from bot.telegram.pacing import Pace
from bot.telegram.parts import Part, clean
from bot.telegram.presenter import Presenter
from bot.telegram.quoting import quoting
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


@dataclass(frozen=True, slots=True)
class _Sent:
    """How many pieces of a message have gone out, and which message shows its last words."""

    count: int = 0
    message_id: int | None = None

    def to_text(self) -> str:
        return f"{self.count}:{self.message_id or ''}"

    @classmethod
    def from_text(cls, text: str) -> _Sent:
        count, _, message_id = text.partition(":")
        return cls(int(count or 0), int(message_id) if message_id else None)


class Delivery:
    """Says messages of one bot; progress messages of their turns become or make way for them."""

    def __init__(self, *, bot: Bot, store: Database, texts: Texts, presenter: Presenter) -> None:
        self._bot = bot
        self._store = store
        self._texts = texts
        self._presenter = presenter
        self._settling = Settling(bot=bot, store=store, texts=texts, repeat_mark=REPEAT_MARK)
        self._files = FilesOut(bot, texts)
        # How far a message has gone out, by its first key; kept on disk too.
        self._sent: dict[str, _Sent] = {}
        self._noted: set[str] = set()

    async def send(self, item: OutboxItem) -> Outcome:
        """Say one message, going on at the part that an earlier try had not said."""
        try:
            with pacing.at(Pace.URGENT if item.urgent else Pace.ANSWER):
                outcome = Outcome(item, message_id=await self._send_parts(item))
        except TelegramError as exc:
            outcome = await self._last_resort(item, classify(exc))
        except EditAgain as exc:
            outcome = Outcome(item, fault=exc.fault)
        except StoreError as exc:
            outcome = Outcome(item, fault=Fault(FaultKind.RETRY, detail=exc.detail))
        except (KeyError, TypeError, ValueError) as exc:
            log.exception("message not readable", extra={"key": item.key})
            outcome = Outcome(item, fault=Fault(FaultKind.UNSAYABLE, detail=type(exc).__name__))
        return outcome

    async def forget(self, tx: Transaction, item: OutboxItem) -> None:
        """Drop what was noted for a message that has been said or given up."""
        self._sent.pop(_first_key(item), None)
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
        words = Words.of(self._texts, reply.lang)
        rendered = render(reply, words, room=ROOM if may_settle(reply) else 0)
        keyboard = self._keyboard(item, reply)
        texts = () if rendered.document is None else (rendered.document,)
        packed: list[list[File]] = [[file] for file in (*texts, *rendered.tables)]
        packed += parcels(reply.attachments)
        # The keyboard hangs under the last words; these are a file when they are too many.
        words_end = len(rendered.parts) + len(texts)
        end = len(rendered.parts) + len(packed)
        done = await self._sent_before(item)
        note = ""
        if reply.repeated and done.count < end:
            note = self._texts.say("telegram.repeated", reply.lang)
        elif item.body.get("note") and done.count == 0:
            note = self._texts.say(f"telegram.note.{item.body['note']}", reply.lang)
        while (at := done.count) < end:
            under = keyboard if at == words_end - 1 else None
            if at < len(rendered.parts):
                message_id = await self._say(item, rendered.parts[at], under, at=at, note=note)
            else:
                message_id = await self._files.send(
                    item.address, packed[at - len(rendered.parts)], reply.lang, under, note=note
                )
            note = ""
            last = message_id if at < words_end else done.message_id
            done = _Sent(at + 1, last)
            await self._note_sent(item, done, is_last=at + 1 == end)
        self._sent.pop(_first_key(item), None)
        return done.message_id

    async def _say(
        self, item: OutboxItem, part: Part, keyboard: Markup | None, *, at: int, note: str
    ) -> int:
        """Say one part; the first in the place of a young progress message."""
        if note:
            *alone, part = with_note(part, note)
            for one in alone:
                await self._send_part(item, one)
        edited = await self._into_progress(item, part, keyboard) if at == 0 else None
        quotes = item.body.get("answers") if at == 0 else None
        return edited or await self._send_part(item, part, keyboard, quotes)

    async def _last_resort(self, item: OutboxItem, fault: Fault) -> Outcome:
        """What Telegram does not take as a message, not even plain, goes out as a file."""
        if fault.kind is not FaultKind.REFUSED:
            return Outcome(item, fault=fault)
        log.warning("message refused, sent as a file", extra={"detail": fault.detail})
        reply = Reply.from_json(item.body)
        name = self._texts.say("telegram.file_name", reply.lang)
        whole = Document(name, clean(reply.plain).encode())
        try:
            keyboard = self._keyboard(item, reply)
            sent = await self._files.send(item.address, [whole], reply.lang, keyboard)
            return Outcome(item, sent)
        except TelegramError as exc:
            return Outcome(item, fault=classify(exc))

    async def _sent_before(self, item: OutboxItem) -> _Sent:
        """Where to go on: at the beginning, but for a message that was interrupted."""
        key = _first_key(item)
        if item.attempts > 1 or item.key.endswith(REPEAT_MARK):
            if key not in self._sent:
                async with self._store.read() as tx:
                    self._sent[key] = _Sent.from_text(await kv.get(tx, _PARTS_KEY + key) or "")
            return self._sent[key]
        return _Sent()

    async def _note_sent(self, item: OutboxItem, done: _Sent, *, is_last: bool) -> None:
        key = _first_key(item)
        self._sent[key] = done
        if not is_last:
            self._noted.add(key)
            async with self._store.write() as tx:
                await kv.put(tx, _PARTS_KEY + key, done.to_text())

    async def _into_progress(
        self, item: OutboxItem, part: Part, keyboard: Markup | None
    ) -> int | None:
        """Let a young progress message become the answer; delete an old one. None: send anew.

        A question is always sent anew: it must ring, and not every keyboard can be edited in. So
        is an answer to what was asked in another chat, where the progress then stands.
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

        here = progress.chat_id == item.address.chat_id
        is_young = progress.age_s < BECOMES_ANSWER_S
        if here and is_young and not is_question(Reply.from_json(item.body)):
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
                await self._bot.delete_message(int(progress.chat_id), progress.message_id)
        return None

    async def _send_part(
        self,
        item: OutboxItem,
        part: Part,
        keyboard: Markup | None = None,
        quotes: str | None = None,
    ) -> int:
        chat_id, thread = int(item.address.chat_id), _thread(item)

        async def send(part: Part) -> int:
            message = await self._bot.send_message(
                chat_id,
                part.text,
                entities=part.entities,
                message_thread_id=thread,
                link_preview_options=_NO_PREVIEW,
                reply_markup=keyboard,
                reply_parameters=quoting(item.address.chat_id, quotes),
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
            return await say(unformatted(part))

    async def _edit(
        self, chat_id: int, message_id: int, part: Part, keyboard: InlineKeyboardMarkup | None
    ) -> int:
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


def _turn_of(item: OutboxItem) -> str | None:
    """The turn whose answer or question this is; None for the channel's own words."""
    turn_id, final, _ = item.key.partition(_FINAL)
    return turn_id if final else item.body.get("turn_id")


def _thread(item: OutboxItem) -> int | None:
    return None if item.address.thread_id is None else int(item.address.thread_id)


def _first_key(item: OutboxItem) -> str:
    return item.key.removesuffix(REPEAT_MARK)
