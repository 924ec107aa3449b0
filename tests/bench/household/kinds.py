"""The kinds of requests (`kinds.toml`) and what is right for each: words and plan, filled."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.bench.household.values import NUMBERS, SAME, Said

_SLOT = re.compile(r"\{(\w+)\}")

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Kind:
    """`words` by language. `slots` in the order in which they are drawn."""

    name: str
    words: Mapping[str, tuple[str, ...]]
    plan: tuple[tuple[str, dict[str, Any]], ...]
    slots: tuple[str, ...]
    for_guests: bool

    @property
    def changes(self) -> bool:
        return any(tool in {"write_files", "move_files", "delete_files"} for tool, _ in self.plan)

    def say(self, lang: str, wording: int, values: Mapping[str, Said]) -> str:
        return _SLOT.sub(lambda found: values[found[1]].words, self.words[lang][wording])

    def right(self, values: Mapping[str, Said]) -> list[Call]:
        """The calls that are right for these values, as a plan."""
        return [(tool, _filled(args, values)) for tool, args in self.plan]


@cache
def load_kinds() -> tuple[Kind, ...]:
    """All kinds. Raises `ValueError` for words that lack a value of the plan."""
    data = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text("utf-8"))
    return tuple(_kind(name, row) for name, row in data.items())


def _kind(name: str, row: Mapping[str, Any]) -> Kind:
    words = {lang: tuple(row[lang]) for lang in ("it", "en")}
    plan = tuple((str(tool), dict(args)) for tool, args in row["plan"])
    slots = tuple(dict.fromkeys(_SLOT.findall(str(row["plan"]))))
    for text in (*words["it"], *words["en"]):
        if not set(_SLOT.findall(text)) <= set(slots):
            raise ValueError(f"{name}: {text!r} speaks of what the plan does not hold")
    return Kind(name, words, plan, slots, row.get("whose") != "host")


def _filled(value: Any, values: Mapping[str, Said]) -> Any:
    if isinstance(value, Mapping):
        return {key: _filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    if not isinstance(value, str):
        return value
    slots = _SLOT.findall(value)
    text = _SLOT.sub(lambda found: values[found[1]].meant, value)
    return int(text) if slots and NUMBERS.issuperset(slots) else text


def plain(calls: list[Call]) -> list[Call]:
    """Calls as they are compared: a list of one is that one, and what is sought counts the same in
    both languages."""
    return [(tool, {key: _plain(item) for key, item in args.items()}) for tool, args in calls]


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        items = [_plain(item) for item in value]
        return items[0] if len(items) == 1 else items
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return SAME.get(value, value) if isinstance(value, str) else value
