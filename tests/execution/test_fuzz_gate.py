"""The gate against calls of every shape: no exception, and nothing invalid ever runs (bar S11).

5000 calls at METNOS_TEST_SCALE=1, 500 by default.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from core.catalog.loader import CatalogLoader
from core.clock import SystemClock
from core.errors import ErrorCode
from core.execution import paths
from core.execution.consent import Question
from core.execution.context import TurnContext
from core.execution.invoke import Gate
from core.messages import ChatAddress
from core.observation import Effects, Observation, Provenance
from core.plan import Step
from core.store import actors, turns
from core.store.encoding import dump_json
from core.store.stores import Stores, open_stores
from core.store.turn_log import PolicyLog
from core.turn_state import StepRecord, TurnState
from tests.support.executors import signed_home

CALLS = max(20, int(5000 * float(os.environ.get("METNOS_TEST_SCALE") or 0.1)))


@dataclass
class StubCage:
    """Runs nothing; looks at what it is given, and complains of what should not have come."""

    context: TurnContext | None = None
    ran: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    async def run(self, executor: Any, sdk: Any, call: Any, *, mode: str, **_: Any) -> Observation:
        manifest, args = executor.manifest, call["args"]
        self.ran[f"{manifest.name} {mode}"] += 1
        json.dumps(call, allow_nan=False).encode("utf-8")
        json.dumps(call, ensure_ascii=False).encode("utf-8")
        schema = {k: v for k, v in manifest.args.items() if k != "requires_one_of"}
        self.wrong += [error.message for error in Draft202012Validator(schema).iter_errors(args)]
        assert self.context is not None
        for path in _paths(args, manifest):
            if os.path.realpath(path) != path or "\0" in path:
                self.wrong.append(f"not canonical: {path!r}")
            if paths.is_forbidden(path, self.context.scope):
                self.wrong.append(f"forbidden: {path!r}")
            if not self.context.scope.holds(path):
                self.wrong.append(f"out of scope: {path!r}")
        for url in args.get("urls", ()):
            if not url.startswith(("http://", "https://")) or "@" in url.split("/")[2]:
                self.wrong.append(f"no address: {url!r}")
        if mode == "preview":
            return Observation(ok=True, content={"targets": [], "count": 1})
        effects = Effects.DONE if manifest.is_mutating else Effects.NONE
        return Observation(ok=True, entries=(), effects=effects)


def _paths(args: Mapping[str, Any], manifest: Any) -> Iterator[str]:
    for name in (n for n, kind in manifest.sinks.items() if kind == "path" and n in args):
        yield from args[name] if isinstance(args[name], list) else [args[name]]
    if "path" in manifest.sinks.values():
        yield from (e["path"] for e in args.get("entries", ()) if "path" in e)


class World:
    """One home with the shipped executors, and a turn in which something was read already."""

    def __init__(self, tmp_path: Path) -> None:
        self.loop = asyncio.Runner()
        root = tmp_path / "notes"
        root.mkdir()
        (root / "a.md").write_text("x")
        (root / "out").symlink_to("/etc")
        self.settings = signed_home(tmp_path, metnos_files_roots=(root,))
        self.cage, self.clock = StubCage(), SystemClock()
        self.loop.run(self._open())

    async def _open(self) -> None:
        self.stores: Stores = await open_stores(self.settings, self.clock)
        async with self.stores.main.write() as tx:
            actor = await actors.ensure_local_host(tx, self.clock)
            await turns.open_turn(
                tx,
                turn_id="t",
                inbound_id="i",
                actor_id=actor.id,
                conversation="terminal:local:",
                lang="it",
                request="x",
                now=self.clock.now(),
            )
        self.context = self.cage.context = TurnContext(
            turn_id="t",
            actor=actor,
            address=ChatAddress("terminal", "local"),
            lang="it",
            tz="Europe/Rome",
            now=self.clock.now(),
            request="scrivi, sposta e cancella a.md, b.md e c; apri a.example; a Roma, 3 righe",
            catalog=CatalogLoader.of(self.settings).current(),
            scope=paths.scope_for(actor, self.settings),
        )
        self.gate = Gate(
            cage=self.cage,  # type: ignore[arg-type]
            stores=self.stores,
            clock=self.clock,
            settings=self.settings,
            policy_log=PolicyLog(self.settings.metnos_home / "policy"),
        )
        root = self.context.scope.roots[0]
        brought = [
            Observation(
                ok=True,
                entries=(
                    {"ok": True, "path": f"{root}/a.md", "text": "${RUNTIME:now} {{step9.x}}"},
                    {"ok": True, "path": "~/.ssh/id_rsa", "url": "file:///etc/passwd"},
                ),
            ),
            Observation(
                ok=True,
                entries=({"ok": True, "url": "https://b.example/", "path": "../../etc/shadow"},),
                provenance=Provenance.EXTERNAL,
            ),
            Observation(ok=True, content={"value": 10**30, "nul": "a\0b", "list": [1, [2]]}),
        ]
        steps = tuple(
            StepRecord(n, tool, {}, {}, seen, {"scratchpad_id": "0" * 16}, ran=True)
            for n, (tool, seen) in enumerate(
                zip(("read_emails", "get_pages", "compute_things"), brought, strict=True), start=1
            )
        )
        self.state = TurnState("t", self.context.request, steps=steps)
        self.offered = frozenset({*self.context.catalog.offered, "scratchpad_read"})

    def call(self, tool: str, args: dict[str, Any]) -> StepRecord:
        return self.loop.run(self._call(tool, args))

    async def _call(self, tool: str, args: dict[str, Any]) -> StepRecord:
        record = await self.gate.call(
            self.context, self.state, Step(tool, args), offered=self.offered
        )
        if isinstance(record, Question):  # nothing ran: a person would be asked first
            return StepRecord(9, tool, args, {}, Observation.failed(ErrorCode.STOPPED), {})
        if record.ran and record.observation.effects is not Effects.NONE:
            async with self.stores.main.write() as tx:
                await tx.execute("DELETE FROM effects")
        return record

    def close(self) -> None:
        self.loop.run(self.stores.close())
        self.loop.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("fuzz"))
    yield world
    world.close()


TOOLS = (
    """get_now find_files read_files write_files list_dirs move_files delete_files get_urls
    read_urls_html filter_entries sort_entries compute_entries scratchpad_read final_answer"""
).split()
ODD_NAMES = [
    "",
    "READ_FILES",
    "read_files ",
    "../read_files",
    "read\u200b_files",
    "admin",
    "\ud800",
]
ARGUMENTS = """path paths dst content mode base_path patterns recursive modified_within_days
    size_min size_max max_results head_lines tail_lines start_line end_line max_bytes urls
    max_chars where
    any by desc limit op key timezone overwrite entries from_step other_step id n start end text
    requires_one_of __proto__""".split()
REFERENCES = [
    "{{step1.entries}}", "{{step1.path}}", "{{step2.path}}", "{{step2.url}}", "{{step3.nul}}",
    "{{step3.value}}", "{{step9.x}}", "{{step1", "${RUNTIME:now}", "${RUNTIME:x}", "${FILLER:x}",
    "x {{step3.list}} y", "x {{step3.value}} y", "{{step0.a}}", "{{step2.entries.0.path}}",
]  # fmt: skip
HOSTILE = [
    "a.md", "b.md", "~", "~/.ssh/id_rsa", "~root/x", "/etc/passwd", "../../etc/shadow",
    "out/passwd", "/proc/self/root/etc/shadow", "file:///etc/shadow", "%2e%2e/%2e%2e/etc",
    "a\0b", "/", "//", ".", ".metnos-trash", "a\u202emd", "x" * 5000, "https://a.example/",
    "a.example", "http://127.0.0.1",
    "http://u:p@a.example/", "http://0x7f.1/", "HTTP://A.EXAMPLE:80/%00", "javascript:alert(1)",
    "ftp://a.example", "http://[::1]/", "http://a.example\\@b.example/", "3", "2 GB", "9" * 400,
    "1e400", "NaN", "true", "null", " ", "Roma", "overwrite", "count", "eq",
]  # fmt: skip

texts = st.one_of(
    st.sampled_from(REFERENCES),
    st.sampled_from(HOSTILE),
    st.text(st.characters(), max_size=40),
    st.text(st.characters(categories=["Cs", "Cc", "Cf", "Zs", "Lu"]), max_size=10),
)
scalars = st.one_of(
    texts,
    st.none(),
    st.booleans(),
    st.integers(-5, 400),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 2**63, 0, -0.0, 1e308, 1.5]),
    st.floats(),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(st.one_of(st.sampled_from(ARGUMENTS), texts), inner, max_size=4),
        inner.map(lambda value: [[[[value]]]]),
    ),
    max_leaves=8,
)
conditions = st.fixed_dictionaries({"field": texts, "op": texts}, optional={"value": values})
paths_ = st.sampled_from(["a.md", "b.md", "c", "~/notes", "", "."]) | texts
likely: dict[str, st.SearchStrategy[Any]] = {
    "path": paths_,
    "base_path": paths_,
    "dst": paths_,
    "content": texts,
    "mode": st.sampled_from(["overwrite", "append", "create", "x"]),
    "op": st.sampled_from(["count", "sum", "max", "x"]),
    "timezone": st.sampled_from(["Roma", "Europe/Rome", "Tokyo"]) | texts,
    "paths": st.lists(paths_, min_size=1, max_size=3),
    "patterns": st.lists(texts, max_size=2),
    "urls": st.lists(st.just("https://a.example/") | texts, min_size=1, max_size=3),
    "entries": st.lists(st.fixed_dictionaries({"path": paths_}), max_size=3),
    "from_step": st.sampled_from([1, 2, "1", 3, 0, 9]) | texts,
    "where": st.lists(conditions, max_size=2) | texts,
    **dict.fromkeys(["recursive", "desc", "any", "overwrite"], st.booleans()),
}
numbers = st.integers(0, 400) | st.sampled_from(["3", "2 GB", 0, 10**400, 1.0, 2.5])


@st.composite
def calls(draw: st.DrawFn, catalog: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Mostly a known tool with what it needs, each value mostly of its kind; then anything."""
    if draw(st.integers(0, 11)) == 0:
        return draw(st.sampled_from(ODD_NAMES) | texts), draw(st.dictionaries(texts, values))
    tool = draw(st.sampled_from(TOOLS))
    manifest = catalog[tool].manifest if tool in catalog else None
    known = [*manifest.properties, "from_step"] if manifest else ["id", "mode", "n", "text"]
    needed = list(manifest.args.get("required", ())) if manifest else []
    groups = manifest.requires_one_of if manifest else ()
    needed += draw(st.sampled_from(groups)) if groups else ()
    needed = ["from_step" if n == "entries" and draw(st.booleans()) else n for n in needed]
    names = {*needed, *draw(st.lists(st.sampled_from(known), max_size=2))}
    odd = draw(st.integers(0, 3)) == 0
    args = {n: draw(values if odd else likely.get(n, numbers)) for n in sorted(names)}
    if draw(st.integers(0, 9)) == 0:
        args |= draw(st.dictionaries(st.sampled_from(ARGUMENTS) | texts, values, max_size=2))
    return tool, args


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def check(world: World, tool: str, args: dict[str, Any]) -> StepRecord:
    record = world.call(tool, args)
    error = record.observation.error
    # `internal` is what an exception inside the gate becomes.
    assert error is None or error.code.value != "internal", (tool, args, error)
    assert not world.cage.wrong, (tool, args, world.cage.wrong)
    # What is kept, shown to a model and logged must be writable.
    dump_json(world.state.with_step(record).to_json())
    json.dumps({**record.shown}, default=str)
    return record


def test_gate_of_any_call_never_raises_and_never_runs_what_is_invalid(world: World) -> None:
    seen: Counter[str] = Counter()

    @settings(
        max_examples=CALLS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(calls(world.context.catalog.executors))
    def fuzz(call: tuple[str, dict[str, Any]]) -> None:
        error = check(world, *call).observation.error
        seen["ran" if error is None else error.code.value] += 1

    fuzz()
    print(f"S11: {CALLS} calls, 0 exceptions, 0 invalid spawns;", dict(seen), dict(world.cage.ran))
    assert seen["ran"] > CALLS // 50
    assert len(seen) > 5


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("read_files", {"paths": deep(2000)}),
        ("read_files", {"paths": deep(50)}),
        ("write_files", {"path": "a.md", "content": {"a": deep(3000)}}),
        ("write_files", {"path": "a.md", "content": "{{step1.text}}" * 100_000}),
        ("find_files", {"size_min": 10**400}),
        ("find_files", {"modified_within_days": float("nan")}),
        ("find_files", {"modified_within_days": float("inf")}),
        ("find_files", {"size_min": "9" * 400 + " GB"}),
        ("sort_entries", {"from_step": 10**400, "by": "x"}),
        ("sort_entries", {"from_step": "٣", "by": "x"}),
        ("sort_entries", {"from_step": "²", "by": "x"}),
        ("read_files", {"paths": ["x" * 4_000_000]}),
        ("get_urls", {"urls": ["https://" + "a." * 2000 + "example/"]}),
        ("get_urls", {"urls": ["https://" + "ä" * 300 + ".example/"]}),
        ("get_urls", {"urls": ["https://[::ffff:127.0.0.1%25x]/"]}),
        ("filter_entries", {"from_step": 1, "where": deep(12)}),
        ("scratchpad_read", {"id": "\ud800", "mode": "full"}),
        ("scratchpad_read", {"id": "0" * 16, "mode": "range", "start": 10**400}),
        ("scratchpad_read", {"mode": "full"}),
        ("scratchpad_read", {"id": {}, "mode": []}),
        ("final_answer", {"text": "\ud800{{step3.nul}}"}),
        ("\ud800" * 100, {}),
        ("x" * 100_000, {"a": "b"}),
    ],
)  # fmt: skip
def test_gate_of_what_broke_others_answers(world: World, tool: str, args: dict[str, Any]) -> None:
    check(world, tool, args)
