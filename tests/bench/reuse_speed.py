"""What memory costs a turn, and what a request costs that it serves.

`python -m tests.bench reuse-speed [--embedder hashing|e5]`: times of finding a plan among 500 rows
of a real `memory.db`, the reading of the request and the signatures of the shipped catalogue
included: by the same words, by shape with other values, by meaning with the embedder. Then the
same request again and again over the Bot API: no model is asked; timed from the update to the
reply.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.clock import SystemClock
from core.config import load_settings
from core.levels.fastpath import Fastpath
from core.levels.meaning import meaning_of
from core.levels.nearness import Nearness
from core.llm.embedder import embedder_of
from core.plan import Plan, Step
from core.store import plan_cache
from core.store.stores import open_stores
from tests.bench.figures import spread, times
from tests.bench.town import open_town
from tests.support.remembering import ended_well, turn_of
from tests.support.scripted_model import Rule

ROWS = plan_cache.MAX_ROWS
BUDGET_MS = {"exact": 1.0, "template": 3.0, "meaning": 3.0, "nothing": 3.0}
BUDGET_E5_MS = 30.0
BUDGET_REPLY_P95_MS = 30.0
_BETWEEN_S = 0.25
_NOUNS = "contratto fattura ricevuta verbale preventivo promemoria lettera mappa".split()
_ASKED = {
    "exact": "leggi le ultime 7 righe di contratto256.txt",
    "template": "leggi le ultime 40 righe di altra.txt",
    "meaning": "mi dici l'ora?",
    "nothing": "chi ha telefonato a Teresa, e perché?",
}


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="reuse-speed")
    parser.add_argument("--embedder", choices=["hashing", "e5"], default="hashing")
    options = parser.parse_args(argv)
    return {
        "rows": ROWS,
        "embedder": options.embedder,
        "find": asyncio.run(_finding(options.embedder)),
        "again": _again(),
    }


async def _finding(embedder: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="metnos-bench-") as folder:
        settings, clock = load_settings(metnos_home=Path(folder) / "home"), SystemClock()
        stores = await open_stores(settings, clock)
        nearness = Nearness(embedder_of(settings, embedder), stores, clock)
        fastpath = Fastpath(stores, clock, nearness)
        try:
            await _teach(fastpath)
            nearness.start()
            async with asyncio.timeout(120):
                # The embedder measures in the background what was taught before.
                while await fastpath.find(turn_of(_ASKED["meaning"])) is None:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            figures = {}
            for how, request in _ASKED.items():
                budget = BUDGET_E5_MS if (how, embedder) == ("meaning", "e5") else BUDGET_MS[how]
                figures[how] = spread(await _searches(fastpath, how, request), budget_ms=budget)
            return figures
        finally:
            await nearness.close()
            await stores.close()


async def _teach(fastpath: Fastpath) -> None:
    """Fill memory with what a household might have asked, by the way that turns do it."""
    for number in range(ROWS - 1):
        name, other = f"{_NOUNS[number % len(_NOUNS)]}{number}.txt", f"copia{number}.md"
        lines = number % 23 + 2
        request, tool, args = (
            (f"leggi le ultime 7 righe di {name}", "read_files", {"tail_lines": 7}),
            (f"leggi le prime {lines} righe di {other}", "read_files", {"head_lines": lines}),
            (f"cancella {name}", "delete_files", {}),
            (f"cancella {other}", "delete_files", {}),
        )[number % 4]
        paths = [name if name in request else other]
        context = turn_of(request)
        plan = Plan((Step(tool, {"paths": paths, **args}),))
        await fastpath.learn(context, ended_well(context, plan))
    context = turn_of("che ore sono?")
    await fastpath.learn(context, ended_well(context))


async def _searches(fastpath: Fastpath, how: str, request: str) -> list[float]:
    spent = []
    context = turn_of(request)
    for _ in range(times(200, least=5)):
        meaning_of.cache_clear()
        began = time.perf_counter()
        hit = await fastpath.find(context)
        spent.append(time.perf_counter() - began)
        if ("nothing" if hit is None else hit.how) != how:
            raise ValueError(f"{request!r} was found by {hit and hit.how}, not by {how}")
    return spent


def _again() -> dict[str, Any]:
    """Ask what time it is again and again: once it is planned, then it is remembered."""
    count, text = times(60, least=5), "che ore sono?"
    clock = Rule(user="ore", plan={"steps": [{"tool": "get_now", "args": {}}]})
    with open_town(5, [clock], METNOS_ENGINE="metis", METNOS_MEMORY="1") as town:
        town.start()
        town.ask(town.names[0], text, "Sono le")
        for name in town.names:
            town.ask(name, text, "⚡")
        asked, waits = len(town.world.model.asked), []
        for number in range(count):
            time.sleep(_BETWEEN_S)
            waits.append(town.ask(town.names[number % len(town.names)], text, "⚡"))
        lines = town.world.log_lines()[-count:]
        return {
            **spread(waits, budget_p95_ms=BUDGET_REPLY_P95_MS),
            "model_calls": len(town.world.model.asked) - asked,
            "tokens": sum(line["tokens_in"] + line["tokens_out"] for line in lines),
            "from_memory": sum(line["match_source"] == "fastpath" for line in lines),
        }
