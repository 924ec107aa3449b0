"""What an actor has used in a day of theirs: tokens, money, turns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from core.store.database import Row, Transaction, row_reader


@dataclass(frozen=True, slots=True)
class DayUsage:
    """Sums of one actor and one local day; `cached` is the part of `tokens_in` that the server
    had already seen, `from_memory` the turns that needed no model."""

    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    money: float = 0.0
    turns: int = 0
    from_memory: int = 0


async def add(
    tx: Transaction,
    actor_id: str,
    day: date,
    *,
    tokens_in: int = 0,
    tokens_out: int = 0,
    cached: int = 0,
    money: float = 0.0,
    turns: int = 0,
    from_memory: int = 0,
) -> None:
    """Add to the day's sums. Called twice it counts twice: call it in the closing transaction."""
    await tx.execute(
        """INSERT INTO usage
               (actor_id, day, tokens_in, tokens_out, cached, money, turns, from_memory)
           VALUES (:actor_id, :day, :tokens_in, :tokens_out, :cached, :money, :turns, :memory)
           ON CONFLICT (actor_id, day) DO UPDATE SET
               tokens_in = tokens_in + excluded.tokens_in,
               tokens_out = tokens_out + excluded.tokens_out,
               cached = cached + excluded.cached,
               money = money + excluded.money,
               turns = turns + excluded.turns,
               from_memory = from_memory + excluded.from_memory""",
        {
            "actor_id": actor_id,
            "day": day.isoformat(),
            "tokens_in": tokens_in,
            "tokens_out": tokens_out,
            "cached": cached,
            "money": money,
            "turns": turns,
            "memory": from_memory,
        },
    )


async def of_day(tx: Transaction, actor_id: str, day: date) -> DayUsage:
    """The sums of a day; all zero when there was nothing."""
    row = await tx.fetch_one(
        """SELECT tokens_in, tokens_out, cached, money, turns, from_memory FROM usage
           WHERE actor_id = :actor_id AND day = :day""",
        {"actor_id": actor_id, "day": day.isoformat()},
    )
    return DayUsage() if row is None else DayUsage(*row)


async def of_days(tx: Transaction, since: date) -> dict[date, DayUsage]:
    """The sums of everybody for each day from `since` on that had any, oldest first."""
    rows = await tx.fetch_all(
        """SELECT day, SUM(tokens_in) AS tokens_in, SUM(tokens_out) AS tokens_out,
                  SUM(cached) AS cached, SUM(money) AS money, SUM(turns) AS turns,
                  SUM(from_memory) AS from_memory
           FROM usage WHERE day >= :since GROUP BY day ORDER BY day""",
        {"since": since.isoformat()},
    )
    return dict(_day(row) for row in rows)


@row_reader
def _day(row: Row) -> tuple[date, DayUsage]:
    day, *sums = row
    return date.fromisoformat(day), DayUsage(*sums)
