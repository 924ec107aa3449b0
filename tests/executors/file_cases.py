"""What the tests of the file executors share: running one in the cage, and out of it, quickly."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from executors._sdk.call import Call
from executors._sdk.result import Failure, from_exception, told
from tests.support.run_executor import TREE, call_document, run_executor

CHANGING = (
    "write_files",
    "move_files",
    "delete_files",
    "create_files_spreadsheet",
    "write_files_spreadsheet",
    "create_dirs",
    "delete_dirs",
    "compress_files",
    "extract_files",
    "create_files_doc",
    "change_files_format",
)
NAMES = (
    "find_files",
    "read_files",
    "list_dirs",
    "compute_signatures",
    "find_files_hash",
    "read_files_spreadsheet",
    "read_files_pdf",
    "read_files_doc",
    "get_files",
    "find_dirs",
    *CHANGING,
)


def run(
    name: str, args: Mapping[str, Any], *roots: Path, mode: str = "run", **about: Any
) -> dict[str, Any]:
    """One call in this process, for tables of cases; the dict an executor gives."""
    document = call_document(name, args, roots=[os.path.realpath(root) for root in roots], **about)
    main = importlib.import_module(f"executors.{name}.main")
    try:
        result: dict[str, Any] = getattr(main, mode)(Call({**document, "mode": mode}))
    except (Failure, OSError) as exc:  # as the child's bootstrap does
        failed = from_exception(exc)
        assert failed is not None
        return told(failed)
    return result


def run_caged(
    name: str, args: Mapping[str, Any], *roots: Path, mode: Any = "run", **about: Any
) -> dict[str, Any]:
    """The same call as the engine makes it, in a child process."""
    return run_executor(TREE / name, args, mode=mode, roots=roots, **about)


def snapshot(folder: Path) -> dict[str, tuple[str, bytes | str]]:
    """All that is in a folder, to tell that nothing changed."""
    seen: dict[str, tuple[str, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            seen[name] = ("link", str(path.readlink()))
        elif path.is_file():
            seen[name] = ("file", path.read_bytes())
        else:
            seen[name] = ("other", "")
    return seen


def undo_of(seen: Mapping[str, Any]) -> list[dict[str, str]]:
    """The way back from what a changing call says of its entries, in the order of a preview."""
    steps: list[dict[str, str]] = []
    for entry in seen["entries"]:
        if not entry["ok"]:
            continue
        path = entry["path"]
        for key, to in (("kept", path), ("replaced", path), ("trash", path)):
            if key in entry:
                steps.append({"do": "restore", "from": entry[key], "to": to})
        if "source" in entry:
            steps.append({"do": "move", "from": path, "to": entry["source"]})
        if entry.get("created"):
            steps.append({"do": "remove", "path": path})
    return steps[::-1] if any("source" in entry for entry in seen["entries"]) else steps
