"""How updates come into the house, however they were brought: stored in one commit, then worked.

Whoever brings them acknowledges them after `keep` has returned and not before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from bot.telegram.guest_mode import KIND as GUEST_MESSAGE
from bot.telegram.guest_mode import GuestMode
from bot.telegram.numbers import UNREADABLE
from bot.telegram.screening import CHANNEL
from bot.telegram.sifting import Sifter
from core.clock import Clock
from core.store import inbox, kv
from core.store.credentials import Vault
from core.store.database import Database, Transaction
from core.store.encoding import dump_json

log = logging.getLogger(__name__)

LAST_POLL = "telegram.last_poll"
CONFLICT = "telegram.conflict"
_LAST_POLL_EVERY_S = 30.0
# A commit that lasts longer keeps nobody waiting who wants the bot to stop.
SLOW_S = 0.7


class Intake:
    """Stores for one bot. `on_stored` is called after each commit that stored something, `slow`
    with the updates of a commit that lasts."""

    def __init__(
        self,
        *,
        bot_id: str,
        sifter: Sifter,
        store: Database,
        vault: Vault,
        clock: Clock,
        on_stored: Callable[[], None],
        slow: Callable[[list[Any]], Awaitable[None]],
        guests: GuestMode | None = None,
    ) -> None:
        self._bot_id, self._sifter, self._store, self._vault = bot_id, sifter, store, vault
        self._clock, self._on_stored, self._slow = clock, on_stored, slow
        self._guests = guests
        self.also: tuple[str, ...] = () if guests is None else (GUEST_MESSAGE,)
        """Kinds of updates to be had besides the usual ones."""
        self._noted_at = 0.0
        self._rival_noted = True  # perhaps by a run before this one

    async def first_offset(self) -> int | None:
        async with self._store.read() as tx:
            return await inbox.next_offset(tx, CHANNEL, self._bot_id)

    async def keep(
        self,
        updates: list[Any],
        next_offset: int | None,
        peek: Callable[[], Awaitable[list[Any]]] | None = None,
    ) -> None:
        """Store updates, and where polling goes on (None: wherever Telegram says), in one commit.

        The same updates may be brought again. `peek` tells what waits at Telegram meanwhile, while
        a commit lasts. Raises `StoreError`, and `TelegramError` when
        Telegram must be asked who the bot is and does not answer.
        """
        await self._sifter.prepare(updates)
        commit = asyncio.create_task(self._commit(updates, next_offset))
        try:
            seen = updates
            while not (await asyncio.wait({commit}, timeout=SLOW_S))[0]:
                await self._slow(seen)
                seen = updates if peek is None else await peek()
            stored = await commit
        finally:
            if not commit.done():
                commit.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({commit})
        if stored:
            self._on_stored()
        if self._guests is not None:
            self._guests.hear(updates)

    async def note_alive(self) -> None:
        """Telegram was heard: leave a trace now and then, for whoever looks from outside."""
        if self._is_due():
            async with self._store.write() as tx:
                await self._note(tx)

    async def note_rival(self, bot: str) -> None:
        """Another program takes the updates of this bot."""
        self._rival_noted = True
        async with self._store.write() as tx:
            await kv.put(tx, CONFLICT, f"{self._clock.now().isoformat()} {bot}")

    async def rival_gone(self) -> None:
        if self._rival_noted:
            async with self._store.write() as tx:
                await kv.delete(tx, CONFLICT)
            self._rival_noted = False

    async def _commit(self, updates: list[Any], next_offset: int | None) -> bool:
        async with self._store.write() as tx:
            rows = await self._sifter.rows(tx, updates)
            try:
                await self._add(tx, rows, next_offset)
            except UNREADABLE as exc:  # before anything of them was written
                log.warning("rows not storable", extra={"error": type(exc).__name__})
                await self._add(tx, [_storable(row) for row in rows], next_offset)
            if self._is_due():
                await self._note(tx)
        return bool(rows)

    async def _add(
        self, tx: Transaction, rows: list[inbox.InboxRow], next_offset: int | None
    ) -> None:
        await inbox.add_batch(
            tx,
            rows,
            channel=CHANNEL,
            bot_id=self._bot_id,
            next_offset=next_offset,
            now=self._clock.now(),
            vault=self._vault,
        )

    def _is_due(self) -> bool:
        return self._clock.monotonic() - self._noted_at > _LAST_POLL_EVERY_S

    async def _note(self, tx: Transaction) -> None:
        self._noted_at = self._clock.monotonic()
        await kv.put(tx, LAST_POLL, self._clock.now().isoformat())


def _storable(row: inbox.InboxRow) -> inbox.InboxRow:
    """The row, empty when what it holds cannot be written down."""
    try:
        dump_json(row.body).encode()
    except UNREADABLE:
        return replace(row, body={})
    return row
