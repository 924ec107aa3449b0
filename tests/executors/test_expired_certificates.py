"""Certificates that have really run out: of mail servers in and out, calendars, address books and
pages. Their authority is trusted, so that nothing but the date is wrong."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import pytest

from executors._sdk import dav, imap
from tests.executors.file_cases import run
from tests.executors.test_mail_trouble import account, greet_then, server
from tests.support.certificates import vouched_for

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def says_expired(seen) -> bool:
    """A server that speaks the wrong protocol is some other trouble."""
    assert seen["ok"] is False
    return bool(seen["error"]["code"] == "certificate_expired")


@pytest.fixture(params=["expired", "good"])
def served(request, tmp_path, monkeypatch) -> Iterator[tuple[str, int]]:
    """A server behind TLS that greets, and says a line that is good in no protocol; how its
    certificate is."""
    ends = timedelta(days=-2 if request.param == "expired" else 2)
    trusted, file = vouched_for(tmp_path, ends=ends)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    trusting = ssl.create_default_context(cafile=str(trusted))
    monkeypatch.setattr(imap, "tls", lambda: trusting)
    monkeypatch.setattr(dav, "_tls", lambda: trusting)
    monkeypatch.setattr("httpx.create_ssl_context", lambda **options: trusting)

    def talk(line):
        with context.wrap_socket(line, server_side=True) as safe:
            safe.settimeout(0.3)
            with suppress(TimeoutError):
                safe.recv(1)
            safe.sendall(b"HTTP/1.1 500 no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with server(talk) as port:
        yield request.param, port


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("read_events", {}),
        ("create_events", {"summary": "Cena", "start": "2026-04-01T20:00"}),
        ("find_events_empty", {}),
        ("find_contacts", {"query": "anna"}),
    ],
)
def test_calendars_and_contacts_say_that_it_ran_out(served, name, args):
    how, port = served
    given = {"name": "Casa", "kind": "calendar", "url": f"https://localhost:{port}/",
             "user": "ada", "password": "canary-1"}  # fmt: skip

    seen = run(name, args, accounts=[given])

    assert says_expired(seen) is (how == "expired"), seen
    assert seen["error"]["params"]["host"] == "localhost"


@pytest.mark.parametrize("name", ["get_urls", "read_urls_html", "read_urls_feed", "read_urls_pdf"])
def test_pages_say_that_it_ran_out(served, name):
    how, port = served
    hosts = [f"localhost:{port}"]

    seen = run(name, {"urls": [f"https://localhost:{port}/x"]}, private_hosts=hosts)

    assert says_expired(seen) is (how == "expired"), seen


def test_mail_servers_say_that_it_ran_out(served):
    how, port = served
    mail_in = run("read_messages", {}, accounts=[account(port, imap_safety="tls")])
    with server(greet_then(_accept)) as plain:
        both = account(plain, smtp_port=port, smtp_safety="tls")
        mail_out = run("send_messages", {"to": ["a@b.example"], "body": "x"}, accounts=[both])

    for seen in (mail_in, mail_out):
        assert says_expired(seen) is (how == "expired"), seen
        assert seen["error"]["params"]["host"] == "127.0.0.1"
        assert "canary-1" not in str(seen)


def _accept(raw: bytes) -> bytes:
    return raw.split()[0] + b" OK done\r\n"
