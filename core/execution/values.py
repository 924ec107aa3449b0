"""Typed argument values: what people and models write, in the one form executors get.

Pure. A value that cannot be read is refused with what would be accepted; nothing is guessed.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from core.errors import CallRefused, ErrorCode

_SIZE = re.compile(r"\s*(\d{1,15}(?:[.,]\d{1,15})?)\s*([a-zA-Z]*)\s*")
_SIZE_UNITS = {
    "": 1, "b": 1, "byte": 1, "bytes": 1,
    "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9,
    "t": 10**12, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_DURATION = re.compile(r"\s*(\d{1,15}(?:[.,]\d{1,15})?)\s*([a-zà-ú]*)\s*", re.IGNORECASE)
_DURATION_UNITS = {
    "": 1, "s": 1, "sec": 1, "secondi": 1, "seconds": 1, "second": 1, "secondo": 1,
    "m": 60, "min": 60, "minuti": 60, "minutes": 60, "minute": 60, "minuto": 60,
    "h": 3600, "ore": 3600, "ora": 3600, "hours": 3600, "hour": 3600,
    "d": 86400, "g": 86400, "giorni": 86400, "giorno": 86400, "days": 86400, "day": 86400,
}  # fmt: skip
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?\.?")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def listed(value: Any) -> list[Any]:
    """A value as a list: nothing is an empty one, a single value a list of one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def parse_size(value: Any) -> int:
    """`"2 GB"` → 2000000000 bytes; whole numbers pass. Raises `CallRefused(invalid_args)`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _SIZE.fullmatch(str(value))
    unit = _SIZE_UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise CallRefused(ErrorCode.INVALID_ARGS, f"{value!r} is no size; write 2GB, 300 kB, 5000")
    return round(float(match[1].replace(",", ".")) * unit)


def parse_duration(value: Any) -> float:
    """`"90 min"` → 5400.0 seconds; bare numbers are seconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    match = _DURATION.fullmatch(str(value))
    unit = _DURATION_UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise CallRefused(ErrorCode.INVALID_ARGS, f"{value!r} is no duration; write 90 min or 2 h")
    return float(match[1].replace(",", ".")) * unit


def parse_number(value: Any) -> float | int:
    """A number, or a text that is nothing but one (`"3"`, `"2,5"`)."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    text = str(value).strip().replace(",", ".")
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", text):
        return float(text)
    raise CallRefused(ErrorCode.INVALID_ARGS, f"{value!r} is no number")


def canonical_url(value: str) -> str:
    """The one spelling of a web address: scheme and host in lower case, IDNA, no default port.

    `example.com/x` gets `https://`. Raises `CallRefused(invalid_args)` for everything that two
    parsers could read in two ways: user names, backslashes, spaces, other schemes, odd hosts.
    """
    text = value.strip()
    if any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"} for char in text):
        raise CallRefused(ErrorCode.BAD_TEXT, "blank or invisible characters in an address")
    if "\\" in text or len(text) > 2048:
        raise CallRefused(ErrorCode.INVALID_ARGS, "no web address")
    if "://" not in text and re.match(r"[\w-]+(\.[\w-]+)+(?:[:/?#]|$)", text):
        text = f"https://{text}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as exc:
        raise CallRefused(ErrorCode.INVALID_ARGS, "no web address") from exc
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise CallRefused(ErrorCode.INVALID_ARGS, "addresses begin with http:// or https://")
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise CallRefused(ErrorCode.INVALID_ARGS, "no user name in an address")
    host = canonical_host(parts.hostname)
    netloc = f"[{host}]" if ":" in host else host
    if port is not None and port != _DEFAULT_PORTS[scheme]:
        netloc += f":{port}"
    return urlunsplit((scheme, netloc, parts.path or "/", parts.query, parts.fragment))


def canonical_host(host: str) -> str:
    """Lower-case ASCII form of a host name or address; refuses numbers that pose as names."""
    bare = host.strip("[]").lower().rstrip(".")
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        pass
    try:
        ascii_name = bare.encode("idna").decode("ascii") if not bare.isascii() else bare
    except UnicodeError as exc:
        raise CallRefused(ErrorCode.INVALID_ARGS, "no host name") from exc
    last = ascii_name.rsplit(".", 1)[-1]
    # 0x7f.1, 2130706433, 127.1: forms that resolvers read as addresses.
    if not _HOST.fullmatch(ascii_name) or last.isdigit() or last.startswith("0x"):
        raise CallRefused(ErrorCode.INVALID_ARGS, "no host name")
    return ascii_name


def fold(text: str) -> str:
    """Lower case without accents, blanks made one: for comparing words."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return " ".join("".join(c for c in plain if not unicodedata.combining(c)).split())
