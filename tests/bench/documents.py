"""What files and documents cost in the cage: SHA-256 beside `sha256sum` on the same file by turns,
and a spreadsheet of a hundred thousand rows, foreseen, written and read again.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.figures import SCALE, times
from tests.support.run_executor import TREE, run_executor

_GIGABYTE = 1 << 30
_ROWS = 100_000
_TURNS = 5


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """`sha256.ratio`: the speed of compute_signatures as a part of sha256sum's, medians."""
    with tempfile.TemporaryDirectory(prefix="metnos-bench-") as folder:
        root = Path(folder)
        return {"sha256": _hashing(root), "spreadsheet": _spreadsheet(root)}


def _scaled(wanted: int, least: int) -> int:
    return max(least, round(wanted * min(1.0, float(os.environ.get(SCALE) or 1))))


def _hashing(root: Path) -> dict[str, Any]:
    size = _scaled(_GIGABYTE, 1 << 20)
    path = root / "large.bin"
    block = os.urandom(1 << 20)
    with path.open("wb") as file:
        for _ in range(size >> 20):
            file.write(block)
    _caged("compute_signatures", {"paths": [str(path)]}, root)  # read once, zygote warm
    ours, theirs = [], []
    for _ in range(times(_TURNS)):
        ours.append(_seconds(lambda: _caged("compute_signatures", {"paths": [str(path)]}, root)))
        theirs.append(
            _seconds(lambda: subprocess.run(["sha256sum", path], check=True, capture_output=True))
        )
    path.unlink()
    return {
        "mib": size >> 20,
        "ours_s": round(median(ours), 3),
        "sha256sum_s": round(median(theirs), 3),
        "ratio": round(median(theirs) / median(ours), 3),
        "budget_ratio": 0.8,
    }


def _spreadsheet(root: Path) -> dict[str, Any]:
    rows = _scaled(_ROWS, 1000)
    entries = [
        {"name": f"file {n}.pdf", "size": n, "modified": "2026-03-18T09:00:00+00:00", "x": "=1+1"}
        for n in range(rows)
    ]
    path = root / "large.xlsx"
    args = {"path": str(path), "entries": entries}
    foreseen = _seconds(lambda: _caged("create_files_spreadsheet", args, root, mode="preview"))
    written = _seconds(lambda: _caged("create_files_spreadsheet", args, root))
    read = _seconds(
        lambda: _caged("read_files_spreadsheet", {"paths": [str(path)], "max_rows": rows}, root)
    )
    return {
        "rows": rows,
        "foreseen_s": round(foreseen, 2),
        "written_s": round(written, 2),
        "both_s": round(foreseen + written, 2),
        "budget_s": 15,
        "read_s": round(read, 2),
        "bytes": path.stat().st_size,
    }


def _caged(tool: str, args: Mapping[str, Any], root: Path, *, mode: Any = "run") -> None:
    seen = run_executor(TREE / tool, args, mode=mode, roots=[root])
    assert seen.get("ok") is not False, seen


def _seconds(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
