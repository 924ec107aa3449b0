"""Searches the web with the search service of this house: SearXNG, or another that speaks JSON."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import quote
from zoneinfo import ZoneInfo

from executors._sdk import json_http, result, windows
from executors._sdk.http import Fetcher, parse_url
from executors._sdk.json_http import text
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from executors._sdk.call import Call

SETTING = "METNOS_SEARCH_URL"
USUAL_RESULTS = 10
MOST_RESULTS = 50
MOST_PAGES = 4
MOST_CHARS = 500
_MAX_BYTES = 2_000_000
_TIMEOUT_S = 20.0
# SearXNG's words for how far back to look.
_RANGES = ((1.5, "day"), (8, "week"), (32, "month"), (367, "year"))
# Where services put their results, and what they call the parts of one.
_LISTS = (("results",), ("items",), ("web", "results"), ("data",), ("organic_results",))
_URL, _TITLE = ("url", "link", "href"), ("title", "name")
_TEXT = ("content", "snippet", "description", "text")
_DATE = ("publishedDate", "published_date", "date", "page_age")


def run(call: Call) -> dict[str, Any]:
    """One entry per page, as the service ranks them: `title`, `url`, `text`, and `date` where one
    is told. Each address once, only those of the web.

    With `time_window` what is dated outside of it is left out; what has no date is trusted to the
    service. Nothing found is no failure, but when none of its engines answered it is one
    (`network`). Fails with `service_off` when no service is set.
    """
    endpoint = json_http.endpoint(call, "search", SETTING)
    query = text(call.args["query"], 500)
    if not query:
        raise Failure("invalid_args", "nothing to search for")
    most = max(1, min(int(call.args.get("max_results") or USUAL_RESULTS), MOST_RESULTS))
    window = _window(call)
    fetcher = Fetcher(call, max_bytes=_MAX_BYTES, accept="application/json")
    kept: dict[str, dict[str, Any]] = {}
    for found in _pages(call, fetcher, endpoint, query, window):
        new = [one for one in map(_entry, found) if one and one["url"] not in kept]
        kept |= {one["url"]: one for one in new if _is_within(call, one, window)}
        call.progress(min(len(kept), most), most)
        if len(kept) >= most or not new:
            break
    entries = list(kept.values())
    about: dict[str, Any] = {"query": query}
    if len(entries) > most:
        about |= {"truncated": True, "used": most, "available": len(entries)}
    return result.done(entries[:most], **about)


def _window(call: Call) -> tuple[datetime, datetime] | None:
    said = call.args.get("time_window")
    if not said:
        return None
    try:
        return windows.read_window(said, call.now, ZoneInfo(call.tz))
    except windows.NoWindow as exc:
        raise Failure("invalid_args", f"time_window: {exc}") from exc


def _pages(
    call: Call,
    fetcher: Fetcher,
    endpoint: str,
    query: str,
    window: tuple[datetime, datetime] | None,
) -> Iterator[list[Any]]:
    """The results, page by page. A page that fails behind the first ends them."""
    if "{query}" in endpoint:
        url = endpoint.replace("{query}", quote(query, safe=""))
        yield _listed(_asked(fetcher, url, {}))
        return
    asked: dict[str, Any] = {"q": query, "format": "json", "language": call.lang}
    if window is not None:
        days = (call.now - window[0]) / timedelta(days=1)
        span = next((name for most, name in _RANGES if days <= most), None)
        asked |= {"time_range": span} if span else {}
    url = endpoint if endpoint.endswith("/search") else f"{endpoint}/search"
    for page in range(1, MOST_PAGES + 1):
        try:
            told = _asked(fetcher, url, {**asked, "pageno": page})
        except Failure:
            if page == 1:
                raise
            return
        found = _listed(told)
        if not found and page == 1 and told.get("unresponsive_engines"):
            raise Failure("network", "none of the engines answered", host=parse_url(url).host)
        yield found


def _asked(fetcher: Fetcher, url: str, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        if asked:
            return json_http.ask(fetcher, url, asked, total_timeout_s=_TIMEOUT_S)
        body = fetcher.get(url, total_timeout_s=_TIMEOUT_S).body
        return json_http.read(body, parse_url(url).host)
    except Failure as failure:
        if failure.params.get("status") == 403:
            detail = f"{failure.detail}: does the service give JSON (search.formats)?"
            raise Failure("http_status", detail, **failure.params) from failure
        raise


def _listed(told: dict[str, Any]) -> list[Any]:
    for path in _LISTS:
        found: Any = told
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, list):
            return found
    raise Failure("bad_answer", "the answer holds no list of results")


def _entry(found: Any) -> dict[str, Any] | None:
    """A result as an entry; None for what has no address of the web."""
    if not isinstance(found, dict):
        return None
    try:
        url = str(parse_url(_first(found, _URL, 8192)))
    except Failure:
        return None
    shown = {"text": _first(found, _TEXT, MOST_CHARS), "date": _date(_first(found, _DATE, 40))}
    title = _first(found, _TITLE, 300) or url
    return result.item(title=title, url=url, **{k: v for k, v in shown.items() if v})


def _first(found: dict[str, Any], names: tuple[str, ...], most: int) -> str:
    return next((said for name in names if (said := text(found.get(name), most))), "")


def _date(said: str) -> str:
    try:
        return datetime.fromisoformat(said).isoformat() if said else ""
    except ValueError:
        return ""


def _is_within(call: Call, one: dict[str, Any], window: tuple[datetime, datetime] | None) -> bool:
    if window is None or "date" not in one:
        return True
    moment = datetime.fromisoformat(one["date"])
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(call.tz))
    return window[0] <= moment < window[1]
