"""Whether a body from the web is text, the text in it, and the words of its markup."""

from __future__ import annotations

import codecs
import html
import re

_TEXTUAL = frozenset(
    {
        "application/json",
        "application/ld+json",
        "application/xml",
        "application/xhtml+xml",
        "application/javascript",
        "application/x-javascript",
        "application/ecmascript",
        "application/x-ndjson",
        "application/yaml",
        "application/toml",
        "application/rtf",
        "application/sql",
        "application/x-sh",
    }
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it starts with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What pages call Latin-1 is Windows-1252 in every browser.
_MEANT = {"iso8859-1": "cp1252", "ascii": "cp1252"}
_UNSEEN = re.compile(r"<(script|style|noscript|template|svg)\b", re.IGNORECASE)
_DECLARED = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?\s*([A-Za-z0-9_\-:.]{2,40})")


def is_textual(media_type: str) -> bool:
    """Whether a body of this type can be shown as text."""
    return (
        media_type.startswith("text/")
        or media_type in _TEXTUAL
        or media_type.endswith(("+json", "+xml"))
    )


def decode(body: bytes, charset: str | None = None) -> tuple[str, str]:
    """The text and the codec it was written in; what cannot be read becomes U+FFFD.

    A byte order mark counts most, then what the server said, then what the page says of itself,
    then UTF-8 when it is that, else Windows-1252.
    """
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace"), codec
    declared = _DECLARED.search(body[:2048])
    for name in (charset, declared[1].decode("ascii") if declared else None):
        known = _codec(name)
        if known is not None:
            return body.decode(known, "replace"), known
    try:
        return body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace"), "cp1252"


def strip_tags(markup: str) -> str:
    """The words of a page with nothing but its tags taken out, in time linear in its length."""
    lowered = markup.lower()
    kept, at = [], 0
    for opening in _UNSEEN.finditer(markup):
        if opening.start() < at:
            continue
        kept.append(markup[at : opening.start()])
        end = lowered.find(f"</{opening[1].lower()}", opening.end())
        at = end if end >= 0 else len(markup)
    kept.append(markup[at:])
    return " ".join(html.unescape(re.sub(r"<[^<>]*>", " ", "".join(kept))).split())


def _codec(name: str | None) -> str | None:
    """The codec of a declared name, None for unknown ones and for what is no text encoding."""
    if not name:
        return None
    try:
        info = codecs.lookup(name)
        if not isinstance("".encode(info.name), bytes):
            return None
    # `hex`, `rot13`, `zlib` are codecs too, and names may hold anything.
    except (LookupError, ValueError, TypeError):
        return None
    return _MEANT.get(info.name, info.name)
