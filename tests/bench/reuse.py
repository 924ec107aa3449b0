"""Whether what is remembered serves what it should, and nothing else.

`python -m tests.bench reuse --pairs FILE [--embedder hashing|e5]`: FILE has JSON lines `{"a", "b",
"lang_a", "lang_b", "reusable", "kind"}`. For each pair an empty memory learns a plan for `a` in
which every value of `a` is a literal, then looks for one for `b`: the fast path itself decides,
with the embedder and the floor it comes with. A pair is served when the plan of `a` comes back
unchanged. A template that comes back with the values of `b` in it is `adapted`: right by its
making, and no reuse of that plan. Pairs `time_window_same` are exact-only by decision, and have
their own line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.catalog.loaded import NO_SDK, Catalog, LoadedExecutor
from core.clock import SystemClock
from core.config import load_settings
from core.levels.fastpath import Fastpath, Hit
from core.levels.meaning import Meaning, meaning_of
from core.levels.nearness import Nearness
from core.levels.reuse import DEEDS, normal
from core.llm.embedder import embedder_of, known_floor
from core.plan import Plan, Step
from core.store import plan_cache
from core.store.stores import Stores, open_stores
from tests.bench.figures import spread
from tests.support.catalogue import shipped_manifests
from tests.support.remembering import ended_well, turn_of

WINDOWS = "time_window_same"
EMBEDDING_BUDGET_MS = {"hashing": 3.0, "e5": 30.0}
_OWN = Path(__file__).parents[1] / "levels/pairs_own.jsonl"
_MOST_VALUES = 12
_PATIENCE_S = 60.0
"""What is asked is what is served, not how soon: on a busy machine an embedder that rested after
one slow answer would make misses of all that follows. Times have a line of their own."""


def run(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="reuse")
    parser.add_argument("--pairs", type=Path, default=_OWN)
    parser.add_argument("--embedder", choices=["hashing", "e5"], default="hashing")
    options = parser.parse_args(argv)
    lines = options.pairs.read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return asyncio.run(_run(rows, options.embedder))


async def _run(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="metnos-bench-") as folder:
        settings, clock = load_settings(metnos_home=Path(folder) / "home"), SystemClock()
        stores = await open_stores(settings, clock)
        embedder = embedder_of(settings, name)
        assert embedder is not None
        nearness = Nearness(embedder, stores, clock, patience_s=_PATIENCE_S)
        fastpath = Fastpath(stores, clock, nearness)
        spent: list[float] = []
        try:
            await embedder.embed(["warm"])  # or it fails here, and not pair by pair
            nearness.start()
            await nearness.settled()
            found = [await _tried(fastpath, stores, row) for row in rows]
            for text in dict.fromkeys(row[side] for row in rows for side in "ab"):
                begun = time.perf_counter()
                await embedder.embed([normal(text)])
                spent.append(time.perf_counter() - begun)
        finally:
            await nearness.close()
            await stores.close()
        return {
            "embedder": embedder.name,
            "floor": known_floor(embedder.name),
            "pairs": len(rows),
            **_told(rows, found),
            "embedding_ms": spread(spent, budget_ms=EMBEDDING_BUDGET_MS[name]),
        }


async def _tried(fastpath: Fastpath, stores: Stores, row: dict[str, Any]) -> str:
    """How `b` was served after `a` was learnt: `exact`, `template`, `meaning`, `adapted`; "" when
    it was not."""
    first = replace(turn_of(row["a"], lang=row.get("lang_a", "it")), catalog=_tools())
    plan = _plan_for(meaning_of(row["a"]))
    await fastpath.learn(first, ended_well(first, plan))
    second = replace(turn_of(row["b"], lang=row.get("lang_b", "it")), catalog=_tools())
    hit = await fastpath.find(second)
    async with stores.memory.write() as tx:
        await plan_cache.flush(tx)
    return "" if hit is None else _how(hit, plan)


def _how(hit: Hit, plan: Plan) -> str:
    served, learnt = (json.dumps(one.to_json()).casefold() for one in (hit.plan, plan))
    return hit.how if served == learnt else "adapted"


def _plan_for(meaning: Meaning) -> Plan:
    """A plan that does what is asked, as far as the checks can tell: a step for each deed, and
    every value in the first."""
    values = {f"v{at}": value.raw for at, value in enumerate(meaning.values[:_MOST_VALUES])}
    verbs = [sorted(DEEDS[deed])[0] for deed in meaning.deeds if deed in DEEDS] or ["find"]
    return Plan(
        tuple(
            Step(f"{verb}_files", values if number == 0 else {})
            for number, verb in enumerate(dict.fromkeys(verbs))
        )
    )


def _tools() -> Catalog:
    """A tool for every verb that a request may ask for."""
    global _catalog
    if _catalog is None:
        value = {"type": "string", "x-metnos-type": "free"}
        args = {"type": "object", "properties": {f"v{at}": value for at in range(_MOST_VALUES)}}
        one = replace(shipped_manifests()["get_now"], args=args)
        verbs = {"find", *(verb for verbs in DEEDS.values() for verb in verbs)}
        names = sorted(f"{verb}_files" for verb in verbs)
        made = {name: LoadedExecutor(replace(one, name=name), {}) for name in names}
        _catalog = Catalog(made, (), NO_SDK, "x")
    return _catalog


_catalog: Catalog | None = None


def _told(rows: list[dict[str, Any]], found: Sequence[str]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    served: Counter[str] = Counter()
    hows: Counter[str] = Counter()
    wrong: list[list[str]] = []
    missed: list[list[str]] = []
    true = right = 0
    for row, how in zip(rows, found, strict=True):
        kind, hit = row["kind"], how not in {"", "adapted"}
        total[kind] += 1
        served[kind] += hit
        hows[how or "miss"] += 1
        if hit and not row["reusable"]:
            wrong.append([row["a"], row["b"]])
        if row["reusable"] and kind != WINDOWS:
            true += 1
            right += hit
            if not hit:
                missed.append([row["a"], row["b"]])
    return {
        "false_reuse": len(wrong),
        "true_reuse": round(right / true, 4) if true else None,
        "true_reuse_counts": {"served": right, "of": true},
        WINDOWS: {"served": served[WINDOWS], "of": total[WINDOWS]},
        "by_kind": {
            kind: {"served": served[kind], "of": total[kind]}
            for kind in sorted(total)
            if kind != WINDOWS
        },
        "by_how": dict(sorted(hows.items())),
        "false_pairs": wrong,
        "missed_pairs": missed,
    }
