"""Takes secrets out of texts that are kept or logged. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

MASK = "•••"

_PATTERNS = (
    re.compile(r"(?<!\d)\d{6,12}:[A-Za-z0-9_-]{30,}"),  # Telegram bot tokens
    re.compile(r"(?<![A-Za-z0-9])(?:sk|pk|rk|ghp|gho|xox[abps]|AIza)[-_]?[A-Za-z0-9_-]{16,}"),
    re.compile(r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{12,}=*"),
    re.compile(
        r"(?i)\b(?P<name>password|passwd|pwd|parola d'ordine|pin|api[_ -]?key|token|secret)"
        r"(?P<sep>\s*(?:[:=]|è|is)\s*)(?P<value>\S+)"
    ),
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S
    ),
)
MOST_TEXT = 500


def redact(text: str, secrets: Collection[str] = ()) -> str:
    """The text with known secrets and what looks like one masked."""
    for secret in secrets:
        if len(secret) >= 6:
            text = text.replace(secret, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(
            lambda m: f"{m['name']}{m['sep']}{MASK}" if "name" in m.re.groupindex else MASK, text
        )
    return text


def for_log(value: Any) -> Any:
    """A JSON value for the turn log: secrets masked, long texts cut with their length said."""
    if isinstance(value, str):
        cut = redact(value)
        return cut if len(cut) <= MOST_TEXT else f"{cut[:MOST_TEXT]}… [{len(value)}]"
    if isinstance(value, Mapping):
        return {str(k): for_log(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [for_log(item) for item in value[:50]]
        return items if len(value) <= 50 else [*items, f"… [{len(value)}]"]
    return value
