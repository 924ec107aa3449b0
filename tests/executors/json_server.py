"""A server on loopback that answers JSON as a test says, and goes wrong as services do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request: `query` with the last value of each parameter, `body` as JSON or None."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any = None


@dataclass(frozen=True)
class Gone:
    """What goes wrong: a status with a body, an answer that is cut, or none at all."""

    status: int = 200
    body: bytes = b""
    cut: bool = False
    hangs: bool = False
    headers: dict[str, str] = field(default_factory=dict)


Answer = Callable[[Asked], Any]

# What every client of a JSON service must bear, with the code that it has to say.
FAULTS = {
    "forbidden": (Gone(403, b'{"error": "no"}'), "http_status"),
    "too many": (Gone(429, b'{"error": true, "reason": "limit exceeded"}'), "http_status"),
    "server error": (Gone(500, b"oops"), "http_status"),
    "busy": (Gone(503), "http_status"),
    "no json": (Gone(200, b"<html>maintenance</html>"), "bad_answer"),
    "half json": (Gone(200, b'{"results": ['), "bad_answer"),
    "deep json": (Gone(200, b"[" * 100_000), "bad_answer"),
    "a list": (Gone(200, b"[]"), "bad_answer"),
    "cut": (Gone(200, b'{"results": [', cut=True), "network"),
    "empty": (Gone(200, b""), "bad_answer"),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: JsonServer

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self._answer(json.loads(self.rfile.read(length)))

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self, body: Any) -> None:
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        asked = Asked(self.command, parts.path, query, dict(self.headers.items()), body)
        self.server.seen.append(asked)
        answer = self.server.broken or self.server.answer(asked)
        if not isinstance(answer, Gone):
            answer = Gone(200, json.dumps(answer).encode())
        if answer.hangs:
            self.close_connection = True
            self.server.over.wait(30)
            return
        self.send_response(answer.status)
        if "Content-Type" not in answer.headers:
            self.send_header("Content-Type", "application/json")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body) + (100 if answer.cut else 0)))
        self.end_headers()
        self.wfile.write(answer.body)
        self.close_connection = answer.cut


class JsonServer(ThreadingHTTPServer):
    """`seen`: every request. `answer`: what is said to each, JSON or `Gone`. `broken`: what all
    are told instead."""

    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.seen: list[Asked] = []
        self.broken: Gone | None = None
        self.over = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up on purpose is no fault worth a traceback."""

    @property
    def endpoint(self) -> str:
        return f"http://localhost:{self.server_port}"

    @property
    def grant(self) -> str:
        return f"localhost:{self.server_port}"


@contextmanager
def json_server(answer: Answer) -> Iterator[JsonServer]:
    server = JsonServer(answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
