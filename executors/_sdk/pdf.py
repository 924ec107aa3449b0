"""PDFs as text, page by page. What is only a picture of a text is said to be one. Knows no paths.
What uses this declares `requires = ["pypdf", "cryptography"]`.
"""

from __future__ import annotations

import io
import logging
import time

from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pypdf import PdfReader

    from executors._sdk.call import Call

DEFAULT_CHARS = 200_000
TOTAL_CHARS = 2_000_000
# Well inside the manifests' timeouts: the pages read by then are better than none.
TIME_BUDGET_S = 40.0


def read(call: Call, data: bytes, most: int, until: float) -> dict[str, Any]:
    """The fields of a PDF: `text` of at most `most` characters, `pages` (how many it has),
    `first_page` and `last_page` of what was read, `title` and `author` where it says them,
    `scanned` for pages without a text.

    `first_page` and `last_page` of the call's arguments bound what is read. A text that was cut,
    or not read to its end `until` then (monotonic), says `truncated`, with `used` and `available`
    pages. Raises `Failure`: damaged, password_needed, not_found (no such page).
    """
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    if b"%PDF-" not in data[:1024]:
        raise Failure("damaged", "this is no PDF")
    reader = _opened(data)
    facts = _facts(reader)
    return facts | _pages(call, reader, facts["pages"], most, until)


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
