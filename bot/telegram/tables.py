"""Markdown tables for a phone: aligned columns when narrow enough, else short lines. Pure.

A table of many rows shows its first ones; all of it is a file beside the message.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bot.telegram.parts import Part, Span, joined

# What a phone shows of monospace without breaking lines, in columns.
MOST_COLUMNS = 34
# Rows that are shown whole: of an aligned block, and of a table told in lines.
MOST_ALIGNED_ROWS = 20
MOST_ROWS = 8
# A row of more cells than this is told cell by cell, each with its heading.
_CELLS_ON_A_LINE = 3
_GAP = "  "

_RULE = re.compile(r"[ ]{0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_CODE = re.compile(r"(`+)(.*?)\1")
_LINK = re.compile(r"\[([^\]\n]*)\]\((\S+?)\)")
_STRONG = re.compile(r"(\*\*|__|~~)(?=\S)(.+?)(?<=\S)\1")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_NUMBER = re.compile(r"[-+−]?[\d.,\u00a0\u202f' ]+\s?(?:%|€|\$|£|[kKMGT]?i?B)?")
# What a spreadsheet would take for a formula, were it the first sign of a cell.
_FORMULA = frozenset("=+-@\t\r")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as they are read, markup taken out; every row is as long as `head`."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def pieces(source: str) -> Iterator[str | Table]:
    """The source cut into tables and what stands between them; code is never a table."""
    if "|" not in source:
        yield source
        return
    lines, text, fence = source.split("\n"), list[str](), ""
    at = 0
    while at < len(lines):
        line = lines[at]
        if (mark := _FENCE.match(line)) is not None:
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence):
                fence = ""
        end = 0 if fence else _table_end(lines, at)
        if not end:
            text.append(line)
            at += 1
            continue
        if text:
            yield "\n".join(text)
            text = []
        yield _read([_cells(line) for line in (lines[at], *lines[at + 2 : end])])
        at = end
    if text:
        yield "\n".join(text)


def lay_out(table: Table, more: Callable[[int], str]) -> tuple[Part, bool]:
    """The table as text, and whether all of it is shown; `more` says how many rows are not."""
    if (block := _aligned(table, len(table.rows))) is not None:
        if len(table.rows) <= MOST_ALIGNED_ROWS:
            return block, True
        shown = _aligned(table, MOST_ROWS) or block
    elif len(table.rows) <= MOST_ROWS:
        return _lines(table, len(table.rows)), True
    else:
        shown = _lines(table, MOST_ROWS)
    return joined(shown, Part(more(len(table.rows) - MOST_ROWS)), "\n"), False


def as_csv(table: Table) -> bytes:
    """The whole table as a spreadsheet opens it: semicolons, a mark of its encoding, and no cell
    that would be a formula."""
    out = io.StringIO()
    csv.writer(out, delimiter=";", lineterminator="\r\n").writerows(
        [_harmless(cell) for cell in row] for row in (table.head, *table.rows)
    )
    return out.getvalue().encode("utf-8-sig")


# -- reading -------------------------------------------------------------------------------------


def _table_end(lines: Sequence[str], at: int) -> int:
    """The line behind the table that begins here; 0: none does."""
    head = lines[at]
    if at + 1 >= len(lines) or "|" not in head or not _RULE.fullmatch(lines[at + 1]):
        return 0
    if "|" not in lines[at + 1] or len(_cells(head)) != len(_cells(lines[at + 1])):
        return 0
    end = at + 2
    while end < len(lines) and "|" in lines[end] and not _FENCE.match(lines[end]):
        end += 1
    return end


def _cells(line: str) -> list[str]:
    """The cells of a row as they are written; a bar after a backslash or in code is none."""
    text = line.strip()
    bars, in_code, skip = list[int](), "", False
    for at, char in enumerate(text):
        if skip:
            skip = False
        elif char == "\\":
            skip = True
        elif char == "`":
            in_code = "" if in_code else char
        elif char == "|" and (not in_code or "`" not in text[at:]):
            bars.append(at)
    cells = [text[a + 1 : b] for a, b in zip([-1, *bars], [*bars, len(text)], strict=True)]
    if bars and bars[0] == 0:
        cells = cells[1:]
    if bars and bars[-1] == len(text) - 1:
        cells = cells[:-1]
    return [cell.strip() for cell in cells]


def _read(rows: list[list[str]]) -> Table:
    width = max(map(len, rows))
    head, *body = (
        tuple(_bare(cell) for cell in [*row, *[""] * (width - len(row))]) for row in rows
    )
    return Table(head, tuple(body))


def _bare(cell: str) -> str:
    """A cell without Markdown: what a person would read in it."""
    cell = _CODE.sub(lambda m: m[2].strip() or m[0], _BREAK.sub(" ", cell).replace("\\|", "|"))
    cell = _LINK.sub(lambda m: m[2] if m[1] in {"", m[2]} else f"{m[1]} ({m[2]})", cell)
    return " ".join(_STRONG.sub(r"\2", cell).split())


# -- laying out ----------------------------------------------------------------------------------


def _aligned(table: Table, count: int) -> Part | None:
    """The first rows in columns; None when they are wider than a phone."""
    columns = list(zip(table.head, *table.rows[:count], strict=True))
    widths = [max(map(width, column)) for column in columns]
    if sum(widths) + len(_GAP) * (len(widths) - 1) > MOST_COLUMNS:
        return None
    right = [all(_is_number(cell) for cell in column[1:]) for column in columns]

    def line(row: Sequence[str]) -> str:
        cells = zip(row, widths, right, strict=True)
        return _GAP.join(_padded(cell, size, end=end) for cell, size, end in cells).rstrip()

    rule = _GAP.join("─" * size for size in widths)
    text = "\n".join([line(table.head), rule, *map(line, table.rows[:count])])
    return Part(text, (Span("pre", 0, len(text)),))


def _lines(table: Table, count: int) -> Part:
    """The first rows one by one below the headings."""
    head = " · ".join(filter(None, table.head))
    lines = [head] if head else []
    for row in table.rows[:count]:
        if len(row) <= _CELLS_ON_A_LINE:
            lines.append("• " + " · ".join(cell or "—" for cell in row))
            continue
        lines.append(f"• {row[0] or '—'}")
        lines += [
            f"  {name}: {cell}" if name else f"  {cell}"
            for name, cell in zip(table.head[1:], row[1:], strict=True)
            if cell
        ]
    return Part("\n".join(lines), (Span("bold", 0, len(head)),) if head else ())


def width(text: str) -> int:
    """How many columns of monospace a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(char) in {"Mn", "Me", "Cf"}
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )


def _padded(cell: str, size: int, *, end: bool) -> str:
    space = " " * (size - width(cell))
    return space + cell if end else cell + space


def _is_number(cell: str) -> bool:
    return not cell or (any(map(str.isdigit, cell)) and _NUMBER.fullmatch(cell) is not None)


def _harmless(cell: str) -> str:
    if len(cell) > 1 and cell[0] in _FORMULA and not _is_number(cell):
        return f"'{cell}"
    return cell
