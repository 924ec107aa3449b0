"""The `.env` of the home: written line by line, mode 0600, what others wrote there kept."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_PLAIN = re.compile(r"[A-Za-z0-9_./:@,+=~-]+")
_NAME = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=")


def update(path: Path, values: Mapping[str, str]) -> None:
    """Set these variables in the file, each on the line where it was or at the end.

    Made when missing; replaced as a whole, so that a crash leaves the old or the new one. Comments
    and other variables stay. Raises `OSError`.
    """
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    left = dict(values)
    for number, line in enumerate(lines):
        match = _NAME.match(line)
        if match is not None and match[1] in values:
            lines[number] = f"{match[1]}={_quoted(values[match[1]])}"
            left.pop(match[1], None)
    lines += [f"{name}={_quoted(value)}" for name, value in left.items()]
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _quoted(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
