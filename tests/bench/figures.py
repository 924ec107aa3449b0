"""How figures are taken and written: repetitions by scale, medians and 95th of 100.

A part's figures are a flat or nested `dict` of JSON values; a budget (DESIGN §8) and what other
assistants reach on the same harness stand beside the figure they belong to.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SCALE = "METNOS_TEST_SCALE"


def times(wanted: int, *, least: int = 2) -> int:
    """How often to repeat: `wanted` at scale 1 (the default here), never fewer than `least`."""
    return max(least, round(wanted * float(os.environ.get(SCALE) or 1)))


def spread(seconds: Sequence[float], **beside: Any) -> dict[str, Any]:
    """Count, median and 95th of 100 in milliseconds, and what stands `beside` them."""
    in_order = sorted(seconds)
    p95 = in_order[math.ceil(len(in_order) * 0.95) - 1]
    return {
        "n": len(in_order),
        "median_ms": milli(statistics.median(in_order)),
        "p95_ms": milli(p95),
        **beside,
    }


def milli(seconds: float) -> float:
    return round(seconds * 1000, 3)


def clocked(work: Callable[[], object], repeat: int) -> list[float]:
    """Seconds of each of `repeat` runs."""
    spent = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return spent


def cpu_s(pid: int) -> tuple[float, float]:
    """Processor seconds of a process so far, and of its children that have ended. On a machine
    that does other things too, these are steadier than times by the clock."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    user, system, children_user, children_system = (
        int(field) / os.sysconf("SC_CLK_TCK") for field in fields[11:15]
    )
    return user + system, children_user + children_system


def resident_mb(pid: int) -> float:
    """Memory of a process that is in RAM, in MiB. Raises when it has ended."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (line,) = (x for x in status.splitlines() if x.startswith("VmRSS"))
    return round(int(line.split()[1]) / 1024, 1)
