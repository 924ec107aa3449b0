"""What stands between every request and every page, written once so that no page can forget it.

In this order: the name the console is called by, the session, where the request comes from, how
much it brings, the form's own secret. Only the door (`/enter`) is open without a session. Every
answer, whoever made it, leaves with the same headers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.console import rules
from bot.console.outside import Outside
from bot.console.rendering import stylesheet
from core.clock import Clock
from core.errors import StoreError
from core.store import console
from core.store.console import Session
from core.store.database import Database

log = logging.getLogger(__name__)

DOOR = "/enter"
MOST_BYTES = 16 * 1024
BODY_S = 10.0

_POLICY = (
    "default-src 'none'; style-src {styles}; img-src 'self' data:; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not `no-referrer`: it would take the Origin from our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    # Pages are few and near: a connection that is not kept cannot be held.
    "connection": "close",
}


@dataclass(frozen=True, slots=True)
class Entered:
    """Who is inside: the session and its secret, and the form that was sent."""

    session: Session
    secret: str
    form: Mapping[str, str]


class Guard:
    """The application as it is served. `app` finds an `Entered` (or None, at the door) under
    `entered` in the scope's state, and the form under `form`."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        store: Database,
        clock: Clock,
        outside: Outside,
        port: int,
        hosts: Iterable[str] = (),
    ) -> None:
        self.app, self._store, self._clock, self._outside = app, store, clock, outside
        self._hosts = rules.known_hosts(port, hosts)
        self.cookie = cookie_name(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        request.state.entered, request.state.form = None, {}

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _dressed(message, request)}
            await send(message)

        try:
            refusal = await self._refusal(request)
        except StoreError as exc:
            log.error("console cannot read the store", extra={"error": exc.detail})
            refusal = self._outside.page(request, "store", 503)
        except ClientDisconnect:
            return
        await (refusal or self.app)(scope, receive, dressed)

    async def _refusal(self, request: Request) -> Response | None:
        """The answer to what may not pass; None: it passes, and `request.state` says who it is."""
        if not rules.is_called_right(
            request.headers.getlist("host"), self._hosts
        ) or not request.scope["path"].startswith("/"):
            return PlainTextResponse("This is not the name of this place.\n", 400)
        is_door = request.url.path.partition("/")[2].partition("/")[0] == DOOR[1:]
        secret = request.cookies.get(self.cookie, "")
        session = None if is_door else await self._session(secret)
        if session is None and not is_door:
            return self._outside.page(request, "closed", 401)
        headers = request.headers
        site = headers.get("sec-fetch-site")
        if request.method in {"GET", "HEAD"}:
            mode, dest = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
            if not rules.may_be_shown(site, mode, dest):
                return self._outside.page(request, "foreign", 403)
        elif request.method != "POST":
            return self._outside.page(request, "method", 405)
        else:
            if not rules.is_own_page(headers.getlist("origin"), headers["host"], site):
                return self._outside.page(request, "foreign", 403)
            form = await self._form(request)
            if isinstance(form, int):
                return self._outside.page(request, "form", form)
            if session is not None and not rules.is_own_form(form.get("csrf"), secret):
                return self._outside.page(request, "foreign", 403)
            request.state.form = form
        if session is not None:
            request.state.entered = Entered(session, secret, request.state.form)
        return None

    async def _session(self, secret: str) -> Session | None:
        if not secret:
            return None
        now = self._clock.now()
        async with self._store.read() as tx:
            session = await console.find_session(tx, secret, now)
        if session is not None and session.to_note:
            async with self._store.write() as tx:
                await console.touch(tx, secret, now)
        return session

    async def _form(self, request: Request) -> Mapping[str, str] | int:
        """What was sent, or the status that says why it is not read."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            return 415
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_S):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > MOST_BYTES:
                        return 413
        except TimeoutError:
            return 408
        form = rules.read_form(bytes(body))
        return 400 if form is None else form


def cookie_name(port: int) -> str:
    """Cookies of one machine are shared by all its ports: each console has a name of its own."""
    return f"metnos-{port}"


def _dressed(message: Message, request: Request) -> list[tuple[bytes, bytes]]:
    # Without a session there is no stylesheet to load: the one inside the page is named.
    inside = request.state.entered is not None
    styles = "'self'" if inside else stylesheet().source
    headers = {**_HEADERS, "content-security-policy": _POLICY.format(styles=styles)}
    kept = [(name, value) for name, value in message["headers"] if name.lower() != b"server"]
    given = {name.lower() for name, _ in kept}
    # Only the stylesheet may say that it can be kept.
    is_style = request.url.path == f"/static/{stylesheet().name}" and message["status"] == 200
    for name, value in headers.items():
        if name == "cache-control" and is_style:
            value = "private, max-age=31536000, immutable"
        if name.encode() in given:
            kept = [(n, v) for n, v in kept if n.lower() != name.encode()]
        kept.append((name.encode(), value.encode()))
    return kept
