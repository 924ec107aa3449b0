"""The small template language of a manifest's `answer`.

`{field}`, `{field|filter}`, `{entries|list:TEMPLATE}`; `[[ … ]]` is shown only when every field in
it has a value. Parsed once, rendered by `core.levels.renderer`. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")


class TemplateInvalid(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Field:
    """`{path|filter:argument}`; `argument` is a template of its own for `list`."""

    path: tuple[str, ...]
    filter: str = ""
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Optional:
    parts: tuple[Part, ...]


Part = str | Field | Optional


@lru_cache(maxsize=1024)
def parse(text: str) -> tuple[Part, ...]:
    """The parts of a template. Raises `TemplateInvalid` for unbalanced or unknown forms."""
    parts: list[Part] = []
    literal: list[str] = []
    at = 0

    def flush() -> None:
        if literal:
            parts.append("".join(literal))
            literal.clear()

    while at < len(text):
        if text.startswith("[[", at):
            end = text.find("]]", at)
            if end < 0:
                raise TemplateInvalid("[[ without ]]")
            flush()
            parts.append(Optional(parse(text[at + 2 : end])))
            at = end + 2
        elif text[at] == "{":
            end = _closing(text, at)
            flush()
            parts.append(_field(text[at + 1 : end]))
            at = end + 1
        elif text[at] == "}":
            raise TemplateInvalid("} without {")
        else:
            literal.append(text[at])
            at += 1
    flush()
    return tuple(parts)


def _closing(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at
    raise TemplateInvalid("{ without }")


def _field(inside: str) -> Field:
    name, _, rest = inside.partition("|")
    if not _FIELD.fullmatch(name.strip()):
        raise TemplateInvalid(f"no field name: {name!r}")
    kind, _, argument = rest.partition(":")
    if kind.strip() == "list":
        parse(argument)
    return Field(tuple(name.strip().split(".")), kind.strip(), argument)


def fields_of(parts: tuple[Part, ...]) -> list[Field]:
    found: list[Field] = []
    for part in parts:
        if isinstance(part, Field):
            found.append(part)
        elif isinstance(part, Optional):
            found += fields_of(part.parts)
    return found
