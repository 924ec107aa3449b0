"""The words of mail as it really comes: bytes without a charset, headers that nobody encoded,
names that servers send in pieces. Nothing here speaks to a server, and nothing raises.
"""

from __future__ import annotations

import re
from email.header import decode_header, make_header
from urllib.parse import unquote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from email.message import Message
    from typing import Any

_LITERAL = re.compile(rb"\{\d+\+?\}$")
_NAMES = re.compile(
    rb'"(?:file)?name(?:\*(?:0\*?)?)?"\s+(?:"((?:[^"\\]|\\.)*)"|\{\d+\}\r\n([^\s)]+))', re.I
)
# What programs write that do not know in which charset their text is.
_SAY_NOTHING = frozenset({"ascii", "us-ascii", "utf-8", "utf8", "unknown-8bit", "8bit"})
_MOST_NAME = 150
_MOST_ENDING = 12
NAMELESS = {"it": "allegato", "en": "attachment"}


def lenient(data: bytes, charset: str | None = None) -> str:
    """Bytes as text: in their charset if it holds, else as UTF-8, else as Western machines that
    say nothing write. A sign that is cut off at the end is left out."""
    for codec in (charset or "utf-8", "utf-8"):
        try:
            return data.decode(codec)
        except UnicodeDecodeError as exc:
            before = data[: exc.start]  # a bare accent at the end of a word is no cut
            if exc.reason.startswith("unexpected end") and not before.isascii():
                return before.decode(codec, "replace")
        except (LookupError, UnicodeError):
            continue
    if charset and charset.lower() not in _SAY_NOTHING:
        try:
            return data.decode(charset, "replace")
        except (LookupError, UnicodeError):
            pass
    return data.decode("cp1252", "replace")


def readable(raw: bytes) -> bytes:
    """A message whose headers, where they stand in bare bytes, stand in UTF-8."""
    end = re.search(rb"\r?\n\r?\n", raw)
    head, rest = (raw[: end.start()], raw[end.start() :]) if end else (raw, b"")
    if head.isascii():
        return raw
    lines = (line if line.isascii() else lenient(line).encode() for line in head.split(b"\n"))
    return b"\n".join(lines) + rest


def bodies(message: Message) -> tuple[str, str]:
    """All plain text and all HTML of a message, without what is attached; what it forwards comes
    after an empty line."""
    found: dict[str, list[str]] = {"text/plain": [], "text/html": []}
    for part in message.walk():
        kind = part.get_content_type()
        if kind not in found or part.is_multipart() or _names_a_file(part):
            continue
        data = part.get_payload(decode=True)
        if isinstance(data, bytes):
            found[kind].append(lenient(data, part.get_content_charset()).rstrip())
    return "\n\n".join(found["text/plain"]), "\n".join(found["text/html"])


def _names_a_file(part: Message) -> bool:
    try:
        return bool(part.get_filename())
    except (ValueError, LookupError, TypeError):
        return True  # a name that cannot be read is one


def file_name(part: Any, lang: str) -> str | None:
    """The name of an attached file; None for what is no file. `part`: of the default policy."""
    if part.is_multipart() or part.get_content_maintype() == "multipart":
        return None
    for header in ("Content-Disposition", "Content-Type"):
        value = next((v for k, v in part.raw_items() if k.lower() == header.lower()), "")
        if not value.isascii():
            bare = value.encode("utf-8", "surrogateescape")
            part.replace_header(header, " ".join(lenient(bare).split()))
    try:
        name = part.get_filename()
    except (ValueError, LookupError, IndexError, TypeError):
        name = None  # a header that cannot be read
    if name:
        return safe_name(str(name), lang)
    if part.get_content_disposition() != "attachment":
        return None
    return safe_name(f"{NAMELESS.get(lang, 'attachment')}.{part.get_content_subtype()}"[:60], lang)


def structure(pieces: Sequence[Any]) -> bytes:
    """What a server tells of a message, on one line: what it sends in pieces of its own, as it
    does with names that are no ASCII, stands quoted in its place; texts of the message do not."""
    found = []
    for piece in pieces:
        if not isinstance(piece, tuple):
            found.append(piece or b"")
        elif b"BODY[" in piece[0].upper():
            found.append(piece[0])
        else:
            quoted = re.sub(rb'(["\\])', rb"\\\1", bytes(piece[1]))
            found.append(_LITERAL.sub(b"", piece[0]) + b'"' + quoted + b'"')
    return b" ".join(found)


def attached(meta: bytes, lang: str) -> list[str]:
    """Names of what is attached, from the structure that the server tells."""
    at = meta.upper().find(b"BODYSTRUCTURE")
    found = []
    for quoted_name, bare in _NAMES.findall(meta[at:] if at >= 0 else b""):
        name = lenient(re.sub(rb"\\(.)", rb"\1", quoted_name or bare))
        try:
            if "''" in name:
                name = unquote(name.split("'", 2)[-1])
            name = str(make_header(decode_header(name)))
        except (LookupError, ValueError, UnicodeError):
            pass
        found.append(safe_name(name, lang))
    return list(dict.fromkeys(found))


def safe_name(name: str, lang: str = "en") -> str:
    """A file's name without folders, control signs or leading points; a long one keeps its
    ending."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    clean = "".join(c for c in last if c.isprintable()).strip().lstrip(".")
    if len(clean) > _MOST_NAME:
        stem, dot, ending = clean.rpartition(".")
        keeps = dot and len(ending) <= _MOST_ENDING
        clean = f"{stem[: _MOST_NAME - len(ending) - 1]}.{ending}" if keeps else clean[:_MOST_NAME]
    return clean or NAMELESS.get(lang, "attachment")
