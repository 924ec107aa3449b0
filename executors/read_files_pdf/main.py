"""Read the text of PDFs, page by page. What is only a picture of a text is said to be one."""

from __future__ import annotations

import io
import logging
import time

from executors._sdk.files import arg_paths, locate, opened, shown
from executors._sdk.packages import whole
from executors._sdk.result import Failure, done, failed_item, from_exception, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pypdf import PdfReader

    from executors._sdk.call import Call

DEFAULT_CHARS = 200_000
TOTAL_CHARS = 2_000_000
# Well inside the manifest's timeout: the pages read by then are better than none.
TIME_BUDGET_S = 40.0


def run(call: Call) -> dict[str, Any]:
    """One entry per file: `text`, `pages` (how many it has), `first_page` and `last_page` of what
    was read, `title` and `author` where it says them; `scanned` for pages without a text.

    A text that was cut says `truncated`, with `used` and `available` pages.
    """
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    paths = arg_paths(call)
    left = TOTAL_CHARS
    most = min(call.args.get("max_chars") or DEFAULT_CHARS, TOTAL_CHARS)
    until = time.monotonic() + TIME_BUDGET_S
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
        if b"%PDF-" not in data[:1024]:
            raise Failure("damaged", "this is no PDF")
        reader = _opened(data)
        entry = item(path=place.path, name=place.name, **_facts(reader))
        entry |= _pages(call, reader, entry["pages"], most, until)
        entry["bytes"] = info.st_size
        return entry
    except (OSError, Failure) as exc:
        failed = from_exception(exc)
        code, detail = (failed.code, failed.detail) if failed else ("internal", "")
        return failed_item(code, detail, path=shown(path), name=shown(path).rsplit("/", 1)[-1])


def _opened(data: bytes) -> PdfReader:
    from pypdf import PdfReader

    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        # Many are locked only against printing and open without a word.
        if reader.is_encrypted and not reader.decrypt(""):
            raise Failure("password_needed", "the PDF is locked with a password")
        len(reader.pages)
    except Failure:
        raise
    except _faults() as exc:
        raise Failure("damaged", f"no readable PDF: {type(exc).__name__}") from exc
    return reader


def _faults() -> tuple[type[Exception], ...]:
    """What a broken file makes the library raise: it trusts the structure in many places."""
    from pypdf.errors import PyPdfError

    return (
        PyPdfError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError,
        NotImplementedError, OverflowError, ZeroDivisionError, AssertionError, UnicodeError,
    )  # fmt: skip


def _facts(reader: PdfReader) -> dict[str, Any]:
    facts: dict[str, Any] = {"pages": len(reader.pages)}
    try:
        about = reader.metadata
        for name in ("title", "author"):
            value = getattr(about, name, None) if about else None
            if isinstance(value, str) and value.strip():
                facts[name] = " ".join(value.split())[:300]
    except _faults():
        return facts
    return facts


def _pages(call: Call, reader: PdfReader, count: int, most: int, until: float) -> dict[str, Any]:
    first = max(1, call.args.get("first_page") or 1)
    last = min(call.args.get("last_page") or count, count)
    if count and first > count:
        raise Failure("not_found", f"it has {count} pages")
    texts: list[str] = []
    chars = unreadable = 0
    number = first - 1
    for number in range(first, last + 1):
        if chars >= most or time.monotonic() > until:
            number -= 1
            break
        try:
            text = reader.pages[number - 1].extract_text() or ""
        except _faults():
            unreadable += 1
            text = ""
        texts.append(_tidy(text))
        chars += len(text)
        call.progress(number, last)
    text = "\n\n".join(part for part in texts if part)
    facts: dict[str, Any] = {"text": text[:most], "first_page": first, "last_page": number}
    facts["truncated"] = number < last or len(text) > most
    if facts["truncated"]:
        facts |= {"used": number - first + 1, "available": last - first + 1}
    if texts and not text.strip():
        facts["scanned"] = len(texts)
    if unreadable:
        facts["unreadable_pages"] = unreadable
    return facts


def _tidy(text: str) -> str:
    """Without characters that are no text, and without blanks at the ends of lines."""
    plain = text.encode("utf-8", "replace").decode().replace("\x00", "")
    return "\n".join(line.rstrip() for line in plain.splitlines()).strip("\n")
