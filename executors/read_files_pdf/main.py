"""Read the text of PDFs, page by page. What is only a picture of a text is said to be one."""

from __future__ import annotations

import time

from executors._sdk import pdf
from executors._sdk.files import arg_paths, locate, opened, shown
from executors._sdk.packages import whole
from executors._sdk.result import Failure, done, failed_item, from_exception, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry per file: `text`, `pages` (how many it has), `first_page` and `last_page` of what
    was read, `title` and `author` where it says them; `scanned` for pages without a text.

    A text that was cut says `truncated`, with `used` and `available` pages.
    """
    paths = arg_paths(call)
    left = pdf.TOTAL_CHARS
    most = min(call.args.get("max_chars") or pdf.DEFAULT_CHARS, pdf.TOTAL_CHARS)
    until = time.monotonic() + pdf.TIME_BUDGET_S
    entries = []
    for number, path in enumerate(paths, 1):
        entry = _read(call, path, min(most, left), until)
        left -= len(entry.get("text", ""))
        entries.append(entry)
        if len(paths) > 1:
            call.progress(number, len(paths))
    return done(entries, truncated=any(entry.get("truncated") for entry in entries))


def _read(call: Call, path: object, most: int, until: float) -> dict[str, Any]:
    try:
        place = locate(call, path)
        with opened(place) as (fd, info):
            data = whole(fd, info.st_size)
        facts = pdf.read(call, data, most, until)
        return item(path=place.path, name=place.name, **facts, bytes=info.st_size)
    except (OSError, Failure) as exc:
        failed = from_exception(exc)
        code, detail = (failed.code, failed.detail) if failed else ("internal", "")
        return failed_item(code, detail, path=shown(path), name=shown(path).rsplit("/", 1)[-1])
