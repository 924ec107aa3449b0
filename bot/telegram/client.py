"""The bot object: python-telegram-bot's `Bot` with our pools, and updates as they came.

Only the bot and its requests are used, not the library's dispatcher (it confirms updates before
they are stored, and keeps order per bot or not at all).
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from telegram import Bot
from telegram.request import HTTPXRequest

# Waits that Telegram names come as timedelta; the older form warns at each use.
os.environ.setdefault("PTB_TIMEDELTA", "true")

# Kinds of updates that are handled; Telegram keeps the others back.
ALLOWED_UPDATES = ("message", "edited_message", "callback_query", "my_chat_member")
BATCH = 100
_SENDING_CONNECTIONS = 32
# Less than the 75 s after which web servers commonly close, so that we close first.
_KEEP_OPEN_S = 45.0


class _Request(HTTPXRequest):
    """The library's requests, whose connections stay open between two answers of a chat."""

    def _build_client(self) -> Any:
        # Five seconds by default: nearly every answer would begin with a new TLS handshake.
        self._client_kwargs["limits"].keepalive_expiry = _KEEP_OPEN_S
        return super()._build_client()


class PollingBot(Bot):
    """A `Bot` that also hands out updates unparsed."""

    async def get_raw_updates(self, *, offset: int | None, timeout_s: int) -> list[Any]:
        """The waiting updates as Telegram wrote them, after at most `timeout_s` seconds.

        `Bot.get_updates` parses the whole batch at once: one update that the library cannot read
        would keep all others from coming, for ever.
        """
        updates = await self._post(
            "getUpdates",
            {
                "offset": offset,
                "limit": BATCH,
                "timeout": timeout_s,
                "allowed_updates": list(ALLOWED_UPDATES),
            },
            # The server may use the whole time; a connection that died says nothing for longer.
            read_timeout=timeout_s + 10,
        )
        return updates if isinstance(updates, list) else []

    async def close_connections(self) -> None:
        """Close all connections. `Bot.shutdown` does so only after `Bot.initialize`, which asks
        Telegram who the bot is, and that must not keep the first poll waiting."""
        for request in self._request:
            await request.shutdown()


def build_bot(token: str, base_url: str, base_file_url: str) -> PollingBot:
    """A bot for this token. Opens no connection."""
    url = urlsplit(base_url)
    options: dict[str, Any] = {}
    if url.hostname in {"127.0.0.1", "::1", "localhost"}:
        # A Bot API server on this machine: no proxy, and no certificates to load for plain http.
        options = {"trust_env": False, "verify": url.scheme == "https"}
    return PollingBot(
        token,
        base_url=base_url,
        base_file_url=base_file_url,
        request=_Request(
            connection_pool_size=_SENDING_CONNECTIONS,
            connect_timeout=10.0,
            read_timeout=20.0,
            write_timeout=20.0,
            pool_timeout=30.0,
            httpx_kwargs=options,
        ),
        get_updates_request=_Request(
            connection_pool_size=1, connect_timeout=10.0, httpx_kwargs=options
        ),
    )


def bot_id_of(token: str) -> str | None:
    """The bot's numeric id, which every token begins with. None: this is no token."""
    number, _, secret = token.partition(":")
    return number if number.isdecimal() and number.isascii() and len(secret) >= 10 else None
