"""A clock that runs as ours does, and is put forward between requests."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta

MORNING = datetime(2026, 3, 2, tzinfo=UTC)
"""The first midnight of the month; no change to summer time is near its requests' hours."""


class PutForward:
    """A `core.clock.Clock`. Spans are real, the date is the simulation's."""

    def __init__(self, start: datetime = MORNING) -> None:
        self._start, self._ahead, self._began = start, timedelta(), time.monotonic()

    def now(self) -> datetime:
        return self._start + self._ahead + timedelta(seconds=time.monotonic() - self._began)

    def monotonic(self) -> float:
        return time.monotonic()

    def new_id(self) -> str:
        return uuid.uuid4().hex

    def reach(self, moment: datetime) -> None:
        """Put it forward to a moment; one that has passed changes nothing."""
        self._ahead += max(timedelta(), moment - self.now())
