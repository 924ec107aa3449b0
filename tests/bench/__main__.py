"""`python -m tests.bench NAME …` prints one JSON of `tests.bench.NAME.run(arguments)`."""

from __future__ import annotations

import importlib
import json
import sys


def main() -> None:
    name, *arguments = sys.argv[1:]
    module = importlib.import_module(f"tests.bench.{name}")
    print(json.dumps(module.run(arguments), indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
