"""The bot object: python-telegram-bot's `Bot` with our pools, and updates as they came.

Only the bot and its requests are used, not the library's dispatcher (it confirms updates before
they are stored, and keeps order per bot or not at all).
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
from telegram import Bot
from telegram.error import BadRequest, NetworkError, RetryAfter
from telegram.request import HTTPXRequest

from bot.telegram.faults import retry_after_s
from bot.telegram.pacing import Gate, Pace

# Waits that Telegram names come as timedelta; the older form warns at each use.
os.environ.setdefault("PTB_TIMEDELTA", "true")

# Kinds of updates that are handled; Telegram keeps the others back.
ALLOWED_UPDATES = (
    "message",
    "edited_message",
    "callback_query",
    "my_chat_member",
    "message_reaction",
)
BATCH = 100
_SENDING_CONNECTIONS = 32
# What puts something into a chat and thus counts; reading and answers to taps do not.
_PACED = ("send", "edit", "delete", "forward", "copy", "pin", "unpin", "stopPoll", "setMessage")
# What nobody misses: it is left out rather than waited with.
_DROPPED = {"sendChatAction": Pace.TYPING, "sendMessageDraft": Pace.PROGRESS}
# Less than the 75 s after which web servers commonly close, so that we close first.
_KEEP_OPEN_S = 45.0
_CLOSE_S = 5.0


class _Request(HTTPXRequest):
    """The library's requests, whose connections stay open between two answers of a chat."""

    def _build_client(self) -> Any:
        # Five seconds by default: nearly every answer would begin with a new TLS handshake.
        self._client_kwargs["limits"].keepalive_expiry = _KEEP_OPEN_S
        return super()._build_client()

    async def stream(self, url: str) -> AsyncIterator[bytes]:
        """What an address holds, piece by piece. Raises `NetworkError`, `BadRequest` for 4xx."""
        try:
            async with self._client.stream("GET", url) as response:
                if response.status_code != 200:
                    problem = f"file not handed out: HTTP {response.status_code}"
                    gone = 400 <= response.status_code < 500
                    raise BadRequest(problem) if gone else NetworkError(problem)
                async for chunk in response.aiter_bytes():
                    yield chunk
        except httpx.HTTPError as exc:
            # Its text may name the address, and with it the token.
            raise NetworkError(type(exc).__name__) from None


class PollingBot(Bot):
    """A `Bot` that also hands out updates unparsed, and says everything at the pace of a gate."""

    def __init__(
        self,
        token: str,
        *,
        gate: Gate,
        polling_request: Callable[[], HTTPXRequest],
        **options: Any,
    ) -> None:
        super().__init__(token, get_updates_request=polling_request(), **options)
        self._gate, self._polling_request = gate, polling_request

    async def get_raw_updates(
        self, *, offset: int | None, timeout_s: int, also: Sequence[str] = ()
    ) -> list[Any]:
        """The waiting updates as Telegram wrote them, after at most `timeout_s` seconds; `also`:
        kinds besides those that are always handled.

        `Bot.get_updates` parses the whole batch at once: one update that the library cannot read
        would keep all others from coming, for ever.
        """
        updates = await self._post(
            "getUpdates",
            {
                "offset": offset,
                "limit": BATCH,
                "timeout": timeout_s,
                "allowed_updates": [*ALLOWED_UPDATES, *also],
            },
            # The server may use the whole time; a connection that died says nothing for longer.
            read_timeout=timeout_s + 10,
        )
        return updates if isinstance(updates, list) else []

    async def _do_post(self, endpoint: str, data: dict[str, Any], **waits: Any) -> Any:
        """Every request of every sender comes through here, so none goes round the gate.

        Typing that has no room now is not sent (False), nor is a draft. Raises `RetryAfter`
        without asking Telegram while the chat must wait.
        """
        chat_id = str(data.get("chat_id", ""))
        if not chat_id or not endpoint.startswith(_PACED):
            return await super()._do_post(endpoint, data, **waits)
        if (pace := _DROPPED.get(endpoint)) is not None:
            if not self._gate.try_take(chat_id, pace):
                if pace is Pace.TYPING:
                    return False
                raise RetryAfter(dt.timedelta(seconds=self._gate.wait_s(chat_id, pace)))
        else:
            await self._gate.acquire(chat_id)
            if endpoint == "sendMediaGroup":  # an album is as many messages
                for _ in data["media"][1:]:
                    self._gate.take(chat_id)
        try:
            return await super()._do_post(endpoint, data, **waits)
        except RetryAfter as exc:
            self._gate.close(chat_id, retry_after_s(exc))
            raise

    async def renew_polling(self) -> None:
        """Poll over new connections from now on, whatever hangs on the old ones."""
        old, sending = self._request
        self._request = (self._polling_request(), sending)
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await old.shutdown()

    async def stream_file(self, file_id: str) -> AsyncIterator[bytes]:
        """The bytes of a file as they come. Raises `TelegramError`: `BadRequest` when Telegram
        does not hand it out (it is gone, or too big), `NetworkError` when the connection fails.

        `File.download_to_drive` keeps the whole of it in memory first.
        """
        found = await self.get_file(file_id)
        if not found.file_path:
            raise BadRequest("no path for the file")
        async for chunk in self._sending.stream(found.file_path):
            yield chunk

    @property
    def _sending(self) -> _Request:
        request = self._request[1]
        assert isinstance(request, _Request)  # noqa: S101 - made below
        return request

    async def close_connections(self) -> None:
        """Close all connections. `Bot.shutdown` does so only after `Bot.initialize`, which asks
        Telegram who the bot is, and that must not keep the first poll waiting."""
        for request in self._request:
            await request.shutdown()


def build_bot(
    token: str, base_url: str, base_file_url: str, gate: Gate | None = None
) -> PollingBot:
    """A bot for this token, which says nothing faster than `gate` allows. Opens no connection."""
    url = urlsplit(base_url)
    options: dict[str, Any] = {}
    if url.hostname in {"127.0.0.1", "::1", "localhost"}:
        # A Bot API server on this machine: no proxy, and no certificates to load for plain http.
        options = {"trust_env": False, "verify": url.scheme == "https"}
    return PollingBot(
        token,
        base_url=base_url,
        base_file_url=base_file_url,
        gate=gate or Gate(time.monotonic),
        request=_Request(
            connection_pool_size=_SENDING_CONNECTIONS,
            connect_timeout=10.0,
            read_timeout=20.0,
            write_timeout=20.0,
            pool_timeout=30.0,
            httpx_kwargs=options,
        ),
        polling_request=lambda: _Request(
            connection_pool_size=1, connect_timeout=10.0, httpx_kwargs=options
        ),
    )


def bot_id_of(token: str) -> str | None:
    """The bot's numeric id, which every token begins with. None: this is no token."""
    number, _, secret = token.partition(":")
    return number if number.isdecimal() and number.isascii() and len(secret) >= 10 else None
