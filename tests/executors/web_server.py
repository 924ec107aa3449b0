"""A web server on loopback with the manners, good and bad, that the web executors must bear."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = (
    "<html lang='it'><head><title>Orari | Biblioteca</title></head><body>"
    "<nav><a href='/menu'>Menu</a></nav><article><h1>Orari della biblioteca</h1>"
    + "".join(
        f"<p>La sala {n} è aperta dal lunedì al sabato, e <a href='/sedi'>le sedi</a> sono tre."
        " Chi vuole restare fino a tardi trova le sale di studio aperte anche la sera.</p>"
        for n in range(6)
    )
    + "</article></body></html>"
).encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: WebServer

    def do_GET(self) -> None:
        self.server.seen.append((self.path, dict(self.headers.items())))
        answer = getattr(self, f"at_{self.path[1:].split('?')[0]}", None)
        if answer is None:
            self.reply(b"not here", status=404)
        else:
            answer()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def reply(
        self, body: bytes, kind: str = "text/html; charset=utf-8", status: int = 200, **more
    ):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in more:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def go(self, location: str) -> None:
        self.reply(b"", status=302, Location=location)

    def at_page(self) -> None:
        self.reply(PAGE)

    def at_gzip(self) -> None:
        self.reply(gzip.compress(PAGE), Content_Encoding="gzip")

    def at_two_gzips(self) -> None:
        body = gzip.compress(PAGE[:50]) + gzip.compress(PAGE[50:]) + b"\0\0"
        self.reply(body, Content_Encoding="gzip")

    def at_half_gzip(self) -> None:
        self.reply(gzip.compress(PAGE)[:-20], Content_Encoding="gzip")

    def at_no_gzip(self) -> None:
        self.reply(PAGE, Content_Encoding="gzip")

    def at_bomb(self) -> None:
        self.reply(gzip.compress(bytes(200_000_000), 9), Content_Encoding="gzip")

    def at_brotli(self) -> None:
        self.reply(b"\x1b\x00", Content_Encoding="br")

    def at_binary(self) -> None:
        self.reply(bytes(range(256)) * 4, kind="application/pdf")

    def at_latin(self) -> None:
        self.reply("<p>perché no – già</p>".encode("cp1252"), kind="text/html; charset=iso-8859-1")

    def at_declared_big(self) -> None:
        self.reply(b"x", Content_Length="99999999")

    def at_short(self) -> None:
        self.reply(b"only this", Content_Length="100")
        self.close_connection = True

    def at_endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                self.wfile.write(bytes(65536))
        except OSError:
            return

    def at_drip(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        try:
            for _ in range(12):
                self.wfile.write(b"x")
                time.sleep(0.05)
        except OSError:
            return

    def at_silent(self) -> None:
        time.sleep(1.5)
        self.close_connection = True

    def at_there(self) -> None:
        self.go("/page#part")

    def at_loop(self) -> None:
        self.go("/loop")

    def at_inner(self) -> None:
        self.go("http://10.0.0.1/secret")

    def at_metadata(self) -> None:
        self.go("http://169.254.169.254/latest/meta-data/")

    def at_file(self) -> None:
        self.go("file:///etc/passwd")

    def at_cookie(self) -> None:
        self.reply(b"", status=302, Location="/page?same", Set_Cookie="a=1; Path=/")

    def at_cookie_away(self) -> None:
        away = f"http://localhost:{self.server.server_port}/page?away"
        self.reply(b"", status=302, Location=away, Set_Cookie="a=1; Path=/")


class WebServer(ThreadingHTTPServer):
    """`seen`: path and headers of every request. `url("/page")`: an address on it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, dict[str, str]]] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up on purpose is no fault worth a traceback."""

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


@contextmanager
def web_server() -> Iterator[WebServer]:
    server = WebServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
