"""Reading a TOML table field by field: typed, bounded, and with no key left unread.

Pure. Every refusal is a `ManifestInvalid` that names the field and what it takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from core.catalog.reasons import printable
from core.errors import ManifestInvalid

T = TypeVar("T")
_REQUIRED: Any = object()
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_CONTROL = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
MOST_WORDS = 200


def invalid(detail: str, reason: str = "bad_manifest") -> ManifestInvalid:
    """The one refusal of this layer; `reason` is the text key `reject.<reason>`."""
    return ManifestInvalid(printable(detail), reason=reason)


class TomlTable:
    """One table being read. `where` names it in refusals; `end` refuses what nobody asked for."""

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self._data = data
        self._where = where
        self._read: set[str] = set()

    def has(self, key: str) -> bool:
        return key in self._data

    def take(self, key: str, kind: type[T], default: Any = _REQUIRED) -> T:
        """The value of `key`, which must be exactly of `kind` (true is no number)."""
        self._read.add(key)
        if key not in self._data:
            if default is _REQUIRED:
                raise invalid(f"{self._where}: {key} is missing")
            return cast(T, default)
        value = self._data[key]
        if type(value) is not kind:
            raise invalid(f"{self._where}: {key} must be a {kind.__name__}")
        return value

    def text(self, key: str, default: Any = _REQUIRED, *, most: int = 200, least: int = 1) -> str:
        """A text of `least` to `most` characters without control or direction characters."""
        value = self.take(key, str, default)
        if not least <= len(value) <= most:
            raise invalid(f"{self._where}: {key} must have {least} to {most} characters")
        if _CONTROL.search(value):
            raise invalid(f"{self._where}: {key} holds control characters")
        return value

    def matching(self, key: str, pattern: re.Pattern[str]) -> str:
        value = self.take(key, str)
        if not pattern.fullmatch(value):
            raise invalid(f"{self._where}: {key} is {value[:60]!r}, which does not fit")
        return value

    def choice(self, key: str, allowed: Iterable[str], default: Any = _REQUIRED) -> str:
        value = self.take(key, str, default)
        if value not in allowed:
            raise invalid(f"{self._where}: {key} must be one of {', '.join(sorted(allowed))}")
        return value

    def number(self, key: str, default: Any = _REQUIRED, *, low: float, high: float) -> float:
        self._read.add(key)
        value = self._data.get(key, default)
        if type(value) not in {int, float} or not low <= value <= high:
            raise invalid(f"{self._where}: {key} must be a number from {low} to {high}")
        return cast(float, value)

    def whole(self, key: str, default: Any = _REQUIRED, *, low: int, high: int) -> int:
        value = self.take(key, int, default)
        if not low <= value <= high:
            raise invalid(f"{self._where}: {key} must be a whole number from {low} to {high}")
        return value

    def words(self, key: str, pattern: re.Pattern[str] = _WORD) -> tuple[str, ...]:
        """A list of distinct words, empty when the key is missing."""
        value = self.take(key, list, [])
        for word in value:
            if type(word) is not str or not pattern.fullmatch(word):
                raise invalid(f"{self._where}: {key} holds {word!r}, which does not fit")
        if len(set(value)) != len(value) or len(value) > MOST_WORDS:
            raise invalid(f"{self._where}: {key} repeats itself or is too long")
        return tuple(value)

    def texts(self, key: str, *, most: int = 60) -> tuple[str, ...]:
        """A list of short free texts."""
        value = self.take(key, list)
        if len(value) > MOST_WORDS:
            raise invalid(f"{self._where}: {key} is too long")
        for text in value:
            if type(text) is not str or not 0 < len(text) <= most or _CONTROL.search(text):
                raise invalid(f"{self._where}: {key} holds {text!r}, which does not fit")
        return tuple(value)

    def table(self, key: str, default: Any = _REQUIRED) -> TomlTable:
        return TomlTable(self.take(key, dict, default), f"[{key}]")

    def tables(self, key: str, default: Any = _REQUIRED) -> list[TomlTable]:
        value = self.take(key, list, default)
        if not all(type(item) is dict for item in value):
            raise invalid(f"{self._where}: {key} must be written as [[{key}]]")
        return [TomlTable(item, f"[[{key}]] {n}") for n, item in enumerate(value, 1)]

    def keys(self) -> tuple[str, ...]:
        return tuple(self._data)

    def end(self) -> None:
        """Refuse what was not read: a misspelt field must not pass in silence."""
        if len(self._read) < len(self._data) or not self._read.issuperset(self._data):
            unknown = sorted(set(self._data) - self._read)
            if unknown:
                raise invalid(f"{self._where}: unknown field {unknown[0]!r}")
