"""Make files of another format: spreadsheets, texts and documents, pictures. The originals stay.

Each new file stands beside its original (or in `dest`) under its name with the other ending; a
name that is taken gets a number.
"""

from __future__ import annotations

import io

from executors._sdk import making
from executors._sdk.files import Place, arg_paths, locate, look, opened, shown
from executors._sdk.packages import whole
from executors._sdk.result import Failure, done, failed_item, from_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

_SHEETS = ("xlsx", "ods", "csv", "tsv")
_SHEETS_READ = (*_SHEETS, "xls", "xlsm", "xlsb")
_PICTURES = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tiff", "tif")
# Read, and named by their other name.
_SPELT_OTHERWISE = frozenset({"jpeg", "tif"})
_TEXTS = ("md", "markdown", "txt")
_DOCUMENTS_READ = ("docx", "odt", "rtf")
_DOCUMENTS = ("docx", "html", "md", "txt")
FORMATS = (*_SHEETS, *_DOCUMENTS, *_PICTURES)


def run(call: Call) -> dict[str, Any]:
    """One entry per file: `path` of the new one, `source`, `bytes`."""
    entries = []
    paths = list(dict.fromkeys(arg_paths(call)))
    for number, path in enumerate(paths, 1):
        try:
            source, spot, data = _converted(call, path, set())
            entry = making.put(call, spot.place, [data], source=source.path)
            if spot.wanted is not None:
                entry["wanted"] = spot.wanted.path
            entries.append(entry)
        except (OSError, Failure) as exc:
            entries.append(_failed(path, exc))
        if len(paths) > 1:
            call.progress(number, len(paths))
    return done(entries, bytes=sum(entry.get("bytes", 0) for entry in entries))


def preview(call: Call) -> dict[str, Any]:
    """The files that would be made. Raises `Failure` when none could be."""
    made, refused = [], []
    taken: set[str] = set()
    for path in dict.fromkeys(arg_paths(call)):
        try:
            _, spot, data = _converted(call, path, taken)
            made.append(making.foreseen(call, spot.place, data))
            taken.add(spot.place.path)
        except (OSError, Failure) as exc:
            refused.append(_failed(path, exc))
    if refused and not made:
        error = refused[0]["error"]
        raise Failure(error["code"], error["detail"], path=refused[0]["path"], **error["params"])
    return making.previewed(made, refused=refused)


def _converted(call: Call, path: object, taken: set[str]) -> tuple[Place, making.Spot, bytes]:
    wanted = str(call.args.get("to_format") or "").lower().lstrip(".")
    if wanted not in FORMATS:
        raise Failure("unsupported_format", f"not {wanted}", formats=", ".join(FORMATS))
    source = locate(call, path)
    if look(source) is None:
        raise Failure("not_found", "there is nothing at this path")
    stem, dot, ext = source.name.rpartition(".")
    ext = ext.lower() if dot and stem else ""
    if ext == wanted:
        raise Failure("same_format", f"it is {wanted} already", format=wanted)
    with opened(source) as (fd, info):
        data = _made(call, source, fd, info.st_size, ext, wanted)
    dest = call.args.get("dest")
    folder = source.parent if dest is None else locate(call, dest.rstrip("/"))
    name = f"{stem or source.name}.{wanted}"
    spot = making.spot_for(call, folder.child(name).path, ext=wanted, taken=taken)
    return source, spot, data


def _made(call: Call, source: Place, fd: int, size: int, ext: str, wanted: str) -> bytes:
    if ext in _PICTURES and wanted in _PICTURES:
        from executors._sdk.pictures import converted

        return converted(io.BytesIO(whole(fd, size)), wanted)
    if ext in _SHEETS_READ and wanted in _SHEETS:
        return _sheet(call, fd, size, ext, wanted, source.name)
    if ext in _TEXTS and wanted in _DOCUMENTS:
        from executors._sdk import documents
        from executors._sdk.encodings import detect

        encoding = detect(fd, size)
        text = whole(fd, size)[encoding.mark :].decode(encoding.codec, "replace")
        return documents.made(text, wanted, title="", now=call.now)
    if ext in _DOCUMENTS_READ and wanted in _DOCUMENTS:
        from executors._sdk import documents

        text = documents.text_of(whole(fd, size), ext)
        return documents.made(text, wanted, title="", now=call.now)
    formats = _formats_of(ext)
    if not formats:
        raise Failure("unsupported", f"{ext or 'this'} cannot be converted")
    said = ", ".join(formats)
    raise Failure("unsupported_format", f"{ext} does not become {wanted}", formats=said)


def _formats_of(ext: str) -> list[str]:
    """What a file of this kind can become."""
    found: tuple[str, ...] = ()
    if ext in _PICTURES:
        found = _PICTURES
    elif ext in _SHEETS_READ:
        found = _SHEETS
    elif ext in _TEXTS or ext in _DOCUMENTS_READ:
        found = _DOCUMENTS
    return [one for one in found if one not in {ext, *_SPELT_OTHERWISE}]


def _sheet(call: Call, fd: int, size: int, ext: str, wanted: str, name: str) -> bytes:
    from executors._sdk import csv_text, ods, sheets, tables

    found, _ = sheets.sheets_in(fd, size, ext, wanted=None)
    columns, rows, first = sheets.headed(found[0].rows if found else [])
    text = ext in {"csv", "tsv"}
    cells = [[_cell(value, text=text, lang=call.lang) for value in row] for row in rows]
    table = tables.Table(columns if first > 1 else [], cells)
    if wanted in {"csv", "tsv"}:
        return csv_text.written(table, csv_text.usual(call.lang, wanted))
    title = (found[0].name if found else "") or name.rpartition(".")[0] or "1"
    if wanted == "ods":
        return ods.made(table, name=title[:31], title="", now=call.now)
    from executors._sdk import xlsx

    sheet = xlsx.sheet_name(title, "1")
    return xlsx.made(table, name=sheet, title="", now=call.now, told=lambda rows: None)


def _cell(value: Any, *, text: bool, lang: str) -> Any:
    """A cell as it was; of a text file plain numbers and dates are made such."""
    if value == "" or value is None:
        return None
    if not isinstance(value, str):
        return value
    if not text:
        return value[:32_767]
    from zoneinfo import ZoneInfo

    from executors._sdk.tables import moment_of
    from executors._sdk.values import json_number, number

    plain = value.removeprefix("'") if value[:2] in {"'=", "'+", "'-", "'@"} else value
    # What begins with a zero or a plus is a telephone or an article, not an amount.
    named = (plain[:1] == "0" and plain[1:2].isdigit()) or plain[:1] == "+"
    if not named and len(plain) < 16 and plain[-1:].isdigit():
        amount = number(plain, comma=lang == "it")
        if amount is not None:
            return json_number(amount)
    return moment_of(plain, ZoneInfo("UTC")) or plain[:32_767]


def _failed(path: object, exc: OSError | Failure) -> dict[str, Any]:
    failed = from_exception(exc)
    code, detail = (failed.code, failed.detail) if failed else ("internal", "")
    entry = failed_item(code, detail, path=shown(path))
    entry["error"]["params"] = failed.params if failed else {}
    return entry
