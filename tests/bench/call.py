"""One executor call as a process, against the start of a bare interpreter in the same run."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from core.execution.cage.process import ProcessCage
from tests.bench.figures import spread, times
from tests.support.run_executor import (
    TREE,
    SimpleManifest,
    SimpleProgram,
    call_document,
    read_program,
    read_sdk,
)

_TRIVIAL = SimpleProgram(
    SimpleManifest("get_now"), {"main.py": b"def run(call):\n    return {'ok': True}\n"}
)
_BARE = (sys.executable, "-I", "-S", "-c", "pass")


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Milliseconds of a trivial executor, of `get_now`, and of an interpreter that does nothing;
    the three take turns, so that a loaded machine slows all of them."""
    return asyncio.run(_run(times(60)))


async def _run(repeat: int) -> dict[str, Any]:
    cage, sdk = ProcessCage(), read_sdk()
    programs = {"trivial": _TRIVIAL, "get_now": read_program(TREE / "get_now")}
    spent: dict[str, list[float]] = {"bare_interpreter": [], **{name: [] for name in programs}}
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run(_BARE, check=True, stdin=subprocess.DEVNULL)  # noqa: ASYNC221
        spent["bare_interpreter"].append(time.perf_counter() - start)
        for name, program in programs.items():
            start = time.perf_counter()
            seen = await cage.run(program, sdk, call_document("get_now", {}))
            spent[name].append(time.perf_counter() - start)
            if not seen.ok:
                raise RuntimeError(f"{name} failed: {seen.error}")
    bare = statistics.median(spent["bare_interpreter"])
    ratios = {
        f"{name}_to_bare": round(statistics.median(spent[name]) / bare, 2) for name in programs
    }
    return {
        "bare_interpreter": spread(spent["bare_interpreter"]),
        "trivial": spread(spent["trivial"], budget_median_ms=8),
        "get_now": spread(spent["get_now"]),
        **ratios,
    }
