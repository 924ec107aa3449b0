"""The one worker that says what stands in the outbox: claim, send all parts, settle.

A message certainly not sent is tried again; one that may have been sent is said once more, marked
as repeated; chats wait for themselves only. Nothing here decides what is said.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta

from bot.telegram.delivery import REPEAT_MARK, Delivery, Outcome
from bot.telegram.faults import Fault, FaultKind, backoff_s
from bot.telegram.pacing import Gate
from bot.telegram.screening import CHANNEL
from core.clock import Clock
from core.errors import StoreError
from core.store import outbox
from core.store.database import Database, Transaction
from core.store.outbox import OutboxItem

log = logging.getLogger(__name__)

_SENDING_AT_ONCE = 24
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
        waiting: asyncio.Event,
    ) -> None:
        self._store = store
        self._gate = gate
        self._clock = clock
        self._delivery = delivery
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
        if count:
            log.warning("unclear sends are repeated, marked", extra={"count": count})

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

    async def _send(self, item: OutboxItem) -> None:
        # Whatever goes wrong in there, the chat must not wait for this message for ever.
        kind = FaultKind.RETRY if item.attempts < _UNEXPECTED else FaultKind.GONE
        outcome = Outcome(item, fault=Fault(kind, detail="unexpected fault"))
        try:
            outcome = await self._delivery.send(item)
        finally:
            self._settled.append(outcome)
            self.wake()
