"""Mail servers that misbehave: silence, rubbish, hanging up, certificates that do not count."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from executors._sdk import imap
from tests.executors.file_cases import run
from tests.support.certificates import certificate_for

# imaplib forgets its socket when a greeting is none; the process of a call ends right after.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
GREETING = b"* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] ready\r\n"


def account(port: int, **values: object) -> dict[str, object]:
    return {
        "name": "Casa", "kind": "mail", "address": "ada@mail.example", "user": "ada",
        "imap_host": "127.0.0.1", "imap_port": port, "imap_safety": "none",
        "smtp_host": "127.0.0.1", "smtp_port": port, "smtp_safety": "none",
        "password": "canary-1", **values,
    }  # fmt: skip


@contextmanager
def server(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that does this with whoever comes, one after the other."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)

        def serve() -> None:
            while not over.is_set():
                try:
                    line, _ = listening.accept()
                except TimeoutError:
                    continue
                with line:
                    line.settimeout(5)
                    with suppress(OSError):
                        talk(line)
                    over.wait(0.05)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield int(listening.getsockname()[1])
        finally:
            over.set()
            thread.join(10)


def greet_then(answer: Callable[[bytes], bytes | None]) -> Callable[[socket.socket], None]:
    """Greets, then answers each line; None hangs up."""

    def talk(line: socket.socket) -> None:
        line.sendall(GREETING)
        for raw in line.makefile("rb"):
            said = answer(raw)
            if said is None:
                return
            line.sendall(said)

    return talk


def _logged_in(raw: bytes) -> bytes:
    tag = raw.split()[0]
    return tag + b" OK done\r\n"


TROUBLES: dict[str, tuple[Callable[[socket.socket], None], set[str]]] = {
    "hangs up at once": (lambda line: None, {"network"}),
    "hangs up after the greeting": (lambda line: line.sendall(GREETING), {"network"}),
    "greets with rubbish": (lambda line: line.sendall(b"\x00\xff" * 50 + b"\r\n"), {"network"}),
    "refuses everybody": (
        lambda line: line.sendall(b"* BYE go away\r\n"),
        {"network", "http_status"},
    ),
    "answers no command": (
        greet_then(lambda raw: None if b"CAPA" not in raw.upper() else _logged_in(raw)),
        {"network"},
    ),
    "answers with rubbish after login": (
        greet_then(
            lambda raw: _logged_in(raw)
            if any(word in raw.upper() for word in (b"CAPABILITY", b"LOGIN"))
            else b"* \xff\xfe {99999999999}\r\n"
        ),
        {"network", "http_status", "timeout"},
    ),
    "has no folder": (
        greet_then(
            lambda raw: raw.split()[0] + b" NO there is none\r\n"
            if b"STATUS" in raw.upper()
            else _logged_in(raw)
        ),
        {"http_status", "not_found"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("trouble", TROUBLES)
def test_server_that_misbehaves_is_a_clear_word(trouble, monkeypatch):
    monkeypatch.setattr(imap, "TIMEOUT_S", 2.0)
    talk, codes = TROUBLES[trouble]
    with server(talk) as port:
        seen = run("read_messages", {}, accounts=[account(port)])

    assert seen["ok"] is False
    assert seen["error"]["code"] in codes, seen["error"]
    assert "canary-1" not in str(seen)


def test_silent_server_is_a_timeout(monkeypatch):
    monkeypatch.setattr(imap, "TIMEOUT_S", 0.5)
    quiet = threading.Event()

    def say_nothing(line: socket.socket) -> None:
        quiet.wait(1.5)

    with server(say_nothing) as port:
        seen = run("read_messages", {}, accounts=[account(port)])

    assert seen["error"]["code"] == "timeout"


@pytest.mark.parametrize("name", ["localhost", "other.example"])
def test_certificate_that_nobody_vouches_for_is_refused(name, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_for(tmp_path, name))

    def talk(line: socket.socket) -> None:
        with context.wrap_socket(line, server_side=True) as safe:
            safe.sendall(GREETING)

    with server(talk) as port:
        seen = run("read_messages", {}, accounts=[account(port, imap_safety="tls")])

    assert seen["error"]["code"] == "tls_failed"
