"""S13: nobody but the host sees the console, and nothing that is kept becomes part of a page.

Routes are counted off the application, pages are found by following links: what is added later is
tried without being named here.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.routing import Route

from bot.console import guard, pages, rules
from bot.console.app import build_app
from bot.console.ports import Missing, Page
from core.catalog.foreign import SeenTool
from core.messages import Role
from core.store import actors, mcp, plan_cache
from core.store import console as console_store
from core.store.console import AT_MOST, IDLE_FOR, LINK_TTL
from core.store.leaving import revoke
from tests.acceptance import hoard
from tests.console.conftest import ORIGIN, Console, browser, open_console
from tests.support.clock import FrozenClock

PAYLOADS = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<body onload=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<a href=javascript:alert(1)>qui</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>qui</a>",
    "<form action=//evil.example><button>ok",
    "<input autofocus onfocus=alert(1)>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example/>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>*{background:url(//evil.example)}</style>",
    "<object data=//evil.example></object>",
    "<embed src=//evil.example>",
    "<math><mi xlink:href=javascript:alert(1)>x</mi></math>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)></video>",
    '"><script>alert(1)</script>',
    "'><script>alert(1)</script>",
    '" onmouseover="alert(1)" x="',
    "' onmouseover='alert(1)' x='",
    "</title><script>alert(1)</script>",
    "</textarea></pre><script>alert(1)</script>",
    "--><script>alert(1)</script><!--",
    "{{ 7*7 }}{% for x in [] %}<b>",
    "&lt;script&gt;&#60;img src=x&#62;",
    "<scr\x00ipt>alert(1)</scr\x00ipt>\u202e<b>",
]  # fmt: skip

HOSTILE: list[tuple[str, dict[str, str]]] = [
    ("GET", {"host": "evil.example"}),
    ("GET", {"host": "evil.example:8765"}),
    ("GET", {"host": "127.0.0.1:9999"}),
    ("GET", {"host": "127.0.0.1"}),
    ("GET", {"host": "127.0.0.1:8765.evil.example"}),
    ("POST", {"host": "metnos.evil.example:8765", "origin": "http://metnos.evil.example:8765"}),
    ("POST", {"origin": "http://evil.example"}),
    ("POST", {"origin": "http://127.0.0.1:9999"}),
    ("POST", {"origin": "null"}),
    ("POST", {"origin": "http://127.0.0.1:8765.evil.example"}),
    ("POST", {"origin": "http://localhost:8765"}),
    ("POST", {"origin": ORIGIN, "sec-fetch-site": "cross-site"}),
]

POLICY = {
    "default-src": "'none'",
    "img-src": "'self' data:",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}


class Look(HTMLParser):
    """What a browser makes of a page: its elements, their attributes, and its words."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.targets: set[str] = set()
        self.links: set[str] = set()
        self._words: list[str] = []
        self.feed(html)
        self.close()
        self.words = "".join(self._words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name in {"href", "src", "action", "formaction", "data", "poster"}:
                self.targets.add(value or "")
                if tag == "a":
                    self.links.add(value or "")
            else:
                self._words.append(f" {value}")

    def handle_data(self, data: str) -> None:
        self._words.append(data)


FORBIDDEN = set(
    "script iframe object embed base math video audio source applet frame frameset img".split()
)


def harm_of(response: httpx.Response) -> list[str]:
    """What in a page could do something by itself, or leads elsewhere."""
    look = Look(response.text)
    found = sorted(look.tags & FORBIDDEN)
    found += sorted(n for n in look.attributes if n.startswith("on") or n in {"style", "srcdoc"})
    found += sorted(t for t in look.targets if not re.match(r"/(?![/\\])|#|data:,$", t))
    if "http-equiv" in look.attributes:
        found.append("http-equiv")
    return found


def headers_amiss(response: httpx.Response) -> list[str]:
    given = response.headers
    policy = dict(
        part.strip().split(" ", 1) for part in given["content-security-policy"].split(";")
    )
    styles = policy.pop("style-src", "")
    found = [] if policy == POLICY else [str(policy)]
    if not re.fullmatch(r"'self'|'sha256-[\w+/=]{44}'", styles):
        found.append(f"style-src {styles}")
    if given.get("x-content-type-options") != "nosniff":
        found.append("sniffed")
    if "no-store" not in given["cache-control"] and "/static/" not in str(response.url):
        found.append("kept")
    if given.get("referrer-policy") not in {"no-referrer", "same-origin"}:
        found.append("referrer")
    if {"server", "x-powered-by"} & set(given):
        found.append("tells what serves")
    return found


def routes(app: guard.Guard) -> Iterator[tuple[str, str]]:
    """Every registered route: its method and a path that leads there."""
    for route in app.app.routes:  # type: ignore[attr-defined]
        assert isinstance(route, Route), "a route that is not counted"
        for method in sorted(route.methods or ()):
            yield method, re.sub(r"\{[^}]*\}", "1", route.path)


async def crawl(client: httpx.AsyncClient, *, most: int = 150) -> list[httpx.Response]:
    """Every page that is reached by links, each path once for each set of its query's names."""
    todo = ["/"]
    seen: set[str] = set()
    found: list[httpx.Response] = []
    while todo and len(found) < most:
        path = todo.pop(0)
        parts = urlsplit(path)
        if path.startswith("#") or path in seen:
            continue
        seen.add(path)
        response = await client.get(f"{parts.path}?{parts.query}" if parts.query else parts.path)
        found.append(response)
        if response.headers["content-type"].startswith("text/html"):
            todo += sorted(Look(response.text).links - seen)
    return found


async def remember(console: Console, text: str = "che ore sono") -> int:
    """A plan in memory; its number."""
    async with console.house.stores.memory.write() as tx:
        row = await tx.fetch_one(
            """INSERT INTO plan_cache (version, actor_id, lang, text, exact, plan_json,
                   bindings_json, values_json, tools, families, changes, turn_id, learnt_at, why)
               VALUES (1, :actor, 'it', :text, :text, :plan, '[]', :values, 'a', 'b', 0, 't1',
                       :now, :text) RETURNING id""",
            {
                "actor": console.host.id,
                "text": text,
                "plan": json.dumps({"steps": [{"tool": text, "args": {text: [text]}}]}),
                "values": json.dumps([["text", text]]),
                "now": time.time(),
            },
        )
    assert row is not None
    return int(row["id"])


async def is_remembered(console: Console, number: int) -> bool:
    async with console.house.stores.memory.read() as tx:
        return await plan_cache.get(tx, number) is not None


# -- without a session ----------------------------------------------------------------------------


async def test_every_route_is_closed_without_a_session(tmp_path: Path) -> None:
    async def forgotten(visit: Any) -> Missing:
        raise AssertionError("reached")

    async with open_console(tmp_path) as console:
        later = (Page("/later/{id}", forgotten), Page("/later", forgotten, method="POST"))
        app = build_app(console.house, console.engine, all_pages=(*pages.ALL, *later))
        tried = [*routes(app), ("GET", "/nowhere"), ("POST", "/nowhere"), ("OPTIONS", "/")]
        forged = ["", "x", "a" * 43, console.secret[:-1], console.secret.swapcase(), "é" * 20]
        wrong = []
        async with browser(app) as stranger:
            for method, path in tried:
                for secret in forged:
                    cookie = f"{app.cookie}={secret}".encode()
                    response = await stranger.request(
                        method,
                        path,
                        headers={b"origin": ORIGIN.encode(), b"cookie": cookie},
                        data={"csrf": rules.csrf_of(secret)} if method == "POST" else None,
                    )
                    if response.status_code != 401 or headers_amiss(response):
                        wrong.append((method, path, secret, response.status_code))

    assert ("GET", "/later/1") in tried
    print(f"console: {len(tried)} routes, {len(forged)} cookies, {len(wrong)} not 401")
    assert wrong == []


async def test_link_lets_in_once_and_only_by_its_button(tmp_path: Path) -> None:
    clock = FrozenClock()
    async with open_console(tmp_path, clock=clock) as console:
        first, second = await console.link(), await console.link()
        digest = console_store._hash(second)
        doors = [await console.stranger.get(f"/enter/{key}") for key in (second, "forged")]
        for _ in range(3):  # whoever looks at links in advance uses none up
            await console.stranger.get(f"/enter/{second}")
            await console.stranger.head(f"/enter/{second}")
        statuses = {
            "forged": (await console.enter(console.stranger, "A" * 43)).status_code,
            "empty": (await console.enter(console.stranger, "")).status_code,
            "hash": (await console.enter(console.stranger, digest)).status_code,
            "replaced by a newer one": (await console.enter(console.stranger, first)).status_code,
            "no origin": (await console.stranger.post("/enter", data={"key": second})).status_code,
        }
        both = await asyncio.gather(*(console.enter(console.stranger, second) for _ in range(5)))
        late = await console.link()
        clock.advance(LINK_TTL)
        statuses["expired"] = (await console.enter(console.stranger, late)).status_code
        early = await console.link()
        clock.jump(clock.now() - timedelta(hours=1))
        statuses["of a clock set back"] = (
            await console.enter(console.stranger, early)
        ).status_code
        kept = [
            str(tuple(row))
            for row in await _rows(console, "SELECT * FROM console_links, console_sessions")
        ]

    def same(page: httpx.Response) -> str:
        return re.sub(r'value="[^"]*"', "", page.text)

    assert same(doors[0]) == same(doors[1])
    assert statuses.pop("no origin") == 403
    assert set(statuses.values()) == {401}
    assert sorted(response.status_code for response in both) == [303, 401, 401, 401, 401]
    assert not any(secret in row for secret in (first, second, late, early) for row in kept)


async def test_session_is_new_at_each_entry_and_ends_in_time(tmp_path: Path) -> None:
    clock = FrozenClock()
    async with open_console(tmp_path, clock=clock) as console:

        async def is_in(secret: str) -> bool:
            headers = {"cookie": f"{console.app.cookie}={secret}"}
            async with browser(console.app) as client:
                return (await client.get("/", headers=headers)).status_code == 200

        async def entered(**headers: str) -> str:
            async with browser(console.app) as client:
                response = await console.enter(client, await console.link(), **headers)
                cookie = response.headers["set-cookie"]
                assert "HttpOnly" in cookie
                assert "SameSite=strict" in cookie
                return client.cookies[console.app.cookie]

        # A secret that somebody planted is not taken over, nor does a former session go on.
        planted, before = "p" * 43, console.secret
        fresh = await entered(cookie=f"{console.app.cookie}={planted}")
        assert fresh != planted
        assert not await is_in(planted)
        again = await entered(cookie=f"{console.app.cookie}={fresh}")
        assert not await is_in(fresh)
        assert await is_in(again)
        assert await is_in(before)

        # Idle for twelve hours, or seven days old however busy.
        clock.advance(IDLE_FOR - timedelta(minutes=1))
        assert await is_in(before)
        clock.advance(timedelta(minutes=2))
        assert not await is_in(again)
        lived = timedelta(0)
        busy = await entered()
        while await is_in(busy):
            clock.advance(IDLE_FOR / 2)
            lived += IDLE_FOR / 2
            assert lived <= AT_MOST
        assert lived == AT_MOST

        # Left: the secret is void, and the browser told to forget it.
        mine = await entered()
        async with browser(console.app) as client:
            client.cookies.set(console.app.cookie, mine, domain="127.0.0.1")
            left = await client.post(
                "/leave", data={"csrf": rules.csrf_of(mine)}, headers={"origin": ORIGIN}
            )
        assert left.status_code == 200
        assert "Max-Age=0" in left.headers["set-cookie"]
        assert not await is_in(mine)

        # The host is no host any more: at once, whatever else is left of the session.
        last, unused = await entered(), await console.link()
        async with console.house.stores.main.write() as tx:
            await revoke(tx, console.host.id, clock.now())
        assert not await is_in(last)
        assert (await console.enter(console.stranger, unused)).status_code == 401
        assert await _rows(console, "SELECT * FROM console_sessions") == []


async def test_link_and_session_are_of_the_host_alone(tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        now = console.house.clock.now()
        async with console.house.stores.main.write() as tx:
            guest = await actors.add(tx, Role.GUEST, "luca", console.house.clock)
            link = await console_store.make_link(tx, guest.id, now)
        assert (await console.enter(console.stranger, link)).status_code == 401
        async with console.house.stores.main.write() as tx:
            await tx.execute("UPDATE console_sessions SET actor_id = :id", {"id": guest.id})
        assert (await console.get("/")).status_code == 401


# -- with a session, from elsewhere ---------------------------------------------------------------


async def sent(
    console: Console, method: str, path: str, headers: dict[str, str], **fields: str
) -> httpx.Response:
    data = {"csrf": console.csrf, **fields} if method == "POST" else None
    return await console.client.request(method, path, headers=headers, data=data)


async def probe_hosts(console: Console, number: int) -> bool:
    """Whether every hostile name and origin is refused and changes nothing."""
    for method, headers in HOSTILE:
        path = f"/praxis/plans/{number}/delete" if method == "POST" else "/praxis"
        response = await sent(console, method, path, headers)
        if response.status_code not in {400, 403}:
            return False
    return await is_remembered(console, number)


async def probe_names(console: Console, number: int) -> bool:
    async def of(host: str) -> int:
        return (await sent(console, "GET", "/praxis", {"host": host})).status_code

    return {await of("evil.example:8765"), await of("127.0.0.1")} == {400}


async def probe_origins(console: Console, number: int) -> bool:
    path = f"/praxis/plans/{number}/delete"
    for headers in ({}, {"origin": "http://evil.example"}, {"origin": "null"}):
        if (await sent(console, "POST", path, headers)).status_code != 403:
            return False
    return True


async def probe_forms(console: Console, number: int) -> bool:
    """A form without its secret, with another session's, or with what is no form."""
    async with browser(console.app) as other:
        await console.enter(other, await console.link())
        foreign = rules.csrf_of(other.cookies[console.app.cookie])
    path = f"/praxis/plans/{number}/delete"
    for csrf in (None, "", foreign, console.csrf[:-1], console.secret, "é"):
        data = {"other": "1"} if csrf is None else {"csrf": csrf}
        response = await console.client.post(path, data=data, headers={"origin": ORIGIN})
        if response.status_code != 403:
            return False
    return await is_remembered(console, number)


async def probe_strangers(console: Console, number: int) -> bool:
    seen = [await console.stranger.get(path) for path in ("/", "/praxis", "/nowhere")]
    return {page.status_code for page in seen} == {401}


async def probe_embedding(console: Console, number: int) -> bool:
    """Pages of other sites may lead here, not fetch what is here."""
    fetched = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    led = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    framed = await sent(console, "GET", "/praxis", {**led, "sec-fetch-dest": "iframe"})
    taken = await sent(console, "GET", "/praxis", {**fetched, "sec-fetch-dest": "image"})
    shown = await sent(console, "GET", "/praxis", {**led, "sec-fetch-dest": "document"})
    return (framed.status_code, taken.status_code, shown.status_code) == (403, 403, 200)


async def probe_policy(console: Console, number: int) -> bool:
    inside = [await console.get(path) for path in ("/", "/nowhere", "/praxis/plans/x")]
    outside = [await console.stranger.get(path) for path in ("/", "/enter/x", "/static/x")]
    refused = await sent(console, "GET", "/", {"host": "evil.example"})
    return not any(headers_amiss(page) for page in (*inside, *outside, refused))


async def probe_size(console: Console, number: int) -> bool:
    """Large bodies, other kinds of bodies, and too many fields."""
    path, own = f"/praxis/plans/{number}/delete", {"origin": ORIGIN}
    large = {"csrf": console.csrf, "x": "x" * 20_000}
    many = {"csrf": console.csrf, **{f"f{n}": "1" for n in range(200)}}
    json_body = {"csrf": console.csrf}
    statuses = [
        (await console.client.post(path, data=large, headers=own)).status_code,
        (await console.client.post(path, data=many, headers=own)).status_code,
        (await console.client.post(path, json=json_body, headers=own)).status_code,
        (await console.client.post(path, files={"csrf": b"x"}, headers=own)).status_code,
        (await console.client.put(path, headers=own)).status_code,
    ]
    return statuses == [413, 400, 415, 415, 405] and await is_remembered(console, number)


async def probe_word(console: Console, number: int) -> bool:
    """Nothing is emptied without the typed word."""
    for word in ("", "si", "flus", "svuot"):
        await console.post("/praxis/flush", which="all", word=word)
    return await is_remembered(console, number)


Probe = Callable[[Console, int], Awaitable[bool]]
PROBES: tuple[Probe, ...] = (
    probe_hosts,
    probe_names,
    probe_origins,
    probe_forms,
    probe_strangers,
    probe_embedding,
    probe_policy,
    probe_size,
    probe_word,
)


async def test_hostile_requests_are_refused_and_change_nothing(tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        number = await remember(console)
        failed = [probe.__name__ for probe in PROBES if not await probe(console, number)]
        page = await sent(console, "POST", f"/praxis/plans/{number}/delete", {"origin": ORIGIN})
        gone = not await is_remembered(console, number)

    print(f"console: {len(HOSTILE)} hostile hosts and origins, {len(PROBES)} probes, {failed}")
    assert failed == []
    assert page.status_code == 303
    assert gone


async def _anybody(self: Any, secret: str) -> Any:
    async with self._store.read() as tx:
        host = await actors.find_host(tx)
    assert host is not None
    return console_store.Session(host, "it", False)


def _any_form(body: bytes) -> Any:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(body.decode()))


# Each check taken out, and the probe that must notice.
MUTANTS: tuple[tuple[Any, str, Any, Probe], ...] = (
    (rules, "is_called_right", lambda hosts, known: True, probe_names),
    (rules, "is_called_right", lambda hosts, known: "8765" in next(iter(hosts)), probe_names),
    (rules, "is_own_page", lambda origins, host, site: True, probe_origins),
    (rules, "is_own_page", lambda origins, host, site: not origins, probe_origins),
    (rules, "is_own_page", lambda origins, host, site: "127.0.0.1" in str(origins), probe_hosts),
    (rules, "is_own_form", lambda given, secret: True, probe_forms),
    (rules, "is_own_form", lambda given, secret: bool(given), probe_forms),
    (rules, "may_be_shown", lambda site, mode, dest: True, probe_embedding),
    (guard.Guard, "_session", _anybody, probe_strangers),
    (guard, "_dressed", lambda message, request: message["headers"], probe_policy),
    (guard, "MOST_BYTES", 10**6, probe_size),
    (rules, "read_form", _any_form, probe_size),
    ("bot.console.pages.praxis", "_is_sure", lambda visit: True, probe_word),
)


async def test_probes_notice_each_check_that_is_taken_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survived = []
    async with open_console(tmp_path) as console:
        for room, name, careless, probe in MUTANTS:
            number = await remember(console, f"{name} {time.monotonic()}")
            place = __import__(room, fromlist=["x"]) if isinstance(room, str) else room
            with monkeypatch.context() as patched:
                patched.setattr(place, name, careless)
                try:
                    holds = await probe(console, number)
                except (KeyError, AssertionError):
                    holds = False
            if holds:
                survived.append((name, probe.__name__))

    print(f"console: {len(MUTANTS)} checks taken out, {len(survived)} not noticed")
    assert survived == []


# -- what is kept ---------------------------------------------------------------------------------


async def test_what_is_kept_never_becomes_part_of_a_page(tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        marked = [f"W{n:02d}W {payload}" for n, payload in enumerate(PAYLOADS)]
        for text in marked:
            await remember(console, text)
        for text in marked:
            await _keep(console, text)
        await _keep_beside(console, marked[0])
        console.engine.other = marked[0]

        found = []
        for lang in ("it", "en"):
            await console.speak(lang)
            found += await crawl(console.client)
        noted = await console.get(f"/praxis?done={PAYLOADS[0]}&kind=all&page=-1")
        odd = await console.get(f"/praxis?kind={PAYLOADS[0]}")

    assert {page.status_code for page in found} <= {200, 404}
    harm = {str(page.url): harm_of(page) for page in (*found, noted, odd) if harm_of(page)}
    amiss = {str(page.url): headers_amiss(page) for page in found if headers_amiss(page)}
    words = " ".join(Look(page.text).words for page in found)
    shown = {text[:4] for text in marked if text[:4] in words}
    print(
        f"console: {len(PAYLOADS)} payloads, {len(shown)} of them shown on {len(found)} pages, "
        f"{len(harm)} pages harmed"
    )
    assert harm == {}
    assert amiss == {}
    assert len(shown) == len(PAYLOADS)
    # What was written is read as it was written, not made into something else.
    assert all(payload in words for payload in PAYLOADS[:28])


async def _keep(console: Console, text: str) -> None:
    """A turn, a change, a question and a guest whose words are all this."""
    mark, now = text[:4], time.time()
    line = {"request": text, "steps": [{"tool": text, "args": {text: text}, "error": text}]}
    values = {
        "id": f"turn{mark}",
        "actor": console.host.id,
        "text": text,
        "json": json.dumps(line),
        "now": now,
    }
    async with console.house.stores.main.write() as tx:
        await tx.execute(
            """INSERT INTO turns (id, inbound_id, actor_id, conversation, lang, request, answer,
                   reply_json, state, final_kind, started_at, ended_at, log_json, logged)
               VALUES (:id, :id, :actor, 'telegram:9:', 'it', :text, :text, :json, 'closed',
                       'answer', :now, :now, :json, 1)""",
            values,
        )
        await tx.execute(
            """INSERT INTO effects (key, turn_id, step, tool, state, before_json, expected_json,
                   summary_json, started_at, ended_at)
               VALUES (:id || ':1', :id, 1, :text, 'done', :json, :json, :json, :now, :now)""",
            {name: values[name] for name in ("id", "text", "json", "now")},
        )
        await tx.execute(
            """INSERT INTO suspensions (id, kind, turn_id, actor_id, conversation, fields_json,
                   values_json, data_json, state_json, created_at, expires_at)
               VALUES (:id, 'approval', :id, :actor, 'telegram:9:', '[]', :json, :json, :json,
                       :now, :now + 3000)""",
            {name: values[name] for name in ("id", "actor", "json", "now")},
        )
        guest = await actors.add(tx, Role.GUEST, "x", console.house.clock)
        await tx.execute(
            "UPDATE actors SET display_name = :text WHERE id = :id", {"id": guest.id, "text": text}
        )


async def _keep_beside(console: Console, text: str) -> None:
    """Rows of further tables with this in every column that holds words."""
    values = {
        "host": console.host.id,
        "canary": text,
        "json": json.dumps({"steps": [{"tool": text, "args": {text: text}}]}),
        "now": time.time(),
        "later": time.time() + 3000,
    }
    async with console.house.stores.main.write() as tx:
        for table in ("chats", "visitors", "grants", "mandates", "recipients", "unreachable"):
            sql = hoard.ROWS[table]
            await tx.execute(sql, {k: v for k, v in values.items() if f":{k}" in sql})
        await tx.execute(
            "INSERT OR IGNORE INTO mcp_servers VALUES ('words', :host, '[]', :canary, '[]', :now)",
            {name: values[name] for name in ("host", "canary", "now")},
        )
        seen = SeenTool(text, text, {"type": "object", "properties": {text: {}}}, text)
        await mcp.saw(tx, "words", [seen])
    async with console.house.stores.memory.write() as tx:
        for table in ("champions", "observations", "anti_autopaths"):
            sql = hoard.ROWS[table]
            await tx.execute(sql, {k: v for k, v in values.items() if f":{k}" in sql})


async def _rows(console: Console, sql: str) -> list[Any]:
    async with console.house.stores.main.read() as tx:
        return await tx.fetch_all(sql)
