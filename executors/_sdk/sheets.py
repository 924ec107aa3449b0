"""Reading spreadsheets of every usual kind: their sheets, the row of headings, rows as entries."""

from __future__ import annotations

import datetime as dt
import io

from executors._sdk.packages import MOST_BYTES, check_package, whole
from executors._sdk.result import Failure
from executors._sdk.tables import letters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BINARY = ("xlsx", "xlsm", "xls", "xlsb", "ods")
TEXT = ("csv", "tsv", "txt")
_HEADING_ROWS = 20


class Sheet:
    """One sheet: its name and its rows, values as Python has them."""

    def __init__(self, name: str, rows: list[list[Any]]) -> None:
        self.name = name
        self.rows = rows


def kind_of_name(name: str) -> str:
    """The ending of a file's name that tells what sheet it is. Raises `Failure` unsupported."""
    ext = name.rpartition(".")[2].lower() if "." in name else ""
    if ext not in BINARY + TEXT:
        raise Failure("unsupported", f"not a spreadsheet: {', '.join((*BINARY, *TEXT[:2]))}")
    return ext


def sheets_in(fd: int, size: int, ext: str, *, wanted: str | None) -> tuple[list[Sheet], int]:
    """The sheets that are wanted (by name, else the first that holds something), and how many
    there are. Raises `Failure`: too_large, password_needed, damaged, not_found, not_text."""
    if size > MOST_BYTES:
        raise Failure("too_large", f"files up to {MOST_BYTES >> 20} MiB are read")
    if ext in TEXT:
        from executors._sdk import csv_text

        rows, _ = csv_text.read(fd, size)
        return [Sheet("", [list(row) for row in rows])], 1
    return _from_package(whole(fd, size), wanted)


def _from_package(data: bytes, wanted: str | None) -> tuple[list[Sheet], int]:
    from python_calamine import CalamineError, CalamineWorkbook

    check_package(data)
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        names = list(book.sheet_names)
        if wanted:
            same = [name for name in names if name.casefold() == wanted.casefold()]
            if not same:
                raise Failure("not_found", f"no sheet {wanted!r}; there are: {', '.join(names)}")
            return [Sheet(same[0], _rows(book, same[0]))], len(names)
        for name in names:
            rows = _rows(book, name)
            if rows or name == names[-1]:
                return [Sheet(name, rows)], len(names)
    except CalamineError as exc:
        code = "password_needed" if "assword" in str(exc) else "damaged"
        raise Failure(code, f"no readable spreadsheet: {str(exc)[:120]}") from exc
    return [], len(names)


def _rows(book: Any, name: str) -> list[list[Any]]:
    rows: list[list[Any]] = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
    return rows


def headed(rows: list[list[Any]]) -> tuple[list[str], list[list[Any]], int]:
    """The headings, the rows below them, and the number of the first of these (from 1).

    The headings are the first row that is nearly as full as the fullest and holds only texts;
    where there is none, the letters of the columns. Headings that are missing or repeated get the
    letter of their column.
    """
    top = rows[:_HEADING_ROWS]
    fullest = max([sum(not _is_empty(value) for value in row) for row in top], default=0)
    width = max(map(len, rows), default=0)
    for at, row in enumerate(top):
        filled = [value for value in row if not _is_empty(value)]
        if not filled or len(filled) < max(1, fullest * 0.6):
            continue
        if all(isinstance(value, str) and not _reads_as_number(value) for value in filled):
            return _unique([*row, *[""] * (width - len(row))]), rows[at + 1 :], at + 2
        break
    return [letters(at) for at in range(1, width + 1)], rows, 1


def _unique(row: list[Any]) -> list[str]:
    names: list[str] = []
    for at, value in enumerate(row, 1):
        name = " ".join(str(value or "").split())[:120]
        if not name:
            name = letters(at)
        elif name in names or name in {"ok", "error"}:
            name = f"{name} ({letters(at)})"
        names.append(name)
    return names


def _is_empty(value: Any) -> bool:
    return value is None or value == ""


def _reads_as_number(text: str) -> bool:
    from executors._sdk.values import number

    return number(text) is not None


def as_value(value: Any) -> Any:
    """A cell as JSON holds it: whole numbers without a fraction, moments in ISO 8601, a date where
    the time is midnight."""
    if isinstance(value, float):
        if value != value or value in {float("inf"), float("-inf")}:
            return None
        return int(value) if value.is_integer() and abs(value) <= 2**53 else value
    if isinstance(value, dt.datetime):
        midnight = (value.hour, value.minute, value.second, value.microsecond) == (0, 0, 0, 0)
        return value.date().isoformat() if midnight else value.isoformat(timespec="seconds")
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        seconds = round(value.total_seconds())
        minutes, hours = abs(seconds) // 60 % 60, abs(seconds) // 3600
        return f"{'-' if seconds < 0 else ''}{hours}:{minutes:02d}:{abs(seconds) % 60:02d}"
    return value
