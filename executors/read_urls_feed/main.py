"""Reads feeds, RSS and Atom: what was published, when, and how it begins.

A page that names its feed leads to it. A feed is hostile until proven otherwise: bounded in bytes,
its markup stripped, its addresses those of the web.
"""

from __future__ import annotations

import calendar
import io
import re
from datetime import UTC, datetime
from html import unescape
from urllib.parse import urljoin
from zoneinfo import ZoneInfo

from executors._sdk import http, result, web_text, windows
from executors._sdk.json_http import text
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

USUAL_RESULTS = 20
MOST_RESULTS = 200
MOST_CHARS = 2000
MAX_BYTES = 4_000_000
_FIRST_YEAR = 1970
_ACCEPT = (
    "application/rss+xml, application/atom+xml, application/rdf+xml, application/xml;q=0.9,"
    " text/xml;q=0.9, text/html;q=0.5, */*;q=0.1"
)
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_LINK = re.compile(r"<link\b[^<>]{1,2000}>", re.IGNORECASE)
_FEED = re.compile(r"""type\s*=\s*["']?application/(?:rss|atom)\+xml""", re.IGNORECASE)
_HREF = re.compile(r"""href\s*=\s*(?:"([^"]+)"|'([^']+)'|([^\s"'>]+))""", re.IGNORECASE)


def run(call: Call) -> dict[str, Any]:
    """One entry per article of all feeds, the newest first, those without a date last: `title`,
    `url`, `date`, `text`, `author`, `feed`.

    With `time_window` only what is dated within it. A feed that could not be read is a failed
    entry, in its place behind the others. When there are more than `max_results`, `used` and
    `available` say so.
    """
    urls = [str(url) for url in call.args["urls"]]
    most = max(1, min(int(call.args.get("max_results") or USUAL_RESULTS), MOST_RESULTS))
    window = _window(call)
    fetcher = http.Fetcher(call, max_bytes=MAX_BYTES, accept=_ACCEPT)
    kept: list[tuple[datetime | None, dict[str, Any]]] = []
    failed: list[dict[str, Any]] = []
    for url, got in zip(
        urls, fetcher.get_many(call, urls, lambda body: _read(fetcher, body)), strict=True
    ):
        if isinstance(got, Failure):
            failed.append(http.failed_entry(url, got))
            continue
        for moment, entry in got:
            if window is None or (moment is not None and window[0] <= moment < window[1]):
                kept.append((moment, entry))
    never = datetime.min.replace(tzinfo=UTC)
    kept.sort(key=lambda pair: pair[0] or never, reverse=True)
    about: dict[str, Any] = {}
    if len(kept) > most:
        about = {"truncated": True, "used": most, "available": len(kept)}
    return result.done([*(entry for _, entry in kept[:most]), *failed], **about)


def _window(call: Call) -> tuple[datetime, datetime] | None:
    said = call.args.get("time_window")
    if not said:
        return None
    try:
        return windows.read_window(said, call.now, ZoneInfo(call.tz))
    except windows.NoWindow as exc:
        raise Failure("invalid_args", f"time_window: {exc}") from exc


def _read(
    fetcher: http.Fetcher, got: http.Fetched
) -> list[tuple[datetime | None, dict[str, Any]]]:
    """The articles of a feed, or of the feed that a page names."""
    if got.media_type in _PAGES:
        named = _named_feed(got)
        if named is not None:
            got = fetcher.get(named)
    parsed = _parsed(got)
    if not parsed.get("version") and not parsed.get("entries"):
        detail = f"{got.media_type} is no feed: read a page with read_urls_html"
        raise Failure("unsupported", detail, media_type=got.media_type)
    about = parsed.get("feed") or {}
    feed = text(about.get("title")) or got.final_url
    return [_entry(entry, feed, got.final_url) for entry in parsed.get("entries") or ()]


def _named_feed(got: http.Fetched) -> str | None:
    markup, _ = web_text.decode(got.body[:300_000], got.charset)
    for tag in _LINK.findall(markup):
        href = _HREF.search(tag) if _FEED.search(tag) else None
        if href:
            return urljoin(got.final_url, unescape(next(filter(None, href.groups()))))
    return None


def _parsed(got: http.Fetched) -> Any:
    import feedparser

    charset = f"; charset={got.charset}" if got.charset else ""
    told = {"content-type": f"{got.media_type}{charset}", "content-location": got.final_url}
    try:
        # A stream: a text would be taken for the name of a file or an address.
        return feedparser.parse(io.BytesIO(got.body), response_headers=told)
    except (
        ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError, LookupError,
        RecursionError, OverflowError,
    ) as exc:  # fmt: skip
        raise Failure("damaged", f"no readable feed: {type(exc).__name__}") from exc


def _entry(entry: Any, feed: str, base: str) -> tuple[datetime | None, dict[str, Any]]:
    moment = _moment(entry)
    words = _plain(_markup(entry))
    shown = {
        "url": _address(entry, base),
        "date": moment.isoformat() if moment else "",
        "text": words[:MOST_CHARS],
        "author": text(entry.get("author"), 200),
    }
    title = _plain(str(entry.get("title") or ""))[:300] or shown["url"] or words[:80]
    known = {name: value for name, value in shown.items() if value}
    return moment, result.item(title=title, **known, feed=feed)


def _moment(entry: Any) -> datetime | None:
    for name in ("published_parsed", "updated_parsed", "created_parsed"):
        told = entry.get(name)
        if told:
            try:
                moment = datetime.fromtimestamp(calendar.timegm(told), UTC)
                # The year 1 and its like stand for "not known".
                return moment if moment.year >= _FIRST_YEAR else None
            except (ValueError, TypeError, OverflowError, OSError):
                continue
    return None


def _markup(entry: Any) -> str:
    if entry.get("summary"):
        return str(entry["summary"])
    for part in entry.get("content") or ():
        if isinstance(part, dict) and part.get("value"):
            return str(part["value"])
    return ""


def _plain(markup: str) -> str:
    """The words in markup, on one line."""
    words = web_text.strip_tags(markup[:200_000])
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())


def _address(entry: Any, base: str) -> str:
    try:
        return str(http.parse_url(urljoin(base, str(entry.get("link") or ""))))
    except (Failure, ValueError):
        return ""
