"""What the acceptance tests share: how often to repeat, and reading what a home holds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bot.app import House


def repetitions(bar: int, *, least: int = 1) -> int:
    """How often to do what the bar does `bar` times: METNOS_TEST_SCALE, 1 = the bar."""
    scale = float(os.environ.get("METNOS_TEST_SCALE") or 0.2)
    return max(least, round(bar * scale))


def turn_lines(home: Path) -> list[dict[str, Any]]:
    """Every line of the turn log, oldest first; a line that is no JSON fails."""
    return _lines(home / "turns")


def policy_lines(home: Path) -> list[dict[str, Any]]:
    """Every verdict."""
    return _lines(home / "policy")


def _lines(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def home_of(house: House) -> Path:
    return house.settings.metnos_home


def files_holding(root: Path, secret: str) -> list[str]:
    """Files below `root` whose bytes hold the secret, as text, JSON-escaped or UTF-16."""
    forms = {secret.encode(), secret.encode("utf-16-le"), json.dumps(secret)[1:-1].encode()}
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink() and any(f in path.read_bytes() for f in forms)
    ]
