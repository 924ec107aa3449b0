"""Server-sent events out of raw bytes, and what a stream is gathered into.

Knows no provider: a dialect's `Gatherer` makes sense of the events.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from core.llm.client import Finish, Usage

# Even 200 000 tokens, each in an event of its own, are less: more than this is no reply.
MAX_REPLY_BYTES = 128 << 20

_DRAIN_S = 0.5


class BrokenStream(Exception):
    """The bytes are not what a model server sends. `reason` is a word for the log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class CallParts:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Gathered:
    """A reply while it grows: pieces are kept in lists, so that many deltas stay cheap."""

    text: list[str] = field(default_factory=list)
    calls: dict[int, CallParts] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    finish: Finish | None = None
    model: str = ""

    @property
    def complete(self) -> bool:
        return self.finish is not None


async def read_events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """The JSON documents of a server-sent event stream, or the one of a plain JSON answer.

    Ends at `[DONE]` or at the end of the body. Comments, pings and event names are dropped:
    both providers repeat the name inside the document. Raises `BrokenStream("html")`,
    `("half_json")` or `("too_large")`; errors of the connection pass as httpx raises them.
    """
    content_type = response.headers.get("content-type", "")
    if "text/event-stream" in content_type:
        events, blocks = _Events(), _blocks(response)
        async for block in blocks:
            for document in events.feed(block):
                if document == b"[DONE]":
                    await _drain(blocks)
                    return
                yield _json(document)
        # A last event without its empty line still counts; half a line does not.
        for document in events.feed(b"\n"):
            if document != b"[DONE]":
                yield _json(document)
        return
    body = b"".join([block async for block in _blocks(response)]).strip()
    if "html" in content_type or body[:1] == b"<":
        raise BrokenStream("html")
    if body.startswith((b"data:", b"event:", b":")):  # events under another name
        for document in _Events().feed(body + b"\n\n"):
            if document != b"[DONE]":
                yield _json(document)
        return
    yield _json(body)


class _Events:
    """Splits bytes into event documents, whatever the blocks they come in."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []

    def feed(self, block: bytes) -> list[bytes]:
        if b"\n" not in block:
            self._rest.append(block)
            return []
        *lines, rest = b"".join([*self._rest, block]).split(b"\n")
        self._rest = [rest]
        documents = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].strip())
            elif not line.strip() and self._data:
                documents.append(b"\n".join(self._data))
                self._data = []
        return documents


async def _drain(blocks: AsyncIterator[bytes]) -> None:
    """Read to the end, which comes at once, so that the connection can be used again."""
    with contextlib.suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in blocks:
                pass


async def _blocks(response: httpx.Response) -> AsyncIterator[bytes]:
    size = 0
    async for block in response.aiter_bytes():
        size += len(block)
        if size > MAX_REPLY_BYTES:
            raise BrokenStream("too_large")
        yield block


def _json(document: bytes) -> dict[str, Any]:
    try:
        value = json.loads(document)
    except (ValueError, RecursionError) as exc:
        raise BrokenStream("half_json") from exc
    if not isinstance(value, dict):
        raise BrokenStream("half_json")
    return value
