"""What the handlers use of the rest: the engine's door, and the queues."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from bot.telegram.commands import RunningTurn
from core.messages import ChatAddress, Inbound, TurnEvent


class Turns(Protocol):
    """The engine's door, as this channel uses it (core/turn.py)."""

    def run(self, inbound: Inbound) -> AsyncIterator[TurnEvent]: ...
    async def follow(self, inbound: Inbound) -> None: ...
    async def stop(self, address: ChatAddress, sender_id: str | None = None) -> bool: ...
    def status(self, address: ChatAddress) -> RunningTurn | None: ...


class Pending(Protocol):
    """What the control lane asks about the queue."""

    def waiting(self) -> int: ...
    def is_working(self, address: ChatAddress) -> bool: ...
    def poll_age_s(self) -> float | None: ...
    def rival(self) -> str | None: ...
