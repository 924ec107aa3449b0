"""How texts and JSON pass the edge of the store: nothing a person types may break a write.

SQLite and UTF-8 files refuse lone surrogates, and SQLite's text functions stop at NUL. Pure.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

log = logging.getLogger(__name__)

REPLACEMENT = "\ufffd"


def clean_text(text: str) -> str:
    """The same text, storable: NUL and lone surrogates become U+FFFD, split pairs are joined."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def dump_json(value: Any) -> str:
    """One line of JSON, storable. What JSON cannot say is said as text; NaN becomes null."""
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str
        )
    except (ValueError, TypeError):  # NaN and infinities, or keys that are no text
        text = json.dumps(
            _plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str
        )
    return clean_text(text)


def load_json(text: str | bytes | None) -> Any:
    """The JSON value in a column or a line; None when it is missing or damaged."""
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        log.warning("damaged JSON read as nothing", extra={"size": len(text)})
        return None


def load_object(text: str | bytes | None) -> dict[str, Any]:
    """The JSON object in a column or a line; an empty one when there is none."""
    value = load_json(text)
    return value if isinstance(value, dict) else {}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value


def as_text(value: Any) -> str:
    """A cell that holds text. Raises `ValueError` for bytes and numbers, which a damaged row may
    have there."""
    if not isinstance(value, str):
        raise ValueError("no text")
    return value
