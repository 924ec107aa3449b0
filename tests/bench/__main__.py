"""`python -m tests.bench` prints one JSON document with every part; `python -m tests.bench NAME`
one part of it. `--scale 0.1` (or METNOS_TEST_SCALE) repeats a tenth as often; `--quiet 60` waits
up to a minute before each part for a moment at which nothing else keeps the processors busy.

A part that fails stands in the document as `error`, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.figures import SCALE

PARTS = (
    "prefilter",
    "recall",
    "reuse",
    "reuse-speed",
    "catalog",
    "call",
    "cage",
    "egress",
    "overhead",
    "suspension",
    "journal",
    "tokens",
    "messages",
    "crowd",
    "flood",
    "start",
    "memory",
    "console",
    "documents",
    "find",
    "mail",
    "model",
    "requests",
)
# Only when asked for by name: it takes minutes.
BY_NAME = ("month",)
_QUIET = 10.0


def main() -> int:
    """Run the parts that were asked for; what stands behind a part's name is its own options."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--scale", type=float, help="how often to repeat, 1 is the full measure")
    parser.add_argument(
        "--quiet", type=float, default=0.0, help="seconds to wait for quiet, at most"
    )
    parser.add_argument("part", nargs="?", choices=[*PARTS, *BY_NAME])
    options, rest = parser.parse_known_args()
    if rest and options.part is None:
        parser.error("options of a part need its name")
    if options.scale is not None:
        os.environ[SCALE] = str(options.scale)
    document: dict[str, Any] = {"machine": machine()}
    for name in [options.part] if options.part else PARTS:
        print(f"{name} …", file=sys.stderr, flush=True)
        _wait_for_quiet(options.quiet)
        document[name] = _figures(name, rest)
    print(json.dumps(document, indent=2, ensure_ascii=False))
    return int(any("error" in part for part in document.values()))


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "scale": float(os.environ.get(SCALE) or 1),
    }


def cpu_pressure() -> float | None:
    """Percent of the last ten seconds in which some process waited for a processor: above 20 or
    so the times are those of a busy machine. None where the kernel does not tell."""
    try:
        line = Path("/proc/pressure/cpu").read_text(encoding="utf-8").splitlines()[0]
    except OSError:
        return None
    return float(line.split("avg10=")[1].split()[0])


def _wait_for_quiet(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and (cpu_pressure() or 0.0) > _QUIET:
        time.sleep(1)


def _figures(name: str, options: list[str]) -> dict[str, Any]:
    begun, pressure = time.monotonic(), cpu_pressure()
    try:
        figures = importlib.import_module(f"tests.bench.{name.replace('-', '_')}").run(options)
    except Exception as exc:
        return {"error": f"{type(exc).__name__}: {exc}"}
    took = round(time.monotonic() - begun, 1)
    return {**figures, "took_s": took, "cpu_pressure_before": pressure}


if __name__ == "__main__":
    sys.exit(main())
