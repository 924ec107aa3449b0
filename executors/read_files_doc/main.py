"""Read text documents: docx, odt and rtf, as plain text with headings, lists and tables."""

from __future__ import annotations

from executors._sdk import documents
from executors._sdk.files import arg_paths, locate, opened, shown
from executors._sdk.packages import whole
from executors._sdk.result import Failure, done, failed_item, from_exception, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

DEFAULT_CHARS = 500_000
TOTAL_CHARS = 4_000_000


def run(call: Call) -> dict[str, Any]:
    """One entry per file: `text`, `words` in it, `bytes` of the file. A text that was cut says
    `truncated`, with `used` and `available` characters."""
    paths = arg_paths(call)
    left = TOTAL_CHARS
    most = min(call.args.get("max_chars") or DEFAULT_CHARS, TOTAL_CHARS)
    entries = []
    for number, path in enumerate(paths, 1):
        entry = _read(call, path, min(most, left))
        left -= len(entry.get("text", ""))
        entries.append(entry)
        if len(paths) > 1:
            call.progress(number, len(paths))
    return done(entries, truncated=any(entry.get("truncated") for entry in entries))


def _read(call: Call, path: object, most: int) -> dict[str, Any]:
    try:
        place = locate(call, path)
        ext = place.name.rpartition(".")[2].lower()
        if ext not in documents.READ:
            raise Failure("unsupported", f"documents are {', '.join(documents.READ)}")
        with opened(place) as (fd, info):
            text = documents.text_of(whole(fd, info.st_size), ext)
    except (OSError, Failure) as exc:
        failed = from_exception(exc)
        code, detail = (failed.code, failed.detail) if failed else ("internal", "")
        return failed_item(code, detail, path=shown(path), name=shown(path).rsplit("/", 1)[-1])
    entry = item(path=place.path, name=place.name, text=text[:most], bytes=info.st_size)
    entry |= {"words": len(text.split()), "truncated": len(text) > most}
    if entry["truncated"]:
        entry |= {"used": most, "available": len(text)}
    return entry
