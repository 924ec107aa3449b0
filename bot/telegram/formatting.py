"""A reply as Telegram messages: text with entities, cut to what a message may hold.

Pure. Only the model's prose goes through telegramify-markdown; everything else is shown as it
stands. What the converter would lose is shielded first and compared afterwards: when a visible
character would be missing, the prose is shown as plain text instead.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from telegramify_markdown import convert
from telegramify_markdown.config import RenderConfig

from bot.telegram.parts import (
    MAX_UNITS,
    Part,
    Span,
    clean,
    has_visible,
    joined,
    split,
    trimmed,
    unit_index,
    unit_offsets,
)
from bot.telegram.tables import Table, as_csv, lay_out, pieces
from core.i18n import Texts
from core.messages import Block, Reply

log = logging.getLogger(__name__)

# A reply of more messages than this is sent as a file with its beginning as a message.
MAX_PARTS = 8
_EXCERPT_UNITS = 700


@dataclass(frozen=True, slots=True)
class Document:
    """A file that goes with a message."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Rendered:
    """`parts` to send in order, never empty of visible characters, then the files: `document` is
    the whole text when the parts hold only the beginning of it, `tables` are those whose first
    rows stand in the text."""

    parts: tuple[Part, ...]
    document: Document | None = None
    tables: tuple[Document, ...] = ()


@dataclass(frozen=True, slots=True)
class Words:
    """What is said where a reply does not fit: under its beginning (`too_long`), in place of
    nothing visible (`empty`), under the first rows of a table (`more_rows`, of so many not shown),
    and what the files are called."""

    too_long: str = ""
    empty: str = "…"
    more_rows: Callable[[int], str] = lambda count: f"… +{count}"
    file_name: str = "answer.txt"
    table_name: str = "table"

    @classmethod
    def of(cls, texts: Texts, lang: str) -> Words:
        return cls(
            too_long=texts.say("telegram.too_long", lang),
            empty=texts.say("telegram.empty", lang),
            more_rows=lambda count: texts.say("telegram.more_rows", lang, count=count),
            file_name=texts.say("telegram.file_name", lang),
            table_name=texts.say("telegram.table_name", lang),
        )


def render(reply: Reply, words: Words | None = None, *, room: int = 0) -> Rendered:
    """Lay a reply out as messages; `room` UTF-16 units stay free in each.

    The same reply always gives the same parts, so a send can be resumed at the part that failed.
    """
    words = words or Words()
    whole, tables = Part(""), list[Table]()
    for block in reply.blocks:
        part = _block_part(block, words, tables)
        if part.text.strip():
            whole = joined(whole, part, "\n" if block.kind == "small" else "\n\n")
    if not has_visible(whole.text):
        whole = Part(words.empty)
    files = tuple(
        Document(f"{words.table_name}{'' if n == 1 else f'-{n}'}.csv", as_csv(table))
        for n, table in enumerate(tables, start=1)
    )
    parts = tuple(split(whole, max_units=MAX_UNITS - room))
    if len(parts) <= MAX_PARTS:
        return Rendered(parts, None, files)
    start = next(split(whole, max_units=_EXCERPT_UNITS))
    short = joined(start, Part(f"…\n\n{words.too_long}".rstrip()), "\n")
    return Rendered((short,), Document(words.file_name, whole.text.encode()), files)


def unformatted(part: Part) -> Part:
    """The part without formats, for when Telegram refuses them. Where a link leads stays to be
    read, as long as it fits."""
    out, at = list[str](), 0
    for span in sorted((s for s in part.spans if s.url), key=lambda s: s.end):
        if span.url and span.end >= at and part.text[span.start : span.end] != span.url:
            out += [part.text[at : span.end], f" ({span.url})"]
            at = span.end
    text = "".join([*out, part.text[at:]])
    return Part(text if unit_offsets(text)[-1] <= MAX_UNITS else part.text)


def with_note(part: Part, note: str) -> tuple[Part, ...]:
    """The part with a line before it, as two parts when one message cannot hold both."""
    first = Part(note, (Span("italic", 0, len(note)),))
    both = joined(first, part, "\n\n")
    return (both,) if unit_offsets(both.text)[-1] <= MAX_UNITS else (first, part)


# -- blocks --------------------------------------------------------------------------------------


def _block_part(block: Block, words: Words, tables: list[Table]) -> Part:
    """The block as it is shown; to `tables` are added those that are not shown whole."""
    text = clean(block.text)
    match block.kind:
        case "prose":
            return _prose(text, words, tables)
        case "code":
            text = text.strip("\n")
            return Part(text, (Span("pre", 0, len(text)),))
        case "small":
            text = text.strip()
            return Part(text, (Span("italic", 0, len(text)),))
        case _:
            return Part(text.strip())


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


def _prose(source: str, words: Words, tables: list[Table]) -> Part:
    """Markdown as text and spans, its tables laid out for a phone."""
    whole = Part("")
    for piece in pieces(source):
        if isinstance(piece, Table):
            part, is_whole = lay_out(piece, words.more_rows)
            if not is_whole:
                tables.append(piece)
        else:
            part = _markdown(piece)
        if part.text:
            whole = joined(whole, part, "\n\n")
    return whole


def _markdown(source: str) -> Part:
    """Markdown without tables; the source as it is written when something visible would be lost,
    but only the paragraphs in which it would."""
    if (whole := _converted(source)) is not None:
        return whole
    paragraphs = _paragraphs(source)
    if len(paragraphs) == 1:
        return Part(source.strip())
    out = Part("")
    for paragraph in paragraphs:
        part = _converted(paragraph) or Part(paragraph.strip("\n"))
        if part.text.strip():
            out = joined(out, part, "\n\n")
    return out


def _paragraphs(source: str) -> list[str]:
    """The source cut at empty lines outside code; a list and what is indented stay together."""
    found: list[str] = [""]
    fence = ""
    for line in source.split("\n"):
        mark = _OPENS.match(line)
        if mark is not None and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        if not line.strip() and not fence:
            found.append("")
        elif found[-1] or not line[:1].isspace() or len(found) == 1:
            found[-1] += line + "\n"
        else:
            found[-2:] = [found[-2] + "\n" + line + "\n"]
    return [paragraph for paragraph in found if paragraph.strip()]


def _converted(source: str) -> Part | None:
    """Markdown as text and spans; None when something visible would be lost."""
    shielded, literals = _shield(source)
    try:
        # A stand-in is as long as what it stands for, so the offsets stay true.
        text, entities = convert(shielded, latex_escape=False, config=_CONFIG)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        log.exception("prose not converted", extra={"size": len(source)})
        return None
    text = text.translate(literals)
    index = unit_index(text)
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
        return None
    whole = Part(text, spans)
    return trimmed(whole, 0, len(text)) if _all_shown(source, whole) else None


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
_OPENS = re.compile(r"[ \t>]*(`{3,}|~{3,})")
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
