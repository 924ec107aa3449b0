"""The one worker that says what stands in the outbox: claim, send all parts, settle.

A message certainly not sent is tried again; one that may have been sent is said once more, marked
as repeated; chats wait for themselves only. Nothing here decides what is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from telegram import Bot, InputFile, LinkPreviewOptions
from telegram.error import TelegramError

from bot.telegram.faults import Fault, FaultKind, backoff_s, classify
from bot.telegram.formatting import Part, clean, render, with_note
from bot.telegram.inbound import CHANNEL
from bot.telegram.pacing import Gate
from bot.telegram.presenter import Presenter
from core.clock import Clock
from core.errors import StoreError
from core.i18n import Texts
from core.messages import Reply
from core.store import kv, outbox
from core.store.database import Database, Transaction
from core.store.outbox import OutboxItem

log = logging.getLogger(__name__)

_SENDING_AT_ONCE = 24
_IDLE_S = 60.0
_LAST_SENDS_S = 5.0
_DELETE_TIMEOUT_S = 2.0
# A younger progress message becomes the answer; an older one goes, for an edit rings no phone.
BECOMES_ANSWER_S = 15.0
# After this long without success a message is given up as undeliverable.
GIVE_UP_AFTER = timedelta(hours=24)
_REPEAT_MARK = ":r"
_FINAL = ":final"
_PARTS_KEY = "telegram.parts:"
_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a send ended: `message_id` of the last message, or the fault that stopped it."""

    item: OutboxItem
    message_id: int | None = None
    fault: Fault | None = None


class _EditAgain(Exception):
    """An edit that did not come through or may not have: it is made again, whichever it was."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        kind = FaultKind.RETRY if fault.kind is FaultKind.UNKNOWN else fault.kind
        self.fault = replace(fault, kind=kind)


class OutboxSender:
    """Sends for one bot. `wake` it after a commit that put something in the outbox."""

    def __init__(
        self, *, bot: Bot, store: Database, gate: Gate, texts: Texts, clock: Clock
    ) -> None:
        self._bot = bot
        self._store = store
        self._gate = gate
        self._texts = texts
        self._clock = clock
        self._presenter: Presenter | None = None
        self._wake = asyncio.Event()
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._settled: list[Outcome] = []
        self._stopping = False
        # How many parts of a message have gone out, by its first key; kept on disk too.
        self._parts_sent: dict[str, int] = {}

    def attach(self, presenter: Presenter) -> None:
        """The presenter whose progress messages become answers."""
        self._presenter = presenter

    def wake(self) -> None:
        """Look into the outbox now."""
        self._wake.set()

    async def run(self) -> None:
        """Send until cancelled; what is on its way then stays claimed and is settled at the next
        start. Raises `StoreError` only when the store fails at the start."""
        async with self._store.write() as tx:
            recovered = await outbox.recover(tx, CHANNEL, self._clock.now())
        if recovered:
            log.warning("unclear sends are repeated, marked", extra={"count": recovered})
        try:
            failures = 0
            while True:
                self._wake.clear()
                try:
                    wait = await self._settle_and_claim()
                    failures = 0
                except StoreError as exc:
                    failures += 1
                    wait = backoff_s(failures, most_s=5)
                    log.error("outbox not read", extra={"error": exc.detail, "wait_s": wait})
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._wake.wait()
        finally:
            for task in self._sending.values():
                task.cancel()
            await asyncio.gather(*self._sending.values(), return_exceptions=True)

    async def stop(self, seconds: float) -> None:
        """Say what can be said now, then claim nothing more and settle what is on its way; at
        most so long. `run` must still be going and is cancelled afterwards."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while await self._has_due():  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        self._stopping = True
        if self._sending:
            await asyncio.wait(set(self._sending.values()), timeout=_LAST_SENDS_S)
        try:
            await self._settle_and_claim()
        except StoreError as exc:
            log.error("sends not settled at the stop", extra={"error": exc.detail})

    async def _has_due(self) -> bool:
        self.wake()
        async with self._store.read() as tx:
            due = await outbox.next_due(tx, CHANNEL)
        closed = bool(self._gate.waiting())
        return bool(self._sending) or (due is not None and due <= self._clock.now() and not closed)

    async def _settle_and_claim(self) -> float:
        """One transaction: write down what has ended, take what may go out. Seconds until the
        next look when nobody wakes the worker before."""
        closed = self._gate.waiting()
        settled, claimed = list(self._settled), list[OutboxItem]()
        now = self._clock.now()
        async with self._store.write() as tx:
            for outcome in settled:
                await self._settle(tx, outcome)
            # A chat that must wait is not claimed for: a crash meanwhile would leave it unclear.
            ended = {outcome.item.address.key for outcome in settled}
            skip = {key for key in self._sending if key not in ended}
            skip |= {f"{CHANNEL}:{chat}:" for chat in closed}
            while not self._stopping and len(self._sending) + len(claimed) < _SENDING_AT_ONCE:
                item = await outbox.claim_next(tx, CHANNEL, skip_chats=skip, now=now)
                if item is None:
                    break
                skip.add(item.address.key)
                claimed.append(item)
            due = None if claimed else await outbox.next_due(tx, CHANNEL)
        del self._settled[: len(settled)]
        for outcome in settled:
            self._sending.pop(outcome.item.address.key, None)
        for item in claimed:
            key = item.address.key
            self._sending[key] = asyncio.create_task(self._send(item), name=f"send {key}")
        if due is not None and due > now:
            return min(_IDLE_S, (due - now).total_seconds() + 0.005)
        return min([_IDLE_S, *closed.values()])

    async def _settle(self, tx: Transaction, outcome: Outcome) -> None:
        item, fault, now = outcome.item, outcome.fault, self._clock.now()
        first_key = item.key.removesuffix(_REPEAT_MARK)
        if fault is None:
            await outbox.mark_sent(tx, item.key, str(outcome.message_id or ""), now)
            await kv.delete(tx, _PARTS_KEY + first_key)
            if self._presenter is not None and (turn_id := _turn_of(item)):
                await self._presenter.forget(tx, turn_id)
            return
        log.warning(
            "message not sent",
            extra={"key": item.key, "fault": fault.kind.value, "detail": fault.detail},
        )
        match fault.kind:
            case FaultKind.WAIT | FaultKind.RETRY if now - item.created_at < GIVE_UP_AFTER:
                wait = fault.after_s or backoff_s(item.attempts)
                await outbox.release(
                    tx, item.key, now + timedelta(seconds=wait), fault.detail, now
                )
            case FaultKind.UNKNOWN if not item.key.endswith(_REPEAT_MARK):
                # It may have arrived. To lose an answer is worse than to hear it twice, so it is
                # said again, once, and says so itself.
                await outbox.repeat(tx, item.key, now)
            case FaultKind.UNKNOWN:
                await outbox.mark_unknown(tx, item.key, fault.detail, now)
            case _:
                await outbox.mark_dead(tx, item.key, fault.detail, now)

    async def _send(self, item: OutboxItem) -> None:
        """Send one message, part by part, and note how it ended."""
        try:
            outcome = Outcome(item, message_id=await self._send_parts(item))
        except TelegramError as exc:
            outcome = await self._last_resort(item, classify(exc))
        except _EditAgain as exc:
            outcome = Outcome(item, fault=exc.fault)
        except StoreError as exc:
            outcome = Outcome(item, fault=Fault(FaultKind.RETRY, detail=exc.detail))
        except (KeyError, TypeError, ValueError) as exc:
            log.exception("message not readable", extra={"key": item.key})
            outcome = Outcome(item, fault=Fault(FaultKind.GONE, detail=type(exc).__name__))
        if outcome.fault is not None and outcome.fault.kind is FaultKind.WAIT:
            self._gate.close(item.address.chat_id, outcome.fault.after_s)
        self._settled.append(outcome)
        self.wake()

    async def _send_parts(self, item: OutboxItem) -> int | None:
        reply = Reply.from_json(item.body)
        rendered = render(
            reply,
            too_long=self._texts.say("telegram.too_long", reply.lang),
            empty=self._texts.say("telegram.empty", reply.lang),
        )
        first_key = item.key.removesuffix(_REPEAT_MARK)
        at = await self._first_part(item, first_key)
        parts = rendered.parts[at:]
        if reply.repeated and parts:
            note = self._texts.say("telegram.repeated", reply.lang)
            parts = (*with_note(parts[0], note), *parts[1:])
        message_id: int | None = None
        for number, part in enumerate(parts):
            edited = await self._into_progress(item, part) if at == 0 and number == 0 else None
            message_id = edited or await self._send_part(item, part)
            self._parts_sent[first_key] = at = at + 1
            if number < len(parts) - 1 or rendered.document is not None:
                async with self._store.write() as tx:
                    await kv.put(tx, _PARTS_KEY + first_key, str(at))
        if rendered.document is not None:
            message_id = await self._send_document(item, reply.lang, rendered.document)
        self._parts_sent.pop(first_key, None)
        return message_id

    async def _last_resort(self, item: OutboxItem, fault: Fault) -> Outcome:
        """What Telegram does not take as a message, not even plain, goes out as a file."""
        if fault.kind is not FaultKind.REFUSED:
            return Outcome(item, fault=fault)
        log.warning("message refused, sent as a file", extra={"detail": fault.detail})
        reply = Reply.from_json(item.body)
        try:
            return Outcome(item, await self._send_document(item, reply.lang, reply.plain))
        except TelegramError as exc:
            return Outcome(item, fault=classify(exc))

    async def _first_part(self, item: OutboxItem, first_key: str) -> int:
        """The part at which to go on: 0, but for a message that was interrupted."""
        if item.attempts > 1 or item.key.endswith(_REPEAT_MARK):
            if first_key not in self._parts_sent:
                async with self._store.read() as tx:
                    noted = await kv.get(tx, _PARTS_KEY + first_key)
                self._parts_sent[first_key] = int(noted) if noted else 0
            return self._parts_sent[first_key]
        return 0

    async def _into_progress(self, item: OutboxItem, part: Part) -> int | None:
        """Let a young progress message become the answer; delete an old one. None: send anew."""
        turn_id = _turn_of(item)
        if self._presenter is None or turn_id is None:
            return None
        progress = await self._presenter.take_progress(turn_id)
        if progress is None:
            return None
        chat_id = int(item.address.chat_id)

        async def edit(part: Part) -> int:
            return await self._edit(chat_id, progress.message_id, part)

        if progress.age_s < BECOMES_ANSWER_S:
            try:
                return await self._formatted(item, part, edit)
            except TelegramError as exc:
                fault = classify(exc)
                if fault.kind in {FaultKind.WAIT, FaultKind.RETRY, FaultKind.UNKNOWN}:
                    # Carried out twice an edit changes nothing: a lost answer is no riddle here.
                    self._presenter.give_back(turn_id, progress)
                    raise _EditAgain(fault) from exc
        with suppress(TelegramError, TimeoutError):
            async with asyncio.timeout(_DELETE_TIMEOUT_S):
                await self._bot.delete_message(chat_id, progress.message_id)
        return None

    async def _send_part(self, item: OutboxItem, part: Part) -> int:
        chat_id, thread = int(item.address.chat_id), _thread(item)

        async def send(part: Part) -> int:
            await self._gate.acquire(item.address.chat_id)
            message = await self._bot.send_message(
                chat_id,
                part.text,
                entities=part.entities,
                message_thread_id=thread,
                link_preview_options=_NO_PREVIEW,
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

    async def _edit(self, chat_id: int, message_id: int, part: Part) -> int:
        await self._gate.acquire(str(chat_id))
        try:
            await self._bot.edit_message_text(
                part.text,
                chat_id,
                message_id,
                entities=part.entities,
                link_preview_options=_NO_PREVIEW,
            )
        except TelegramError as exc:
            if classify(exc).kind is not FaultKind.UNCHANGED:
                raise
        return message_id

    async def _send_document(self, item: OutboxItem, lang: str, text: str) -> int:
        name = self._texts.say("telegram.file_name", lang)
        await self._gate.acquire(item.address.chat_id)
        message = await self._bot.send_document(
            int(item.address.chat_id),
            InputFile(clean(text).encode(), filename=name),
            message_thread_id=_thread(item),
        )
        return message.message_id


def _turn_of(item: OutboxItem) -> str | None:
    """The turn whose answer this is; None for the channel's own words."""
    turn_id, final, _ = item.key.partition(_FINAL)
    return turn_id if final else None


def _thread(item: OutboxItem) -> int | None:
    return None if item.address.thread_id is None else int(item.address.thread_id)
