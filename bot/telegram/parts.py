"""A text with formats, and how it is cut into messages. Pure; knows nothing of replies."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from telegram import MessageEntity

# Telegram allows 4096 characters; counted here in UTF-16 units, which are never fewer.
MAX_UNITS = 4096


@dataclass(frozen=True, slots=True)
class Span:
    """A format over `text[start:end]`, in characters of a Python string."""

    kind: str
    start: int
    end: int
    language: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one message and its formats."""

    text: str
    spans: tuple[Span, ...] = ()

    @property
    def entities(self) -> list[MessageEntity]:
        """The formats as Telegram wants them: offsets and lengths in UTF-16 units."""
        at = unit_offsets(self.text)
        return [
            MessageEntity(
                span.kind,
                at[span.start],
                at[span.end] - at[span.start],
                url=span.url,
                language=span.language,
            )
            for span in self.spans
            if at[span.end] > at[span.start]
        ]


def joined(first: Part, second: Part, between: str) -> Part:
    """One text of two, the formats of both kept; `between` only when the first is not empty."""
    if not first.text:
        return second
    at = len(first.text) + len(between)
    moved = (replace(s, start=s.start + at, end=s.end + at) for s in second.spans)
    return Part(first.text + between + second.text, (*first.spans, *moved))


def split(whole: Part, *, max_units: int = MAX_UNITS) -> Iterator[Part]:
    """Cut a text into messages of at most `max_units` UTF-16 units.

    Cuts fall between paragraphs where possible, else between lines, else between words. A format
    that spans a cut goes on in the next message, so code stays code. Only white space is lost.
    """
    text, at, start = whole.text, unit_offsets(whole.text), 0
    while start < len(text):
        limit = bisect_right(at, at[start] + max_units) - 1
        end = len(text) if limit >= len(text) else _border(whole, start, limit)
        part = trimmed(whole, start, end)
        if has_visible(part.text):
            yield part
        start = end


def clean(text: str) -> str:
    """Text without what no screen shows: NUL and other controls, bidi overrides, surrogates."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _LONE_SURROGATE.sub("\ufffd", text)
    return _UNSHOWN.sub("", text)


def has_visible(text: str) -> bool:
    """Whether Telegram would call this text not empty."""
    return bool(text) and any(not (c.isspace() or c in _INVISIBLE) for c in text)


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_INVISIBLE = frozenset("\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\u00ad\u3164")


def _border(whole: Part, start: int, limit: int) -> int:
    """Where to end a part that begins at `start` and may reach to `limit`; always > start."""
    text = whole.text
    code = [span for span in whole.spans if span.kind == "pre"]

    def last(mark: str, share: float, *, in_code: bool, indented: bool = True) -> int:
        floor = start + int((limit - start) * share)
        at = text.rfind(mark, floor, limit + 1)
        while at > start:
            inside = any(span.start < at < span.end for span in code)
            if inside == in_code and (indented or not text[at + 1 : at + 2].isspace()):
                return min(at + 1, limit)
            at = text.rfind(mark, floor, at)
        return 0

    return (
        last("\n\n", 0.5, in_code=False)
        or last("\n", 0.5, in_code=False)
        # Telegram trims white space at the start of a message, so code is cut before a line
        # that is not indented when there is one.
        or last("\n", 0.6, in_code=True, indented=False)
        or last("\n", 0.3, in_code=True)
        or last("\n", 0.3, in_code=False)
        or last(" ", 0.3, in_code=False)
        or last(" ", 0.5, in_code=True)
        or _between_characters(text, start, limit)
    )


def _between_characters(text: str, start: int, limit: int) -> int:
    """The last place up to `limit` that does not part a sign from what is joined to it."""
    for end in range(limit, max(start + 1, limit - 16), -1):
        bound = text[end - 1] == "\u200d" or text[end] == "\u200d"
        if not bound and not unicodedata.category(text[end]).startswith("M"):
            return end
    return limit


def trimmed(whole: Part, start: int, end: int) -> Part:
    """`whole.text[start:end]` without outer white space (indentation of code stays)."""
    text = whole.text
    while end > start and text[end - 1].isspace():
        end -= 1
    in_code = any(span.kind == "pre" and span.start <= start < span.end for span in whole.spans)
    while start < end and (text[start] == "\n" if in_code else text[start].isspace()):
        start += 1
        in_code = in_code or any(s.kind == "pre" and s.start == start for s in whole.spans)
    spans = (
        replace(span, start=max(span.start, start) - start, end=min(span.end, end) - start)
        for span in whole.spans
        if span.start < end and span.end > start
    )
    return Part(text[start:end], tuple(spans))


def unit_offsets(text: str) -> Sequence[int]:
    """For each character, and for the end, how many UTF-16 units stand before it."""
    if text.isascii():
        return range(len(text) + 1)
    offsets, units = [0], 0
    for char in text:
        units += 2 if char > "\uffff" else 1
        offsets.append(units)
    return offsets


def unit_index(text: str) -> Mapping[int, int] | Sequence[int]:
    """The way back: from an offset in UTF-16 units to the character that begins there."""
    if text.isascii():
        return range(len(text) + 1)
    return {units: at for at, units in enumerate(unit_offsets(text))}
