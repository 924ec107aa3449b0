"""`python -m core.catalog.digests [--check]`: bring `[files]` and `executors/DIGESTS` up to date,
and the table of executors in the README.

With `--check` nothing is written and the exit status is 1 when something below `executors/` is
stale. An executor
whose manifest does not pass is named, and the exit status is 1, in both cases.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import core
from core.catalog.release import refresh_digests
from core.catalog.table import README, refresh_table


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="core.catalog.digests", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, only tell")
    parser.add_argument("--root", type=Path, default=Path(core.__file__).parent.parent)
    options = parser.parse_args(arguments)
    found = refresh_digests(options.root, write=not options.check)
    verb = "stale" if options.check else "refreshed"
    for path in found.stale:
        sys.stdout.write(f"{verb}: executors/{path}\n")
    if not options.check and not found.problems and refresh_table(options.root):
        sys.stdout.write(f"{verb}: {README}\n")
    for problem in found.problems:
        sys.stdout.write(f"problem: {problem}\n")
    return 1 if found.problems or (options.check and found.stale) else 0


if __name__ == "__main__":
    sys.exit(main())
