"""Updates that Telegram brings instead of being asked: a small server behind the owner's proxy.

The same intake as polling: stored first, answered with 200 only after the commit, so that what
is not acknowledged comes again. Whoever does not know the secret is not even read.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from telegram.error import InvalidToken, TelegramError

from bot.telegram.client import ALLOWED_UPDATES, PollingBot
from bot.telegram.faults import backoff_s
from bot.telegram.identity import Identity
from bot.telegram.intake import Intake
from bot.telegram.numbers import update_id
from bot.telegram.outage import Outage
from bot.telegram.sifting import readable
from core.clock import Clock
from core.config import Settings
from core.errors import SettingsInvalid, StoreError
from core.i18n import Texts

log = logging.getLogger(__name__)

# Far more than any update has.
MAX_BYTES = 2**20
CHECK_S = 45.0
_SHOWN_IN = "x-telegram-bot-api-secret-token"
_END_S = 3.0


@dataclass(frozen=True, slots=True)
class Address:
    """Where Telegram brings updates to, and what shows that it is Telegram."""

    url: str
    port: int
    secret: str = field(repr=False)

    @property
    def path(self) -> str:
        return urlsplit(self.url).path or "/"


def address_of(settings: Settings, texts: Texts) -> Address:
    """The address in the settings. Raises `SettingsInvalid` when the secret is missing."""
    if settings.metnos_webhook_url is None or settings.metnos_webhook_secret is None:
        raise SettingsInvalid(texts.say("telegram.webhook.no_secret", settings.metnos_lang))
    secret = settings.metnos_webhook_secret.get_secret_value()
    return Address(settings.metnos_webhook_url, settings.metnos_webhook_port, secret)


class Webhook:
    """Listens for one bot."""

    def __init__(
        self,
        *,
        bot: PollingBot,
        identity: Identity,
        intake: Intake,
        address: Address,
        texts: Texts,
        lang: str,
        clock: Clock,
        outage: Outage,
    ) -> None:
        self._bot, self._identity, self._intake, self._address = bot, identity, intake, address
        self._texts, self._lang, self._clock, self._outage = texts, lang, clock, outage
        self._store_fails = False
        self.last_poll_at: float | None = None
        """Monotonic seconds of the last update, or of the last time Telegram said that it would
        bring them here."""
        self.rival: str | None = None
        """The bot whose updates another program takes too, while that lasts."""

    @property
    def excuse(self) -> str:
        return "store" if self._store_fails else ""

    async def run(self) -> None:
        """Listen, and see to it that Telegram goes on bringing, until cancelled. Raises
        `SettingsInvalid` when the port is taken or Telegram does not know the token."""
        listening = self._listen()
        app = Starlette(routes=[Route(self._address.path, self._receive, methods=["POST"])])
        server = _Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                limit_concurrency=64,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=int(_END_S),
            )
        )
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await self._watch()
        finally:
            server.should_exit = True
            await asyncio.wait({serving}, timeout=_END_S + 1)
            serving.cancel()
            listening.close()

    def _listen(self) -> socket.socket:
        """Loopback only: what comes from outside comes through a proxy, which does the TLS."""
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", self._address.port))
        except OSError as exc:
            listening.close()
            text = self._texts.say(
                "telegram.webhook.port_taken", self._lang, port=str(self._address.port)
            )
            raise SettingsInvalid(text) from exc
        return listening

    async def _watch(self) -> None:
        """Tell Telegram where to bring updates, and look now and then whether it still does."""
        failures, is_first = 0, True
        while True:
            try:
                is_ours = not is_first and await self._is_ours()
                if not is_ours:
                    if not is_first:
                        await self._meet_rival()
                    await self._register()
                elif self.rival is not None or failures:
                    self.rival = None
                    await self._intake.rival_gone()
                if is_first:
                    await self._intake.rival_gone()
                is_first, failures = False, 0
                self.last_poll_at = self._clock.monotonic()
                await self._intake.note_alive()
            except InvalidToken as exc:
                text = self._texts.say("telegram.token_refused", self._lang)
                raise SettingsInvalid(text) from exc
            except (TelegramError, StoreError) as exc:
                failures += 1
                log.warning(
                    "webhook not looked after",
                    extra={"error": type(exc).__name__, "failures": failures},
                )
            await asyncio.sleep(backoff_s(failures, most_s=30) if failures else CHECK_S)

    async def _register(self) -> None:
        # One at a time: two of a chat that travel side by side could change places.
        await self._bot.set_webhook(
            self._address.url,
            secret_token=self._address.secret,
            allowed_updates=[*ALLOWED_UPDATES, *self._intake.also],
            max_connections=1,
            drop_pending_updates=False,
        )

    async def _is_ours(self) -> bool:
        info = await self._bot.get_webhook_info()
        if info.url == self._address.url and info.last_error_message and info.pending_update_count:
            log.warning(
                "telegram cannot bring updates",
                extra={"why": info.last_error_message, "waiting": info.pending_update_count},
            )
        return info.url == self._address.url

    async def _meet_rival(self) -> None:
        self.rival = self._identity.shown
        log.error("another program took the updates of this bot", extra={"bot": self.rival})
        await self._intake.note_rival(self.rival)

    async def _receive(self, request: Request) -> Response:
        given = request.headers.get(_SHOWN_IN, "")
        if not hmac.compare_digest(given.encode(), self._address.secret.encode()):
            return Response(status_code=403)
        body = await _body(request)
        if body is None:
            return Response(status_code=413)
        try:
            update = json.loads(body)
        except (ValueError, RecursionError):
            return Response(status_code=400)
        if not isinstance(update, dict) or update_id(update) is None:
            return Response(status_code=400)
        return Response(status_code=await self._keep(update))

    async def _keep(self, update: dict[str, Any]) -> int:
        try:
            await self._intake.keep([update], None)
        except StoreError as exc:
            self._store_fails = True
            log.error("update not stored, not acknowledged", extra={"error": exc.detail})
            await self._outage.tell([one for one in readable([update]) if one.is_private], exc)
            return 503
        except TelegramError as exc:
            log.warning("update not sifted", extra={"error": type(exc).__name__})
            return 503
        if self._store_fails:
            self._store_fails = False
            self._outage.over()
        self.last_poll_at = self._clock.monotonic()
        return 200


class _Server(uvicorn.Server):
    """uvicorn without its handlers of signals: the process has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _body(request: Request) -> bytes | None:
    """What was sent; None when it is too much, of which no more is read than that."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            return None
    return bytes(body)
