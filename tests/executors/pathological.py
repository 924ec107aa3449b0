"""A web server that answers with what breaks parsers, memory and patience, over and over."""

from __future__ import annotations

import gzip
import io
import socket
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.executors.web_server import WebServer, _Handler, web_server

GIB = 1 << 30


def zeros_gz(size: int = GIB) -> bytes:
    """`size` zeros as gzip, by repeating one packed member of a mebibyte."""
    return gzip.compress(bytes(1 << 20), 9) * (size >> 20)


def nested_zip() -> bytes:
    """A zip of a zip of zeros: what looks like a small file of another kind."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(50 << 20))
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(20):
            archive.writestr(f"{number}.zip", inner.getvalue())
    return outer.getvalue()


PAGES: dict[str, tuple[Callable[[], bytes], dict[str, str]]] = {
    "gzip_of_zeros": (zeros_gz, {"Content-Encoding": "gzip"}),
    "comments": (lambda: b"<!--" * 50_000, {}),
    "nested": (lambda: b"<html><body>" + b"<div>" * 300_000 + b"word", {}),
    "one_line": (lambda: b"<p>" + b"a" * (10 << 20), {}),
    "attributes": (lambda: b"<a " * 100_000, {}),
    "entities": (lambda: b"<p>" + b"&#x41;&lt;&" * 100_000, {}),
    "zip_as_page": (nested_zip, {"Content-Type": "text/html"}),
}


class _Pathological(_Handler):
    def do_GET(self) -> None:
        name = self.path[1:]
        with suppress(OSError):
            if name in PAGES:
                make, headers = PAGES[name]
                kind = headers.get("Content-Type", "text/html; charset=utf-8")
                more: dict[str, Any] = {
                    k.replace("-", "_"): v for k, v in headers.items() if k != "Content-Type"
                }
                self.reply(make(), kind=kind, **more)
            else:
                getattr(self, f"at_{name}")()
        self.close_connection = True

    def at_endless_text(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        while True:
            self.wfile.write(b"<p>more</p>" * 5000)

    def at_slow_drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        for _ in range(1200):
            self.wfile.write(b"<p>")
            time.sleep(0.1)

    def at_huge_headers(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(100_000):
            self.wfile.write(b"X-%d: %s\r\n" % (number, b"a" * 1000))

    def at_wrong_length(self) -> None:
        self.reply(b"only this", Content_Length="1000000")


@contextmanager
def pathological_server() -> Iterator[WebServer]:
    with web_server() as running:
        running.RequestHandlerClass = _Pathological
        yield running


@contextmanager
def mute_tls_server() -> Iterator[int]:
    """Accepts, and never says a word: the handshake waits."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for one in held:
                one.close()
