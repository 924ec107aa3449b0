"""Keep the lines of texts that hold certain words, or match a regular expression."""

from __future__ import annotations

import re

from executors._sdk import fields, values
from executors._sdk.result import Failure, done, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from executors._sdk.call import Call

MAX_RESULTS = 5000
_BODIES = ("text", "content", "body", "value")
_MOST_PATTERN = 200
_MOST_LINE = 10_000


def run(call: Call) -> dict[str, Any]:
    """One entry per line: `text`, `line` (its number, from 1), and where it comes from (`name`,
    `path`). `metadata.available` counts those beyond `max_results`, `lines` all that were read."""
    keeps = _test(call)
    negated = call.args.get("exclude") is True
    most = min(call.args.get("max_results") or 1000, MAX_RESULTS)
    entries: list[dict[str, Any]] = []
    available = lines = 0
    for source, text in _texts(call):
        for number, line in enumerate(text.splitlines(), 1):
            lines += 1
            if keeps(line) is negated:
                continue
            available += 1
            if len(entries) < most:
                entries.append(item(text=line[:_MOST_LINE], line=number, **source))
    return done(
        entries,
        used=len(entries),
        available=available,
        truncated=len(entries) < available,
        lines=lines,
    )


def _texts(call: Call) -> Iterator[tuple[dict[str, Any], str]]:
    content = call.args.get("content")
    if isinstance(content, str):
        yield {}, content
    for given in call.args.get("entries") or ():
        entry = fields.as_entry(given)
        if entry.get("ok") is False:
            continue
        body = next((entry[k] for k in _BODIES if isinstance(entry.get(k), str)), None)
        if body is not None:
            yield {k: entry[k] for k in ("name", "path", "url", "title") if k in entry}, body


def _test(call: Call) -> Callable[[str], bool]:
    contains, regex = call.args.get("contains"), str(call.args.get("regex") or "")
    if bool(contains) == bool(regex):
        raise Failure("invalid_args", "give words in contains, or a regular expression in regex")
    if contains:
        given = [contains] if isinstance(contains, str) else contains
        words = [word for word in map(values.fold, given) if word]
        return lambda line: any(word in values.fold(line) for word in words)
    if len(regex) > _MOST_PATTERN:
        raise Failure("invalid_args", f"a regular expression of 1-{_MOST_PATTERN} characters")
    try:
        pattern = re.compile(regex, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as exc:
        raise Failure("invalid_args", f"no regular expression: {exc}") from exc
    return lambda line: pattern.search(line[:_MOST_LINE]) is not None
