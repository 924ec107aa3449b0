"""A month of a household: how much memory spares, and whether it ever serves what was not asked.

`python -m tests.bench month [--seed N] [--turns 2000] [--svg FILE] [--alone]`: three people, a
host and two guests, ask 120 kinds of requests (Zipf) with changing values, in several wordings and
both languages; one model plan in twenty is wrong and voted down; programs are signed anew now and
then, and once a new one comes into a family. What runs is compared with what is right for that
very request: `wrong` counts what memory served and should not have. The same month is lived once
more without memory.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from tests.bench.figures import spread, times
from tests.bench.household.drawing import draw
from tests.bench.household.life import MODEL, Lived, open_life
from tests.bench.household.script import DAYS, write_month
from tests.executors.photon_server import photon_server
from tests.executors.web_server import web_server

SEED = 20261130
TURNS = 2000
BAR = 0.60


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="month")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--alone", action="store_true", help="only with memory")
    parser.add_argument("--svg", type=Path, help="where to draw the days, tokens and times")
    options = parser.parse_args(argv)
    turns = times(options.turns, least=10)
    with_memory = live(options.seed, turns, memory=True)
    figures = {"seed": options.seed, "turns": turns, "days": DAYS, **told(with_memory)}
    if not options.alone:
        without = sum(one.tokens for one in live(options.seed, turns, memory=False))
        figures["tokens"] |= {
            "without_memory": without,
            "spared": round(1 - figures["tokens"]["with_memory"] / without, 4),
        }
    if options.svg is not None:
        figures["drawn"] = [str(place) for place in draw(figures, options.svg)]
    return figures


def live(seed: int, turns: int, *, memory: bool, only: Collection[str] = ()) -> list[Lived]:
    """Live a month in a house of its own; every request and what came of it. `only`: these kinds
    of requests instead of all."""

    async def lived(folder: Path, photon: str, url: str) -> list[Lived]:
        month = write_month(seed, turns, url, only=only)
        async with open_life(month, folder, photon, memory=memory) as life:
            return await life.live()

    with (
        tempfile.TemporaryDirectory(prefix="metnos-month-") as folder,
        photon_server() as photon,
        web_server() as web,
    ):
        return asyncio.run(lived(Path(folder), photon.endpoint, web.url("")))


def told(lived: Sequence[Lived]) -> dict[str, Any]:
    """The figures of a month."""
    wrong = [one for one in lived if one.wrong and one.source != MODEL]
    reused = [one for one in lived if one.source != MODEL]
    levels = sorted({_level(one) for one in lived})
    return {
        **_rates(lived),
        "wrong": len(wrong),
        "wrong_ones": [[one.asked.text, one.wrong] for one in wrong],
        "not_as_planned": [
            [o.asked.text, o.wrong] for o in lived if o.wrong and o.source == MODEL
        ],
        "failed": [[one.asked.text, one.failed] for one in lived if one.failed],
        "by_level": {
            level: spread([one.seconds for one in lived if _level(one) == level])
            for level in levels
        },
        "tokens": {"with_memory": sum(one.tokens for one in lived)},
        "per_day": [
            {
                "day": day,
                "turns": sum(one.asked.after.days == day for one in lived),
                "reused": sum(one.asked.after.days == day for one in reused),
                "tokens": sum(one.tokens for one in lived if one.asked.after.days == day),
            }
            for day in range(DAYS)
        ],
        "misses": _misses(lived),
    }


def _rates(lived: Sequence[Lived]) -> dict[str, Any]:
    """Reuse of all requests, of those whose kind the house had been asked before, and of those
    whose kind this very person had asked before."""
    reused = house = own = of_house = of_own = 0
    known: set[str] = set()
    theirs: set[tuple[int, str]] = set()
    for one in lived:
        name, mine = one.asked.kind.name, (one.asked.person.number, one.asked.kind.name)
        hit = one.source != MODEL
        reused += hit
        house += name in known
        of_house += hit and name in known
        own += mine in theirs
        of_own += hit and mine in theirs
        known.add(name)
        theirs.add(mine)
    return {
        "lived": len(lived),
        "reused": round(reused / len(lived), 4),
        "of_repeated": round(of_house / max(1, house), 4),
        "of_repeated_budget": BAR,
        "of_repeated_by_the_same": round(of_own / max(1, own), 4),
        "repeated": house,
        "repeated_by_the_same": own,
    }


def _level(one: Lived) -> str:
    return f"{one.source}:{one.how}" if one.how else one.source


def _misses(lived: Sequence[Lived]) -> dict[str, Any]:
    """Why what the house had been asked before was planned anew, and which kinds most often.

    `first`: this person had not asked it yet · `not_kept:…`: why a plan that served them before
    was not remembered · `nothing_known`: it was forgotten, by a vote or by its age · the rest is
    what became of the rows that were there."""
    why: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    kept: dict[tuple[int, str], str] = {}
    known: set[str] = set()
    for one in lived:
        name, mine = one.asked.kind.name, (one.asked.person.number, one.asked.kind.name)
        if one.source == MODEL and name in known:
            reason = one.missed or f"not_kept:{one.why}"
            if one.again:
                reason = "after_vote_down"
            elif mine not in kept:
                reason = "first"
            elif reason == "nothing_known" and kept[mine]:
                reason = f"not_kept:{kept[mine]}"
            why[reason] += 1
            kinds[f"{name}: {reason}"] += 1
        if one.source == MODEL:
            kept[mine] = one.why
        known.add(name)
    return {"why": dict(why.most_common()), "kinds": dict(kinds.most_common(40))}
