"""Fetches addresses as they are: the body exactly as served, and a short view when it is text."""

from __future__ import annotations

import base64
from urllib.parse import unquote, urlsplit

from executors._sdk import http, result, web_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

DEFAULT_BYTES = 5_000_000
TOTAL_BYTES = 15_000_000
VIEW_CHARS = 2000


def run(call: Call) -> dict[str, Any]:
    """One entry per address, in order. `body` is a blob that `write_files` takes as content and
    writes byte for byte, `name` what the address calls it.

    A body above `max_bytes` fails with `too_large`, and so do those that come when the call holds
    15 MB: half a file is none. `limit` in the error says how much would do.
    """
    urls = [str(url) for url in call.args["urls"]]
    limit = min(int(call.args.get("max_bytes") or DEFAULT_BYTES), TOTAL_BYTES)
    entries: list[dict[str, Any]] = []
    total = 0
    for url, got in zip(
        urls, http.Fetcher(call, max_bytes=limit).get_many(call, urls, lambda f: f), strict=True
    ):
        if isinstance(got, http.Fetched):
            total += len(got.body)
            if total <= TOTAL_BYTES:
                entries.append(_entry(got))
                continue
            detail = f"more than {TOTAL_BYTES} bytes together: ask for fewer addresses"
            got = result.Failure("too_large", detail, limit=TOTAL_BYTES)
        entries.append(http.failed_entry(url, got))
    return result.done(entries)


def _entry(got: http.Fetched) -> dict[str, Any]:
    charset = got.charset
    view: dict[str, Any] = {}
    if web_text.is_textual(got.media_type):
        text, charset = web_text.decode(got.body, got.charset)
        view = {"text": text[:VIEW_CHARS], "text_truncated": len(text) > VIEW_CHARS}
    return result.item(
        url=got.url,
        final_url=got.final_url,
        name=_name(got.final_url),
        status=got.status,
        media_type=got.media_type,
        bytes=len(got.body),
        body={
            "blob": base64.b64encode(got.body).decode("ascii"),
            "bytes": len(got.body),
            "media_type": got.media_type,
            "charset": charset,
        },
        **view,
    )


def _name(url: str) -> str:
    """The last part of an address as the name of a file; `download` where it has none."""
    last = unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])
    plain = "".join(c if c.isprintable() and c not in '/\\:*?"<>|' else "_" for c in last)
    return plain.strip(" .")[:120] or "download"
