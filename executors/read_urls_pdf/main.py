"""Reads the text of PDFs on the web, page by page."""

from __future__ import annotations

import time

from executors._sdk import http, pdf, result
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

MAX_BYTES = 30_000_000


def run(call: Call) -> dict[str, Any]:
    """One entry per address, in order: `text`, `pages`, `first_page`, `last_page`, `title`,
    `author`, `scanned`, and `truncated` with `used` and `available` pages; see `pdf.read`.

    What is no PDF is a failed entry: `unsupported` for a page, `damaged` for what only says that
    it is one, `too_large` above 30 MB.
    """
    urls = [str(url) for url in call.args["urls"]]
    most = min(call.args.get("max_chars") or pdf.DEFAULT_CHARS, pdf.TOTAL_CHARS)
    left = pdf.TOTAL_CHARS
    until = 0.0

    def read(got: http.Fetched) -> dict[str, Any]:
        nonlocal left, until
        until = until or time.monotonic() + pdf.TIME_BUDGET_S
        if b"%PDF-" not in got.body[:1024] and not got.media_type.endswith("pdf"):
            detail = f"{got.media_type} is no PDF: read a page with read_urls_html"
            raise Failure("unsupported", detail, media_type=got.media_type)
        facts = pdf.read(call, got.body, min(most, left), until)
        left -= len(facts["text"])
        size = len(got.body)
        return result.item(url=got.url, final_url=got.final_url, **facts, bytes=size)

    fetcher = http.Fetcher(call, max_bytes=MAX_BYTES, accept="application/pdf, */*;q=0.1")
    entries = [
        http.failed_entry(url, got) if isinstance(got, Failure) else got
        for url, got in zip(urls, fetcher.get_many(call, urls, read), strict=True)
    ]
    return result.done(entries, truncated=any(entry.get("truncated") for entry in entries))
