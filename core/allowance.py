"""What somebody may still use today, and how often they may still ask in this hour. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.config import Settings
from core.llm.client import Usage
from core.messages import Actor, Role


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits that count for an actor; None: none."""

    turns_per_hour: int | None = None
    tokens_per_day: int | None = None
    money_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of the day's limits when a stretch of a turn begins, and the prices of a model
    call, in money per million tokens in and out.

    `again_at`: no further turn may begin before then; None: one may. `may_extend`: this person may
    say that it goes on.
    """

    limits: Limits = Limits()
    used_tokens: int = 0
    used_money: float = 0.0
    prices: tuple[float, float] = (0.0, 0.0)
    again_at: datetime | None = None
    may_extend: bool = False

    def is_spent(self, used: Usage, *, extended: bool = False) -> bool:
        """Whether the day's limits leave no further model call after what this stretch has used.
        Once `extended`, as much again is allowed."""
        times = 2 if extended else 1
        tokens, money = self.limits.tokens_per_day, self.limits.money_per_day
        spent = self.used_tokens + used.tokens_in + used.tokens_out
        cost = used.tokens_in * self.prices[0] + used.tokens_out * self.prices[1]
        return (tokens is not None and spent >= times * tokens) or (
            money is not None and self.used_money + cost / 1_000_000 >= times * money
        )


def limits_for(actor: Actor, settings: Settings) -> Limits:
    """The actor's own limits, else those of the settings for their role; 0 means none."""
    guest = actor.role is Role.GUEST
    turns = settings.metnos_guest_turns_per_hour if guest else 0
    tokens = settings.metnos_guest_tokens_per_day if guest else settings.metnos_tokens_per_day
    money = settings.metnos_guest_money_per_day if guest else settings.metnos_money_per_day
    return Limits(
        (turns if actor.turns_per_hour is None else actor.turns_per_hour) or None,
        (tokens if actor.tokens_per_day is None else actor.tokens_per_day) or None,
        (money if actor.money_per_day is None else actor.money_per_day) or None,
    )
