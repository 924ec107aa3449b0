"""Who works which stored update when: in order within a chat and topic, chats side by side.

Reads the inbox table, so what a restart finds is worked like what has just come. `/stop` and
`/status` go past the queue of their chat; taps are answered past it and worked in it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from bot.telegram.express import Express
from bot.telegram.faults import backoff_s
from bot.telegram.gathering import message_of
from bot.telegram.handlers import Handlers
from bot.telegram.joining import Joiner
from bot.telegram.making_way import make_way
from bot.telegram.ports import Turns
from bot.telegram.screening import CHANNEL, Lane, lane, tap_id
from core.clock import Clock
from core.errors import StoreError
from core.messages import ChatAddress
from core.store import inbox
from core.store.credentials import Vault
from core.store.database import Database
from core.store.inbox import StoredInbox

log = logging.getLogger(__name__)

# Turns at once. More would only make each of them slower.
TURNS_AT_ONCE = 32


class Workers:
    """The queues of all chats of one bot. `wake` it after updates were stored."""

    def __init__(
        self,
        *,
        store: Database,
        vault: Vault,
        bot_id: str,
        handlers: Handlers,
        turns: Turns,
        clock: Clock,
        poll_age_s: Callable[[], float | None],
        rival: Callable[[], str | None] = lambda: None,
        express: Express | None = None,
    ) -> None:
        self._store = store
        self._vault = vault
        self._bot_id = bot_id
        self._handlers, self._turns = handlers, turns
        self._poll_age_s = poll_age_s
        self._rival = rival
        self._express = express
        self._joiner = Joiner(store=store, vault=vault, clock=clock)
        self._wake = asyncio.Event()
        self._wake.set()
        self._seen_id = 0
        self._leftover_id = -1
        self._queues: dict[str, deque[StoredInbox]] = {}
        self._came: dict[str, asyncio.Event] = {}
        self._working: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._slots = asyncio.Semaphore(TURNS_AT_ONCE)
        self._stopping = False

    def wake(self) -> None:
        """Look into the inbox now."""
        self._wake.set()

    def waiting(self) -> int:
        """How many updates wait behind others."""
        return sum(len(queue) for queue in self._queues.values())

    def is_working(self, address: ChatAddress) -> bool:
        return address.key in self._working

    def poll_age_s(self) -> float | None:
        """Seconds since Telegram was last heard; None before the first time."""
        return self._poll_age_s()

    def rival(self) -> str | None:
        """The bot whose updates another program fetches too; None when nobody does."""
        return self._rival()

    async def run(self) -> None:
        """Take up what the inbox holds, until cancelled; then the works under way are cancelled
        too and their rows stay open for the next start."""
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                try:
                    await self._take_up()
                except StoreError as exc:
                    log.error("inbox not read", extra={"error": exc.detail})
                    self._wake.set()
                    await asyncio.sleep(1)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def stop(self, seconds: float) -> None:
        """Begin nothing new and give what runs so long to end."""
        self._stopping = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def _take_up(self) -> None:
        async with self._store.read() as tx:
            rows = await inbox.open_rows(
                tx, CHANNEL, self._bot_id, after_id=self._seen_id, vault=self._vault
            )
        if self._leftover_id < 0:  # the first look, before the first poll has stored anything
            self._leftover_id = rows[-1].id if rows else 0
        for row in rows:
            was_told = self._express is not None and self._express.was_told(row)
            match lane(row.body.get("update")):
                case Lane.PAST if was_told and self._express is not None:
                    self._start(self._express.close(row))
                case Lane.TAP if was_told:
                    self._enqueue(row)
                case Lane.PAST:
                    self._start(self._handlers.work_past(row, pending=self))
                case Lane.TAP:
                    self._handlers.hear_tap(tap_id(row.body.get("update") or {}))
                    if self.is_working(ChatAddress.from_key(row.chat_key)):
                        self._start(make_way(self._turns, row))
                    self._enqueue(row)
                case Lane.EDIT if await self._replace(row):
                    pass
                case Lane.EDIT if row.chat_key in self._working:
                    self._start(self._handlers.work_past(row, pending=self))
                case _:
                    self._enqueue(row)
            self._seen_id = row.id

    def _enqueue(self, row: StoredInbox) -> None:
        queue = self._queues.get(row.chat_key)
        if queue is not None:
            queue.append(row)
            self._came[row.chat_key].set()
            return
        self._queues[row.chat_key] = deque([row])
        self._came[row.chat_key] = asyncio.Event()
        self._start(self._work_chat(row.chat_key))

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        task: asyncio.Task[Any] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work_chat(self, key: str) -> None:
        """Work one chat's queue to its end, one request after the other."""
        queue, came = self._queues[key], self._came[key]
        failures = 0
        try:
            while queue and not self._stopping:
                await self._joiner.ready(queue, came, lambda: self._stopping)
                async with self._slots:
                    closed = await self._work_next(key, queue)
                if closed:
                    failures = 0
                else:
                    failures += 1
                    await asyncio.sleep(backoff_s(failures, most_s=10))
        finally:
            self._working.discard(key)
            self._queues.pop(key, None)
            self._came.pop(key, None)

    async def _work_next(self, key: str, queue: deque[StoredInbox]) -> bool:
        """Work the first request of the queue; False when the store failed and it stands there
        again, so that what comes behind does not overtake."""
        if self._stopping:
            return True
        self._working.add(key)
        try:
            row = await self._joiner.take(queue)
        except StoreError as exc:
            log.error("update not taken", extra={"error": exc.detail})
            return False
        closed = await self._handlers.work(row, leftover=row.id <= self._leftover_id)
        if not closed:
            queue.appendleft(row)
        return closed

    async def _replace(self, row: StoredInbox) -> bool:
        """Put a correction in the place of a message whose work has not begun."""
        edited = row.body["update"]["edited_message"]
        number = edited.get("message_id") if isinstance(edited, Mapping) else None
        waiting = None if number is None else self._find(row.chat_key, number)
        if waiting is None:
            return False
        update = {"update_id": waiting.update_id, "message": edited}
        body = {**waiting.body, "update": update}
        async with self._store.write() as tx:
            await inbox.replace_body(tx, waiting, body, vault=self._vault)
            await inbox.mark_done(tx, row.id)
        queue = self._queues.get(row.chat_key)
        if queue is not None and waiting in queue:  # not taken up meanwhile
            queue[queue.index(waiting)] = replace(waiting, body=body)
        return True

    def _find(self, chat_key: str, message_id: object) -> StoredInbox | None:
        for row in self._queues.get(chat_key, ()):
            message = message_of(row.body)
            if message is not None and message.get("message_id") == message_id:
                return row
        return None
