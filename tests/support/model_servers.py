"""Model servers that misbehave: real HTTP on loopback, in the test's own event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from aiohttp import web

from core.config import TierSettings
from core.llm.anthropic_wire import AnthropicDialect
from core.llm.client import ChatRequest, Message, ToolSpec
from core.llm.openai_wire import OpenAiDialect
from core.llm.wire import HttpModel

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Served:
    """A running server: where it is, what it was asked, and from how many connections."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    peers: set[Any] = field(default_factory=set)
    asked: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def serving(*answers: Handler) -> AsyncIterator[Served]:
    """Serve one answer after the other; the last one again and again. The url ends in /v1."""
    served = Served()

    async def handle(request: web.Request) -> web.StreamResponse:
        served.paths.append(request.path)
        served.headers.append({k.lower(): v for k, v in request.headers.items()})
        if request.transport is not None:
            served.peers.add(request.transport.get_extra_info("peername"))
        if request.method == "POST":
            served.bodies.append(await request.json())
        served.asked.set()
        turn = max(0, len(served.paths) - 1)
        return await answers[min(turn, len(answers) - 1)](request)

    app = web.Application(client_max_size=64 << 20)
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    served.url = f"http://{host}:{port}/v1"
    try:
        yield served
    finally:
        await runner.cleanup()


@asynccontextmanager
async def model_at(url: str, **tier: Any) -> AsyncIterator[HttpModel]:
    """An `HttpModel` that speaks to `url` with a client of its own."""
    values: dict[str, Any] = {"model": "m", "retries": 1, "total_timeout_s": 10, **tier}
    settings = TierSettings.model_validate({"base_url": url, **values})
    dialect = AnthropicDialect() if settings.provider == "anthropic" else OpenAiDialect()
    async with httpx.AsyncClient(trust_env=False) as client:
        yield HttpModel(settings, dialect, client)


def ask(
    text: str = "ciao", *, tools: Iterable[str] = (), system: str = "", **rest: Any
) -> ChatRequest:
    head = (Message("system", system),) if system else ()
    offered = tuple(ToolSpec(name, f"does {name}", {"type": "object"}) for name in tools)
    return ChatRequest((*head, Message("user", text)), tools=offered, **rest)


def sends(
    body: str | bytes | dict[str, Any],
    *,
    status: int = 200,
    content_type: str = "application/json",
    headers: dict[str, str] | None = None,
) -> Handler:
    data = json.dumps(body) if isinstance(body, dict) else body
    raw = data.encode() if isinstance(data, str) else data

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(
            body=raw, status=status, headers={"content-type": content_type, **(headers or {})}
        )

    return answer


def streams(
    events: Sequence[dict[str, Any] | str], *, done: bool = True, cut: bool = False
) -> Handler:
    """Server-sent events, one document each (text goes as it stands); `cut` breaks the line."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in events:
            if isinstance(event, str):
                await response.write(event.encode())
                continue
            name = f"event: {event['type']}\n" if "type" in event else ""
            data = json.dumps(event, ensure_ascii=False)
            await response.write(f"{name}data: {data}\n\n".encode())
        if cut:
            assert request.transport is not None
            request.transport.abort()
            return response
        if done:
            await response.write(b"data: [DONE]\n\n")
        return response

    return answer


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "model": "served", "choices": [choice]}


def whole(text: str | None = None, *, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """One plain chat completion, as a server that does not stream sends it."""
    choice = {"message": {"content": text, **message}, "finish_reason": finish}
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 16},
    }
    return {"model": "served", "choices": [choice], "usage": usage}
