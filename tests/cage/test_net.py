"""The network hook of a child: the broker, and nobody else, connects it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import dedent

import pytest

from core.catalog.manifest import Capability
from core.errors import ErrorCode
from executors._sdk import net, result
from tests.cage.conftest import Room

WEB = (Capability("network:http", ("arg:host",)),)
MAIL = (Capability("mail:read", ("arg:host",)), Capability("mail:send", ("arg:host",)))


@contextmanager
def listening() -> Iterator[int]:
    """A server on loopback that greets who connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"hello")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


CONNECT = """
import socket
from executors._sdk import result

def run(call):
    with socket.create_connection((call.args["host"], call.args["port"]), 5) as connection:
        return result.done(content=connection.recv(10).decode())
"""


async def test_executor_reaches_a_granted_host_and_no_other(room: Room):
    with listening() as port:
        args = {"host": "localhost", "port": port}
        granted = await room.run(CONNECT, args, private_hosts=("localhost",), capabilities=WEB)
        refused = await room.run(CONNECT, args, capabilities=WEB)
        without = await room.run(CONNECT, args, private_hosts=("localhost",))

    assert granted.content == "hello"
    for denied in (refused, without):
        assert denied.error is not None
        assert denied.error.code is ErrorCode.HOST_DENIED


@pytest.mark.parametrize(
    "code",
    [
        "import urllib.request\ndef run(c): urllib.request.urlopen('http://127.0.0.1/')",
        "import http.client\ndef run(c): http.client.HTTPConnection('127.0.0.1', 80).connect()",
        "import smtplib\ndef run(c): smtplib.SMTP('127.0.0.1', 25)",
        "import imaplib\ndef run(c): imaplib.IMAP4('127.0.0.1')",
        "import httpx\ndef run(c): httpx.get('http://[::ffff:127.0.0.1]/')",
        "from socket import create_connection as go\ndef run(c): go(('0x7f.1', 80))",
    ],
)
async def test_every_client_of_the_library_asks_the_hook(room: Room, code: str):
    observation = await room.run(
        dedent(code), requires=("httpx",), memory_mb=1024, capabilities=(*WEB, *MAIL)
    )

    assert observation.error is not None
    assert observation.error.code is ErrorCode.HOST_DENIED


IMAP = """
import imaplib
from executors._sdk import result

def run(call):
    with imaplib.IMAP4("localhost", call.args["port"], timeout=45) as box:
        return result.done(content=box.welcome.decode())
"""
SMTP = """
import smtplib
from executors._sdk import result

def run(call):
    with smtplib.SMTP("localhost", call.args["port"], timeout=45) as post:
        return result.done(content=[post.local_hostname, post.noop()[0]])
"""
HTTP = """
import httpx
from executors._sdk import result

def run(call):
    with httpx.Client(trust_env=False, follow_redirects=True, timeout=45) as client:
        return result.done(content=client.get(f"http://localhost:{call.args['port']}/").text)
"""
IMAP_TALK = (b"* OK ready\r\n", b" OK done\r\n")
SMTP_TALK = (b"220 ready\r\n", b"250 ok\r\n")
HTTP_TALK = (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")


@contextmanager
def talking(greeting: bytes, answer: bytes) -> Iterator[int]:
    """A server that greets and answers every line group with the same; IMAP tags are repeated."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(greeting)
                while data := connection.recv(4096):
                    tag = data.split()[0] if answer.startswith(b" OK") else b""
                    if b"CAPABILITY" in data:
                        connection.sendall(b"* CAPABILITY IMAP4rev1\r\n")
                    if b"LOGOUT" in data:
                        connection.sendall(b"* BYE\r\n")
                    connection.sendall(b"221 bye\r\n" if b"quit" in data.lower() else tag + answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            thread.join(45)


@pytest.mark.parametrize(
    ("code", "talk", "content"),
    [
        (IMAP, IMAP_TALK, "* OK ready"),
        (SMTP, SMTP_TALK, ["[127.0.0.1]", 250]),
        (HTTP, HTTP_TALK, "hi"),
    ],
    ids=["imap", "smtp", "http"],
)
async def test_client_of_the_library_works_over_the_broker(
    room: Room, code: str, talk: tuple[bytes, bytes], content: object
):
    with talking(*talk) as port:
        observation = await room.run(
            code,
            {"port": port},
            requires=("httpx",),
            memory_mb=1024,
            capabilities=(*WEB, *MAIL),
            private_hosts=("localhost",),
        )

    assert observation.error is None
    assert observation.content == content


async def test_line_to_the_broker_is_no_descriptor_of_a_call_without_the_right(room: Room):
    code = """
    import os, stat
    def run(call):
        fds = range(256)
        kinds = []
        for fd in fds:
            try:
                kinds.append(stat.S_ISSOCK(os.fstat(fd).st_mode))
            except OSError:
                pass
        return {"ok": True, "content": sum(kinds)}
    """

    without = await room.run(dedent(code))
    with_it = await room.run(dedent(code), capabilities=WEB)

    assert (without.content, with_it.content) == (0, 1)


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (net.HostDenied("x"), "host_denied"),
        (socket.gaierror(-2, "unknown"), "host_not_found"),
        (socket.gaierror(-3, "nobody to ask"), "network"),
        (TimeoutError(), "timeout"),
        (ConnectionRefusedError(111, "refused"), "network"),
        (FileNotFoundError(2, "no"), "not_found"),
        (OSError(28, "full"), "disk_full"),
        (OSError("odd"), "internal"),
        (MemoryError(), "resource_limit"),
        (result.Failure("unknown_place"), "unknown_place"),
    ],
    ids=lambda value: str(value),
)
def test_exception_has_a_code_also_as_a_cause(exc: BaseException, code: str):
    wrapped = RuntimeError("wrapped")
    wrapped.__cause__ = exc

    for given in (exc, wrapped):
        failure = result.from_exception(given)
        assert failure is not None
        assert failure.code == code


def test_exception_of_the_program_has_no_code():
    assert result.from_exception(KeyError("x")) is None


def test_done_with_only_failed_entries_is_the_failure_of_the_first():
    made = result.done(
        [
            result.failed_item("not_found", path="/a"),
            result.failed_item("permission_denied", path="/b"),
        ]
    )

    assert made["ok"] is False
    assert made["error"]["code"] == "not_found"
    assert made["error"]["params"] == {"path": "/a"}
    assert made["metadata"] == {"count": 2, "ok_count": 0, "failed_count": 2}


def test_done_with_one_good_entry_is_ok_and_counts():
    made = result.done(
        [result.item(path="/a"), result.failed_item("not_found", path="/b")], truncated=True
    )

    assert made["ok"] is True
    assert made["metadata"] == {"count": 2, "ok_count": 1, "failed_count": 1, "truncated": True}
