"""One model endpoint over HTTP: attempts, waiting, and one reply out of the stream.

The dialect says how a request looks; this says how often and how long. Keys, prompts and replies
stay out of every error and log line.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx

from core.config import TierSettings
from core.errors import ModelRefused, ModelReplyInvalid, ModelTimeout, SettingsInvalid
from core.llm import faults
from core.llm.client import ChatReply, ChatRequest, ToolCall
from core.llm.faults import TryAgain
from core.llm.rescue import is_tool_shaped, parse_object, rescue_call, strip_think, unfence
from core.llm.stream import BrokenStream, Gathered, read_events

log = logging.getLogger(__name__)

# Fields that some servers refuse with 400; left out once a server has named them.
_OPTIONAL_FIELDS = (
    "max_completion_tokens",
    "stream_options",
    "temperature",
    "chat_template_kwargs",
)
_REASK_TEMPERATURE = 0.4
_HEARD_EVERY_S = 0.25
_CONNECT_S = 10.0
_ERROR_BYTES = 64 << 10


class Gatherer(Protocol):
    gathered: Gathered

    def feed(self, event: Mapping[str, Any]) -> bool: ...


class Dialect(Protocol):
    """How one family of providers is spoken to."""

    def url(self, base_url: str) -> str: ...

    def headers(self, key: str | None) -> dict[str, str]: ...

    def body(
        self,
        request: ChatRequest,
        *,
        model: str,
        max_tokens: int,
        temperature: float,
        think: bool | None,
        left_out: Collection[str],
    ) -> dict[str, Any]: ...

    def gatherer(self, request: ChatRequest) -> Gatherer: ...


class HttpModel:
    """A `ChatModel` at one address. Holds no connection of its own: `client` is the tier's."""

    def __init__(self, tier: TierSettings, dialect: Dialect, client: httpx.AsyncClient) -> None:
        """Raises `SettingsInvalid` for a key that no header can carry."""
        key = tier.api_key.get_secret_value().strip() if tier.api_key else ""
        if not (key.isascii() and (key.isprintable() or not key)):
            raise SettingsInvalid("The API key of the model holds characters that no key has.")
        self._tier, self._dialect, self._client = tier, dialect, client
        self._headers = {"content-type": "application/json", **dialect.headers(key or None)}
        self._url = dialect.url(tier.base_url)
        self._host = urlsplit(tier.base_url).hostname or ""
        self._left_out: set[str] = set()
        self._name = tier.model

    def __repr__(self) -> str:
        return f"<HttpModel {self._name or '?'} at {self._host}>"

    async def name(self) -> str:
        """The model's name: the configured one, else the first that the server lists, else ""."""
        if not self._name:
            self._name = await self._first_listed()
        return self._name

    async def complete(self, request: ChatRequest) -> ChatReply:
        """See `ChatModel.complete`. An empty or tool-shaped reply is asked for once more.

        `ModelReplyInvalid` has the detail `empty`, `tool_shaped`, `html`, `half_json`,
        `no_choices` or `too_large`.
        """
        started = time.monotonic()
        limit = self._tier.total_timeout_s
        try:
            async with asyncio.timeout(limit):
                reply = await self._ask(request, started + limit)
        except TimeoutError as exc:
            raise ModelTimeout(
                f"no whole reply within {limit:g} s", host=self._host, seconds=limit
            ) from exc
        return replace(reply, latency_ms=(time.monotonic() - started) * 1000)

    async def _ask(self, request: ChatRequest, deadline: float) -> ChatReply:
        gathered = await self._attempts(request, deadline)
        try:
            return self._reply(request, gathered)
        except ModelReplyInvalid as exc:
            if gathered.finish == "length":
                raise
            log.info("model asked again", extra={"host": self._host, "why": exc.detail})
        # The same question at temperature 0 would get the same answer.
        again = await self._attempts(replace(request, temperature=_REASK_TEMPERATURE), deadline)
        reply = self._reply(request, again)
        return replace(reply, usage=gathered.usage + reply.usage)

    async def _attempts(self, request: ChatRequest, deadline: float) -> Gathered:
        failed = 0
        while True:
            try:
                return await self._attempt(request)
            except TryAgain as again:
                failed += again.counted
                pause = faults.backoff_s(failed) if again.after_s is None else again.after_s
                late = time.monotonic() + pause >= deadline
                if late or failed > self._tier.retries:
                    raise again.error from again.__cause__
                why = again.error.detail
                log.info(
                    "model asked again",
                    extra={"host": self._host, "why": why, "pause_s": pause},
                )
            await asyncio.sleep(pause)

    async def _attempt(self, request: ChatRequest) -> Gathered:
        limit = self._tier.first_token_timeout_s
        gatherer, hear = self._dialect.gatherer(request), _Hearing(request.on_text)
        try:
            async with asyncio.timeout(limit) as silence:
                content = json.dumps(await self._body(request), ensure_ascii=False)
                async with self._client.stream(
                    "POST",
                    self._url,
                    content=content.encode("utf-8", "replace"),
                    headers=self._headers,
                    timeout=httpx.Timeout(limit, connect=min(limit, _CONNECT_S), pool=None),
                ) as response:
                    if response.status_code != 200:
                        raise await self._refusal(response)
                    speaking = False
                    async for event in read_events(response):
                        if event.get("error"):
                            raise faults.of_event(event["error"], host=self._host)
                        if gatherer.feed(event) and not speaking:
                            speaking = True
                            silence.reschedule(None)
                        hear(gatherer.gathered)
        except TimeoutError as exc:
            if not silence.expired():
                raise
            raise faults.silent(limit, host=self._host) from exc
        except httpx.ReadTimeout as exc:
            raise faults.silent(limit, host=self._host) from exc
        except BrokenStream as exc:
            raise faults.of_broken(exc, host=self._host) from exc
        except httpx.HTTPError as exc:
            if not gatherer.gathered.complete:
                raise faults.of_transport(exc, host=self._host) from exc
        if not gatherer.gathered.complete:
            raise faults.broken_off(host=self._host)
        return gatherer.gathered

    async def _body(self, request: ChatRequest) -> dict[str, Any]:
        tier = self._tier
        temperature = request.temperature
        return self._dialect.body(
            request,
            model=await self.name() or "default",
            max_tokens=request.max_tokens or tier.max_tokens,
            temperature=tier.temperature if temperature is None else temperature,
            think=tier.think if tier.local or is_this_machine(self._host) else None,
            left_out=frozenset(self._left_out),
        )

    async def _refusal(self, response: httpx.Response) -> Exception:
        body = b""
        async for block in response.aiter_bytes():
            body += block
            if len(body) > _ERROR_BYTES:
                break
        status = response.status_code
        if status == 400 and self._learn(faults.read_error(body)[1]):
            refused = ModelRefused("HTTP 400", host=self._host, status=status)
            return TryAgain(refused, after_s=0, counted=False)
        return faults.of_status(status, response.headers, body, host=self._host)

    def _learn(self, message: str) -> bool:
        """Remember the fields that this server does not take. False: nothing new was named."""
        named = {name for name in _OPTIONAL_FIELDS if name in message} - self._left_out
        self._left_out |= named
        return bool(named)

    def _reply(self, request: ChatRequest, gathered: Gathered) -> ChatReply:
        text = strip_think("".join(gathered.text)).strip()
        finish = gathered.finish or "other"
        calls = tuple(
            ToolCall(parts.id or f"call_{n}", parts.name, parse_object(raw), raw)
            for n, parts in gathered.calls.items()
            for raw in ["".join(parts.arguments)]
        )
        if request.schema is not None and not calls:
            text = unfence(text)
        elif not calls and text:
            offered = [tool.name for tool in request.tools]
            rescued = rescue_call(text, offered) if request.tool_choice == "auto" else None
            if rescued is not None:
                calls, text, finish = (replace(rescued, id="call_0"),), "", "tool_calls"
            elif is_tool_shaped(text, offered):
                raise ModelReplyInvalid("tool_shaped", host=self._host)
        if not text and not calls:
            raise ModelReplyInvalid("empty", host=self._host)
        name = gathered.model or self._name
        return ChatReply(text, calls, gathered.usage, 0.0, finish, name)

    async def _first_listed(self) -> str:
        base = self._url.removesuffix("/chat/completions").removesuffix("/messages")
        try:
            response = await self._client.get(f"{base}/models", headers=self._headers, timeout=5)
            listed = response.json()["data"][0]["id"]
        except (httpx.HTTPError, ValueError, LookupError, TypeError):
            return ""
        return listed if isinstance(listed, str) else ""


class _Hearing:
    """Tells a reply's text so far, a few times a second while it is no call."""

    def __init__(self, on_text: Callable[[str], None] | None) -> None:
        self._on_text, self._told, self._at = on_text, 0, 0.0

    def __call__(self, reply: Gathered) -> None:
        if self._on_text is None or reply.calls or len(reply.text) == self._told:
            return
        now = time.monotonic()
        if now - self._at >= _HEARD_EVERY_S:
            self._at, self._told = now, len(reply.text)
            self._on_text("".join(reply.text))


def is_this_machine(host: str) -> bool:
    """Whether a host is loopback. A private network is already somebody else's machine."""
    return host in {"localhost", "::1"} or host.startswith("127.") or host.endswith(".localhost")
