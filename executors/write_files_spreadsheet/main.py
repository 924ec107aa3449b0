"""Add rows to a spreadsheet, or replace its rows; what the rest of the file holds stays.

The fields of entries go under the headings that are there, by their names. What is replaced is
kept in the trash of the turn. A file that does not exist yet is made.
"""

from __future__ import annotations

from executors._sdk import csv_text, making, ods, packages, sheets, tables, xlsx
from executors._sdk.files import Place, locate, look, opened
from executors._sdk.result import Failure, done
from executors._sdk.writing import Seen, retried

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

KINDS = ("xlsx", "xlsm", "ods", "csv", "tsv")
MODES = ("append", "replace")
_NAMES = {"it": "Foglio", "en": "Sheet"}


def run(call: Call) -> dict[str, Any]:
    """One entry: `path`, `bytes` it has now, `rows` that were written, `first_row` where they
    begin (of a table with headings the second), `kept` (the old file)."""
    return retried(lambda: _run(call))


def _run(call: Call) -> dict[str, Any]:
    made = _Made(call)
    if not made.table.rows:
        return done([])
    entry = making.put(call, made.place, [made.data], since=made.seen)
    entry |= {"rows": len(made.table.rows), "first_row": made.first_row, "name": made.place.name}
    cut = {"cut_cells": made.table.cut} if made.table.cut else {}
    return done([entry], **cut)


def preview(call: Call) -> dict[str, Any]:
    """The file as it would be, without changing it."""
    made = _Made(call)
    if not made.table.rows:
        return making.previewed([])
    return making.previewed([making.foreseen(call, made.place, made.data)])


class _Made:
    """What a call wants written: `data` is the whole new file."""

    def __init__(self, call: Call) -> None:
        self._call = call
        mode = call.args.get("mode") or "append"
        if mode not in MODES:
            raise Failure("invalid_args", f"mode is one of {', '.join(MODES)}")
        self.place = _place(call)
        self._ext = self.place.name.rpartition(".")[2].lower()
        self._sheet = call.args.get("sheet")
        self.first_row = 2
        self._replaces = mode == "replace"
        info = look(self.place)
        self.seen = Seen(info)
        if info is None:
            self.table = tables.table_of(call)
            self.data = self._anew()
            return
        columns = call.args.get("columns")
        header = None if self._replaces and columns else self._header()
        self.table = tables.table_of(call, header)
        self.data = self._changed() if self.table.rows else b""

    def _read(self) -> bytes:
        with opened(self.place) as (fd, info):
            data = packages.whole(fd, info.st_size)
        packages.check_package(data)
        return data

    def _header(self) -> list[str] | None:
        """The headings of the table that is there, None when it has none."""
        with opened(self.place) as (fd, info):
            found, _ = sheets.sheets_in(fd, info.st_size, self._ext, wanted=self._sheet)
        rows = found[0].rows if found else []
        columns, below, first = sheets.headed(rows)
        return columns if first == 2 and (below or columns) else None

    def _changed(self) -> bytes:
        if self._ext in {"csv", "tsv"}:
            with opened(self.place) as (fd, info):
                rows, style = csv_text.read(fd, info.st_size)
                old = packages.whole(fd, info.st_size)
            if self._replaces:
                return csv_text.written(self.table, style)
            self.first_row = len(rows) + 1
            gap = b"" if not old or old.endswith(b"\n") else style.end.encode(style.codec)
            return old + gap + csv_text.written(self.table, style, header=not rows)
        extended = ods.extended if self._ext == "ods" else xlsx.extended
        data, self.first_row = extended(
            self._read(),
            self.table,
            sheet=self._sheet,
            now=self._call.now,
            anew=self._replaces,
        )
        return data

    def _anew(self) -> bytes:
        call, table = self._call, self.table
        self.first_row = 2 if table.header else 1
        name = str(self._sheet or _NAMES.get(call.lang, _NAMES["en"]))
        if self._ext in {"csv", "tsv"}:
            return csv_text.written(table, csv_text.usual(call.lang, self._ext))
        if self._ext == "ods":
            return ods.made(table, name=name[:31], title="", now=call.now)
        name = xlsx.sheet_name(name, "1")
        return xlsx.made(table, name=name, title="", now=call.now, told=call.progress)


def _place(call: Call) -> Place:
    place = locate(call, call.args.get("path"))
    if not place.parts:
        raise Failure("is_directory", "this is a folder")
    if "." not in place.name[1:] and look(place) is None:
        place = place.parent.child(f"{place.name}.xlsx")
    if place.name.rpartition(".")[2].lower() not in KINDS:
        formats = ", ".join(KINDS)
        raise Failure("unsupported_format", f"rows are written into {formats}", formats=formats)
    return place
