"""Birth tests: the examples of a manifest, tried in the real cage before an executor may live."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.catalog.loaded import Catalog
from core.catalog.loader import LoadedExecutor, LoadedSdk
from core.catalog.manifest import BirthTest
from core.config import Settings
from core.execution.arguments import paths_in
from core.execution.cage.process import ProcessCage
from core.execution.context import TurnContext
from core.execution.document import document_of
from core.execution.paths import scope_for
from core.messages import Actor, ChatAddress, Role
from core.observation import Observation
from core.turn_state import TurnState

# When the example says none.
_NOW = datetime(2026, 3, 18, 9, tzinfo=UTC)
_ROOT = "{root}"


@dataclass(frozen=True, slots=True)
class Born:
    """What came of one example; `why` says in English what was not as expected."""

    example: str
    ok: bool
    why: str = ""


async def births(
    executor: LoadedExecutor, sdk: LoadedSdk, cage: ProcessCage, settings: Settings
) -> AsyncIterator[Born]:
    """Try every example of an executor, each in a fresh folder of its own, with no account and no
    place. Raises nothing for an example that fails."""
    for example in executor.manifest.tests:
        with tempfile.TemporaryDirectory(prefix="metnos-birth-") as scratch:
            root = _real(scratch)
            _lay(root, example)
            seen = await _run(executor, sdk, cage, settings, example, root)
            why = _difference(seen, _within(example.expect, root), root)
            yield Born(example.name, not why, why)


async def _run(
    executor: LoadedExecutor,
    sdk: LoadedSdk,
    cage: ProcessCage,
    settings: Settings,
    example: BirthTest,
    root: Path,
) -> Observation:
    manifest = executor.manifest
    actor = Actor("birth", Role.HOST, "birth")
    home = settings.model_copy(update={"metnos_files_roots": (root,)})
    now = datetime.fromisoformat(example.now) if example.now else _NOW
    context = TurnContext(
        turn_id="0" * 32,
        actor=actor,
        address=ChatAddress("terminal", "birth"),
        lang=example.lang,
        tz=example.tz or "UTC",
        now=now,
        request="",
        catalog=Catalog({manifest.name: executor}, (), sdk, ""),
        scope=scope_for(actor, home),
        services=settings.services,
    )
    args = _within(example.args, root)
    paths = [path for group in paths_in(args, manifest).values() for path in group]
    document = document_of(context, TurnState(context.turn_id, ""), manifest, args, paths)
    return await cage.run(
        executor, sdk, document, timeout_s=manifest.timeout_s, limits=manifest.limits
    )


def _real(folder: str) -> Path:
    return Path(os.path.realpath(folder))


def _lay(root: Path, example: BirthTest) -> None:
    for path, text in example.setup.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(text.encode())


def _difference(seen: Observation, expect: Mapping[str, Any], root: Path) -> str:
    """The first thing that is not as the example says; "" when all is."""
    said = f"{seen.error.code}: {seen.error.detail}" if seen.error else ""
    if seen.ok is not expect.get("ok", True):
        return f"ok is {str(seen.ok).lower()}" + (f" ({said})" if said else "")
    if "error" in expect and (seen.error is None or seen.error.code != expect["error"]):
        return f"the error is {said or 'none'}, not {expect['error']}"
    entries = seen.entries or ()
    if "count" in expect and len(entries) != expect["count"]:
        return f"{len(entries)} entries, not {expect['count']}"
    for number, (entry, wanted) in enumerate(
        zip(entries, expect.get("entries", ()), strict=False), 1
    ):
        if lacks := _lacks(entry, wanted):
            return f"entry {number}: {lacks}"
    if len(entries) < len(expect.get("entries", ())):
        return f"{len(entries)} entries, not {len(expect['entries'])}"
    for part, whole in (("content", seen.content), ("metadata", seen.metadata)):
        if lacks := _lacks(whole if isinstance(whole, Mapping) else {}, expect.get(part, {})):
            return f"{part}: {lacks}"
    for path, text in expect.get("files", {}).items():
        target = root / path
        if text is False and target.exists():
            return f"{path} is there"
        if text is not False and not target.is_file():
            return f"{path} is not there"
        if text is not False and target.read_bytes() != text.encode():
            return f"{path} holds something else"
    return ""


def _lacks(whole: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    for key, value in part.items():
        if key not in whole or whole[key] != value:
            return f"{key} is {whole.get(key)!r}, not {value!r}"[:300]
    return ""


def _within(value: Any, root: Path) -> Any:
    """The value with `{root}` filled in."""
    if isinstance(value, str):
        return value.replace(_ROOT, str(root))
    if isinstance(value, list | tuple):
        return [_within(item, root) for item in value]
    if isinstance(value, Mapping):
        return {key: _within(item, root) for key, item in value.items()}
    return value
