"""`python -m tests.bench` prints one JSON document with every part; `python -m tests.bench NAME`
one part of it. `--scale 0.1` (or METNOS_TEST_SCALE) repeats a tenth as often.

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
from typing import Any

from tests.bench.figures import SCALE

PARTS = (
    "prefilter",
    "catalog",
    "call",
    "overhead",
    "tokens",
    "messages",
    "crowd",
    "start",
    "memory",
    "model",
)


def main() -> int:
    """Run the parts that were asked for; what stands behind a part's name is its own options."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--scale", type=float, help="how often to repeat, 1 is the full measure")
    parser.add_argument("part", nargs="?", choices=PARTS)
    options, rest = parser.parse_known_args()
    if rest and options.part is None:
        parser.error("options of a part need its name")
    if options.scale is not None:
        os.environ[SCALE] = str(options.scale)
    document: dict[str, Any] = {"machine": machine()}
    for name in [options.part] if options.part else PARTS:
        print(f"{name} …", file=sys.stderr, flush=True)
        document[name] = _figures(name, rest)
    document["machine"]["load_at_end"] = round(os.getloadavg()[0], 2)
    print(json.dumps(document, indent=2, ensure_ascii=False))
    return int(any("error" in part for part in document.values()))


def machine() -> dict[str, Any]:
    """What the figures were taken on; `load` tells whether it was busy with something else."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "scale": float(os.environ.get(SCALE) or 1),
        "load": round(os.getloadavg()[0], 2),
    }


def _figures(name: str, options: list[str]) -> dict[str, Any]:
    begun = time.monotonic()
    try:
        figures = importlib.import_module(f"tests.bench.{name}").run(options)
    except Exception as exc:
        return {"error": f"{type(exc).__name__}: {exc}"}
    return {**figures, "took_s": round(time.monotonic() - begun, 1)}


if __name__ == "__main__":
    sys.exit(main())
