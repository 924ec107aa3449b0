"""Make a spreadsheet of what an earlier step found, or of rows as they were given.

The ending of the name decides what it is: xlsx, ods, csv or tsv. Texts stay texts, also those that
read as formulas. A file that is there already is never touched: the new one gets a number.
"""

from __future__ import annotations

from executors._sdk import csv_text, making, ods, tables
from executors._sdk.result import Failure, done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.files import Place
    from executors._sdk.tables import Table

KINDS = ("xlsx", "ods", "csv", "tsv")
_NAMES = {"it": "Foglio", "en": "Sheet"}


def run(call: Call) -> dict[str, Any]:
    """One entry: `path`, `bytes`, `rows`, `columns`; `wanted` when that name was taken. None when
    there was nothing to put into it."""
    table = tables.table_of(call)
    if not table.rows:
        return done([])
    spot, ext = _spot(call)
    entry = making.put(call, spot.place, [_made(call, table, spot.place, ext)])
    entry |= {"rows": len(table.rows), "columns": len(table.header), "name": spot.place.name}
    if spot.wanted is not None:
        entry["wanted"] = spot.wanted.path
    cut = {"cut_cells": table.cut} if table.cut else {}
    return done([entry], **cut)


def preview(call: Call) -> dict[str, Any]:
    """The file that would be made, without making it."""
    table = tables.table_of(call)
    if not table.rows:
        return making.previewed([])
    spot, ext = _spot(call)
    data = _made(call, table, spot.place, ext)
    return making.previewed([making.foreseen(call, spot.place, data)])


def _spot(call: Call) -> tuple[making.Spot, str]:
    """Where it goes, and of what kind it is."""
    path = call.args.get("path")
    name = path.rpartition("/")[2] if isinstance(path, str) else ""
    said = name.rpartition(".")[2].lower() if "." in name[1:] else ""
    title = str(call.args.get("title") or "")
    spot = making.spot_for(
        call, path, ext="xlsx", title=title, default=_NAMES.get(call.lang, _NAMES["en"])
    )
    ext = spot.place.name.rpartition(".")[2].lower()
    if ext not in KINDS:
        detail, formats = f"{said or ext!r} is no spreadsheet", ", ".join(KINDS)
        raise Failure("unsupported_format", detail, formats=formats)
    return spot, ext


def _made(call: Call, table: Table, place: Place, ext: str) -> bytes:
    title = str(call.args.get("title") or "")
    if ext in {"csv", "tsv"}:
        return csv_text.written(table, csv_text.usual(call.lang, ext))
    default = _NAMES.get(call.lang, _NAMES["en"])
    # Another name of the file, or another day, does not change what is in it.
    if ext == "ods":
        return ods.made(table, name=title[:31] or default, title=title, now=call.now)
    from executors._sdk import xlsx

    name = xlsx.sheet_name(title, default)
    total = len(table.rows)

    def told(rows: int) -> None:
        call.progress(rows, total)

    return xlsx.made(table, name=name, title=title, now=call.now, told=told)
