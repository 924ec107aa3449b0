"""find_urls against servers of SearXNG's shape, and of others, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation, Provenance
from tests.executors.file_cases import run
from tests.executors.json_server import FAULTS, Asked, Gone, JsonServer, json_server
from tests.support.run_executor import TREE, observe

TEXTS = Texts.load(TREE.parent / "locales")


def found(number: int, **more: Any) -> dict[str, Any]:
    """One result as SearXNG writes it."""
    return {
        "url": f"https://site{number}.example/page",
        "title": f"Pagina {number}",
        "content": f"Testo\n della pagina {number}",
        "engine": "any",
        "category": "general",
        "publishedDate": None,
        **more,
    }


def searxng(asked: Asked) -> Any:
    """Three pages of four results."""
    if asked.path != "/search":
        return Gone(404)
    if asked.query.get("format") != "json":
        return Gone(403)
    page = int(asked.query.get("pageno", "1"))
    numbers = range(page * 4 - 3, page * 4 + 1) if page <= 3 else ()
    return {
        "query": asked.query["q"],
        "number_of_results": 0,
        "results": [found(number) for number in numbers],
        "answers": [],
        "unresponsive_engines": [],
    }


@pytest.fixture(scope="module")
def running() -> Iterator[JsonServer]:
    with json_server(searxng) as server:
        yield server


@pytest.fixture
def server(running: JsonServer) -> Iterator[JsonServer]:
    running.seen.clear()
    yield running
    running.broken, running.answer = None, searxng


def search(server: JsonServer, *, path: str = "", lang: str = "it", **args: Any) -> dict[str, Any]:
    services = {"search": f"{server.endpoint}{path}"}
    return run("find_urls", {"query": "orari biblioteca", **args}, services=services, lang=lang)


def urls(seen: dict[str, Any]) -> list[str]:
    return [entry["url"] for entry in seen["entries"]]


def said(seen: Observation, lang: str) -> str:
    manifest = parse_manifest(
        (TREE / "find_urls" / "manifest.toml").read_bytes(), folder="find_urls"
    )
    blocks = Renderer(TEXTS, lang, "Europe/Rome", "/home/x").observation(seen, manifest)
    return "\n".join(block.text for block in blocks)


@pytest.mark.parametrize(
    ("lang", "head"),
    [
        ("it", "Ho trovato 2 pagine per «orari biblioteca»:"),
        ("en", "I found 2 pages for “orari biblioteca”:"),
    ],
)
async def test_search_tells_titles_and_addresses(server: JsonServer, lang: str, head: str) -> None:
    seen = await observe(
        TREE / "find_urls",
        {"query": "orari biblioteca", "max_results": 2},
        lang=lang,
        private_hosts=(server.grant,),
        services={"search": server.endpoint},
    )

    assert said(seen, lang).splitlines()[:3] == [
        head,
        "• Pagina 1",
        "  https://site1.example/page",
    ]
    assert (seen.entries or ())[0]["text"] == "Testo della pagina 1"
    assert seen.provenance is Provenance.EXTERNAL
    [asked] = server.seen
    assert asked.query == {
        "q": "orari biblioteca",
        "format": "json",
        "language": lang,
        "pageno": "1",
    }


def test_search_asks_for_pages_until_there_are_enough(server: JsonServer) -> None:
    seen = search(server, max_results=6)

    assert len(seen["entries"]) == 6
    about = seen["metadata"]
    assert (about["truncated"], about["used"], about["available"]) == (True, 6, 8)
    assert len(server.seen) == 2


def test_search_ends_when_there_is_no_more(server: JsonServer) -> None:
    seen = search(server, max_results=50)

    assert len(seen["entries"]) == 12
    assert "truncated" not in seen["metadata"]
    assert len(server.seen) == 4


def test_search_page_that_fails_behind_the_first_costs_only_itself(server: JsonServer) -> None:
    server.answer = lambda a: searxng(a) if a.query["pageno"] == "1" else Gone(429)

    assert len(search(server, max_results=9)["entries"]) == 4


def test_search_gives_each_address_once_and_only_those_of_the_web(server: JsonServer) -> None:
    odd: list[Any] = [
        found(1),
        found(1, title="again"),
        found(2, url="javascript:alert(1)"),
        found(3, url="file:///etc/passwd"),
        found(4, url="https://user:pass@site.example/"),
        found(5, url=None),
        found(6, title=None, content={"a": 1}),
        "no result",
        None,
    ]
    server.answer = lambda asked: {"results": odd}

    seen = search(server)

    assert urls(seen) == ["https://site1.example/page", "https://site6.example/page"]
    assert seen["entries"][1]["title"] == "https://site6.example/page"


@pytest.mark.parametrize(
    ("window", "span"),
    [
        ("oggi", "day"),
        ("ultimi 7 giorni", "week"),
        ("last month", "year"),
        ("ultimi 30 giorni", "month"),
        ("ultimi 5 anni", None),
    ],
)
def test_search_within_a_time_asks_for_what_covers_it(
    server: JsonServer, window: str, span: str | None
) -> None:
    search(server, time_window=window, max_results=1)

    assert server.seen[0].query.get("time_range") == span


def test_search_within_a_time_leaves_out_what_is_dated_outside(server: JsonServer) -> None:
    dated = [
        found(1, publishedDate="2026-03-17T08:00:00"),
        found(2, publishedDate="2026-02-01T08:00:00"),
        found(3, publishedDate="2026-03-15T08:00:00+00:00"),
        found(4, publishedDate="yesterday"),
    ]
    server.answer = lambda asked: {"results": dated if asked.query["pageno"] == "1" else []}

    seen = search(server, time_window="ultimi 7 giorni")

    assert urls(seen) == [f"https://site{number}.example/page" for number in (1, 3, 4)]
    assert seen["entries"][0]["date"] == "2026-03-17T08:00:00"


def test_search_within_what_is_no_time_is_refused(server: JsonServer) -> None:
    seen = search(server, time_window="quando vuoi")

    assert seen["error"]["code"] == "invalid_args"
    assert server.seen == []


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ({"items": [{"link": "https://a.example/", "title": "A", "snippet": "s"}]}, "A"),
        ({"web": {"results": [{"url": "https://a.example/", "title": "B"}]}}, "B"),
        ({"data": [{"href": "https://a.example/", "name": "C", "description": "d"}]}, "C"),
    ],
)
def test_search_of_another_service_puts_the_words_where_they_belong(
    server: JsonServer, answer: Any, title: str
) -> None:
    server.answer = lambda asked: answer

    seen = search(server, path="/find?words={query}&key=1")

    assert [entry["title"] for entry in seen["entries"]] == [title]
    [asked] = server.seen
    assert (asked.path, asked.query) == ("/find", {"words": "orari biblioteca", "key": "1"})


@pytest.mark.parametrize("path", ["", "/search", "/searx"])
def test_search_address_may_name_the_page_that_searches(server: JsonServer, path: str) -> None:
    server.answer = lambda asked: {"results": [found(1)]}

    search(server, path=path)

    assert server.seen[0].path == f"{path.removesuffix('/search')}/search"


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_search_that_finds_nothing_is_no_failure(server: JsonServer, lang: str) -> None:
    server.answer = lambda asked: {"results": [], "unresponsive_engines": []}

    seen = await observe(
        TREE / "find_urls",
        {"query": "zeppelin"},
        lang=lang,
        private_hosts=(server.grant,),
        services={"search": server.endpoint},
    )

    assert (seen.ok, seen.entries) == (True, ())
    assert "zeppelin" in said(seen, lang)


def test_search_that_no_engine_answered_is_a_failure(server: JsonServer) -> None:
    engines = [["one", "timeout"], ["two", "CAPTCHA"]]
    server.answer = lambda asked: {"results": [], "unresponsive_engines": engines}

    assert search(server)["error"]["code"] == "network"


@pytest.mark.parametrize("broken", FAULTS)
@pytest.mark.parametrize("path", ["", "/find?q={query}"])
def test_search_that_fails_says_how(server: JsonServer, broken: str, path: str) -> None:
    server.broken, code = FAULTS[broken]

    seen = search(server, path=path)

    assert (seen["ok"], seen["error"]["code"]) == (False, code)
    if broken == "forbidden":
        assert "JSON" in seen["error"]["detail"]


@pytest.mark.parametrize("told", [{}, {"results": {}}, {"results": None}, {"web": []}])
def test_search_answer_without_a_list_is_a_failure(server: JsonServer, told: Any) -> None:
    server.answer = lambda asked: told

    assert search(server)["error"]["code"] == "bad_answer"


def test_search_service_that_is_silent_is_not_waited_for(
    server: JsonServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executors.find_urls.main._TIMEOUT_S", 0.3)
    server.broken = Gone(hangs=True)

    assert search(server)["error"]["code"] == "timeout"


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_search_without_a_service_says_what_to_set(lang: str) -> None:
    seen = await observe(
        TREE / "find_urls", {"query": "zeppelin"}, lang=lang, services={"search": ""}
    )

    assert seen.error is not None
    assert seen.error.code == "service_off"
    assert "METNOS_SEARCH_URL" in said(seen, lang)
