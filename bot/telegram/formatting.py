"""A reply as Telegram messages: text with entities, cut to what a message may hold.

Pure. Only the model's prose goes through telegramify-markdown; everything else is shown as it
stands. What the converter would lose is shielded first and compared afterwards: when a visible
character would be missing, the prose is shown as plain text instead.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from telegram import MessageEntity
from telegramify_markdown import convert
from telegramify_markdown.config import RenderConfig

from core.messages import Block, Reply

# Telegram allows 4096 characters; counted here in UTF-16 units, which are never fewer.
MAX_UNITS = 4096
# A reply of more messages than this is sent as a file with its beginning as a message.
MAX_PARTS = 8
_EXCERPT_UNITS = 700


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
        at = _unit_offsets(self.text)
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


@dataclass(frozen=True, slots=True)
class Rendered:
    """`parts` to send in order. `document` is the whole text when the parts hold only the
    beginning of it, else None. Neither is ever empty of visible characters."""

    parts: tuple[Part, ...]
    document: str | None = None


def render(reply: Reply, *, too_long: str = "", empty: str = "…") -> Rendered:
    """Lay a reply out as messages.

    `too_long` is the line under the beginning of a reply sent as a file, `empty` what is shown
    when nothing visible is left. The same reply always gives the same parts, so a send can be
    resumed at the part that failed.
    """
    whole = Part("")
    for block in reply.blocks:
        part = _block_part(block)
        if part.text.strip():
            whole = _joined(whole, part, "\n" if block.kind == "small" else "\n\n")
    if not has_visible(whole.text):
        whole = Part(empty)
    parts = tuple(split(whole))
    if len(parts) <= MAX_PARTS:
        return Rendered(parts)
    start = next(split(whole, max_units=_EXCERPT_UNITS))
    return Rendered((_joined(start, Part(f"…\n\n{too_long}".rstrip()), "\n"),), whole.text)


def with_note(part: Part, note: str) -> tuple[Part, ...]:
    """The part with a line before it, as two parts when one message cannot hold both."""
    first = Part(note, (Span("italic", 0, len(note)),))
    both = _joined(first, part, "\n\n")
    return (both,) if _unit_offsets(both.text)[-1] <= MAX_UNITS else (first, part)


def split(whole: Part, *, max_units: int = MAX_UNITS) -> Iterator[Part]:
    """Cut a text into messages of at most `max_units` UTF-16 units.

    Cuts fall between paragraphs where possible, else between lines, else between words. A format
    that spans a cut goes on in the next message, so code stays code. Only white space is lost.
    """
    text, at, start = whole.text, _unit_offsets(whole.text), 0
    while start < len(text):
        limit = bisect_right(at, at[start] + max_units) - 1
        end = len(text) if limit >= len(text) else _border(whole, start, limit)
        part = _slice(whole, start, end)
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


# -- blocks --------------------------------------------------------------------------------------


def _block_part(block: Block) -> Part:
    text = clean(block.text)
    match block.kind:
        case "prose":
            return _prose(text)
        case "code":
            text = text.strip("\n")
            return Part(text, (Span("pre", 0, len(text)),))
        case "small":
            text = text.strip()
            return Part(text, (Span("italic", 0, len(text)),))
        case _:
            return Part(text.strip())


def _joined(first: Part, second: Part, between: str) -> Part:
    if not first.text:
        return second
    at = len(first.text) + len(between)
    moved = (replace(s, start=s.start + at, end=s.end + at) for s in second.spans)
    return Part(first.text + between + second.text, (*first.spans, *moved))


# -- prose ---------------------------------------------------------------------------------------


def _undecorated() -> RenderConfig:
    """The converter's settings with every sign that it would add switched off."""
    config = RenderConfig.isolated()
    symbol = config.markdown_symbol
    symbol.heading_level_1 = symbol.heading_level_2 = ""
    symbol.heading_level_3 = symbol.heading_level_4 = ""
    symbol.image = symbol.link = ""
    symbol.task_completed, symbol.task_uncompleted = "[x]", "[ ]"
    symbol.unordered_list_item = "•"
    symbol.horizontal_rule = "———"
    config.cite_expandable = False
    return config


_CONFIG = _undecorated()

# What the converter reads as markup and a person means as written: dunder names, tags and
# addresses in angle brackets, entities, dollar signs, double bars, lone stars inside a word, a
# line that looks like a link definition, and links to what Telegram cannot open.
_LITERAL = re.compile(
    r"""(?<!\w)__\w+?__(?!\w)
    |<|&|\$|\|\|
    |(?<=\w)\*(?=\w)
    |^[ ]{0,3}\[(?=[^\]\n]+\]:)
    |!?\[(?=[^\]\n]*\]\((?!https?://[^\s)]|mailto:|tel:))""",
    re.VERBOSE | re.MULTILINE,
)
_PRIVATE = range(0xE000, 0xF900)


def _prose(source: str) -> Part:
    """Markdown as text and spans; the source itself when something visible would be lost."""
    plain = Part(source.strip())
    shielded, literals = _shield(source)
    # A stand-in is as long as what it stands for, so the offsets stay true.
    text, entities = convert(shielded, latex_escape=False, config=_CONFIG)
    text = text.translate(literals)
    index = _unit_index(text)
    try:
        spans = tuple(
            Span(
                entity.type,
                index[entity.offset],
                index[entity.offset + entity.length],
                entity.language.translate(literals) if entity.language else None,
                entity.url.translate(literals) if entity.url else None,
            )
            for entity in entities
            if entity.type != "underline"  # the converter's own taste for headings
        )
    except LookupError:
        return plain
    whole = Part(text, spans)
    return _slice(whole, 0, len(text)) if _all_shown(source, whole) else plain


def _shield(source: str) -> tuple[str, Mapping[int, str]]:
    """The source with private-use characters in place of literal ones, and the way back."""
    taken = set(source)
    free = (chr(code) for code in _PRIVATE if chr(code) not in taken)
    stand_ins: dict[str, str] = {}

    def shield(match: re.Match[str]) -> str:
        for char in match[0]:
            if char not in stand_ins and char != " ":
                # None left (a text of private-use characters): the comparison finds the loss.
                stand_ins[char] = next(free, char)
        return "".join(stand_ins.get(char, char) for char in match[0])

    shielded = _LITERAL.sub(shield, source)
    return shielded, {ord(stand_in): char for char, stand_in in stand_ins.items()}


# Characters that may be markup; all others of the source must be seen in the same order.
_MARKUP = frozenset("*_~`#>|[]()!\\-+=")
_FENCE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})[ \t]*[\w+#.-]*[ \t]*$", re.MULTILINE)
_ITEM_NUMBER = re.compile(r"^[ \t>]*\d{1,9}[.)](?=\s)", re.MULTILINE)


def _all_shown(source: str, part: Part) -> bool:
    """Whether every visible character of the source that is no markup stands in the part."""
    with_links, at = [], 0
    for span in sorted((s for s in part.spans if s.url), key=lambda s: s.end):
        with_links += [part.text[at : span.end], span.url or ""]
        at = span.end
    shown = iter(_ITEM_NUMBER.sub("", "".join([*with_links, part.text[at:]])))
    wanted = _ITEM_NUMBER.sub("", _FENCE.sub("", source))
    return all(char in shown for char in wanted if not (char.isspace() or char in _MARKUP))


# -- cutting -------------------------------------------------------------------------------------


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
        joined = text[end - 1] == "\u200d" or text[end] == "\u200d"
        if not joined and not unicodedata.category(text[end]).startswith("M"):
            return end
    return limit


def _slice(whole: Part, start: int, end: int) -> Part:
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


def _unit_offsets(text: str) -> Sequence[int]:
    """For each character, and for the end, how many UTF-16 units stand before it."""
    if text.isascii():
        return range(len(text) + 1)
    offsets, units = [0], 0
    for char in text:
        units += 2 if char > "\uffff" else 1
        offsets.append(units)
    return offsets


def _unit_index(text: str) -> Mapping[int, int] | Sequence[int]:
    """The way back: from an offset in UTF-16 units to the character that begins there."""
    if text.isascii():
        return range(len(text) + 1)
    return {units: at for at, units in enumerate(_unit_offsets(text))}
