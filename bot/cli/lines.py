"""Pieces of lines: what may stand on a terminal, paths and commands as people write them. Pure but
for looking where things are."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

# Unicode that turns the direction of what follows; letters of every script stay.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str) -> str:
    """The text with control and direction characters spelt out: what a page or a file says must
    not move the cursor, colour the terminal or turn the reading direction."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char in "\n\t" or char.isprintable() or not _commands_a_terminal(char)
        else ascii(char)[1:-1]
        for char in text
    )


def _commands_a_terminal(char: str) -> bool:
    return ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or char in _TURNING


def short_path(path: Path | str) -> str:
    """A path as people write it, with `~` for their home."""
    home = str(Path.home())
    text = str(path)
    return f"~{text[len(home) :]}" if text == home or text.startswith(home + "/") else text


def own_command(words: str) -> str:
    """A command of ours as it can be typed here: `metnos …`, or the path to it when it is not
    where the shell looks."""
    started = Path(sys.argv[0])
    if shutil.which("metnos") or started.name != "metnos":
        return f"metnos {words}"
    folder = f"{Path.cwd()}/"
    return f"{str(started.absolute()).removeprefix(folder)} {words}"


def alarming(text: str, stream: TextIO) -> str:
    """The text in red where the stream shows colours and nobody has asked for none."""
    plain = not is_bar_wanted(stream) or os.environ.get("NO_COLOR")
    return text if plain else f"\033[31m{text}\033[0m"


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows as lines with aligned columns, the last one as long as it is."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    return [
        "  ".join(
            [*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]
        ).rstrip()
        for row in rows
    ]


def is_bar_wanted(stream: TextIO) -> bool:
    """Whether a line may be drawn over itself: a terminal that can."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def as_plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """Without the fields that hold nothing."""
    return {key: value for key, value in data.items() if value not in (None, "", [], {})}
