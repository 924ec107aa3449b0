"""Workbooks in Excel's format: made anew, or with rows added to one that is there.

The package, its styles and everything that an existing workbook holds are openpyxl's. Only the
cells of new sheets are written here: the cage has no place for the temporary files that openpyxl
fills, and text by text it takes five times as long. The same table gives the same bytes.
"""

from __future__ import annotations

import datetime as dt
import io
import re
import zipfile
from xml.sax.saxutils import escape

from openpyxl import Workbook, load_workbook
from openpyxl.cell import Cell as SheetCell
from openpyxl.styles import Font
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.worksheet._writer import WorksheetWriter
from openpyxl.writer.excel import ExcelWriter

from executors._sdk.result import Failure
from executors._sdk.tables import letters, reads_as_formula, widths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from executors._sdk.tables import Cell, Table

    Told = Callable[[int], None]

_EPOCH = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - sheets know no zones
_DAY = dt.timedelta(days=1)
_DATE, _MOMENT = "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"
_EMPTY_ROWS = re.compile(rb"<sheetData\s*/>|<sheetData>\s*</sheetData>")
_DIMENSION = re.compile(rb'(<dimension ref=")[^"]*"')
_TOLD_EVERY = 5000
_NAMELESS = re.compile(r"[\[\]:*?/\\\x00-\x1f]")


def sheet_name(title: str, default: str) -> str:
    """A title as the name of a sheet: without what such names may not hold, 31 characters."""
    return _NAMELESS.sub(" ", title).strip(" '")[:31].strip() or default


def made(table: Table, *, name: str, title: str, now: dt.datetime, told: Told) -> bytes:
    """A workbook of one sheet that holds the table: headings bold and fixed, columns as wide as
    their texts. `told` hears how many rows are done."""
    book = Workbook()
    sheet = book.active
    sheet.title = name
    if table.header:
        sheet.freeze_panes = "A2"
        last = letters(len(table.header))
        sheet.auto_filter.ref = f"A1:{last}{len(table.rows) + 1}"
    for at, width in enumerate(widths(table), 1):
        sheet.column_dimensions[letters(at)].width = width
    book.properties.title = title or None
    book.properties.creator = "Metnos"
    book.properties.created = now.replace(tzinfo=None, microsecond=0)
    styles = _Styles(sheet)
    rows = b"".join(_sheet_data(table, styles, told))
    return _saved(book, now, {sheet.title: (rows, _extent(table))})


def extended(
    data: bytes, table: Table, *, sheet: str | None, now: dt.datetime, anew: bool = False
) -> tuple[bytes, int]:
    """The workbook with the rows added below the last row that holds something, or with `anew` in
    place of what the sheet holds; and at which row they begin. Other sheets stay as they are.

    Raises `Failure`: damaged, not_found for a sheet that is not there.
    """
    book = opened(data)
    target = sheet_of(book, sheet)
    if anew and target.max_row:
        target.delete_rows(1, target.max_row)
    start = _last_row(target) + 1
    if start == 1 and table.header:
        for at, title in enumerate(table.header, 1):
            _set(target.cell(row=1, column=at), title)
            target.cell(row=1, column=at).font = Font(bold=True)
        start = 2
    for number, row in enumerate(table.rows, start):
        for at, value in enumerate(row, 1):
            if value is not None:
                _set(target.cell(row=number, column=at), value)
    return _saved(book, now, {}), start


def opened(data: bytes) -> Any:
    """The workbook as openpyxl has it, formulas kept. Raises `Failure` damaged."""
    try:
        return load_workbook(io.BytesIO(data), keep_links=True)
    except (
        zipfile.BadZipFile, InvalidFileException, KeyError, ValueError, TypeError, SyntaxError,
        AttributeError, IndexError,
    ) as exc:  # fmt: skip
        raise Failure("damaged", f"no readable workbook: {type(exc).__name__}") from exc


def sheet_of(book: Any, name: str | None) -> Any:
    """The named sheet, or the first. Raises `Failure` not_found, which lists what there is."""
    if not name:
        return book.worksheets[0]
    for one in book.worksheets:
        if one.title.casefold() == name.casefold():
            return one
    there = ", ".join(one.title for one in book.worksheets)
    raise Failure("not_found", f"no sheet {name!r}; there are: {there}")


def _last_row(sheet: Any) -> int:
    for number in range(sheet.max_row, 0, -1):
        if any(cell.value is not None for cell in sheet[number]):
            return number
    return 0


def _set(cell: Any, value: Cell) -> None:
    cell.value = value
    if isinstance(value, str) and cell.data_type != "s":
        cell.data_type = "s"
    if isinstance(value, str) and reads_as_formula(value):
        cell.quotePrefix = True
    elif isinstance(value, dt.datetime):
        cell.number_format = _MOMENT
    elif isinstance(value, dt.date):
        cell.number_format = _DATE


# -- the cells of a new sheet ---------------------------------------------------------------------


class _Styles:
    """Numbers of the styles that cells name."""

    def __init__(self, sheet: Any) -> None:
        def number(**facts: Any) -> int:
            cell = SheetCell(sheet, row=1, column=1)
            for name, value in facts.items():
                setattr(cell, name, value)
            return int(cell.style_id)

        self.heading = number(font=Font(bold=True))
        self.date = number(number_format=_DATE)
        self.moment = number(number_format=_MOMENT)
        self.quoted = number(quotePrefix=True)


def _sheet_data(table: Table, styles: _Styles, told: Told) -> Iterator[bytes]:
    most = max([len(table.header), *map(len, table.rows)])
    names = [letters(at) for at in range(1, most + 1)]
    yield b"<sheetData>"
    number = 1
    if table.header:
        cells = [
            _text(f"{names[at]}1", title, f' s="{styles.heading}"')
            for at, title in enumerate(table.header)
        ]
        yield f'<row r="1">{"".join(cells)}</row>'.encode()
        number = 2
    for row in table.rows:
        cells = [
            _cell(f"{names[at]}{number}", value, styles)
            for at, value in enumerate(row)
            if value is not None
        ]
        yield f'<row r="{number}">{"".join(cells)}</row>'.encode()
        if number % _TOLD_EVERY == 0:
            told(number)
        number += 1
    yield b"</sheetData>"


def _cell(at: str, value: Cell, styles: _Styles) -> str:
    if isinstance(value, str):
        style = f' s="{styles.quoted}"' if reads_as_formula(value) else ""
        return _text(at, value, style)
    if isinstance(value, bool):
        return f'<c r="{at}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, dt.datetime):
        return f'<c r="{at}" s="{styles.moment}"><v>{(value - _EPOCH) / _DAY!r}</v></c>'
    if isinstance(value, dt.date):
        days = (value - _EPOCH.date()).days
        return f'<c r="{at}" s="{styles.date}"><v>{days}</v></c>'
    return f'<c r="{at}"><v>{value!r}</v></c>'


def _text(at: str, text: str, style: str) -> str:
    return (
        f'<c r="{at}"{style} t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'
    )


# -- saving ---------------------------------------------------------------------------------------


class _Archive(zipfile.ZipFile):
    """A ZIP whose members carry no moment, so that the same content is the same file."""

    def writestr(self, zinfo_or_arcname: Any, data: Any, *args: Any, **more: Any) -> None:
        if isinstance(zinfo_or_arcname, str):
            about = zipfile.ZipInfo(zinfo_or_arcname)
            about.compress_type = zipfile.ZIP_DEFLATED
            zinfo_or_arcname = about
        super().writestr(zinfo_or_arcname, data, *args, **more)


class _Writer(ExcelWriter):  # type: ignore[misc]
    """Writes sheets into memory; the rows in `ready`, by the sheet's name and with the cells
    they fill, are put in as they are."""

    def __init__(
        self, workbook: Any, archive: _Archive, ready: dict[str, tuple[bytes, str]]
    ) -> None:
        super().__init__(workbook, archive)
        self._ready = ready

    def write_worksheet(self, ws: Any) -> None:
        from openpyxl.drawing.spreadsheet_drawing import SpreadsheetDrawing

        ws._drawing = SpreadsheetDrawing()
        ws._drawing.charts = ws._charts
        ws._drawing.images = ws._images
        out = io.BytesIO()
        writer = WorksheetWriter(ws, out=out)
        writer.write()
        ws._rels = writer._rels
        body = out.getvalue()
        if ws.title in self._ready:
            rows, extent = self._ready[ws.title]
            head, tail = _EMPTY_ROWS.split(body, maxsplit=1)
            # Programs that read row by row believe what is said here.
            body = _DIMENSION.sub(rb"\g<1>" + extent.encode() + b'"', head) + rows + tail
        self._archive.writestr(ws.path[1:], body)
        self.manifest.append(ws)


def _extent(table: Table) -> str:
    columns = max([1, len(table.header), *map(len, table.rows)])
    return f"A1:{letters(columns)}{max(1, len(table.rows) + bool(table.header))}"


def _saved(book: Any, now: dt.datetime, ready: dict[str, tuple[bytes, str]]) -> bytes:
    target = io.BytesIO()
    with _Archive(target, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        book.properties.modified = now.replace(tzinfo=None, microsecond=0)
        _Writer(book, archive, ready).write_data()
    return target.getvalue()
