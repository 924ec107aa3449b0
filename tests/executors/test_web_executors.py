"""get_urls and read_urls_html in the real cage, against a server on loopback that was granted."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation, Provenance
from executors._sdk import web_text
from executors.read_urls_html import main as reader
from tests.executors.web_server import PAGE, WebServer, web_server
from tests.support.run_executor import TREE, observe

TEXTS = Texts.load(TREE.parent / "locales")


@pytest.fixture(scope="module")
def server() -> Iterator[WebServer]:
    with web_server() as running:
        yield running


async def run(name: str, *urls: str, granted: bool = True, **args: Any) -> Observation:
    hosts = ("127.0.0.1",) if granted else ()
    return await observe(TREE / name, {"urls": list(urls), **args}, private_hosts=hosts)


def said(name: str, seen: Observation, lang: str) -> str:
    manifest = parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)
    blocks = Renderer(TEXTS, lang, "Europe/Rome", "/home/x").observation(seen, manifest)
    return "\n".join(block.text for block in blocks)


async def test_get_urls_body_is_what_was_served(server: WebServer):
    seen = await run("get_urls", server.url("/binary"))

    body = seen.read(["body"])
    assert base64.b64decode(body["blob"]) == bytes(range(256)) * 4
    assert (body["bytes"], body["media_type"], body["charset"]) == (1024, "application/pdf", None)
    assert seen.provenance is Provenance.EXTERNAL
    assert "text" not in (seen.entries or ())[0]


async def test_get_urls_view_is_short_and_the_body_whole(server: WebServer):
    seen = await run("get_urls", server.url("/gzip"))

    assert seen.read(["bytes"]) == len(PAGE)
    assert base64.b64decode(seen.read(["body", "blob"])) == PAGE
    assert len(seen.read(["text"])) <= 2000
    assert said("get_urls", seen, "it").startswith(f"Ho scaricato {server.url('/gzip')}: ")


async def test_get_urls_each_address_has_its_own_result(server: WebServer):
    paths = ("/page", "/nothing", "/inner", "/bomb")

    seen = await run("get_urls", *map(server.url, paths))

    codes = [entry.get("error", {}).get("code") for entry in seen.entries or ()]
    assert codes == [None, "http_status", "host_denied", "too_large"]
    assert seen.ok is True
    assert seen.metadata["failed_count"] == 3
    assert "404" in said("get_urls", seen, "it")


async def test_get_urls_above_the_limit_fails_rather_than_cut(server: WebServer):
    seen = await run("get_urls", server.url("/page"), max_bytes=100)

    assert seen.error is not None
    assert (seen.ok, seen.error.code) == (False, "too_large")


@pytest.mark.parametrize("name", ["get_urls", "read_urls_html"])
async def test_web_inner_host_that_was_not_granted_is_denied(server: WebServer, name: str):
    seen = await run(name, server.url("/page"), granted=False)

    assert seen.error is not None
    assert seen.error.code == "host_denied"
    assert "127.0.0.1" in said(name, seen, "en")


async def test_read_urls_html_gives_the_article_without_its_menu(server: WebServer):
    seen = await run("read_urls_html", server.url("/page"))

    entry = dict((seen.entries or ())[0])
    assert "aperta dal lunedì al sabato" in entry["text"]
    assert "Menu" not in entry["text"]
    assert "](" not in entry["text"]
    assert (entry["language"], entry["truncated"]) == ("it", False)
    assert "Orari" in entry["title"]
    assert entry["links"] == [{"text": "le sedi", "url": server.url("/sedi")}]
    assert "aperta dal lunedì" in said("read_urls_html", seen, "it")


async def test_read_urls_html_cut_text_says_how_much_was_left_out(server: WebServer):
    seen = await run("read_urls_html", server.url("/page"), max_chars=200)

    entry = dict((seen.entries or ())[0])
    assert (len(entry["text"]), entry["truncated"]) == (200, True)
    assert entry["more_chars"] > 0


async def test_read_urls_html_of_another_type_says_what_to_do(server: WebServer):
    seen = await run("read_urls_html", server.url("/binary"))

    assert seen.error is not None
    assert seen.error.code == "unsupported"
    assert "get_urls" in seen.error.detail


async def test_read_urls_html_reads_windows_text_that_calls_itself_latin(server: WebServer):
    seen = await run("read_urls_html", server.url("/latin"))

    assert "perché no – già" in seen.read(["text"])


@pytest.mark.parametrize(
    "markup",
    [
        "<html><body><div>" * 60_000 + "the word",
        "<html><body>" + "<p>the word</p>" * 60_000,
        "<html><body><p " + " ".join(f"a{i}=1" for i in range(100_000)) + ">the word</p>",
        "<script>" * 50_000 + "</script>the word",
        "<html><body><p>the word",
        "the word",
        "\0<html>\0<body>the word",
    ],
    ids=["deep", "wide", "attributes", "scripts", "short", "no markup", "nul"],
)
def test_page_hostile_markup_still_gives_its_words(markup: str):
    words, _ = reader._page(markup, "https://a.example/")

    assert "the word" in words


@pytest.mark.parametrize(
    ("body", "charset", "expected"),
    [
        (b"caff\xc3\xa8", None, ("caffè", "utf-8")),
        (b"caff\xe8", None, ("caffè", "cp1252")),
        (b"caff\xe8 \x80", "iso-8859-1", ("caffè €", "cp1252")),
        (b"\xef\xbb\xbfcaff\xc3\xa8", "iso-8859-1", ("caffè", "utf-8")),
        (b"<meta charset='koi8-r'>\xd0", None, ("<meta charset='koi8-r'>п", "koi8-r")),
        (b"caff\xc3\xa8", "no-such-charset", ("caffè", "utf-8")),
        (b"abc", "hex", ("abc", "utf-8")),
        (b"abc", "rot13", ("abc", "utf-8")),
        ("né".encode("utf-16"), None, ("né", "utf-16-le")),
        (b"", None, ("", "utf-8")),
    ],
)  # fmt: skip
def test_decode_believes_marks_then_servers_then_pages(body, charset, expected):
    assert web_text.decode(body, charset) == expected
