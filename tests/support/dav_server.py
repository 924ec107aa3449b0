"""A real CalDAV and CardDAV server on loopback: Radicale through its own server, in a thread.

Its folders lie below a temporary folder. `broken` servers answer as bad ones do: they hang, say
nonsense, or point to somebody else.
"""

from __future__ import annotations

import base64
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from wsgiref.simple_server import WSGIRequestHandler, make_server

from radicale import config
from radicale.app import Application

USER, PASSWORD = "ada", "canary-Pärola-9"


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@dataclass(frozen=True)
class DavHost:
    """`root`: where the server keeps its collections. `port` is on 127.0.0.1."""

    port: int
    root: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def account(self, kind: str = "calendar", name: str = "Casa", **more: str) -> dict[str, str]:
        """An account as a program reads it."""
        return {"name": name, "kind": kind, "url": self.url, "user": USER,
                "password": PASSWORD, **more}  # fmt: skip

    def make(self, name: str, kind: str = "calendar", title: str = "") -> None:
        """Make a collection below the person's home."""
        space = "caldav" if kind == "calendar" else "carddav"
        resource = "C:calendar" if kind == "calendar" else "C:addressbook"
        body = (
            '<D:mkcol xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:'
            + space
            + '"><D:set><D:prop>'
            f"<D:resourcetype><D:collection/><{resource}/></D:resourcetype>"
            f"<D:displayname>{title or name}</D:displayname></D:prop></D:set></D:mkcol>"
        )
        self.ask("MKCOL", f"{USER}/{name}/", body.encode())

    def put(self, path: str, text: str | bytes) -> None:
        """Keep an event or a card, `path` below the person's home."""
        data = text.encode() if isinstance(text, str) else text
        self.ask("PUT", f"{USER}/{path}", data)

    def read(self, path: str) -> str | None:
        """What is kept there; None: nothing."""
        try:
            return self.ask("GET", f"{USER}/{path}").decode()
        except urllib.error.HTTPError as exc:
            if exc.code == 404:
                return None
            raise

    def ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        request = urllib.request.Request(
            self.url + path, data=body, method=method,
            headers={"Authorization": f"Basic {login}", "Content-Type": _type(path)},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())

    def names(self, collection: str) -> list[str]:
        """The files of a collection, as the server keeps them."""
        folder = self.root / "collection-root" / USER / collection
        return sorted(p.name for p in folder.glob("*") if not p.name.startswith("."))


@contextmanager
def dav_host(root: Path, **extra: Any) -> Iterator[DavHost]:
    """A running server for one person, `USER` with `PASSWORD`."""
    users = root / "users"
    users.write_text(f"{USER}:{PASSWORD}\n", encoding="utf-8")
    settings = config.load()
    settings.update(
        {
            "auth": {"type": "htpasswd", "htpasswd_filename": str(users),
                     "htpasswd_encryption": "plain", "delay": "0"},
            "storage": {"filesystem_folder": str(root / "dav"), "_filesystem_fsync": "False"},
            "logging": {"level": "critical"},
        },
        "tests",
        privileged=True,
    )  # fmt: skip
    server = make_server("127.0.0.1", 0, Application(settings), handler_class=_Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield DavHost(server.server_port, root / "dav")
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)


class _Broken(BaseHTTPRequestHandler):
    answers: ClassVar[Mapping[str, tuple[int, Mapping[str, str], bytes]]] = {}
    hangs = False
    stop = threading.Event()
    seen: ClassVar[list[tuple[str, str | None]]] = []

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        type(self).seen.append((self.command, self.headers.get("Authorization")))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, body = self.answers.get(self.command, (501, {}, b""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) + (10 if self.hangs else 0)))
        self.end_headers()
        self.wfile.write(body)
        if self.hangs:  # in the middle of its answer
            self.wfile.flush()
            self.stop.wait(30)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def broken_host(
    *, hangs: bool = False, **answers: tuple[int, Mapping[str, str], bytes]
) -> Iterator[tuple[dict[str, str], list[tuple[str, str | None]]]]:
    """A server that gives these answers by method: an account on it, and what it was asked (method
    and login)."""
    stop = threading.Event()
    seen: list[tuple[str, str | None]] = []
    handler = type("Handler", (_Broken,), {"answers": answers, "hangs": hangs, "stop": stop,
                                           "seen": seen})  # fmt: skip
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield {"name": "Casa", "kind": "calendar", "url": url, "user": USER,
               "password": PASSWORD}, seen  # fmt: skip
    finally:
        stop.set()
        server.shutdown()
        server.server_close()
        thread.join(30)


def pointing_to(home: str, kind: str = "calendar") -> dict[str, Any]:
    """The answers of a server that keeps nothing itself: what is looked for lies at `home`."""
    space, name = ("caldav", "calendar") if kind == "calendar" else ("carddav", "addressbook")
    body = (
        f'<D:multistatus xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:{space}"><D:response>'
        "<D:href>/me/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/>"
        f"</D:resourcetype><C:{name}-home-set><D:href>{home}</D:href></C:{name}-home-set>"
        "</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response></D:multistatus>"
    )
    return {"PROPFIND": (207, {"Content-Type": "application/xml"}, body.encode())}


def free_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _type(path: str) -> str:
    if path.endswith(".ics"):
        return "text/calendar; charset=utf-8"
    return "text/vcard; charset=utf-8" if path.endswith(".vcf") else "application/xml"
