"""Runs an executor folder of the tree through the real cage, without signing: for birth tests."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.egress.rules import Right
from core.execution.cage.process import Mode, ProcessCage
from core.observation import Observation

TREE = Path(__file__).parents[2] / "executors"


@dataclass(frozen=True)
class SimpleLimits:
    """The defaults of a manifest."""

    memory_mb: int = 256
    cpu_s: int = 20
    output_bytes: int = 4 * 1024 * 1024
    file_mb: int = 64


@dataclass(frozen=True)
class SimpleCapability:
    name: str
    hints: tuple[str, ...] = ("arg:any",)


@dataclass(frozen=True)
class SimpleManifest:
    name: str
    is_mutating: bool = False
    requires: tuple[str, ...] = ()
    provenance: str = "own"
    timeout_s: float = 30.0
    limits: SimpleLimits = field(default_factory=SimpleLimits)
    capabilities: tuple[Right, ...] = ()


@dataclass(frozen=True)
class SimpleProgram:
    manifest: SimpleManifest
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class SimpleSdk:
    files: Mapping[str, bytes]


def read_sdk(folder: Path = TREE / "_sdk") -> SimpleSdk:
    """The `_sdk` of the tree."""
    return SimpleSdk(_python_files(folder))


def read_program(folder: Path) -> SimpleProgram:
    """An executor folder of the tree; its manifest is read loosely, defaults fill the gaps."""
    data = tomllib.loads((folder / "manifest.toml").read_text(encoding="utf-8"))
    limits = {
        key: value
        for key, value in (data.get("limits") or {}).items()
        if key in SimpleLimits.__dataclass_fields__
    }
    manifest = SimpleManifest(
        name=data.get("name", folder.name),
        is_mutating=data.get("effect", "pure") != "pure",
        requires=tuple(data.get("requires") or ()),
        provenance=data.get("provenance", "own"),
        timeout_s=float(data.get("timeout_s", 30)),
        limits=SimpleLimits(**limits),
        capabilities=tuple(
            SimpleCapability(one["name"], tuple(one.get("hints", ())))
            for one in data.get("capabilities", ())
        ),
    )
    return SimpleProgram(manifest, _python_files(folder))


def call_document(
    tool: str,
    args: Mapping[str, Any],
    *,
    roots: Sequence[Path | str] = (),
    lang: str = "it",
    tz: str = "Europe/Rome",
    now: str = "2026-03-18T09:00:00+00:00",
    home: Path | str = "/nonexistent",
    private_hosts: Sequence[str] = (),
    closed: Mapping[str, Any] | None = None,
    services: Mapping[str, str] | None = None,
    whereabouts: Mapping[str, Any] | None = None,
    accounts: Sequence[Mapping[str, Any]] = (),
    account_hosts: Mapping[str, Sequence[str]] | None = None,
    machine: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A call document as the gate writes it."""
    return {
        "v": 1,
        "tool": tool,
        "args": dict(args),
        "lang": lang,
        "tz": tz,
        "now": now,
        "turn_id": "0123456789abcdef0123456789abcdef",
        "step": 1,
        "actor_id": "actor",
        "roots": [str(root) for root in roots],
        "write_roots": [str(root) for root in roots],
        "closed": dict(closed or {}),
        "home": str(home),
        "trash_name": ".metnos-trash",
        "private_hosts": list(private_hosts),
        "services": dict(services or {}),
        "whereabouts": dict(whereabouts or {}),
        "accounts": [dict(account) for account in accounts],
        "account_hosts": {kind: list(hosts) for kind, hosts in (account_hosts or {}).items()},
        "machine": dict(machine or {}),
        "user_agent": "Metnos/0.1 (test)",
    }


async def observe(
    folder: Path, args: Mapping[str, Any], *, mode: Mode = "run", **about: Any
) -> Observation:
    """Run one call of an executor folder through the cage."""
    program = read_program(folder)
    document = call_document(program.manifest.name, args, **about)
    return await shared_cage().run(program, read_sdk(), document, mode=mode)


@lru_cache(maxsize=1)
def shared_cage() -> ProcessCage:
    """One cage for all such calls: its zygotes outlive the event loops."""
    return ProcessCage()


def run_executor(
    folder: Path, args: Mapping[str, Any], *, mode: Mode = "run", **about: Any
) -> dict[str, Any]:
    """`observe` for tests that are not async; the observation in its JSON form.

    `about`: `roots`, `lang`, `tz`, `now` (ISO), `home`, `private_hosts`. A preview is `content`.
    """
    return asyncio.run(observe(folder, args, mode=mode, **about)).to_json()


def _python_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.name != "manifest.toml"
    }
