"""Read text files, whole or by lines: the first, the last, or from one to another."""

from __future__ import annotations

from executors._sdk import text
from executors._sdk.encodings import Encoding, detect
from executors._sdk.files import arg_paths, locate, opened, shown
from executors._sdk.result import Failure, done, failed_item, from_exception, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

# What a call without `max_bytes` gives of one file, and what it gives of all together.
DEFAULT_BYTES = 1 << 20
TOTAL_BYTES = 4 << 20

_MEDIA_TYPES = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "html": "text/html",
    "htm": "text/html",
    "xml": "application/xml",
    "json": "application/json",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "ics": "text/calendar",
    "vcf": "text/vcard",
    "eml": "message/rfc822",
    "svg": "image/svg+xml",
    "py": "text/x-python",
    "js": "text/javascript",
    "css": "text/css",
    "rtf": "application/rtf",
}


def run(call: Call) -> dict[str, Any]:
    """One entry per file: `text` as it stands in the file, line ends and all.

    `bytes`: size of the file; `lines`: how many it has (not counted over 16 MiB). A text cut for
    its size says `truncated`, with `used` and `available` bytes; the start is kept, of last lines
    the end.
    """
    selection = _Selection(call)
    left = TOTAL_BYTES
    entries = []
    paths = arg_paths(call)
    for number, path in enumerate(paths, 1):
        entry = _read(call, path, selection, min(selection.max_bytes, left))
        left -= entry.pop("_used", 0)
        entries.append(entry)
        if len(paths) > 1:
            call.progress(number, len(paths))
    cut = [entry for entry in entries if entry.get("truncated")]
    metadata: dict[str, Any] = {"truncated": bool(cut)}
    if cut:
        metadata["used"] = sum(entry["used"] for entry in cut)
        metadata["available"] = sum(entry["available"] for entry in cut)
    return done(entries, **metadata)


class _Selection:
    """Which lines of every file are wanted; 0 and absent mean not said."""

    def __init__(self, call: Call) -> None:
        args = call.args
        self.head: int = args.get("head_lines") or 0
        self.tail: int = args.get("tail_lines") or 0
        self.first: int = args.get("start_line") or 0
        self.last: int = args.get("end_line") or 0
        self.max_bytes: int = min(args.get("max_bytes") or DEFAULT_BYTES, TOTAL_BYTES)
        ways = bool(self.head) + bool(self.tail) + bool(self.first or self.last)
        if ways > 1:
            raise Failure(
                "invalid_args", "give only one of head_lines, tail_lines, start_line/end_line"
            )
        if self.last and self.last < self.first:
            raise Failure("invalid_args", "end_line comes before start_line")

    def span(self, fd: int, size: int, encoding: Encoding, budget: int) -> text.Span:
        if self.head:
            return text.head(fd, size, encoding, self.head, budget=budget)
        if self.tail:
            return text.tail(fd, size, encoding, self.tail, budget=budget)
        if self.first or self.last:
            first, last = self.first or 1, self.last or None
            return text.lines_between(fd, size, encoding, first, last, budget=budget)
        return text.whole(size, encoding)


def _read(call: Call, path: object, selection: _Selection, budget: int) -> dict[str, Any]:
    try:
        place = locate(call, path)
        with opened(place) as (fd, info):
            size = info.st_size
            if budget <= 0 and size:
                raise Failure("too_large", "the files before it took all the space of this call")
            encoding = detect(fd, size)
            span = selection.span(fd, size, encoding, budget)
            content, used, encoding = text.read(fd, span, encoding, budget=budget)
            lines = text.count_lines(fd, size, encoding)
    except (OSError, Failure) as exc:
        failed = from_exception(exc)
        code, detail = (failed.code, failed.detail) if failed else ("internal", "")
        return failed_item(code, detail, path=shown(path), name=shown(path).rsplit("/", 1)[-1])
    truncated = used < span.end - span.start or not span.complete
    entry = item(path=place.path, name=place.name, text=content, bytes=size)
    if lines is not None:
        entry["lines"] = lines
    entry |= {
        "encoding": encoding.name,
        "media_type": _MEDIA_TYPES.get(place.name.rpartition(".")[2].lower(), "text/plain"),
        "truncated": truncated,
        "_used": used,
    }
    if truncated:
        entry |= {"used": used, "available": max(span.end - span.start, used)}
    return entry
