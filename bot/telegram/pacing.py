"""One rate gate for everything the bot says: token buckets with burst, and Telegram's own waits.

The bot object itself asks the gate (client.py), so no sender can go round it. Answers wait for
their turn; progress and typing go only when enough is left for the answers behind them; answers
to `/stop` and `/status` may go into debt. Arithmetic over a monotonic clock, but for `acquire`.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum

from telegram.error import RetryAfter

# Longer waits are told, not slept: who sends then puts the message back for so long.
MOST_SLEEP_S = 5.0
# Full buckets say nothing and are dropped when there are more than this.
_KEPT_CHATS = 32
# Chats that Telegram refuses within a moment: then it means the bot, not the chats.
_BOT_WIDE_CHATS, _BOT_WIDE_WITHIN_S = 3, 2.0


class Pace(Enum):
    """What kind of thing is said. The values: how many messages must be left for others in a
    private chat, in a group and of the whole bot when it goes; below zero it may go into debt."""

    URGENT = (-3, -5, -30)
    ANSWER = (0, 0, 0)
    TYPING = (1, 5, 10)
    PROGRESS = (2, 10, 20)


_pace: ContextVar[Pace] = ContextVar("pace", default=Pace.ANSWER)


@contextmanager
def at(pace: Pace) -> Iterator[None]:
    """What is said inside is said at this pace."""
    token = _pace.set(pace)
    try:
        yield
    finally:
        _pace.reset(token)


@dataclass(slots=True)
class Bucket:
    """Up to `burst` tokens, filled at `rate` a second. Who must send takes what is not there yet;
    the next one waits so much longer."""

    burst: float
    rate: float
    tokens: float = float("inf")
    at: float = 0.0

    def level(self, now: float) -> float:
        return min(self.burst, self.tokens + (now - self.at) * self.rate)

    def take(self, now: float) -> None:
        self.tokens, self.at = self.level(now) - 1, now

    def wait_s(self, now: float, *, need: float = 1.0) -> float:
        """Seconds until `need` tokens are there; 0 when they are."""
        return max(0.0, (need - self.level(now)) / self.rate)


class Gate:
    """When a message to a chat may go. `monotonic` is the clock's, in seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._bot = Bucket(100, 30)
        self._chats: dict[str, Bucket] = {}
        self._closed_until: dict[str, float] = {}
        self._all_closed_until = 0.0
        self._refused_at: dict[str, float] = {}

    def wait_s(self, chat_id: str, pace: Pace = Pace.ANSWER) -> float:
        """Seconds until something of this kind may go to this chat; 0 = now."""
        now = self._monotonic()
        private, group, bot = pace.value
        left = group if _is_group(chat_id) else private
        return max(
            self._closed_until.get(chat_id, 0.0) - now,
            self._all_closed_until - now,
            self._chat(chat_id).wait_s(now, need=1 + left),
            self._bot.wait_s(now, need=1 + bot),
            0.0,
        )

    def has_room(self, chat_id: str, pace: Pace) -> bool:
        """Whether something of this kind may go now."""
        return self.wait_s(chat_id, pace) <= 0

    def take(self, chat_id: str) -> None:
        """Count one message to this chat."""
        now = self._monotonic()
        self._chat(chat_id).take(now)
        self._bot.take(now)

    def try_take(self, chat_id: str, pace: Pace = Pace.PROGRESS) -> bool:
        """Count a message that may as well not be sent; False: do not send it."""
        if not self.has_room(chat_id, pace):
            return False
        self.take(chat_id)
        return True

    async def acquire(self, chat_id: str) -> None:
        """Wait until a message to this chat may go, and count it. Raises `RetryAfter`, as
        Telegram would, when that lasts too long to stand and wait."""
        # Asked again after each sleep: meanwhile Telegram may have closed the chat.
        while (wait := self.wait_s(chat_id, _pace.get())) > 0:
            if wait > MOST_SLEEP_S:
                raise RetryAfter(dt.timedelta(seconds=wait))
            await asyncio.sleep(wait)
        self.take(chat_id)

    def close(self, chat_id: str, seconds: float) -> None:
        """Telegram said to wait this long in this chat; nothing goes there until then. When it
        says so in several chats at once it means the bot, and all of them wait."""
        now = self._monotonic()
        self._closed_until[chat_id] = max(now + seconds, self._closed_until.get(chat_id, 0.0))
        recent = now - _BOT_WIDE_WITHIN_S
        self._refused_at = {c: t for c, t in self._refused_at.items() if t > recent}
        self._refused_at[chat_id] = now
        if len(self._refused_at) >= _BOT_WIDE_CHATS:
            # The shortest of them: a chat that must wait longer has its own wait.
            soonest = min(self._closed_until.get(c, 0.0) for c in self._refused_at)
            self._all_closed_until = max(self._all_closed_until, soonest)

    def is_closed(self, chat_id: str) -> bool:
        """Whether Telegram's own wait still runs in this chat."""
        return self.closed_s(chat_id) > 0

    def closed_s(self, chat_id: str) -> float:
        """Seconds of Telegram's own wait in this chat, that of the whole bot included."""
        now = self._monotonic()
        until = max(self._closed_until.get(chat_id, 0.0), self._all_closed_until)
        return max(0.0, until - now)

    def all_closed_s(self) -> float:
        """Seconds for which Telegram lets the bot say nothing at all."""
        return max(0.0, self._all_closed_until - self._monotonic())

    def waiting(self, pace: Pace = Pace.ANSWER) -> dict[str, float]:
        """The chats to which nothing may go now, with the seconds until something may. Others
        may wait too while `all_closed_s`."""
        now = self._monotonic()
        self._forget(now)
        known = {**self._closed_until, **self._chats}
        return {chat: wait for chat in known if (wait := self.wait_s(chat, pace)) > 0}

    def _chat(self, chat_id: str) -> Bucket:
        bucket = self._chats.get(chat_id)
        if bucket is None:
            # A group allows twenty messages a minute, a private chat about one a second.
            bucket = Bucket(20, 20 / 60) if _is_group(chat_id) else Bucket(5, 1)
            self._chats[chat_id] = bucket
        return bucket

    def _forget(self, now: float) -> None:
        self._closed_until = {c: t for c, t in self._closed_until.items() if t > now}
        if len(self._chats) > _KEPT_CHATS:
            self._chats = {c: b for c, b in self._chats.items() if b.level(now) < b.burst}


def _is_group(chat_id: str) -> bool:
    return chat_id.startswith("-")
