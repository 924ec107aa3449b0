"""The plans of L1 for `metnos plans`: those that serve by merit, and those kept away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.cli.beside import read_memory, write_memory
from bot.cli.lines import table
from bot.cli.output import Console

if TYPE_CHECKING:
    from core.config import Settings
    from core.store.antis import Anti
    from core.store.autopath import Champion
    from core.store.database import Transaction


def found(settings: Settings, limit: int) -> tuple[list[Champion], list[Anti]]:
    """What L1 holds: plans, and what is kept away from whom now."""
    from core.clock import SystemClock
    from core.store import antis, autopath

    async def work(tx: Transaction) -> tuple[list[Champion], list[Anti]]:
        kept = await antis.listed(tx, SystemClock().now(), limit=limit)
        return await autopath.listed(tx, limit=limit), kept

    return read_memory(settings, work)


def tell(console: Console, plans: list[Champion], kept: list[Anti], names: dict[str, str]) -> None:
    """Both as tables, each under a line that says what it is."""
    if plans:
        console.tell("cli.plans.l1", count=len(plans))
        for line in table([_row(console, plan) for plan in plans]):
            console.line(line)
    if kept:
        console.tell("cli.plans.anti", count=len(kept))
        for line in table([_kept_row(console, anti, names) for anti in kept]):
            console.line(line)


def as_data(plans: list[Champion], kept: list[Anti]) -> list[dict[str, object]]:
    """Both as data; `layer` tells them apart from each other and from L0's."""
    found: list[dict[str, object]] = [
        {
            "layer": "l1",
            "id": plan.id,
            "intent": plan.said,
            "tools": plan.way.split(" > "),
            "status": plan.status.value,
            "champion": plan.is_champion,
            "up": plan.tally.up,
            "down": plan.tally.down,
            "ran": plan.tally.ran,
            "broke": plan.tally.broke,
            "latency_ms": round(plan.tally.latency_ms),
            "score": round(plan.tally.score, 4),
            "why": plan.why or None,
            "used_at": plan.used_at.isoformat() if plan.used_at else None,
        }
        for plan in plans
    ]
    for anti in kept:
        ends = anti.ends_at
        found.append(
            {
                "layer": "anti",
                "actor": anti.actor_id,
                "intent": anti.said,
                "tools": anti.way.split(" > "),
                "fails": anti.fails,
                "reason": anti.reason,
                "until": ends.isoformat() if ends else None,
            }
        )
    return found


def count(settings: Settings) -> int:
    """How much of L1 there is to forget: its plans, or at least one where only what was observed
    or disliked is left."""
    from core.clock import SystemClock
    from core.store import antis, autopath, observations

    async def work(tx: Transaction) -> int:
        plans = sum((await autopath.count(tx)).values())
        rest = await observations.count(tx) + await antis.count(tx, SystemClock().now())
        return plans or min(rest, 1)

    return read_memory(settings, work)


def flush(settings: Settings) -> int:
    """Forget all of L1; how many plans."""
    from core.store import autopath

    return write_memory(settings, autopath.flush)


def _row(console: Console, plan: Champion) -> tuple[str, ...]:
    key = f"memory.why.{plan.why or 'never'}"
    why = console.say(key if console.texts.has(key, console.lang) else "memory.why.other")
    tally = plan.tally
    return (
        str(plan.id),
        "★" if plan.is_champion else "·",
        console.say(f"memory.status.{plan.status.value}"),
        f"👍 {tally.up} 👎 {tally.down}",
        console.say("cli.plans.ran", count=tally.ran),
        why,
        plan.way,
    )


def _kept_row(console: Console, anti: Anti, names: dict[str, str]) -> tuple[str, ...]:
    return (
        names.get(anti.actor_id, anti.actor_id[:8]),
        console.say(f"memory.anti.{anti.reason}", count=anti.fails),
        anti.way,
    )
