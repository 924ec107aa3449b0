"""The console as one application: its pages behind the guard."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from bot.app import House
from bot.console import pages, rules
from bot.console.guard import DOOR, Guard, cookie_name
from bot.console.outside import Outside
from bot.console.ports import Engine, Missing, Moved, Page, Shown, Visit, number_of
from bot.console.rendering import Words, render, stylesheet
from core.errors import StoreError
from core.store import console

log = logging.getLogger(__name__)


def build_app(
    house: House, engine: Engine | None = None, *, all_pages: Sequence[Page] = pages.ALL
) -> Guard:
    """Everything that is served, on the port of the settings."""
    settings = house.settings
    port = settings.metnos_console_port
    outside = Outside(
        settings=settings,
        store=house.stores.main,
        texts=house.texts,
        clock=house.clock,
        cookie=cookie_name(port),
    )
    inside = Inside(house, engine, all_pages)
    app = Starlette(
        routes=[
            Route(DOOR, outside.door, methods=["GET"]),
            Route(f"{DOOR}/{{secret}}", outside.door, methods=["GET"]),
            Route(DOOR, outside.enter, methods=["POST"]),
            Route("/leave", outside.leave, methods=["POST"]),
            Route("/lang", inside.lang, methods=["POST"]),
            Route("/static/{name}", inside.static, methods=["GET"]),
            *(
                Route(page.path, inside.endpoint(page), methods=[page.method])
                for page in all_pages
            ),
        ],
        exception_handlers={
            404: inside.missing,
            405: inside.missing,
            StoreError: inside.failed,
            Exception: inside.broken,
        },
    )
    app.router.redirect_slashes = False
    return Guard(
        app,
        store=house.stores.main,
        clock=house.clock,
        outside=outside,
        port=port,
        hosts=settings.metnos_console_hosts,
    )


class Inside:
    """What a person with a session is shown."""

    def __init__(self, house: House, engine: Engine | None, all_pages: Sequence[Page]) -> None:
        self._house, self._engine = house, engine
        self._nav = [(page.path, page.nav) for page in all_pages if page.nav is not None]

    def endpoint(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            visit = self._visit(request)
            match await page.endpoint(visit):
                case Shown() as shown:
                    return self._page(visit, shown)
                case Moved(to=to, done=done, count=count):
                    note = {"done": done, **({} if count is None else {"count": count})}
                    mark = "&" if "?" in to else "?"
                    return RedirectResponse(f"{to}{mark}{urlencode(note)}" if done else to, 303)
                case Missing():
                    return self._page(visit, Shown("problem.html", {"word": "missing"}, 404))

        return answer

    async def lang(self, request: Request) -> Response:
        """Change the language of this session and stay where one was."""
        entered = request.state.entered
        lang, back = entered.form.get("lang", ""), entered.form.get("back", "/")
        if lang in self._house.texts.langs:
            async with self._house.stores.main.write() as tx:
                await console.set_lang(tx, entered.secret, lang)
        # "//host" and "/\host" lead elsewhere.
        is_own = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
        return RedirectResponse(back if is_own else "/", 303)

    async def static(self, request: Request) -> Response:
        style = stylesheet()
        if request.path_params["name"] != style.name:
            return await self.missing(request, None)
        return Response(style.text, media_type="text/css")

    async def missing(self, request: Request, exc: Exception | None) -> Response:
        return self._problem(request, "missing", 404)

    async def failed(self, request: Request, exc: Exception) -> Response:
        log.error("console page failed", extra={"error": getattr(exc, "detail", "")})
        return self._problem(request, "store", 503)

    async def broken(self, request: Request, exc: Exception) -> Response:
        return self._problem(request, "broken", 500)

    def _problem(self, request: Request, word: str, status: int) -> Response:
        if request.state.entered is None:  # at the door
            words = Words(
                self._house.texts,
                self._house.settings.metnos_lang,
                self._house.settings.metnos_tz,
                self._house.clock,
            )
            return HTMLResponse(render("outside.html", words, word=word, status=status), status)
        return self._page(self._visit(request), Shown("problem.html", {"word": word}, status))

    def _visit(self, request: Request) -> Visit:
        entered, house = request.state.entered, self._house
        actor = entered.session.actor
        lang = entered.session.lang or actor.lang or house.settings.metnos_lang
        words = Words(house.texts, lang, actor.tz or house.settings.metnos_tz, house.clock)
        query: dict[str, str] = {}
        for name, value in request.query_params.multi_items():
            query.setdefault(name, value)
        return Visit(
            house=house,
            engine=self._engine,
            actor=actor,
            words=words,
            path=request.url.path,
            csrf=rules.csrf_of(entered.secret),
            secret=entered.secret,
            params={name: str(value) for name, value in request.path_params.items()},
            query=query,
            form=entered.form,
        )

    def _page(self, visit: Visit, shown: Shown) -> Response:
        html = render(
            shown.template,
            visit.words,
            visit=visit,
            csrf=visit.csrf,
            path=visit.path,
            nav=self._menu(visit.path),
            note=_note(visit),
            **shown.data,
        )
        return HTMLResponse(html, shown.status)

    def _menu(self, path: str) -> list[tuple[str, str, bool]]:
        """(where, text key, whether one is there now)."""
        fitting = [at for at, _ in self._nav if at == path or path.startswith(f"{at}/")]
        here = max(fitting, key=len, default="")
        return [(at, key, at == here) for at, key in self._nav]


def _note(visit: Visit) -> str:
    """What was just done, by the word the browser was sent on with."""
    key = f"console.done.{visit.query.get('done', '')}"
    if not visit.words.has(key):
        return ""
    count = number_of(visit.query.get("count")) or 0
    return visit.words.t(key, count=count)
