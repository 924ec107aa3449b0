"""Sheets in the open document format: made anew, or with rows added to one that is there.

A new one is written here, row by row, since a document of a hundred thousand rows as objects
would not fit into a call; one that exists is opened and kept by odfdo. The same table gives the
same bytes.
"""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from xml.sax.saxutils import escape, quoteattr

from executors._sdk.packages import without_moments
from executors._sdk.result import Failure
from executors._sdk.tables import as_written, widths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from executors._sdk.tables import Cell, Table

_TYPE = "application/vnd.oasis.opendocument.spreadsheet"
_SPACES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    ' xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
    ' xmlns:number="urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0"'
    ' xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"'
    ' xmlns:meta="urn:oasis:names:tc:opendocument:xmlns:meta:1.0"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/" office:version="1.2"'
)
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_MANIFEST = (
    f"{_HEAD}<manifest:manifest"
    ' xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" manifest:version="1.2">'
    f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{_TYPE}"/>'
    '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
    '<manifest:file-entry manifest:full-path="meta.xml" manifest:media-type="text/xml"/>'
    "</manifest:manifest>"
)
_PARTS = (
    '<number:year number:style="long"/><number:text>-</number:text>'
    '<number:month number:style="long"/><number:text>-</number:text>'
    '<number:day number:style="long"/>'
)
_CLOCK = (
    "<number:text> </number:text>"
    '<number:hours number:style="long"/><number:text>:</number:text>'
    '<number:minutes number:style="long"/><number:text>:</number:text>'
    '<number:seconds number:style="long"/>'
)
_STYLES = (
    f'<number:date-style style:name="d">{_PARTS}</number:date-style>'
    f'<number:date-style style:name="m">{_PARTS}{_CLOCK}</number:date-style>'
    '<style:style style:name="day" style:family="table-cell" style:data-style-name="d"/>'
    '<style:style style:name="moment" style:family="table-cell" style:data-style-name="m"/>'
    '<style:style style:name="heading" style:family="table-cell">'
    '<style:text-properties fo:font-weight="bold"/></style:style>'
)


def made(table: Table, *, name: str, title: str, now: dt.datetime) -> bytes:
    """A document of one sheet that holds the table."""
    moment = now.replace(tzinfo=None, microsecond=0).isoformat()
    meta = (
        f"{_HEAD}<office:document-meta {_SPACES}><office:meta>"
        f"<dc:title>{escape(title)}</dc:title><meta:generator>Metnos</meta:generator>"
        f"<meta:creation-date>{moment}</meta:creation-date><dc:date>{moment}</dc:date>"
        "</office:meta></office:document-meta>"
    )
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        # First and as it is: by these bytes programs know what it is.
        archive.writestr(_member("mimetype", zipfile.ZIP_STORED), _TYPE)
        archive.writestr(_member("META-INF/manifest.xml"), _MANIFEST)
        archive.writestr(_member("meta.xml"), meta)
        archive.writestr(_member("content.xml"), "".join(_content(table, name)).encode())
    return target.getvalue()


def _member(name: str, how: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    about = zipfile.ZipInfo(name)
    about.compress_type = how
    return about


def _content(table: Table, name: str) -> Iterator[str]:
    columns = list(widths(table))
    yield f"{_HEAD}<office:document-content {_SPACES}><office:automatic-styles>{_STYLES}"
    for at, width in enumerate(columns):
        yield (
            f'<style:style style:name="c{at}" style:family="table-column">'
            f'<style:table-column-properties style:column-width="{width * 0.2:.1f}cm"/>'
            "</style:style>"
        )
    yield "</office:automatic-styles><office:body><office:spreadsheet>"
    yield f"<table:table table:name={quoteattr(name)}>"
    for at in range(len(columns)):
        yield f'<table:table-column table:style-name="c{at}"/>'
    if not columns:
        yield "<table:table-column/>"
    if table.header:
        cells = "".join(_text(title, ' table:style-name="heading"') for title in table.header)
        yield f"<table:table-row>{cells}</table:table-row>"
    for row in table.rows:
        yield f"<table:table-row>{''.join(map(_cell, row))}</table:table-row>"
    if not table.header and not table.rows:
        yield "<table:table-row><table:table-cell/></table:table-row>"
    yield "</table:table></office:spreadsheet></office:body></office:document-content>"


def _cell(value: Cell) -> str:
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, str):
        return _text(value, "")
    if isinstance(value, bool):
        said = "true" if value else "false"
        facts = f'office:value-type="boolean" office:boolean-value="{said}"'
    elif isinstance(value, dt.datetime):
        said = value.isoformat(timespec="seconds")
        facts = f'office:value-type="date" office:date-value="{said}" table:style-name="moment"'
    elif isinstance(value, dt.date):
        facts = f'office:value-type="date" office:date-value="{value}" table:style-name="day"'
    else:
        facts = f'office:value-type="float" office:value="{value!r}"'
    shown = escape(as_written(value, comma=False))
    return f"<table:table-cell {facts}><text:p>{shown}</text:p></table:table-cell>"


def _text(text: str, style: str) -> str:
    lines = "".join(f"<text:p>{_spaced(line)}</text:p>" for line in text.split("\n"))
    return f'<table:table-cell office:value-type="string"{style}>{lines}</table:table-cell>'


def _spaced(line: str) -> str:
    """Text of one line; blanks that follow each other and tabs need signs of their own."""
    shown = escape(line).replace("\t", "<text:tab/>").replace("\r", "")
    while "  " in shown:
        shown = shown.replace("  ", " <text:s/>", 1)
    return shown


# -- adding to one that is there ------------------------------------------------------------------


# How many rows above are looked at for the style of dates.
_LOOKED_AT = 50


def extended(
    data: bytes, table: Table, *, sheet: str | None, now: dt.datetime, anew: bool = False
) -> tuple[bytes, int]:
    """The document with the rows added below the last row that holds something, or with `anew` in
    place of what the sheet holds; and at which row they begin, counted from 1.

    Raises `Failure`: damaged, not_found for a sheet that is not there.
    """
    from odfdo import Row

    document = _opened(data)
    target = _table(document, sheet)
    target.rstrip(aggressive=True)
    rows = [list(row) for row in table.rows]
    empty = (
        anew
        or target.height == 0
        or (target.height == 1 and not any(v is not None for v in target.get_row_values(0)))
    )
    if empty:
        target.clear()
        rows = [list(table.header), *rows] if table.header else rows
    start = target.height + 1 + (1 if empty and table.header else 0)
    dates = _Dates(document, target)
    for values in rows:
        row = Row()
        row.set_values(values)
        for at, value in enumerate(values):
            if isinstance(value, dt.date):
                row.set_cell(at, dates.cell(at, value))
        target.append_row(row)
    document.meta.set_modification_date(now.replace(tzinfo=None, microsecond=0))
    saved = io.BytesIO()
    document.save(saved)
    return without_moments(saved.getvalue()), start


class _Dates:
    """Cells of days and moments that look as those above them. The library alone makes midnight
    of a day, in no style, which programs then show with its hour."""

    def __init__(self, document: Any, table: Any) -> None:
        self._document = document
        self._above: dict[tuple[int, bool], str] = {}
        height = table.height
        for number in range(max(0, height - _LOOKED_AT), height):
            for at, cell in enumerate(table.get_row(number).cells):
                if cell.type == "date" and cell.style:
                    said = cell.get_attribute("office:date-value") or ""
                    self._above[at, "T" in said] = cell.style

    def cell(self, column: int, value: dt.date) -> Any:
        from odfdo import Cell

        long = isinstance(value, dt.datetime)
        if isinstance(value, dt.datetime):
            value = value.replace(microsecond=0)
        style = self._above.get((column, long)) or self._own(long)
        cell = Cell(text=as_written(value, comma=False), style=style)
        cell.set_attribute("office:value-type", "date")
        cell.set_attribute("office:date-value", value.isoformat())
        return cell

    def _own(self, long: bool) -> str | None:
        """The name of a style of ours in this document, which is put in at first need; None where
        the document keeps no styles."""
        from odfdo import Element

        name, parts = ("metnos-moment", _PARTS + _CLOCK) if long else ("metnos-day", _PARTS)
        content = self._document.get_part("content")
        if content.get_element(f'//style:style[@style:name="{name}"]') is None:
            styles = content.get_element("//office:automatic-styles")
            if styles is None:
                return None
            for xml in (
                f'<number:date-style style:name="{name}-form">{parts}</number:date-style>',
                f'<style:style style:name="{name}" style:family="table-cell"'
                f' style:data-style-name="{name}-form"/>',
            ):
                styles.append(Element.from_tag(xml))
        return name


def _opened(data: bytes) -> Any:
    from odfdo import Document

    try:
        return Document(io.BytesIO(data))
    except (ValueError, KeyError, OSError, TypeError, AttributeError, zipfile.BadZipFile) as exc:
        raise Failure("damaged", f"no readable document: {type(exc).__name__}") from exc


def _table(document: Any, name: str | None) -> Any:
    tables = list(document.body.tables)
    if not tables:
        raise Failure("damaged", "the document has no sheet")
    if not name:
        return tables[0]
    for one in tables:
        if (one.name or "").casefold() == name.casefold():
            return one
    there = ", ".join(one.name or "" for one in tables)
    raise Failure("not_found", f"no sheet {name!r}; there are: {there}")
