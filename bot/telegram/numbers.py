"""Numbers in updates as they came, which may be anything: read strictly. Pure."""

from __future__ import annotations

from typing import Any

# Telegram's numbers have at most 52 significant bits.
_MOST = 2**53

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What reading something that is not as Telegram promises may raise."""


def number(value: Any) -> int:
    """The number of a person, a chat or a topic. Raises `TypeError` or `ValueError` when it is
    none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a {type(value).__name__} where a number belongs")
    if abs(value) >= _MOST:
        raise ValueError("a number beyond all numbers of Telegram")
    return value


def update_id(raw: Any) -> int | None:
    """The number of an update; None: it has none, and cannot be acknowledged."""
    try:
        found = number(raw["update_id"])
    except UNREADABLE:
        return None
    return found if found >= 0 else None
