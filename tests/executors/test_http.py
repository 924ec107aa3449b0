"""Fetching within the test process, over the checked connection, from a real server."""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from executors._sdk import http
from executors._sdk.call import Call
from executors._sdk.result import Failure
from tests.executors.web_server import PAGE, WebServer, web_server
from tests.support.broker import asker, reach_of
from tests.support.certificates import certificate_for

CALL = Call({"lang": "it", "user_agent": "Metnos/0.1 (test)"})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    with web_server() as running, asker(reach_of("127.0.0.1", "localhost")) as asks:
        monkeypatch.setattr(socket, "create_connection", asks.create_connection)
        yield running


def fetch(url: str, *, max_bytes: int = 1_000_000) -> http.Fetched:
    return http.Fetcher(CALL, max_bytes=max_bytes).get(url)


def refusal(url: str, *, max_bytes: int = 1_000_000) -> Failure:
    with pytest.raises(Failure) as caught:
        fetch(url, max_bytes=max_bytes)
    return caught.value


def test_get_page_gives_body_as_served_and_says_who_asks(server: WebServer):
    got = fetch(server.url("/page"))

    assert (got.body, got.media_type, got.charset, got.status) == (PAGE, "text/html", "utf-8", 200)
    headers = server.seen[0][1]
    assert headers["User-Agent"] == "Metnos/0.1 (test)"
    assert headers["Accept-Encoding"] == "gzip, identity"


@pytest.mark.parametrize("path", ["/gzip", "/two_gzips"])
def test_get_packed_body_is_unpacked_whole(server: WebServer, path: str):
    assert fetch(server.url(path)).body == PAGE


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/nothing", "http_status"),
        ("/half_gzip", "network"),
        ("/no_gzip", "network"),
        ("/short", "network"),
        ("/brotli", "unsupported"),
        ("/bomb", "too_large"),
        ("/endless", "too_large"),
        ("/declared_big", "too_large"),
        ("/loop", "network"),
        ("/inner", "host_denied"),
        ("/metadata", "host_denied"),
        ("/file", "invalid_args"),
    ],
)
def test_get_bad_answer_fails_with_its_own_code(server: WebServer, path: str, code: str):
    assert refusal(server.url(path)).code == code


def test_get_error_status_is_a_parameter_of_the_failure(server: WebServer):
    assert refusal(server.url("/nothing")).params["status"] == 404


def test_get_body_at_limit_passes_and_one_byte_more_fails(server: WebServer):
    assert fetch(server.url("/gzip"), max_bytes=len(PAGE)).body == PAGE
    assert refusal(server.url("/gzip"), max_bytes=len(PAGE) - 1).code == "too_large"
    assert refusal(server.url("/page"), max_bytes=len(PAGE) - 1).code == "too_large"


def test_get_redirect_is_followed_and_fragment_is_dropped(server: WebServer):
    got = fetch(server.url("/there"))

    assert got.final_url == server.url("/page")
    assert got.url == server.url("/there")


def test_get_loop_stops_after_five_redirects(server: WebServer):
    refusal(server.url("/loop"))

    assert len(server.seen) == 1 + http.MAX_REDIRECTS


def test_get_cookie_stays_with_its_host(server: WebServer):
    fetch(server.url("/cookie"))
    fetch(server.url("/cookie_away"))

    sent = {path: headers.get("Cookie") for path, headers in server.seen}
    assert sent == {
        "/cookie": None,
        "/page?same": "a=1",
        "/cookie_away": None,
        "/page?away": None,
    }


def test_get_ignores_proxies_of_the_environment(server: WebServer, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")

    assert fetch(server.url("/page")).body == PAGE


def test_get_silent_server_is_a_timeout(server: WebServer, monkeypatch):
    monkeypatch.setattr(http, "SILENCE_TIMEOUT_S", 0.2)

    assert refusal(server.url("/silent")).code == "timeout"


def test_get_dripping_server_is_bounded_in_total(server: WebServer):
    with pytest.raises(Failure) as caught:
        http.Fetcher(CALL, max_bytes=1000).get(server.url("/drip"), total_timeout_s=0.3)

    assert caught.value.code == "timeout"


def test_get_refused_connection_is_network(server: WebServer):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    assert refusal(f"http://127.0.0.1:{port}/").code == "network"


def test_get_unknown_name_is_host_not_found(monkeypatch):
    def resolve(*args: object) -> list[object]:
        raise socket.gaierror(-2, "Name or service not known")

    with asker(reach_of(), lookup=resolve) as asks:
        monkeypatch.setattr(socket, "create_connection", asks.create_connection)
        failure = refusal("https://nobody.example/")

    assert (failure.code, failure.params["host"]) == ("host_not_found", "nobody.example")


def test_get_self_signed_certificate_is_tls_failed(server: WebServer, tmp_path: Path):
    with tls_server(tmp_path) as port:
        assert refusal(f"https://localhost:{port}/").code == "tls_failed"


def test_get_plain_text_where_tls_is_expected_is_tls_failed(server: WebServer):
    assert refusal(server.url("/page").replace("http:", "https:")).code == "tls_failed"


def test_next_never_leaves_https():
    with pytest.raises(Failure) as caught:
        http._next(http.parse_url("https://a.example/"), "http://a.example/")

    assert caught.value.code == "tls_failed"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ftp://a.example/", "invalid_args"),
        ("http://", "invalid_args"),
        ("http://user:pass@a.example/", "invalid_args"),
        ("http://a.example\\@b.example/", "invalid_args"),
        ("http://a.example/ b", "invalid_args"),
        ("http://a.example/\x00", "invalid_args"),
        ("http://a.example/\u202e", "invalid_args"),
        ("http://a.example:99999/", "invalid_args"),
        ("http://[::1/", "invalid_args"),
        ("javascript:alert(1)", "invalid_args"),
        ("", "invalid_args"),
        ("http://a.example/" + "x" * 9000, "invalid_args"),
    ],
)
def test_parse_url_refuses_what_two_parsers_could_read_in_two_ways(text: str, code: str):
    with pytest.raises(Failure) as caught:
        http.parse_url(text)

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.example/x", "https://a.example/x"),
        (" HTTP://A.Example/x#y ", "http://a.example/x"),
        ("https://xn--caff-8oa.example/a//b", "https://xn--caff-8oa.example/a//b"),
        ("https://caffè.example/è?q=è", "https://xn--caff-8oa.example/%C3%A8?q=%C3%A8"),
    ],
)
def test_parse_url_gives_one_spelling(text: str, expected: str):
    url = http.parse_url(text)

    path = url.raw_path.decode()
    assert f"{url.scheme}://{url.raw_host.decode()}{path}" == expected


def test_get_many_keeps_order_and_gives_each_its_own_result(server: WebServer):
    urls = [server.url(path) for path in ("/page", "/nothing", "/gzip", "/inner", "/drip")]
    steps: list[tuple[int | None, int | None]] = []
    call = Call({}, progress=lambda done, total: steps.append((done, total)))

    found = http.Fetcher(call, max_bytes=1_000_000).get_many(call, urls, lambda got: got.body)

    codes = [got.code if isinstance(got, Failure) else got[:5] for got in found]
    assert codes == [b"<html", "http_status", b"<html", "host_denied", b"xxxxx"]
    assert steps[-1] == (5, 5)


def test_gunzip_never_gives_much_more_than_asked():
    packed = gzip.compress(bytes(50_000_000))

    given = sum(len(piece) for piece in http.Gunzip().feed(packed, 1000))

    assert given == 1001


@contextmanager
def tls_server(folder: Path) -> Iterator[int]:
    """The port of a TLS server with a certificate that nobody signed."""
    file = certificate_for(folder, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            try:
                connection, _ = listener.accept()
                with connection, context.wrap_socket(connection, server_side=True):
                    pass
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join(timeout=60)
