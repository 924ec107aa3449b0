"""Whether what is remembered serves what it should, and nothing else, and how fast it is found.

`python -m tests.bench reuse --pairs FILE [--embedder hashing|e5]`: FILE has JSON lines `{"a", "b",
"reusable", "kind"}`. A pair is served when the words are the same, or when the meanings are equal
and the embedder's cosine is above the floor that it comes with; the one that these pairs would
give stands beside. Pairs `time_window_same` are exact-only by decision and have their own line.
Times are taken at 500 rows of a real `memory.db`: finding by the same words, by shape, by meaning,
the reading of the request included; what the embedder needs stands beside.
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

from core.clock import SystemClock
from core.config import load_settings
from core.levels.meaning import meaning_of
from core.levels.reuse import Lesson, exact_key, keys_of, normal
from core.levels.vectors import Vector, cosine, floor_of
from core.llm.embedder import Embedder, embedder_of, known_floor
from core.plan import Plan, Step
from core.store import plan_cache
from core.store.stores import Stores, open_stores
from tests.bench.figures import spread, times

WINDOWS = "time_window_same"
ROWS = plan_cache.MAX_ROWS
BUDGETS_MS = {"exact": 1.0, "template": 3.0, "meaning": 3.0}
EMBEDDING_BUDGET_MS = {"hashing": 3.0, "e5": 30.0}
_OWN = Path(__file__).parents[1] / "levels/pairs_own.jsonl"


def run(argv: Sequence[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="reuse")
    parser.add_argument("--pairs", type=Path, default=_OWN)
    parser.add_argument("--embedder", choices=["hashing", "e5"], default="hashing")
    options = parser.parse_args(argv)
    lines = options.pairs.read_text("utf-8").splitlines()
    return asyncio.run(_run([json.loads(line) for line in lines if line], options.embedder))


async def _run(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    embedder = embedder_of(load_settings(), name)
    assert embedder is not None
    vectors, spent = await _embedded(embedder, rows)
    floor = known_floor(embedder.name)
    assert floor is not None
    return {
        "embedder": embedder.name,
        "pairs": len(rows),
        **_quality(rows, vectors, floor),
        "find_ms": await _finding(),
        "embedding_ms": spread(spent, budget_ms=EMBEDDING_BUDGET_MS[name]),
    }


async def _embedded(
    embedder: Embedder, rows: list[dict[str, Any]]
) -> tuple[dict[str, Vector], list[float]]:
    vectors: dict[str, Vector] = {}
    spent: list[float] = []
    await embedder.embed(["warm"])
    for text in dict.fromkeys(row[side] for row in rows for side in "ab"):
        begun = time.perf_counter()
        (vectors[text],) = await embedder.embed([normal(text)])
        spent.append(time.perf_counter() - begun)
    return vectors, spent


def _quality(
    rows: list[dict[str, Any]], vectors: dict[str, Vector], floor: float
) -> dict[str, Any]:
    def near(row: dict[str, Any]) -> float:
        return cosine(vectors[row["a"]], vectors[row["b"]])

    def counted(row: dict[str, Any]) -> bool:
        return bool(row["reusable"]) and row["kind"] != WINDOWS

    found = [near(row) for row in rows if counted(row)]
    total: Counter[str] = Counter()
    served: Counter[str] = Counter()
    wrong: list[list[str]] = []
    for row in rows:
        key = meaning_of(row["a"]).key
        same = bool(key) and key == meaning_of(row["b"]).key and near(row) >= floor
        hit = same or exact_key(row["a"]) == exact_key(row["b"])
        total[row["kind"]] += 1
        served[row["kind"]] += hit
        if hit and not row["reusable"]:
            wrong.append([row["a"], row["b"]])
    true = sum(counted(row) for row in rows)
    right = sum(served[kind] for kind in {row["kind"] for row in rows if counted(row)})
    return {
        "floor": floor,
        "floor_of_these_pairs": round(floor_of(found), 4) if found else None,
        "false_reuse": len(wrong),
        "false_pairs": wrong,
        "true_reuse": round(right / true, 4),
        "by_kind": {
            kind: {"served": served[kind], "of": total[kind]}
            for kind in sorted(total)
            if kind != WINDOWS
        },
        WINDOWS: {"served": served[WINDOWS], "of": total[WINDOWS]},
    }


async def _finding() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(metnos_home=Path(folder) / "home")
        stores = await open_stores(settings, SystemClock())
        try:
            await _fill(stores)
            return {
                how: spread(await _searches(stores, request), budget_ms=BUDGETS_MS[how])
                for how, request in (
                    ("exact", "read file 250.txt"),
                    ("template", "read the file 9250.txt"),
                    ("meaning", "mi dici l'ora?"),
                )
            }
        finally:
            await stores.close()


async def _fill(stores: Stores) -> None:
    plain = Lesson("", Plan((Step("get_now", {}),)), (), (), "", "", "", "", "x", "x", False)
    async with stores.memory.write() as tx:
        for number in range(ROWS):
            text = f"read file {number}.txt" if number else "che ore sono?"
            meaning = meaning_of(text)
            shape, wording, same = keys_of(meaning)
            # One shape for all would be found twenty times over: each has its own but a few.
            lesson = replace(
                plain,
                text=text,
                exact=exact_key(text),
                shape=shape if number % 50 == 0 else f"{number:016x}",
                wording=wording if number % 50 == 0 else f"{number:016x}",
                meaning=same,
            )
            await plan_cache.keep(
                tx, "anna", "en", lesson, turn_id=str(number), now=SystemClock().now()
            )


async def _searches(stores: Stores, request: str) -> list[float]:
    spent: list[float] = []
    for _ in range(times(200, least=5)):
        meaning_of.cache_clear()
        begun = time.perf_counter()
        shape, wording, same = keys_of(meaning_of(request))
        async with stores.memory.read() as tx:
            rows = await plan_cache.candidates(
                tx,
                "anna",
                exact=exact_key(request),
                shape=shape,
                wording=wording,
                meaning=same,
            )
        found = next(rows, None)
        spent.append(time.perf_counter() - begun)
        if found is None:
            raise ValueError(f"nothing found for {request!r}")
    return spent
