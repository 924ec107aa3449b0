"""read_urls_feed against feeds as they are found on the web, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation, Provenance
from tests.executors.file_cases import run
from tests.executors.json_server import Gone, JsonServer, json_server
from tests.support.run_executor import TREE, observe

TEXTS = Texts.load(TREE.parent / "locales")
RSS = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0"><channel><title>Il quartiere</title><link>https://q.example/</link>
<item><title>Lavori in via Prima</title><link>https://q.example/1</link>
<pubDate>Tue, 17 Mar 2026 08:00:00 GMT</pubDate>
<description>&lt;p&gt;Da &lt;b&gt;luned&#236;&lt;/b&gt; si scava.
&lt;script&gt;bad()&lt;/script&gt;&lt;/p&gt;</description></item>
<item><title>Festa &amp; musica</title><link>/2</link><author>ada@q.example (Ada)</author>
<pubDate>Wed, 18 Mar 2026 07:00:00 GMT</pubDate></item>
<item><title>Senza data</title><link>javascript:alert(1)</link></item>
</channel></rss>"""
ATOM = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>Blog</title><id>urn:x</id>
<entry><title type="html">Un &lt;i&gt;titolo&lt;/i&gt;</title><link href="https://b.example/a"/>
<id>urn:1</id><updated>2026-01-05T10:00:00+01:00</updated><author><name>Bruno</name></author>
<content type="html">&lt;p&gt;Il testo&lt;/p&gt;</content></entry></feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel rdf:about="https://r.example/"><title>Vecchio</title><link>https://r.example/</link></channel>
<item rdf:about="https://r.example/x"><title>Uno</title><link>https://r.example/x</link>
<dc:date>2026-03-01T00:00:00Z</dc:date></item></rdf:RDF>"""
PAGE = """<html><head><title>Q</title><link rel="stylesheet" href="x.css">
<link rel="alternate" type="application/rss+xml" title="RSS" href="/rss?a=1&amp;b=2">
</head></html>"""
BOMB = (
    '<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]><rss version='2.0'><channel><title>&i;</title>"
    "<item><title>&i;</title></item></channel></rss>"
)
OUTSIDE = """<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>
<rss version="2.0"><channel><title>t</title><item><title>a&x;b</title></item></channel></rss>"""
LATIN = RSS.replace("UTF-8", "iso-8859-1").replace("Festa", "Caffè").encode("latin-1")
NONE = b'<rss version="2.0"><channel><title>t</title></channel></rss>'
XML = {"Content-Type": "application/rss+xml"}
FEEDS = {
    "/rss": Gone(200, RSS.encode(), headers=XML),
    "/atom": Gone(200, ATOM.encode(), headers={"Content-Type": "application/atom+xml"}),
    "/rdf": Gone(200, RDF.encode(), headers={"Content-Type": "text/xml"}),
    "/page": Gone(200, PAGE.encode(), headers={"Content-Type": "text/html"}),
    "/plain": Gone(200, b"<html><p>no</p></html>", headers={"Content-Type": "text/html"}),
    "/half": Gone(200, RSS[: RSS.index("Festa") + 12].encode(), headers=XML),
    "/cut": Gone(200, RSS.encode(), headers=XML, cut=True),
    "/bomb": Gone(200, BOMB.encode(), headers=XML),
    "/outside": Gone(200, OUTSIDE.encode(), headers=XML),
    "/empty": Gone(200, b"", headers=XML),
    "/latin": Gone(200, LATIN, headers=XML),
    "/none": Gone(200, NONE, headers=XML),
    "/big": Gone(200, b"<rss>" + bytes(4_100_000), headers=XML),
}  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[JsonServer]:
    with json_server(lambda asked: FEEDS.get(asked.path, Gone(404))) as running:
        yield running


def read(server: JsonServer, *paths: str, **args: Any) -> dict[str, Any]:
    return run("read_urls_feed", {"urls": [f"{server.endpoint}{p}" for p in paths], **args})


def titles(seen: dict[str, Any]) -> list[str]:
    return [entry["title"] for entry in seen["entries"] if entry["ok"]]


@pytest.mark.parametrize(
    ("lang", "first"),
    [
        ("it", ["Ho trovato 4 articoli:", "• Festa & musica, mercoledì 18 marzo 2026, 08:00"]),
        ("en", ["I found 4 articles:", "• Festa & musica, Wednesday 18 March 2026, 08:00"]),
    ],
)
async def test_feeds_are_told_together_the_newest_first(
    server: JsonServer, lang: str, first: list[str]
) -> None:
    seen = await observe(
        TREE / "read_urls_feed",
        {"urls": [f"{server.endpoint}/atom", f"{server.endpoint}/rss"]},
        lang=lang,
        private_hosts=(server.grant,),
    )

    lines = said(seen, lang).splitlines()
    assert lines[0] == first[0]
    assert lines[1] == first[1]
    entries = [dict(entry) for entry in seen.entries or ()]
    assert [entry["title"] for entry in entries] == [
        "Festa & musica", "Lavori in via Prima", "Un titolo", "Senza data",
    ]  # fmt: skip
    assert entries[0]["url"] == f"{server.endpoint}/2"
    assert entries[1]["text"] == "Da lunedì si scava."
    assert entries[1]["date"] == "2026-03-17T08:00:00+00:00"
    assert (entries[2]["author"], entries[2]["feed"], entries[2]["text"]) == (
        "Bruno", "Blog", "Il testo",
    )  # fmt: skip
    assert "url" not in entries[3]
    assert seen.provenance is Provenance.EXTERNAL


def said(seen: Observation, lang: str) -> str:
    manifest = parse_manifest(
        (TREE / "read_urls_feed" / "manifest.toml").read_bytes(), folder="read_urls_feed"
    )
    blocks = Renderer(TEXTS, lang, "Europe/Rome", "/home/x").observation(seen, manifest)
    return "\n".join(block.text for block in blocks)


def test_feed_of_the_first_kind_is_read_too(server: JsonServer) -> None:
    [entry] = read(server, "/rdf")["entries"]

    assert (entry["title"], entry["date"][:10]) == ("Uno", "2026-03-01")


def test_page_leads_to_the_feed_that_it_names(server: JsonServer) -> None:
    assert titles(read(server, "/page"))[0] == "Festa & musica"
    assert server.seen[-1].query == {"a": "1", "b": "2"}


def test_feed_is_read_in_the_letters_it_was_written_in(server: JsonServer) -> None:
    assert titles(read(server, "/latin"))[0] == "Caffè & musica"


@pytest.mark.parametrize(
    ("window", "count"), [("oggi", 1), ("ultimi 7 giorni", 2), ("gennaio", 0), ("2026-03-17", 1)]
)
def test_feed_within_a_time_gives_only_what_is_dated_within_it(
    server: JsonServer, window: str, count: int
) -> None:
    assert len(read(server, "/rss", time_window=window)["entries"]) == count


def test_feed_with_more_than_was_asked_for_says_so(server: JsonServer) -> None:
    seen = read(server, "/rss", "/atom", max_results=2)

    assert titles(seen) == ["Festa & musica", "Lavori in via Prima"]
    about = seen["metadata"]
    assert (about["truncated"], about["used"], about["available"]) == (True, 2, 4)


def test_feed_that_fails_does_not_cost_the_others(server: JsonServer) -> None:
    seen = read(server, "/rdf", "/missing", "/plain")

    assert titles(seen) == ["Uno"]
    assert [e["error"]["code"] for e in seen["entries"] if not e["ok"]] == [
        "http_status",
        "unsupported",
    ]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/plain", "unsupported"),
        ("/cut", "network"),
        ("/empty", "unsupported"),
        ("/big", "too_large"),
        ("/missing", "http_status"),
    ],
)
def test_what_is_no_feed_is_said(server: JsonServer, path: str, code: str) -> None:
    assert read(server, path)["error"]["code"] == code


def test_feed_that_is_not_well_formed_gives_what_can_be_read(server: JsonServer) -> None:
    assert "Lavori in via Prima" in titles(read(server, "/half"))


def test_feed_without_articles_is_no_failure(server: JsonServer) -> None:
    seen = read(server, "/none")

    assert (seen["ok"], seen["entries"]) == (True, [])


def test_feed_cannot_grow_or_reach_outside(server: JsonServer) -> None:
    assert all(len(title) <= 300 for title in titles(read(server, "/bomb")))
    assert all("root:" not in title for title in titles(read(server, "/outside")))


@pytest.mark.parametrize("window", ["quando vuoi", "prima del diluvio"])
def test_feed_within_what_is_no_time_is_refused(server: JsonServer, window: str) -> None:
    assert read(server, "/rss", time_window=window)["error"]["code"] == "invalid_args"


def test_feed_of_the_year_one_has_no_date(server: JsonServer) -> None:
    dated = "Mon, 01 Jan 0001 00:00:00 +0000"
    body = (
        "<rss version='2.0'><channel><title>F</title><item><title>uno</title>"
        f"<pubDate>{dated}</pubDate></item></channel></rss>"
    ).encode()
    server.answer = lambda asked: Gone(200, body, headers={"Content-Type": "application/rss+xml"})

    (entry,) = read(server, "/f")["entries"]

    assert entry["title"] == "uno"
    assert "date" not in entry
