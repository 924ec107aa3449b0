"""Taking the next request of a chat's queue: messages that belong together become one row.

Until then every part is a row of its own, open in the store; afterwards the first holds them all,
by one commit. So a crash at any moment loses none and works none twice.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import replace

from bot.telegram import gathering
from core.clock import Clock
from core.store import inbox
from core.store.credentials import Vault
from core.store.database import Database
from core.store.inbox import StoredInbox

MORE = "more"
LATE = "late"
_ALBUMS_REMEMBERED = 256


class Joiner:
    """Serves the queues of all chats of one bot."""

    def __init__(self, *, store: Database, vault: Vault, clock: Clock) -> None:
        self._store, self._vault, self._clock = store, vault, clock
        self._albums: OrderedDict[str, int] = OrderedDict()

    async def ready(
        self, queue: deque[StoredInbox], came: asyncio.Event, is_stopping: Callable[[], bool]
    ) -> None:
        """Wait until the first request of this queue is whole; `came` is set when a row was added
        to it. Does not wait for what has been lying there for longer."""
        until = self._clock.monotonic() + gathering.MOST_S
        while queue and not is_stopping():
            group = _group(queue)
            quiet_s = gathering.waits_s([row.body for row in group])
            age_s = (self._clock.now() - group[-1].received_at).total_seconds()
            wait_s = min(quiet_s - max(0.0, age_s), until - self._clock.monotonic())
            if quiet_s <= 0 or wait_s <= 0:
                return
            came.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await came.wait()
            except TimeoutError:
                continue

    async def take(self, queue: deque[StoredInbox]) -> StoredInbox:
        """Take the first request out of the queue, as one row. `late` in its body says that it is
        part of an album that was taken before. Raises `StoreError`, the queue as it was."""
        group = _group(queue)
        first, rest = group[0], group[1:]
        body = dict(first.body)
        album = gathering.album_key(body)
        if album is not None:
            taken = self._albums.get(f"{first.chat_key}:{album}", first.id)
            if taken != first.id:
                body[LATE] = True
        if rest:
            body[MORE] = [*body.get(MORE, ()), *(row.body["update"] for row in rest)]
            async with self._store.write() as tx:
                await inbox.join(tx, first, body, [row.id for row in rest], vault=self._vault)
        for row in group:
            queue.remove(row)
            if (album := gathering.album_key(row.body)) is not None:
                self._remember(f"{row.chat_key}:{album}", first.id)
        return first if body == first.body else replace(first, body=body)

    def _remember(self, album: str, row_id: int) -> None:
        self._albums.setdefault(album, row_id)
        self._albums.move_to_end(album)
        while len(self._albums) > _ALBUMS_REMEMBERED:
            self._albums.popitem(last=False)


def _group(queue: deque[StoredInbox]) -> list[StoredInbox]:
    """The first row and those behind it that go on with it. Other people's rows between do not
    part them, and nothing parts an album."""
    first = queue[0]
    group, album = [first], gathering.album_key(first.body)
    if MORE in first.body:  # joined before a restart: what comes now came later
        return group
    sender = gathering.sender_of(first.body)
    for row in list(queue)[1:]:
        if gathering.sender_of(row.body) != sender:
            continue
        if gathering.belongs([one.body for one in group], row.body):
            group.append(row)
            album = album or gathering.album_key(row.body)
        elif album is None:
            break
    return group
