"""What is right for a request, and what differs from it: the tools that ran and their arguments,
where they led, and what is changed afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.turn_state import StepRecord
from tests.bench.household.kinds import Call, plain


def differs(
    ran: Sequence[StepRecord],
    expected: tuple[Call, ...],
    before: dict[str, bytes],
    after: dict[str, bytes],
    space: Path,
) -> str:
    """What differs between what was done and what these calls ask for."""
    done = [record for record in ran if record.ran and record.tool != "final_answer"]
    calls = plain([(record.tool, dict(record.raw_args)) for record in done])
    wanted = plain(list(expected))
    if calls != wanted:
        return f"ran {calls} for {wanted}"
    for record, (_, args) in zip(done, expected, strict=True):
        if stray := _stray(args, record.resolved_args, space):
            return f"went to {stray}"
    effects = {p: after.get(p) for p in {*before, *after} if before.get(p) != after.get(p)}
    due = _effects(expected, before)
    if {path: None if data is None else b"" for path, data in effects.items()} != {
        path: None if data is None else b"" for path, data in due.items()
    }:
        return f"changed {sorted(effects)} for {sorted(due)}"
    for path, data in due.items():
        if data is not None and data not in (effects[path] or b""):
            return f"wrote {effects[path]!r} for {data!r}"
    return ""


def seen(space: Path) -> dict[str, bytes]:
    """Every file of a person and what is in it; the trash is not theirs to look at."""
    return {
        path.relative_to(space).as_posix(): path.read_bytes()
        for path in space.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.parts)
    }


def _stray(args: dict[str, Any], resolved: Any, space: Path) -> str:
    """A path that does not lead where its words say, in this person's own folder."""
    for name in ("path", "paths", "base_path", "dst"):
        said, real = args.get(name, []), (resolved or {}).get(name, [])
        said, real = ([x] if isinstance(x, str) else list(x) for x in (said, real))
        due = [str((space / one).resolve()) for one in said]
        if due and due != [str(one).rstrip("/") for one in real]:
            return f"{real} for {due}"
    return ""


def _effects(calls: tuple[Call, ...], before: dict[str, bytes]) -> dict[str, bytes | None]:
    """What these calls change: path → what is then in it, None when it is gone."""
    due: dict[str, bytes | None] = {}
    for number, (tool, args) in enumerate(calls):
        targets = list(args.get("paths", []))
        if "from_step" in args:
            sought = calls[number - 1][1].get("patterns") or ("*",)
            targets = [p for p in before if any(Path(p).match(one) for one in sought)]
        if tool == "write_files":
            due[args["path"]] = args["content"].encode()
        elif tool == "delete_files":
            due |= dict.fromkeys(targets)
        elif tool == "move_files":
            for path in targets:
                whole = args["dst"].endswith(".txt")
                due[args["dst"] if whole else f"{args['dst']}/{path}"] = before[path]
                due[path] = None
    return due
