"""Time and ids. Every instant in Metnos is aware and in UTC; zones are applied at the edges."""

from __future__ import annotations

import secrets
import time
import uuid
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The system clock, or a frozen one in tests."""

    def now(self) -> datetime:
        """The current instant, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""
        ...

    def new_id(self) -> str:
        """A new unique id: a uuid as 32 hexadecimal digits."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def new_id(self) -> str:
        return uuid.uuid4().hex


def new_token(nbytes: int = 16) -> str:
    """An unguessable url-safe token of `nbytes` random bytes."""
    return secrets.token_urlsafe(nbytes)


def to_ts(moment: datetime) -> float:
    """Seconds since the epoch, as the database stores instants."""
    return moment.timestamp()


def from_ts(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
