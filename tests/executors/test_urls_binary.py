"""What is no page on the web: PDFs read, files fetched and saved byte for byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation
from executors.get_urls.main import TOTAL_BYTES
from tests.executors.file_cases import run
from tests.executors.json_server import Gone, JsonServer, json_server
from tests.executors.test_documents import make_pdf
from tests.support.run_executor import TREE, observe

TEXTS = Texts.load(TREE.parent / "locales")
PDF, ANY = {"Content-Type": "application/pdf"}, {"Content-Type": "application/octet-stream"}
NOISE = random.Random(7).randbytes(3_000_001)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JsonServer]:
    folder = tmp_path_factory.mktemp("pdfs")
    make_pdf(folder / "a.pdf", "Prima pagina", "Seconda", "Terza", title="Prova")
    make_pdf(folder / "locked.pdf", "segreto", password="x", user_password="y")
    make_pdf(folder / "scan.pdf", "", "")
    whole = (folder / "a.pdf").read_bytes()
    files = {
        "/a.pdf": Gone(200, whole, headers=PDF),
        "/download": Gone(200, whole, headers=ANY),
        "/locked.pdf": Gone(200, (folder / "locked.pdf").read_bytes(), headers=PDF),
        "/scan.pdf": Gone(200, (folder / "scan.pdf").read_bytes(), headers=PDF),
        "/half.pdf": Gone(200, whole[:200], headers=PDF),
        "/no.pdf": Gone(200, b"<html>sign in</html>", headers=PDF),
        "/page": Gone(200, b"<html></html>", headers={"Content-Type": "text/html"}),
        "/cut.pdf": Gone(200, whole, headers=PDF, cut=True),
        "/foto%20al%20mare.jpg": Gone(200, NOISE, headers=ANY),
        "/big": Gone(200, bytes(5_000_001), headers=ANY),
        "/large": Gone(200, bytes(6_000_000), headers=ANY),
        "/": Gone(200, b"x", headers=ANY),
        "/..%2F..%2Fetc": Gone(200, b"x", headers=ANY),
    }
    with json_server(lambda asked: files.get(asked.path, Gone(404))) as running:
        yield running


def fetched(server: JsonServer, name: str, *paths: str, **args: Any) -> dict[str, Any]:
    return run(name, {"urls": [f"{server.endpoint}{path}" for path in paths], **args})


def said(seen: Observation, name: str, lang: str) -> str:
    manifest = parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)
    blocks = Renderer(TEXTS, lang, "Europe/Rome", "/home/x").observation(seen, manifest)
    return "\n".join(block.text for block in blocks)


# -- read_urls_pdf ----------------------------------------------------------------------------


@pytest.mark.parametrize(("lang", "pages"), [("it", "(pagine: 3)"), ("en", "(pages: 3)")])
async def test_pdf_of_the_web_is_read_in_the_cage(
    server: JsonServer, lang: str, pages: str
) -> None:
    url = f"{server.endpoint}/a.pdf"

    seen = await observe(
        TREE / "read_urls_pdf", {"urls": [url]}, lang=lang, private_hosts=(server.grant,)
    )

    [entry] = seen.entries or ()
    assert entry["text"] == "Prima pagina\n\nSeconda\n\nTerza"
    assert (entry["title"], entry["truncated"]) == ("Prova", False)
    assert said(seen, "read_urls_pdf", lang).startswith(f"{url} {pages}")


def test_pdf_of_the_web_may_be_called_anything(server: JsonServer) -> None:
    [entry] = fetched(server, "read_urls_pdf", "/download", first_page=2, last_page=2)["entries"]

    assert entry["text"] == "Seconda"


def test_pdf_of_the_web_that_is_cut_says_so(server: JsonServer) -> None:
    seen = fetched(server, "read_urls_pdf", "/a.pdf", max_chars=15)

    assert seen["entries"][0]["used"] < seen["entries"][0]["available"] == 3
    assert seen["metadata"]["truncated"] is True


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/locked.pdf", "password_needed"),
        ("/half.pdf", "damaged"),
        ("/no.pdf", "damaged"),
        ("/page", "unsupported"),
        ("/cut.pdf", "network"),
        ("/none.pdf", "http_status"),
    ],
)
def test_pdf_of_the_web_that_cannot_be_read_does_not_cost_the_others(
    server: JsonServer, path: str, code: str
) -> None:
    seen = fetched(server, "read_urls_pdf", path, "/scan.pdf")

    assert seen["ok"] is True
    assert [entry.get("error", {}).get("code") for entry in seen["entries"]] == [code, None]
    assert seen["entries"][1]["scanned"] == 2
    assert fetched(server, "read_urls_pdf", path)["error"]["code"] == code


# -- get_urls, saved --------------------------------------------------------------------------


async def test_file_of_the_web_is_saved_byte_for_byte(server: JsonServer, tmp_path: Path) -> None:
    seen = await observe(
        TREE / "get_urls",
        {"urls": [f"{server.endpoint}/foto%20al%20mare.jpg", f"{server.endpoint}/a.pdf"]},
        private_hosts=(server.grant,),
    )
    entries = list(seen.entries or ())
    assert [entry["name"] for entry in entries] == ["foto al mare.jpg", "a.pdf"]

    for entry in entries:
        path = str(tmp_path / entry["name"])
        content = dict(entry["body"])
        await observe(TREE / "write_files", {"path": path, "content": content}, roots=[tmp_path])

    assert (tmp_path / "foto al mare.jpg").read_bytes() == NOISE
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF-")


def test_file_of_the_web_above_the_limit_is_told_with_it(server: JsonServer) -> None:
    one = fetched(server, "get_urls", "/big")
    wider = fetched(server, "get_urls", "/big", max_bytes=6_000_000)

    assert one["error"]["code"] == "too_large"
    assert one["error"]["params"]["limit"] == 5_000_000
    assert wider["entries"][0]["bytes"] == 5_000_001


def test_files_of_the_web_beyond_what_a_call_holds_are_told(server: JsonServer) -> None:
    seen = fetched(server, "get_urls", "/large", "/large?2", "/large?3", max_bytes=6_000_000)

    assert [entry["ok"] for entry in seen["entries"]] == [True, True, False]
    error = seen["entries"][2]["error"]
    assert (error["code"], error["params"]["limit"]) == ("too_large", TOTAL_BYTES)


@pytest.mark.parametrize(
    ("path", "name"), [("/", "download"), ("/..%2F..%2Fetc", "etc"), ("/a.pdf?x=/y", "a.pdf")]
)
def test_name_of_a_fetched_file_is_no_way_anywhere(
    server: JsonServer, path: str, name: str
) -> None:
    [entry] = fetched(server, "get_urls", path)["entries"]

    assert entry["name"].endswith(name)
    assert "/" not in entry["name"]
    assert not entry["name"].startswith(".")
