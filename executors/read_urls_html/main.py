"""Reads web pages: the main text without menus and advertising, with title, date and links.

A page is hostile until proven otherwise: it is bounded in bytes and in elements before the costly
reading begins, and what that cannot make sense of is read plainly.
"""

from __future__ import annotations

import re

from executors._sdk import http, result, web_text
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

DEFAULT_CHARS = 8000
MAX_CHARS = 100_000
MAX_BYTES = 3_000_000
# The reading takes up to a twentieth of a second per thousand elements.
MAX_ELEMENTS = 40_000
MAX_LINKS = 20
_ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.8, */*;q=0.1"
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
# A tag of a hundred thousand attributes holds the parser for minutes; no honest one is this long,
# but for images written out in it, which are not read anyway.
_LONG_TAG = re.compile(r"<[^<>]{8192,}>?")
_LINK = re.compile(r"\[([^\[\]]{0,300})\]\((https?://[^\s()<>]{1,2000})\)")


def run(call: Call) -> dict[str, Any]:
    """One entry per address, in order; a text cut at `max_chars` says so and what was left out."""
    urls = [str(url) for url in call.args["urls"]]
    chars = min(int(call.args.get("max_chars") or DEFAULT_CHARS), MAX_CHARS)
    fetcher = http.Fetcher(call, max_bytes=MAX_BYTES, accept=_ACCEPT)
    found = fetcher.get_many(call, urls, lambda fetched: _read(fetched, chars))
    return result.done(
        http.failed_entry(url, got) if isinstance(got, Failure) else got
        for url, got in zip(urls, found, strict=True)
    )


def _read(fetched: http.Fetched, chars: int) -> dict[str, Any]:
    if fetched.media_type == "text/plain":
        words, _ = web_text.decode(fetched.body, fetched.charset)
        about: dict[str, Any] = {"title": fetched.final_url.rsplit("/", 1)[-1]}
    elif fetched.media_type in _PAGES:
        markup, _ = web_text.decode(fetched.body, fetched.charset)
        words, about = _page(markup, fetched.final_url)
    else:
        detail = f"{fetched.media_type} is no web page: fetch it with get_urls"
        raise Failure("unsupported", detail, media_type=fetched.media_type)
    cut = {"more_chars": len(words) - chars} if len(words) > chars else {}
    return result.item(
        url=fetched.url,
        final_url=fetched.final_url,
        **about,
        text=words[:chars],
        truncated=bool(cut),
        **cut,
    )


def _page(markup: str, url: str) -> tuple[str, dict[str, Any]]:
    """The main text of a page, and what it says of itself; fields without a value are absent."""
    import trafilatura

    markup = _LONG_TAG.sub("<span>", markup)
    tree = trafilatura.load_html(markup)
    if tree is None:
        return web_text.strip_tags(markup), {"title": ""}
    language = (tree.get("lang") or tree.get("xml:lang") or "").strip()[:2].lower()
    title = " ".join((tree.findtext(".//title") or "").split())
    if sum(1 for _ in tree.iter()) > MAX_ELEMENTS:
        return web_text.strip_tags(markup), _filled(title=title, language=language)
    document: Any = trafilatura.bare_extraction(
        tree,
        url=url,
        with_metadata=True,
        include_comments=False,
        include_links=True,
        date_extraction_params={"original_date": True, "extensive_search": False},
    )
    if document is None or not document.text:
        words = trafilatura.html2txt(markup) or web_text.strip_tags(markup)
        return words, _filled(title=title, language=language)
    links = [{"text": text, "url": target} for text, target in _LINK.findall(document.text)]
    unique = {link["url"]: link for link in reversed(links)}
    return _LINK.sub(r"\1", document.text), _filled(
        title=document.title or title,
        language=language,
        date=document.date,
        links=list(reversed(unique.values()))[:MAX_LINKS],
    )


def _filled(*, title: str, **fields: Any) -> dict[str, Any]:
    return {
        "title": " ".join(title.split())[:300],
        **{name: value for name, value in fields.items() if value},
    }
