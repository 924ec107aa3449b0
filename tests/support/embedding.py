"""Embeddings endpoints on loopback: honest ones, and such as misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from core.llm.embedder import HashingEmbedder
from tests.support.model_servers import Handler

_WORDS = HashingEmbedder(lambda text: ())


def rows(vectors: list[list[Any]]) -> dict[str, Any]:
    return {"data": [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]}


def saying(vector_of: Callable[[str], list[Any]]) -> Handler:
    """Answers with this vector for each text."""

    async def answer(request: web.Request) -> web.StreamResponse:
        said = (await request.json())["input"]
        # Python's JSON writes NaN, as some servers do.
        return web.Response(
            text=json.dumps(rows([vector_of(text) for text in said])),
            content_type="application/json",
        )

    return answer


async def honest(request: web.Request) -> web.StreamResponse:
    """Vectors by the words alone, near each other for everything: a first place counts most."""
    vectors = await _WORDS.embed((await request.json())["input"])
    return web.json_response(rows([[3.0, *vector] for vector in vectors]))


async def hanging(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(60)
    return web.Response(status=504)


async def broken(request: web.Request) -> web.StreamResponse:
    return web.Response(status=500, text="boom")
