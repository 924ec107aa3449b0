"""The one worker that says what stands in the outbox: claim, send all parts, settle.

A message certainly not sent is tried again; one that may have been sent is said once more, marked
as repeated; chats wait for themselves only. Nothing here decides what is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta

from bot.telegram.delivery import REPEAT_MARK, Delivery, Outcome
from bot.telegram.faults import Fault, FaultKind, backoff_s
from bot.telegram.pacing import Gate, Pace
from bot.telegram.reach import Reach
from bot.telegram.screening import CHANNEL
from core.clock import Clock
from core.errors import StoreError
from core.store import outbox
from core.store.database import Database, Transaction
from core.store.moves import leave_topic, move_chat
from core.store.outbox import OutboxItem

log = logging.getLogger(__name__)

_SENDING_AT_ONCE = 24
# Places and lanes of their own for answers to /stop and /status.
_URGENT_AT_ONCE, _URGENT = 4, "!"
_IDLE_S = 60.0
_LAST_SENDS_S = 5.0
# Tries of a message whose sending raises what nobody expects.
_UNEXPECTED = 4
# After this long without success a message is given up as undeliverable.
GIVE_UP_AFTER = timedelta(hours=24)


class OutboxSender:
    """Sends for one bot. `wake` it, or set `waiting`, after a commit that put something in."""

    def __init__(
        self,
        *,
        store: Database,
        gate: Gate,
        clock: Clock,
        delivery: Delivery,
        reach: Reach,
        waiting: asyncio.Event,
    ) -> None:
        self._store = store
        self._gate = gate
        self._clock = clock
        self._delivery = delivery
        self._reach = reach
        self._wake = waiting
        self._sending: dict[str, asyncio.Task[None]] = {}
        self._settled: list[Outcome] = []
        self._stopping = False

    def wake(self) -> None:
        """Look into the outbox now."""
        self._wake.set()

    async def run(self) -> None:
        """Send until cancelled; what is on its way then stays claimed and is settled at the next
        start. A store that fails is waited for."""
        try:
            failures, recovered = 0, False
            while True:
                self._wake.clear()
                try:
                    if not recovered:
                        await self._recover()
                        recovered = True
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
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SENDS_S):
                while self._sending:  # settled by `run`
                    self.wake()
                    await asyncio.sleep(0.02)

    async def _recover(self) -> None:
        """What a crash left half sent is said again, marked."""
        async with self._store.write() as tx:
            count = await outbox.recover(tx, CHANNEL, self._clock.now())
        await self._reach.load()
        if count:
            log.warning("unclear sends are repeated, marked", extra={"count": count})

    async def _has_due(self) -> bool:
        self.wake()
        if self._sending:
            return True
        if self._gate.all_closed_s():
            return False
        closed = [_beginning(chat) for chat in self._gate.waiting()]
        async with self._store.read() as tx:
            due = await outbox.next_due(tx, CHANNEL, closed=closed)
        return due is not None and due <= self._clock.now()

    async def _settle_and_claim(self) -> float:
        """One transaction: write down what has ended, take what may go out. Seconds until the
        next look when nobody wakes the worker before."""
        closed = self._gate.waiting()
        settled, claimed = list(self._settled), list[OutboxItem]()
        now = self._clock.now()
        async with self._store.write() as tx:
            for outcome in settled:
                await self._settle(tx, outcome)
            ended = {_lane(outcome.item) for outcome in settled}
            busy = {key for key in self._sending if key not in ended}
            if not self._stopping and not self._gate.all_closed_s():
                # A chat that must wait is not claimed for: a crash meanwhile would leave it
                # unclear.
                await self._claim(tx, claimed, busy, self._gate.waiting(Pace.URGENT), urgent=True)
                await self._claim(tx, claimed, busy, closed, urgent=False)
            shut = [_beginning(chat) for chat in closed]
            due = None if claimed else await outbox.next_due(tx, CHANNEL, closed=shut)
        del self._settled[: len(settled)]
        for outcome in settled:
            self._sending.pop(_lane(outcome.item), None)
        for item in claimed:
            self._sending[_lane(item)] = asyncio.create_task(
                self._send(item), name=f"send {item.address.key}"
            )
        if all_closed := self._gate.all_closed_s():
            return all_closed + 0.005
        wait = min([_IDLE_S, *closed.values()])
        if due is not None and due > now:
            wait = min(wait, (due - now).total_seconds() + 0.005)
        return wait

    async def _claim(
        self,
        tx: Transaction,
        claimed: list[OutboxItem],
        busy: set[str],
        closed: Iterable[str],
        *,
        urgent: bool,
    ) -> None:
        """Take what may go out now, into `claimed` and `busy`. Urgent messages have lanes and
        places of their own."""
        at_once = _SENDING_AT_ONCE + (_URGENT_AT_ONCE if urgent else 0)
        shut = [_beginning(chat) for chat in closed]
        mark = _URGENT if urgent else ""
        skip = {k.removesuffix(_URGENT) for k in busy if k.endswith(_URGENT) == urgent}
        while len(busy) < at_once:
            item = await outbox.claim_next(
                tx, CHANNEL, skip_chats=skip, closed=shut, urgent=urgent, now=self._clock.now()
            )
            if item is None:
                return
            if self._reach.is_lost(item.address.chat_id):
                await outbox.mark_dead(tx, item.key, "chat out of reach", self._clock.now())
                await self._delivery.forget(tx, item)
                continue
            skip.add(item.address.key)
            busy.add(item.address.key + mark)
            claimed.append(item)

    async def _settle(self, tx: Transaction, outcome: Outcome) -> None:
        item, fault, now = outcome.item, outcome.fault, self._clock.now()
        if fault is None:
            await outbox.mark_sent(tx, item.key, str(outcome.message_id or ""), now)
            await self._delivery.note(tx, item, outcome.message_id)
            await self._delivery.forget(tx, item)
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
            case FaultKind.NO_TOPIC if await leave_topic(tx, item.address):
                await outbox.release(tx, item.key, None, fault.detail, now)
            case FaultKind.MOVED if item.attempts < _UNEXPECTED:
                await move_chat(tx, CHANNEL, item.address.chat_id, fault.moved_to, now)
                await outbox.release(tx, item.key, None, fault.detail, now)
            case FaultKind.UNKNOWN if not item.key.endswith(REPEAT_MARK):
                # It may have arrived. To lose an answer is worse than to hear it twice, so it is
                # said again, once, and says so itself.
                await outbox.repeat(tx, item.key, now)
            case FaultKind.UNKNOWN:
                await outbox.mark_unknown(tx, item.key, fault.detail, now)
                await self._delivery.forget(tx, item)
            case _:
                await outbox.mark_dead(tx, item.key, fault.detail, now)
                await self._delivery.forget(tx, item)
                if fault.kind is FaultKind.GONE:
                    await self._reach.lose(tx, item.address.chat_id, fault.detail)

    async def _send(self, item: OutboxItem) -> None:
        # Whatever goes wrong in there, the chat must not wait for this message for ever.
        kind = FaultKind.RETRY if item.attempts < _UNEXPECTED else FaultKind.UNSAYABLE
        outcome = Outcome(item, fault=Fault(kind, detail="unexpected fault"))
        try:
            outcome = await self._delivery.send(item)
        finally:
            self._settled.append(outcome)
            self.wake()


def _beginning(chat_id: str) -> str:
    """How the keys of all conversations of a chat begin, its topics included."""
    return f"{CHANNEL}:{chat_id}:"


def _lane(item: OutboxItem) -> str:
    return item.address.key + (_URGENT if item.urgent else "")
