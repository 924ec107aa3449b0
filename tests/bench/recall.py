"""Whether every tool that a request needs is among those a model is offered, of this house.

`python -m tests.bench recall [--requests FILE …]`, rows as for `requests`; `.tsv` has a language,
plans (`tool,tool|tool`) and a text a line. A row counts when
the tools of one of its right plans are all in the house; it is a hit when all tools of one of them
are offered. What a builtin does is offered apart and does not count.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.catalog.loader import Catalog, CatalogLoader
from core.execution.context import TurnContext
from core.levels.candidates import Candidates
from core.levels.plan_schema import steps_at
from core.levels.proposers.metis import MOST_CANDIDATES
from core.levels.wish import Wish
from core.vocabulary import META_TOOLS
from tests.support.executors import signed_home
from tests.support.models import ScriptedModel
from tests.support.planning import Planner

HOUSEHOLD = Path(__file__).parents[1] / "levels" / "data" / "household.tsv"
# As many as a local model and a strong one are shown, see `core.llm.tiers`.
LOCAL, STRONG = 12, 40

Row = Mapping[str, Any]
Chooser = Callable[[TurnContext], Sequence[str]]


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """The shares, and what was missed, by file; the household's own requests always."""
    parser = argparse.ArgumentParser(prog="recall")
    parser.add_argument("--requests", type=Path, nargs="+", default=())
    paths = parser.parse_args(argv).requests
    with tempfile.TemporaryDirectory() as scratch:
        # Nobody's accounts: nothing is dormant, as for whom has one of every kind.
        catalog = CatalogLoader.of(signed_home(Path(scratch))).current()
        return {path.name: figures(_read(path), catalog) for path in (HOUSEHOLD, *paths)}


def _read(path: Path) -> list[Row]:
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
    if path.suffix == ".tsv":
        return [_row(number, *line.split("\t")) for number, line in enumerate(lines, start=1)]
    return [json.loads(line) for line in lines]


def _row(number: int, lang: str, plans: str, text: str) -> Row:
    steps, *alt = [[{"tool": name} for name in plan.split(",")] for plan in plans.split("|")]
    return {"id": f"line {number}", "lang": lang, "text": text, "steps": steps, "alt": alt}


def household() -> list[Row]:
    """The unseen requests of a household that stand beside this module."""
    return _read(HOUSEHOLD)


def figures(rows: Sequence[Row], catalog: Catalog) -> dict[str, Any]:
    """By way of choosing: `simple_local` and `simple_strong` are the tools of a native call,
    `plan` what a whole plan is chosen from, `steps` whether its grammar admits the right tools in
    their order."""
    candidates = Candidates()
    planner = Planner(ScriptedModel(), catalog)
    ways: dict[str, Chooser] = {
        "simple_local": lambda context: candidates.choose(context, k_max=LOCAL),
        "simple_strong": lambda context: candidates.choose(context, k_max=STRONG),
        "plan": lambda context: candidates.best(context, k_max=MOST_CANDIDATES),
    }
    known = [(row, plans) for row in rows if (plans := plans_here(row, catalog))]
    return {
        "executors": len(catalog.offered),
        "rows": len(known),
        "rows_of_other_tools": sum(bool(needs(row)) for row in rows) - len(known),
        **{name: _share(known, planner, choose) for name, choose in ways.items()},
        "steps": _admitted(known, planner, catalog),
    }


def _admitted(
    known: Sequence[tuple[Row, list[frozenset[str]]]], planner: Planner, catalog: Catalog
) -> dict[str, Any]:
    """As `_share`, of whole plans; `rows` says where each ends. What asks for its target is
    right."""
    rows: dict[str, str] = {}
    for row, _ in known:
        wish = planner.wish(row["text"], row["lang"])
        if wish.wants_target and row.get("needs") == "input":
            continue
        plans = [
            [step["tool"] for step in steps if step["tool"] not in META_TOOLS]
            for steps in (row["steps"], *row.get("alt", ()))
        ]
        ends = [_end(plan, wish) for plan in plans if plan and catalog.offered.keys() >= {*plan}]
        if all(ends):
            rows[row["id"]] = ends[0]
    recall = round(1 - len(rows) / len(known), 4) if known else None
    return {"recall": recall, "rows": rows}


def _end(plan: Sequence[str], wish: Wish) -> str:
    """Where the grammar stops a plan; "" when it admits it."""
    for number, tool in enumerate(plan, start=1):
        forms = steps_at(wish, number)
        if all(form["properties"]["tool"]["const"] != tool for form in forms):
            return f"{number} {tool}"
    return ""


def needs(row: Row) -> list[frozenset[str]]:
    """The executors of every right plan of a row that has any."""
    plans = [
        frozenset(step["tool"] for step in steps) - META_TOOLS
        for steps in (row["steps"], *row.get("alt", ()))
    ]
    return [plan for plan in plans if plan]


def plans_here(row: Row, catalog: Catalog) -> list[frozenset[str]]:
    """Those of `needs` that this house has the tools for."""
    return [plan for plan in needs(row) if plan <= catalog.offered.keys()]


def _share(
    known: Sequence[tuple[Row, list[frozenset[str]]]], planner: Planner, choose: Chooser
) -> dict[str, Any]:
    missed: Counter[str] = Counter()
    rows: dict[str, list[str]] = {}
    for row, plans in known:
        offered = frozenset(choose(planner.context(row["text"], row["lang"])))
        lacking = min((sorted(plan - offered) for plan in plans), key=len)
        if lacking:
            missed.update(lacking)
            rows[row["id"]] = lacking
    recall = round(1 - len(rows) / len(known), 4) if known else None
    return {"recall": recall, "missed": dict(missed.most_common()), "rows": rows}
