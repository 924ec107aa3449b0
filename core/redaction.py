"""Takes secrets out of texts that are kept or logged. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "•••"

_PATTERNS = (
    re.compile(r"(?<!\d)\d{6,12}:[A-Za-z0-9_-]{30,}"),  # Telegram bot tokens
    re.compile(r"(?<![A-Za-z0-9])(?:sk|pk|rk|ghp|gho|xox[abps]|AIza)[-_]?[A-Za-z0-9_-]{16,}"),
    re.compile(r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{12,}=*"),
    re.compile(
        r"(?i)\b(?P<name>(?:\w+[_-])?(?:password|passwd|pwd|parola d'ordine|pin|api[_ -]?key|token"
        r"|secret))(?P<sep>(?:\s+(?:di|del|dello|della|per|for|of|to)\s+[\w.'-]+(?:\s+[\w.'-]+)?){0,2}"
        r"\s*(?:[:=]|\bè\b|\bis\b)\s*)(?P<value>\S+)"
    ),
    re.compile(r"(?<=://)[^\s/@:]+:[^\s/@]+(?=@)"),
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S
    ),
)
_SECRET_KEY = re.compile(
    r"(?i)(?:.*[_-])?(?:password|passwd|pwd|pin|api[_-]?key|token|secret|authorization)"
)
_HANDLE = re.compile(r"secret:[0-9a-f]{32}")
MOST_TEXT = 500
_LEAST_MASKED = 4
MOST_ITEMS = 50
MOST_DEPTH = 12


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


def mask_values(value: Any, secrets: Collection[str]) -> Any:
    """A JSON value without these very secrets, also as URLs and base64 write them. One of less
    than four characters is masked only where it is the whole text."""
    forms = sorted({form for one in secrets for form in _forms(one)}, key=len, reverse=True)

    def masked(item: Any) -> Any:
        if isinstance(item, str):
            if item in secrets:
                return MASK
            for form in forms:
                item = item.replace(form, MASK)
            return item
        if isinstance(item, Mapping):
            return {masked(str(key)): masked(inner) for key, inner in item.items()}
        if isinstance(item, (list, tuple)):
            return [masked(inner) for inner in item]
        return item

    return masked(value)


def _forms(secret: str) -> tuple[str, ...]:
    if len(secret) < _LEAST_MASKED:
        return ()
    data = secret.encode("utf-8", "surrogatepass")
    encoded = base64.b64encode(data).decode().rstrip("=")
    return (secret, quote(data), quote_plus(data), encoded, data.hex())


def hide_handles(text: str) -> str:
    """A text for people, without what stands for their secrets in it."""
    return _HANDLE.sub(MASK, text)


def for_log(
    value: Any, secrets: Collection[str] = (), *, most: int = MOST_TEXT, depth: int = 0
) -> Any:
    """A JSON value for the turn log: secrets masked, by what they are and by the name of their
    key; long texts and lists cut with their length said, deep ones ended."""
    if isinstance(value, str):
        cut = redact(value, secrets)
        return cut if len(cut) <= most else f"{cut[:most]}… [{len(value)}]"
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if depth >= MOST_DEPTH:
        return "…"

    def inner(item: Any) -> Any:
        return for_log(item, secrets, most=most, depth=depth + 1)

    more = len(value) > MOST_ITEMS
    if isinstance(value, Mapping):
        shown = {
            redact(str(key), secrets): MASK if _SECRET_KEY.fullmatch(str(key)) else inner(item)
            for key, item in list(value.items())[:MOST_ITEMS]
        }
        return {**shown, "…": len(value)} if more else shown
    items = [inner(item) for item in value[:MOST_ITEMS]]
    return [*items, f"… [{len(value)}]"] if more else items
