"""What is seen without a session: the door, and why somebody does not get in.

These pages tell nothing of the house: the same door stands before a good link and a bad one, and
opens by a button only, so that whoever looks at links in advance uses none up.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from bot.console.rendering import Words, render
from bot.console.rules import preferred
from core.clock import Clock
from core.config import LANGS, Settings
from core.i18n import Texts
from core.store import console
from core.store.database import Database


class Outside:
    """Pages without a session. `cookie` is the name of the session's cookie."""

    def __init__(
        self, *, settings: Settings, store: Database, texts: Texts, clock: Clock, cookie: str
    ) -> None:
        self._settings, self._store, self._cookie = settings, store, cookie
        self._texts, self._clock = texts, clock

    def page(self, request: Request, word: str, status: int) -> Response:
        """A refusal: `word` is the part of its texts' keys (`console.outside.…`)."""
        words = self.words(request)
        return HTMLResponse(render("outside.html", words, word=word, status=status), status)

    def words(self, request: Request) -> Words:
        given = request.headers.get("accept-language", "")
        lang = preferred(given, LANGS, self._settings.metnos_lang)
        return Words(self._texts, lang, self._settings.metnos_tz, self._clock)

    async def door(self, request: Request) -> Response:
        """The door with its button. 401, as everything is without a session."""
        key = request.path_params.get("secret", "")
        return HTMLResponse(render("door.html", self.words(request), key=key), 401)

    async def enter(self, request: Request) -> Response:
        """Use the link up and let its person in, under a new secret whatever they came with."""
        key, former = request.state.form.get("key", ""), request.cookies.get(self._cookie)
        async with self._store.write() as tx:
            secret = await console.enter(tx, key, self._clock.now())
            if secret is not None and former:
                await console.end_session(tx, former)
        if secret is None:
            return self.page(request, "stale", 401)
        response = RedirectResponse("/", 303)
        response.set_cookie(
            self._cookie,
            secret,
            max_age=int(console.AT_MOST.total_seconds()),
            httponly=True,
            samesite="strict",
            # Only a proxy of the owner's does TLS; on loopback there is none.
            secure=request.headers["origin"].startswith("https:"),
        )
        return response

    async def leave(self, request: Request) -> Response:
        async with self._store.write() as tx:
            await console.end_session(tx, request.state.entered.secret)
        request.state.entered = None
        response = self.page(request, "left", 200)
        response.delete_cookie(self._cookie, httponly=True, samesite="strict")
        return response
