"""Tables as text with separators: how a file of this kind is written, and how one is read."""

from __future__ import annotations

import csv
import io
from itertools import islice

from executors._sdk.encodings import detect
from executors._sdk.result import Failure
from executors._sdk.tables import as_written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from executors._sdk.tables import Table

_SEPARATORS = ",;\t|"
_SAMPLE = 65_536
# A cell longer than this is no cell: a quotation mark that nobody closed.
_MOST_CHARS = 1 << 20


class Style:
    """How a file is written. `comma`: decimals as in Italian; `end`: what ends a line."""

    __slots__ = ("codec", "comma", "end", "separator")

    def __init__(self, separator: str, codec: str, *, comma: bool, end: str = "\r\n") -> None:
        self.separator = separator
        self.codec = codec
        self.comma = comma
        self.end = end


def usual(lang: str, ext: str) -> Style:
    """What the spreadsheets of a language open without asking: in Italian semicolons and decimal
    commas. The mark at the start tells them that it is UTF-8."""
    if ext == "tsv":
        return Style("\t", "utf-8", comma=False, end="\n")
    if lang == "it":
        return Style(";", "utf-8-sig", comma=True)
    return Style(",", "utf-8-sig", comma=False)


def written(table: Table, style: Style, *, header: bool = True) -> bytes:
    """The table as text; what reads as a formula gets an apostrophe in front. Raises `Failure`
    other_encoding when the file's encoding has no such characters."""
    target = io.StringIO()
    writer = csv.writer(target, delimiter=style.separator, lineterminator=style.end)
    if header and table.header:
        writer.writerow([as_written(title, comma=False) for title in table.header])
    for row in table.rows:
        writer.writerow([as_written(value, comma=style.comma) for value in row])
    try:
        return target.getvalue().encode(style.codec)
    except UnicodeEncodeError as exc:
        raise Failure("other_encoding", f"the file is in {style.codec}: write it anew") from exc


def read(fd: int, size: int) -> tuple[list[list[str]], Style]:
    """All rows of an open file, and how it is written. Raises `Failure` not_text, damaged."""
    import os

    encoding = detect(fd, size)
    pieces = []
    at = encoding.mark
    while piece := os.pread(fd, 1 << 20, at):
        pieces.append(piece)
        at += len(piece)
    text = b"".join(pieces).decode(encoding.codec, "replace")
    csv.field_size_limit(_MOST_CHARS)
    separator = _separator(text[:_SAMPLE])
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as exc:
        raise Failure("damaged", f"no table: {exc}") from exc
    codec = "utf-8" if encoding.codec == "utf-8" else encoding.codec
    end = "\r\n" if "\r\n" in text[:_SAMPLE] else "\n"
    return rows, Style(separator, codec, comma=separator == ";" and _has_commas(rows), end=end)


def _separator(sample: str) -> str:
    """The one that stands equally often in the first rows, else the most frequent; a comma when
    there is none. Rows, not lines: a cell in quotation marks may hold many lines."""
    best, points = ",", 0.0
    for separator in _SEPARATORS:
        rows = _first_rows(sample, separator)
        counts = [len(row) - 1 for row in rows]
        most = max(set(counts), key=counts.count, default=0)
        if most:
            steady = counts.count(most) / len(counts)
            # Half of a quotation stands in a cell only where something else separates.
            torn = sum(any(cell.count('"') % 2 for cell in row) for row in rows) / len(rows)
            found = (steady - torn) * 10 + min(most, 9) / 10
            best, points = (separator, found) if found > points else (best, points)
    return best


def _first_rows(sample: str, separator: str) -> list[list[str]]:
    """The first rows with something in them; the last may be cut off."""
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
    try:
        rows = [row for row in islice(reader, 31) if any(cell.strip() for cell in row)]
    except csv.Error:
        return []
    return rows[:-1] if len(rows) > 1 and (len(sample) == _SAMPLE or len(rows) > 30) else rows


def _has_commas(rows: list[list[str]]) -> bool:
    """Whether a number with a decimal comma stands in the first rows."""
    from executors._sdk.values import decimal_comma

    cells = [cell for row in rows[:200] for cell in row]
    return decimal_comma(cells, lang="it")
