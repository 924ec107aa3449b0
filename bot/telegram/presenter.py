"""What is seen while a turn runs: typing, and one progress message edited at most once a second.

Never raises into the walk and never sends an answer: answers are the outbox's. `show` only notes
what happened; a task per turn draws it, and what cannot be drawn now is dropped.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from zlib import crc32

from telegram import Bot, LinkPreviewOptions
from telegram.error import InvalidToken, TelegramError

from bot.telegram.faults import FaultKind, classify
from bot.telegram.formatting import render
from bot.telegram.pacing import Gate, Pace
from bot.telegram.parts import Part, clean
from bot.telegram.quoting import quoting
from core.clock import Clock
from core.errors import StoreError
from core.i18n import Texts
from core.messages import (
    Block,
    ButtonsChanged,
    ChatAddress,
    QuestionSettled,
    Reply,
    StepProgress,
    StepStarted,
    TextGrew,
    TurnClosed,
    TurnEvent,
    TurnStarted,
    TurnSuspended,
)
from core.store import kv
from core.store.database import Database, Transaction
from core.store.encoding import load_object

log = logging.getLogger(__name__)

# An answer that comes sooner than this needs no typing before it.
TYPING_AFTER_S = 0.15
# Telegram shows typing for five seconds.
TYPING_EVERY_S = 4.0
PROGRESS_AFTER_S = 1.5
EDIT_EVERY_S = 1.0
_TICK_S = 0.2
_LAST_REQUEST_S = 1.0
_LINE_CHARS = 300
_DRAFT_IDS = 2**31 - 1

_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)

PROGRESS_KEY = "telegram.progress"


@dataclass(slots=True)
class View:
    """What a chat sees of its running turn. Times are monotonic seconds."""

    address: ChatAddress
    started_at: float
    turn_id: str = ""
    lang: str = ""
    answers: str | None = None
    line: str = ""
    shown: str = ""
    message_id: int | None = None
    message_at: float = 0.0
    drawn_at: float = 0.0
    typed_at: float = float("-inf")
    phrase: str = ""
    words: str = ""
    drafted: str = ""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """A progress message that stands in a chat; `age_s` since it was first sent."""

    chat_id: str
    message_id: int
    age_s: float


class Presenter:
    """Draws the turns of all chats; `wake_outbox` is called when an answer waits to be sent."""

    def __init__(
        self,
        *,
        bot: Bot,
        gate: Gate,
        store: Database,
        texts: Texts,
        clock: Clock,
        lang: str,
        wake_outbox: Callable[[], None],
        streams: bool = True,
    ) -> None:
        self._bot = bot
        self._gate = gate
        self._store = store
        self._texts = texts
        self._clock = clock
        self._lang = lang
        self._wake_outbox = wake_outbox
        self._streams, self._drafts = streams, True
        self._views: dict[str, View] = {}
        self._ending: dict[str, View] = {}
        self._standing: dict[str, tuple[str, int, float]] = {}
        self._noted: dict[str, tuple[int, int]] = {}
        self._late: set[asyncio.Task[None]] = set()

    async def show(self, address: ChatAddress, event: TurnEvent) -> None:
        """Note an event of the chat's turn. Draws nothing itself, but for the end of the turn:
        then the last drawing is waited for, so that no typing follows the answer."""
        view = self._view(address)
        match event:
            case TurnStarted(turn_id=turn_id, lang=lang, answers=answers):
                view.turn_id, view.lang, view.answers = turn_id, lang, answers
            case QuestionSettled(turn_id=turn_id) | ButtonsChanged(turn_id=turn_id):
                view.turn_id = turn_id
            case StepStarted(turn_id=turn_id, phrase=phrase):
                view.turn_id = turn_id
                view.phrase = view.line = clean(phrase).strip()[:_LINE_CHARS]
                view.words = ""
            case StepProgress(done=done, total=total):
                view.line = self._counted(view, done, total)
            case TextGrew(turn_id=turn_id, text=text) if self._streams:
                view.turn_id, view.words = turn_id, text
            case TurnClosed(outbox_key=None):
                await self.discard(address)
            case TurnClosed() | TurnSuspended():
                await self.end(address)
                self._wake_outbox()

    async def end(self, address: ChatAddress) -> None:
        """Stop drawing for this chat. Called again it does nothing."""
        view = self._views.pop(address.key, None)
        if view is not None:
            await self._end(view)

    async def discard(self, address: ChatAddress) -> None:
        """Stop drawing and take the progress message away: no answer will come in its place."""
        view = self._views.pop(address.key, None)
        if view is None:
            return
        await self._end(view)
        progress = await self.take_progress(view.turn_id)
        if progress is None:
            return
        with suppress(TelegramError):
            await self._bot.delete_message(int(address.chat_id), progress.message_id)

    async def take_progress(self, turn_id: str) -> Progress | None:
        """Hand the turn's progress message over to whoever sends the answer; None if none stands.

        Taken once: from then on the message is the taker's, to edit or to delete.
        """
        for view in list(self._views.values()):
            if turn_id and view.turn_id == turn_id:
                await self.end(view.address)
        # The outbox is woken by other chats too, while the last drawing is still waited for.
        if turn_id and (ending := self._ending.get(turn_id)) is not None:
            await ending.settled.wait()
        found = self._standing.pop(turn_id, None)
        if found is None:
            return None
        chat_id, message_id, at = found
        return Progress(chat_id, message_id, self._clock.monotonic() - at)

    def give_back(self, turn_id: str, progress: Progress) -> None:
        """Undo `take_progress`: the message still stands as it was."""
        at = self._clock.monotonic() - progress.age_s
        self._standing[turn_id] = (progress.chat_id, progress.message_id, at)

    async def forget(self, tx: Transaction, turn_id: str) -> None:
        """The turn's progress message is gone or has become the answer."""
        if self._noted.pop(turn_id, None) is not None:
            await kv.put(tx, PROGRESS_KEY, json.dumps(self._noted))

    async def clear_leftovers(self) -> None:
        """Delete the progress messages that a run before this one left standing."""
        async with self._store.write() as tx:
            noted = load_object(await kv.get(tx, PROGRESS_KEY))
            await kv.delete(tx, PROGRESS_KEY)
        for chat_id, message_id in noted.values():
            try:
                await self._bot.delete_message(int(chat_id), int(message_id))
            except TelegramError as exc:
                log.info("old progress not deleted", extra={"error": type(exc).__name__})

    async def _end(self, view: View) -> None:
        view.ended.set()
        self._ending[view.turn_id] = view
        try:
            if view.task is not None:
                await self._wait_for_last(view, view.task)
        finally:
            view.settled.set()
            self._ending.pop(view.turn_id, None)

    async def _wait_for_last(self, view: View, task: asyncio.Task[None]) -> None:
        # A request on its way is let finish: cut off, it would cost the connection, and perhaps
        # leave a message of which nobody knows.
        await asyncio.wait({task}, timeout=_LAST_REQUEST_S)
        if not task.done():
            view.abandoned = True
            self._late.add(task)
            task.add_done_callback(self._late.discard)
        elif view.message_id is not None and view.turn_id:
            standing = (view.address.chat_id, view.message_id, view.message_at)
            self._standing[view.turn_id] = standing

    def _view(self, address: ChatAddress) -> View:
        view = self._views.get(address.key)
        if view is None:
            view = View(address, self._clock.monotonic(), lang=self._lang)
            view.task = asyncio.create_task(self._draw(view), name=f"draw {address.key}")
            self._views[address.key] = view
        return view

    def _counted(self, view: View, done: int | None, total: int | None) -> str:
        if done is None or not view.phrase:
            return view.line
        lang = view.lang or self._lang
        if total is None:
            return f"{view.phrase} {self._texts.number(done, lang)}"
        return self._texts.say(
            "telegram.progress", lang, phrase=view.phrase, done=done, total=total
        )

    async def _draw(self, view: View) -> None:
        """The drawing task of one turn; ends soon after `view.ended`."""
        wait = TYPING_AFTER_S
        while not await _set_within(view.ended, wait):
            wait = _TICK_S
            try:
                await self._draw_once(view)
            except TelegramError as exc:
                fault = classify(exc)
                if fault.kind is not FaultKind.UNCHANGED:
                    log.info("progress not shown", extra={"error": type(exc).__name__})
                if fault.kind is FaultKind.GONE:
                    return
            except StoreError as exc:
                log.warning("progress not noted", extra={"error": exc.detail})
        if view.abandoned and view.message_id is not None:
            # Its last request took too long for it to become the answer.
            with suppress(TelegramError):
                await self._bot.delete_message(int(view.address.chat_id), view.message_id)

    async def _draw_once(self, view: View) -> None:
        now = self._clock.monotonic()
        chat_id, thread = int(view.address.chat_id), _thread(view.address)
        if now - view.typed_at >= TYPING_EVERY_S:
            view.typed_at = now
            if not await self._bot.send_chat_action(chat_id, "typing", message_thread_id=thread):
                view.typed_at = float("-inf")  # there was no room for it: as soon as there is
        words = _first_part(view.words) if view.words else None
        if words is not None and self._may_draft(view):
            await self._draft(view, words, now)
            return
        part = words or Part(view.line)
        if (
            view.ended.is_set()
            or part.text in {"", view.shown}
            or now - view.started_at < PROGRESS_AFTER_S
            or now - view.drawn_at < EDIT_EVERY_S
            or not self._gate.has_room(view.address.chat_id, Pace.PROGRESS)
        ):
            return
        view.drawn_at = now
        if view.message_id is not None:
            view.shown = part.text
            await self._bot.edit_message_text(
                part.text,
                chat_id,
                view.message_id,
                entities=part.entities,
                link_preview_options=_NO_PREVIEW,
            )
            return
        message = await self._bot.send_message(
            chat_id,
            part.text,
            entities=part.entities,
            message_thread_id=thread,
            disable_notification=True,
            link_preview_options=_NO_PREVIEW,
            reply_parameters=quoting(view.address.chat_id, view.answers),
        )
        view.message_id, view.message_at, view.shown = message.message_id, now, part.text
        # A new message ends the typing sign on the phone, so it is given anew at once.
        view.typed_at = float("-inf")
        self._noted[view.turn_id] = (chat_id, message.message_id)
        async with self._store.write() as tx:
            await kv.put(tx, PROGRESS_KEY, json.dumps(self._noted))

    def _may_draft(self, view: View) -> bool:
        """Drafts are for private chats, and go when a message is sent: where a progress message
        is to become the answer by an edit, a draft would stay behind it."""
        private = not view.address.chat_id.startswith("-")
        return self._drafts and private and view.message_id is None

    async def _draft(self, view: View, words: Part, now: float) -> None:
        """Show the answer so far as a draft, at most once a second."""
        if (
            view.ended.is_set()
            or words.text == view.drafted
            or now - view.drawn_at < EDIT_EVERY_S
            or not self._gate.has_room(view.address.chat_id, Pace.PROGRESS)
        ):
            return
        view.drawn_at, view.drafted = now, words.text
        try:
            await self._bot.send_message_draft(
                int(view.address.chat_id),
                crc32(view.turn_id.encode()) % _DRAFT_IDS + 1,
                words.text,
                entities=words.entities,
                message_thread_id=_thread(view.address),
            )
        except TelegramError as exc:
            if isinstance(exc, InvalidToken) or classify(exc).kind is FaultKind.REFUSED:
                # Not this chat, or an older Bot API server (404): edits do instead.
                self._drafts = False
            raise


def _first_part(words: str) -> Part:
    """The beginning of an answer as it will be laid out."""
    return render(Reply((Block("prose", words),), "")).parts[0]


def _thread(address: ChatAddress) -> int | None:
    return None if address.thread_id is None else int(address.thread_id)


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
