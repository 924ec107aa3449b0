"""A clock that stands still until a test moves it, with ids that are the same in every run."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 15, 9, 0, tzinfo=UTC)


class FrozenClock:
    """A `core.clock.Clock`. `advance` moves `now` and `monotonic` together; `jump` only `now`,
    as when somebody sets the machine's clock."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start.astimezone(UTC)
        self._monotonic = 1000.0
        self._ids = 0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def new_id(self) -> str:
        """32 hexadecimal digits, different at each call, the same sequence in each run."""
        self._ids += 1
        return hashlib.sha256(f"id {self._ids}".encode()).hexdigest()[:32]

    def advance(self, by: timedelta | float) -> None:
        """Let time pass: a span, or a number of seconds."""
        span = by if isinstance(by, timedelta) else timedelta(seconds=by)
        self._now += span
        self._monotonic += span.total_seconds()

    def jump(self, to: datetime) -> None:
        self._now = to.astimezone(UTC)
