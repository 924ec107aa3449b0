"""Read spreadsheets: each row below the headings becomes an entry, its columns the fields."""

from __future__ import annotations

from executors._sdk import sheets
from executors._sdk.files import arg_paths, locate, opened, shown
from executors._sdk.result import Failure, done, failed_item, from_exception, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

DEFAULT_ROWS = 10_000
MOST_ROWS = 40_000
# What a call may answer with as a whole, in cells.
MOST_CELLS = 200_000


def run(call: Call) -> dict[str, Any]:
    """One entry per row, in order; of several files all, with `file` to tell them apart.

    `metadata`: `columns`, `sheet`, `sheets` (how many there are) and `name` of the only file, and
    `available` rows where not all are given. Rows that hold nothing are passed over.
    """
    paths = arg_paths(call)
    left = min(call.args.get("max_rows") or DEFAULT_ROWS, MOST_ROWS)
    cells = MOST_CELLS
    entries: list[dict[str, Any]] = []
    available = used = 0
    facts: dict[str, Any] = {}
    for number, path in enumerate(paths, 1):
        try:
            name, sheet, count = _sheet(call, path)
        except (OSError, Failure) as exc:
            failed = from_exception(exc)
            code, detail = (failed.code, failed.detail) if failed else ("internal", "")
            entries.append(failed_item(code, detail, path=shown(path)))
            continue
        columns, rows, _ = sheets.headed(sheet.rows)
        rows = [row for row in rows if any(value not in (None, "") for value in row)]
        given = rows[: min(left, cells // (len(columns) + 2))]
        left -= len(given)
        cells -= len(given) * (len(columns) + 2)
        available += len(rows)
        used += len(given)
        several = {"file": name} if len(paths) > 1 and "file" not in columns else {}
        entries += [_entry(columns, row, several) for row in given]
        facts = {"name": name, "sheet": sheet.name, "sheets": count, "columns": columns}
        if len(paths) > 1:
            call.progress(number, len(paths))
    metadata: dict[str, Any] = {"used": used, "available": available}
    metadata["truncated"] = used < available
    if len(paths) == 1 and facts:
        facts["column_names"] = ", ".join(facts["columns"][:30])
        metadata |= {key: value for key, value in facts.items() if value not in ("", [])}
    return done(entries, **metadata)


def _sheet(call: Call, path: object) -> tuple[str, sheets.Sheet, int]:
    place = locate(call, path)
    with opened(place) as (fd, info):
        ext = sheets.kind_of_name(place.name)
        wanted = call.args.get("sheet")
        found, count = sheets.sheets_in(fd, info.st_size, ext, wanted=wanted)
    if not found:
        raise Failure("damaged", "there is no sheet in it")
    return place.name, found[0], count


def _entry(columns: list[str], row: list[Any], more: dict[str, Any]) -> dict[str, Any]:
    cells = {
        name: sheets.as_value(value)
        for name, value in zip(columns, row, strict=False)
        if value not in (None, "")
    }
    return item(**{**cells, **more}) if "ok" not in cells else {**cells, **more, "ok": True}
