"""Tables: entries as rows and columns, the values of cells, and what a text must not become.

Text is data: what reads as a formula stays a text, whatever program opens the file. Pure.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from zoneinfo import ZoneInfo

from executors._sdk import fields, values
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from executors._sdk.call import Call

    Cell = str | int | float | bool | dt.datetime | dt.date | None

# What every spreadsheet program can hold.
MOST_ROWS = 1_048_576
MOST_COLUMNS = 16_384
MOST_CHARS = 32_767
# Columns that are found out rather than named.
_MOST_FOUND = 60

# A cell that begins so is worked out, or run, by some program that opens it.
# Also as some spreadsheets of the East read them.
_STARTS_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?%?")
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
)
_FIRST_YEAR, _LAST_YEAR = 1900, 9999


class Table:
    """`header` and `rows` of cells; `cut` counts texts that were too long for a cell."""

    def __init__(self, header: list[str], rows: list[list[Cell]], *, cut: int = 0) -> None:
        self.header = header
        self.rows = rows
        self.cut = cut

    @property
    def cells(self) -> int:
        return len(self.rows) * max(1, len(self.header))


def table_of(call: Call, header: Sequence[str] | None = None) -> Table:
    """The table that a call describes: its `entries`, one row each, or its `rows` as they are.

    `columns` names the fields, each its own heading, as the person calls them; without them all
    fields make columns. `header`: the headings of the table that the rows go below, in their
    order; fields go under their own names, and `columns` then says which of them are filled.
    Entries that failed make no row. Raises `Failure`: unknown_field, invalid_args, too_large.
    """
    columns = [str(name) for name in call.args.get("columns") or ()]
    if call.args.get("rows") is not None:
        return _from_rows(call, list(header or columns))
    entries = [
        fields.as_entry(item)
        for item in call.args.get("entries") or ()
        if not (isinstance(item, dict) and item.get("ok") is False)
    ]
    picked: list[str | None]
    if header:
        wanted = list(header)
        chosen = {values.fold(name) for name in columns or wanted}
        picked = [_known(n, entries) if values.fold(n) in chosen else None for n in wanted]
        if entries and not any(picked):
            fields.known_field((columns or wanted)[0], entries)  # says which fields there are
    elif columns:
        wanted, picked = columns, [fields.known_field(name, entries) for name in columns]
    else:
        wanted = [name for name in field_names(entries) if name != "error"]
        picked = list(wanted)
    _check_size(len(entries), len(wanted))
    maker = _CellMaker(call)
    rows = [
        [None if name is None else maker.cell(fields.lookup(entry, name)) for name in picked]
        for entry in entries
    ]
    return Table([maker.text(name) for name in wanted], rows, cut=maker.cut)


def _from_rows(call: Call, columns: list[str]) -> Table:
    maker = _CellMaker(call)
    given = [row if isinstance(row, list) else [row] for row in call.args["rows"]]
    width = max((len(row) for row in given), default=0)
    if columns and width > len(columns):
        raise Failure("invalid_args", f"a row has {width} values for {len(columns)} columns")
    _check_size(len(given), max(width, len(columns)))
    rows = [[maker.cell(value) for value in row] for row in given]
    return Table([maker.text(name) for name in columns], rows, cut=maker.cut)


def field_names(entries: Sequence[dict[str, Any]]) -> list[str]:
    """The fields that make columns: all but bodies and what only says how an entry went."""
    names = fields.field_names(entries, most=_MOST_FOUND)
    bodies = {
        key
        for entry in entries
        for key, value in entry.items()
        if isinstance(value, dict) and "blob" in value
    }
    return [name for name in names if name.split(".", 1)[0] not in bodies]


def _known(name: str, entries: Sequence[dict[str, Any]]) -> str | None:
    try:
        return fields.known_field(name, entries)
    except Failure:
        return None


def _check_size(rows: int, columns: int) -> None:
    if rows >= MOST_ROWS or columns > MOST_COLUMNS:
        raise Failure("too_large", f"a sheet holds {MOST_ROWS} rows and {MOST_COLUMNS} columns")


class _CellMaker:
    """Makes cells of values; moments in the person's zone, since sheets know no zones."""

    def __init__(self, call: Call) -> None:
        self._tz = ZoneInfo(call.tz)
        self.cut = 0

    def cell(self, value: Any) -> Cell:
        if value is values.MISSING or value is None:
            return None
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value if abs(value) <= values.MAX_EXACT else str(value)
        if isinstance(value, float):
            return value if value - value == 0 else None  # no infinity, no not-a-number
        if isinstance(value, str):
            return moment_of(value, self._tz) or self.text(value)
        if isinstance(value, list) and not any(isinstance(one, (dict, list)) for one in value):
            return self.text(", ".join(values.as_text(one) for one in value))
        if isinstance(value, dict) and "blob" in value:
            return None
        return self.text(json.dumps(value, ensure_ascii=False))

    def text(self, value: str) -> str:
        plain = _UNPRINTABLE.sub("\ufffd", value)
        if len(plain) > MOST_CHARS:
            self.cut += 1
            plain = plain[:MOST_CHARS]
        return plain


def moment_of(text: str, tz: dt.tzinfo) -> dt.datetime | dt.date | None:
    """A text that is nothing but a date or a moment in ISO 8601, as the clock on the wall says
    it; None for every other text, and for times that sheets do not hold."""
    if not 10 <= len(text) <= 35 or not _MOMENT.fullmatch(text):
        return None
    try:
        if len(text) == 10:
            day = dt.date.fromisoformat(text)
            return day if _FIRST_YEAR < day.year <= _LAST_YEAR else None
        found = dt.datetime.fromisoformat(text)
        if found.tzinfo is not None:
            found = found.astimezone(tz).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return found if _FIRST_YEAR < found.year <= _LAST_YEAR else None


def reads_as_formula(text: str) -> bool:
    """Whether a program may take this text for a formula or a command."""
    return text.startswith(_STARTS_FORMULA) and not _NUMBER.fullmatch(text.strip())


def harmless(text: str) -> str:
    """The text as it may stand where nothing says that it is one, as in CSV. Its lines end in one
    way: a bare carriage return would end the row for others, and what follows begin a cell."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return "'" + plain if reads_as_formula(text) else plain


def as_written(value: Cell, *, comma: bool) -> str:
    """A cell as a text file holds it. `comma`: decimals are written as in Italian."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        text = repr(value)
        return text.replace(".", ",") if comma and "e" not in text else text
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, dt.date):
        return value.isoformat()
    return harmless(value)


def letters(number: int) -> str:
    """The name of a column, counted from 1: A, B, … Z, AA, …"""
    name = ""
    while number:
        number, rest = divmod(number - 1, 26)
        name = chr(65 + rest) + name
    return name


def widths(table: Table, *, seen: int = 200) -> Iterator[int]:
    """How wide each column should be, in characters, by its heading and its first rows."""
    for at, title in enumerate(table.header):
        texts = [as_written(row[at], comma=False) for row in table.rows[:seen] if at < len(row)]
        longest = max([len(title), *map(len, texts)], default=8)
        yield min(60, max(8, longest + 2))
