"""How good the whole-plan proposer is with a model, on a file of requests.

`python -m tests.bench requests --requests FILE --model PATH [--limit N] [--lang it] [--ids a,b]`.
Rows are JSON lines `{"id", "lang", "text", "kind", "steps": [{"tool", "must", "from"}], "alt"}`;
those that need a tool which is not in the house are left out. A plan is right when it has the
tools of `steps`, or of one of `alt`, in that order, and every argument matches its pattern.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from core.catalog.loader import Catalog, CatalogLoader
from core.execution.aliases import with_aliases
from core.llm.client import ChatModel, Usage
from core.llm.local_server import LocalServer
from core.vocabulary import META_TOOLS, verb_of
from tests.support.executors import signed_home
from tests.support.planning import Call, Planned, Planner

# What carries data: ids, paths or texts copied from an earlier result count like a reference.
_CARRIERS = frozenset("paths event_ids urls coords messages content near place start".split())
_REFERENCE = re.compile(r"((?:\{\{|\$\{)\s*step)(\d+)")

# -- scoring --------------------------------------------------------------------------------------


def matches(
    row: Mapping[str, Any], calls: Sequence[Call], catalog: Catalog | None = None
) -> tuple[bool, bool]:
    """Whether the tools are right, and whether the arguments are, too; with a catalogue also under
    the names that manifests declare besides."""
    calls = [_named(call, catalog) for call in calls]
    kept = [n for n, call in enumerate(calls, start=1) if call["tool"] not in META_TOOLS]
    new = {old: number for number, old in enumerate(kept, start=1)}
    plan = [_renumbered(calls[n - 1], new) for n in kept]
    results = [_fits(wanted, plan) for wanted in (row["steps"], *row.get("alt", ()))]
    return any(tools for tools, _ in results), any(all(result) for result in results)


def _named(call: Call, catalog: Catalog | None) -> Call:
    executor = None if catalog is None else catalog.executors.get(call["tool"])
    if executor is None:
        return call
    return {**call, "args": with_aliases(call["args"], executor.manifest)}


def _renumbered(call: Call, new: Mapping[int, int]) -> Call:
    text = _REFERENCE.sub(
        lambda m: m[1] + str(new.get(int(m[2]), 0)), json.dumps(call["args"], ensure_ascii=False)
    )
    args = json.loads(text)
    for key in ("from_step", "other_step"):
        if isinstance(args.get(key), int):
            args[key] = new.get(args[key], 0)
    return {"tool": call["tool"], "args": args}


def _fits(wanted: Sequence[Mapping[str, Any]], plan: Sequence[Call]) -> tuple[bool, bool]:
    if [step["tool"] for step in wanted] != [call["tool"] for call in plan]:
        return False, False
    return True, all(_call_fits(step, call) for step, call in zip(wanted, plan, strict=True))


def _call_fits(step: Mapping[str, Any], call: Call) -> bool:
    args = call["args"]
    for name, patterns in step["must"].items():
        value = _text(args.get(name))
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            if not re.search(pattern, value, re.IGNORECASE | re.DOTALL):
                return False
    source = step["from"]
    return source is None or source in _reads(args) or any(args.get(name) for name in _CARRIERS)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _reads(args: Mapping[str, Any]) -> set[int]:
    named = {int(match[2]) for match in _REFERENCE.finditer(_text(args))}
    numbers = (args.get("from_step"), args.get("other_step"))
    return named | {n for n in numbers if isinstance(n, int)}


def destroys_wrongly(row: Mapping[str, Any], planned: Planned) -> bool:
    """Whether the plan deletes what no right plan deletes."""
    deleting = [c for c in planned.calls if verb_of(str(c["tool"])) == "delete"]
    return bool(deleting) and not matches(row, planned.calls)[1]


def changes_wrongly(row: Mapping[str, Any], planned: Planned, catalog: Catalog) -> bool:
    """Whether the plan has a changing tool that no right plan has."""
    right = {step["tool"] for steps in (row["steps"], *row.get("alt", ())) for step in steps}
    return any(
        call["tool"] not in right and catalog.executors[call["tool"]].manifest.is_mutating
        for call in planned.calls
        if call["tool"] in catalog.executors
    )


# -- the run --------------------------------------------------------------------------------------


def usable(row: Mapping[str, Any], catalog: Catalog) -> bool:
    """Whether one of the right plans needs only tools that are in the house."""
    here = set(catalog.offered) | META_TOOLS
    return any(
        all(step["tool"] in here for step in steps)
        for steps in (row["steps"], *row.get("alt", ()))
    )


def read_rows(path: Path, catalog: Catalog) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [row for row in rows if usable(row, catalog)]


async def measure(
    rows: Sequence[Mapping[str, Any]], model: ChatModel, catalog: Catalog
) -> dict[str, Any]:
    """Plan every row and count. Each is told on standard error as it comes."""
    planner = Planner(model, catalog)
    done: list[tuple[Mapping[str, Any], Planned, bool, bool]] = []
    for lang in sorted({row["lang"] for row in rows}):
        await planner.proposer.warm(planner.context("", lang))
        for row in (row for row in rows if row["lang"] == lang):
            planned = await planner.plan(row["text"], lang)
            tools, args = matches(row, planned.calls, catalog)
            done.append((row, planned, tools, args))
            _tell(row, planned, tools, args)
    return _figures(done, catalog)


def _tell(row: Mapping[str, Any], planned: Planned, tools: bool, args: bool) -> None:
    verdict = "right" if args else "arguments" if tools else "tools"
    told = f"{row['id']} {verdict} {planned.seconds:.1f} s {planned.usage.cached} cached\n"
    if not args:
        plan = [(call["tool"], call["args"]) for call in planned.calls]
        told += f"    {row['text']}\n    {plan or planned.answer!r} {planned.problem}\n"
    sys.stderr.write(told)
    sys.stderr.flush()


def _figures(
    done: Sequence[tuple[Mapping[str, Any], Planned, bool, bool]], catalog: Catalog
) -> dict[str, Any]:
    talk = [tools for row, _, tools, _ in done if row["kind"] == "none"]
    usage = sum((planned.usage for _, planned, _, _ in done), Usage())
    seconds = [planned.seconds for _, planned, _, _ in done]
    return {
        "requests": len(done),
        "sequences": _share([tools for _, _, tools, _ in done]),
        "arguments": _share([args for _, _, _, args in done]),
        "by_kind": {
            kind: {
                "requests": sum(row["kind"] == kind for row, *_ in done),
                "sequences": _share([t for row, _, t, _ in done if row["kind"] == kind]),
                "arguments": _share([a for row, _, _, a in done if row["kind"] == kind]),
            }
            for kind in sorted({row["kind"] for row, *_ in done})
        },
        "small_talk_untouched": _share(talk),
        "destructive_errors": sum(destroys_wrongly(row, p) for row, p, *_ in done),
        "changing_errors": sum(changes_wrongly(row, p, catalog) for row, p, *_ in done),
        "proposed_anew": sum(planned.asked > 1 for _, planned, *_ in done),
        "seconds_median": round(median(seconds), 2) if seconds else None,
        "seconds_most": round(max(seconds), 2) if seconds else None,
        "tokens_in": usage.tokens_in,
        "tokens_cached": usage.cached,
        "tokens_out": usage.tokens_out,
    }


def _share(hits: Sequence[bool]) -> float | None:
    return round(sum(hits) / len(hits), 4) if hits else None


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """The figures; without both files only that it was left out."""
    parser = argparse.ArgumentParser(prog="requests")
    parser.add_argument("--requests", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--lang", choices=("it", "en"))
    parser.add_argument("--ids", type=lambda text: text.split(","))
    options = parser.parse_args(argv)
    if options.requests is None or options.model is None:
        return {"left_out": "give --requests FILE and --model FILE"}
    with tempfile.TemporaryDirectory() as scratch:
        catalog = CatalogLoader.of(signed_home(Path(scratch))).current()
        rows = [
            row
            for row in read_rows(options.requests, catalog)
            if (options.lang is None or row["lang"] == options.lang)
            and (options.ids is None or row["id"] in options.ids)
        ]
        return asyncio.run(
            _served(rows[: options.limit], options.model, catalog, Path(scratch) / "model.log")
        )


async def _served(
    rows: Sequence[Mapping[str, Any]], path: Path, catalog: Catalog, log: Path
) -> dict[str, Any]:
    async with LocalServer(path, log_file=log) as server:
        return await measure(rows, server, catalog)
