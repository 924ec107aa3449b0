"""One rate gate for everything the bot says: token buckets with burst, and Telegram's own waits.

Answers wait for their turn; progress only goes when enough is left for the answers behind it.
Pure arithmetic over a monotonic clock, but for `acquire`, which sleeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

# Messages that stay free for answers when progress asks.
RESERVE = 2
# Full buckets say nothing and are dropped when there are more than this.
_KEPT_CHATS = 200


@dataclass(slots=True)
class Bucket:
    """Up to `burst` tokens, filled at `rate` a second."""

    burst: float
    rate: float
    tokens: float = field(default=-1.0)
    at: float = 0.0

    def level(self, now: float) -> float:
        if self.tokens < 0:
            return self.burst
        return min(self.burst, self.tokens + (now - self.at) * self.rate)

    def take(self, now: float) -> None:
        """Take one token. May go below zero: who must send does, and the next one waits more."""
        self.tokens, self.at = self.level(now) - 1, now
        if self.tokens < 0:
            self.at, self.tokens = now + -self.tokens / self.rate, 0.0

    def wait_s(self, now: float, *, need: float = 1.0) -> float:
        """Seconds until `need` tokens are there; 0 when they are."""
        missing = need - self.level(now)
        return max(0.0, missing / self.rate)


class Gate:
    """When a message to a chat may go. `monotonic` is the clock's, in seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._bot = Bucket(100, 30)
        self._chats: dict[str, Bucket] = {}
        self._closed_until: dict[str, float] = {}

    def wait_s(self, chat_id: str, *, reserve: int = 0) -> float:
        """Seconds until a message to this chat may go, `reserve` tokens left over; 0 = now."""
        now = self._monotonic()
        need = 1.0 + reserve
        return max(
            self._closed_until.get(chat_id, 0.0) - now,
            self._chat(chat_id).wait_s(now, need=need),
            self._bot.wait_s(now, need=need),
            0.0,
        )

    def take(self, chat_id: str) -> None:
        """Count one message to this chat."""
        now = self._monotonic()
        self._chat(chat_id).take(now)
        self._bot.take(now)

    def try_take(self, chat_id: str) -> bool:
        """Count a message that may as well not be sent (progress); False: do not send it."""
        if self.wait_s(chat_id, reserve=RESERVE) > 0:
            return False
        self.take(chat_id)
        return True

    async def acquire(self, chat_id: str) -> None:
        """Wait until a message to this chat may go, and count it."""
        # Asked again after each sleep: meanwhile Telegram may have closed the chat.
        while (wait := self.wait_s(chat_id)) > 0:  # noqa: ASYNC110
            await asyncio.sleep(wait)
        self.take(chat_id)

    def close(self, chat_id: str, seconds: float) -> None:
        """Telegram said to wait this long in this chat; nothing goes there until then."""
        until = self._monotonic() + seconds
        self._closed_until[chat_id] = max(until, self._closed_until.get(chat_id, 0.0))

    def is_closed(self, chat_id: str) -> bool:
        """Whether Telegram's own wait still runs in this chat (also typing keeps still then)."""
        return self._closed_until.get(chat_id, 0.0) > self._monotonic()

    def waiting(self) -> dict[str, float]:
        """The chats to which nothing may go now, with the seconds until something may."""
        now = self._monotonic()
        self._forget(now)
        known = {**self._closed_until, **self._chats}
        return {chat: wait for chat in known if (wait := self.wait_s(chat)) > 0}

    def _chat(self, chat_id: str) -> Bucket:
        bucket = self._chats.get(chat_id)
        if bucket is None:
            # A group allows twenty messages a minute, a private chat about one a second.
            bucket = Bucket(20, 20 / 60) if chat_id.startswith("-") else Bucket(5, 1)
            self._chats[chat_id] = bucket
        return bucket

    def _forget(self, now: float) -> None:
        self._closed_until = {c: t for c, t in self._closed_until.items() if t > now}
        if len(self._chats) > _KEPT_CHATS:
            self._chats = {c: b for c, b in self._chats.items() if b.level(now) < b.burst}
