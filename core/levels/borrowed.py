"""What a plan took from the conversation before its request: only there does it mean that. Pure.

The words of a request are the same tomorrow, the talk around them is not, and it is one person's:
a plan that borrowed from it serves nobody again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from core.catalog.lexicon import fold
from core.errors import CallRefused
from core.plan import FINAL_ANSWER, PIPES, Plan, parse_template

_WORD = re.compile(r"\w{4,}")
# How things are ordered and counted is named alike in every conversation.
_WAYS = frozenset({"by", "key", "field", "op", *PIPES})
_KIND_OF_FILE = re.compile(r"\*\.?\w{0,5}")


def borrows(plan: Plan, request: str, earlier: Iterable[str]) -> bool:
    """Whether a literal of the plan has a word that was said earlier, and not in the request."""
    before = {word for text in earlier for word in _WORD.findall(fold(text))}
    if not before:
        return False
    new = before - set(_WORD.findall(fold(request)))
    return any(
        not new.isdisjoint(_WORD.findall(fold(leaf)))
        for step in plan.steps
        if step.tool != FINAL_ANSWER
        for name, value in step.args.items()
        if name not in _WAYS
        for leaf in _texts(value)
    )


def _texts(value: Any) -> Iterator[str]:
    """The texts of an argument that are no reference, and no kind of file (`*.pdf`)."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name not in _WAYS:
                yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str) and not _KIND_OF_FILE.fullmatch(value):
        try:
            template = parse_template(value)
        except CallRefused:
            template = None
        yield from (
            [value]
            if template is None
            else (part for part in template.parts if isinstance(part, str))
        )
