"""Text documents: docx, odt and rtf as plain text with its structure, and new ones from Markdown.

Headings become `# …`, list items `- …`, rows of tables `a | b`, so that a text reads the same
whatever it was written with. Knows no paths.
"""

from __future__ import annotations

import datetime as dt
import html
import io
import re
import zipfile

from executors._sdk.packages import check_package, without_moments
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

READ = ("docx", "odt", "rtf")
MADE = ("docx", "html", "md", "txt")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_MOST_DEPTH = 9


def text_of(data: bytes, ext: str) -> str:
    """The text of a document. Raises `Failure`: damaged, password_needed, too_large."""
    if ext == "rtf":
        return _tidy(_from_rtf(data))
    check_package(data)
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise Failure("unsupported", "an old Word document; save it as docx")
    lines = _from_docx(data) if ext == "docx" else _from_odt(data)
    return _tidy("\n".join(lines))


def _tidy(text: str) -> str:
    plain = "\n".join(line.rstrip() for line in text.replace("\r", "").split("\n"))
    return re.sub(r"\n{3,}", "\n\n", plain).strip("\n")


def _from_docx(data: bytes) -> list[str]:
    from docx import Document

    try:
        document = Document(io.BytesIO(data))
        return list(_blocks(document))
    except (
        KeyError, ValueError, TypeError, AttributeError, IndexError, zipfile.BadZipFile,
        SyntaxError, RecursionError,
    ) as exc:  # fmt: skip
        raise Failure("damaged", f"no readable document: {type(exc).__name__}") from exc


def _blocks(document: Any) -> Iterator[str]:
    from docx.table import Table

    for block in document.iter_inner_content():
        if isinstance(block, Table):
            yield from _rows(block)
            continue
        text = block.text
        style = (block.style.name if block.style is not None else "") or ""
        level = re.fullmatch(r"(?:Heading|Titolo) (\d)", style)
        if text.strip() and (level or style == "Title"):
            yield ""
            yield f"{'#' * (int(level[1]) if level else 1)} {text.strip()}"
        elif text.strip() and style.startswith(("List", "Elenco")):
            yield f"- {text.strip()}"
        else:
            yield text
        if text.strip() and not style.startswith(("List", "Elenco")):
            yield ""


def _rows(table: Any) -> Iterator[str]:
    yield ""
    for row in table.rows:
        cells: list[str] = []
        seen: set[int] = set()
        for cell in row.cells:  # a cell over several columns stands there several times
            if id(cell._tc) not in seen:
                seen.add(id(cell._tc))
                cells.append(" ".join(cell.text.split()))
        yield " | ".join(cells)
    yield ""


_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0"


def _from_odt(data: bytes) -> list[str]:
    from lxml import etree

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            body = archive.read("content.xml")
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
        root = etree.fromstring(body, parser)
    except (KeyError, ValueError, zipfile.BadZipFile, etree.XMLSyntaxError) as exc:
        raise Failure("damaged", f"no readable document: {type(exc).__name__}") from exc
    lines: list[str] = []
    for element in root.iter(f"{{{_TEXT}}}h", f"{{{_TEXT}}}p", f"{{{_TABLE}}}table-row"):
        if element.tag == f"{{{_TABLE}}}table-row":
            cells = element.iterfind(f"{{{_TABLE}}}table-cell")
            lines.append(" | ".join(" ".join(_inline(cell).split()) for cell in cells))
            continue
        above = {parent.tag for parent in element.iterancestors()}
        if f"{{{_TABLE}}}table-cell" in above:
            continue
        text = _inline(element)
        if element.tag == f"{{{_TEXT}}}h":
            level = element.get(f"{{{_TEXT}}}outline-level", "1")
            depth = int(level) if level.isdecimal() else 1
            lines += ["", f"{'#' * min(depth, _MOST_DEPTH)} {text.strip()}", ""]
        elif f"{{{_TEXT}}}list-item" in above:
            lines.append(f"- {text.strip()}")
        else:
            lines += [text, ""]
    return lines


def _inline(element: Any) -> str:
    """The text of an element with its blanks, tabs and line breaks, without notes and comments."""
    pieces = [element.text or ""]
    for child in element:
        name = child.tag.rpartition("}")[2] if isinstance(child.tag, str) else ""
        if name == "s":
            count = child.get(f"{{{_TEXT}}}c", "1")
            pieces.append(" " * (min(int(count), 1000) if count.isdecimal() else 1))
        elif name == "tab":
            pieces.append("\t")
        elif name == "line-break":
            pieces.append("\n")
        elif name not in {"annotation", "note", "tracked-changes"} and name:
            pieces.append(_inline(child))
        pieces.append(child.tail or "")
    return "".join(pieces)


# A sign beyond the first 65 536 is written as two numbers, each with what older programs show.
_RTF_PAIR = re.compile(r"\\u(-?\d{1,5})(?:\\'[0-9a-fA-F]{2}|[?_ ])?\s*\\u(-?\d{1,5})(?!\d)")


def _one_sign(match: re.Match[str]) -> str:
    high, low = (int(number) % 65_536 for number in match.groups())
    if not (0xD800 <= high < 0xDC00 <= low < 0xE000):
        return match[0]
    return f"\\u{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)}"


def _from_rtf(data: bytes) -> str:
    from striprtf.striprtf import rtf_to_text

    if not data.lstrip().startswith(b"{\\rtf"):
        raise Failure("damaged", "this is no RTF")
    try:
        convert: Callable[..., str] = rtf_to_text
        text = convert(_RTF_PAIR.sub(_one_sign, data.decode("ascii", "replace")), errors="replace")
    except (ValueError, IndexError, KeyError, LookupError, RecursionError) as exc:
        raise Failure("damaged", f"no readable RTF: {type(exc).__name__}") from exc
    return text


# -- making ---------------------------------------------------------------------------------------


def made(markdown: str, ext: str, *, title: str, now: dt.datetime) -> bytes:
    """A document of a Markdown text: docx, html, or the text itself. The same text at the same
    moment gives the same bytes."""
    plain = _UNPRINTABLE.sub("\ufffd", markdown.replace("\r\n", "\n").replace("\r", "\n"))
    if ext == "docx":
        return _as_docx(plain, title, now)
    if ext == "html":
        return _as_html(plain, title).encode()
    text = f"# {title}\n\n{plain}" if title and not plain.lstrip().startswith("#") else plain
    return (text if text.endswith("\n") else text + "\n").encode()


def _parser() -> Any:
    from markdown_it import MarkdownIt

    # HTML in the text is text, and addresses lead where they are written to lead, or nowhere.
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _as_html(text: str, title: str) -> str:
    body = _parser().render(text)
    heading = f"<h1>{html.escape(title)}</h1>\n" if title and "<h1>" not in body else ""
    return (
        '<!doctype html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n</head>\n<body>\n{heading}{body}</body>\n</html>\n"
    )


def _as_docx(text: str, title: str, now: dt.datetime) -> bytes:
    from docx import Document

    document = Document()
    about = document.core_properties
    moment = now.replace(tzinfo=None, microsecond=0)
    about.author, about.title, about.comments = "Metnos", title[:250], ""
    about.created = about.modified = moment
    about.last_modified_by = "Metnos"
    if title and not text.lstrip().startswith("# "):
        document.add_heading(title, level=0)
    _Writer(document).write(_parser().parse(text))
    target = io.BytesIO()
    document.save(target)
    return without_moments(target.getvalue())


class _Writer:
    """Puts the tokens of a Markdown text into a document."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._lists: list[str] = []
        self._quoted = 0

    def write(self, tokens: list[Any]) -> None:
        at = 0
        while at < len(tokens):
            token = tokens[at]
            match token.type:
                case "heading_open":
                    level = min(int(token.tag[1]), _MOST_DEPTH)
                    paragraph = self._document.add_heading(level=level)
                    self._inline(paragraph, tokens[at + 1])
                    at += 2
                case "bullet_list_open" | "ordered_list_open":
                    self._lists.append("Number" if token.type[0] == "o" else "Bullet")
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                case "blockquote_open":
                    self._quoted += 1
                case "blockquote_close":
                    self._quoted -= 1
                case "paragraph_open":
                    self._inline(self._paragraph(), tokens[at + 1])
                    at += 2
                case "fence" | "code_block":
                    for line in token.content.rstrip("\n").split("\n"):
                        run = self._paragraph().add_run(line)
                        run.font.name = "Courier New"
                case "hr":
                    self._document.add_paragraph("—" * 20)
                case "table_open":
                    end = next(
                        n for n in range(at, len(tokens)) if tokens[n].type == "table_close"
                    )
                    self._table(tokens[at:end])
                    at = end
            at += 1

    def _paragraph(self) -> Any:
        if self._lists:
            depth = min(len(self._lists), 3)
            style = f"List {self._lists[-1]}" + (f" {depth}" if depth > 1 else "")
            return self._document.add_paragraph(style=style)
        return self._document.add_paragraph(style="Quote" if self._quoted else None)

    def _inline(self, paragraph: Any, token: Any) -> None:
        bold = italic = struck = 0
        link = ""
        for part in token.children or ():
            match part.type:
                case "strong_open" | "strong_close":
                    bold += part.nesting
                case "em_open" | "em_close":
                    italic += part.nesting
                case "s_open" | "s_close":
                    struck += part.nesting
                case "link_open":
                    link = str(part.attrGet("href") or "")
                case "link_close":
                    # Shown as it is, so that nobody is led elsewhere than the text says.
                    if link and link not in paragraph.text:
                        paragraph.add_run(f" ({link})")
                    link = ""
                case "softbreak":
                    paragraph.add_run(" ")
                case "hardbreak":
                    paragraph.add_run().add_break()
                case "image":
                    paragraph.add_run(part.content)
                case "text" | "code_inline" | "html_inline":
                    run = paragraph.add_run(part.content)
                    run.bold, run.italic = bold > 0 or None, italic > 0 or None
                    run.font.strike = struck > 0 or None
                    if part.type == "code_inline":
                        run.font.name = "Courier New"

    def _table(self, tokens: list[Any]) -> None:
        rows: list[list[Any]] = []
        for at, token in enumerate(tokens):
            if token.type == "tr_open":
                rows.append([])
            elif token.type in {"th_open", "td_open"}:
                rows[-1].append(tokens[at + 1])
        table = self._document.add_table(rows=0, cols=max(map(len, rows)), style="Table Grid")
        for cells in rows:
            row = table.add_row().cells
            for cell, content in zip(row, cells, strict=False):
                self._inline(cell.paragraphs[0], content)
