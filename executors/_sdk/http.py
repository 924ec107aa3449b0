"""Fetching over HTTP for executors: bounded in size, time and redirects, every hop checked.

httpx connects through `socket.create_connection`, in whose place the cage has put the engine's
broker (`executors._sdk.net`): every hop is checked there; nothing here opens a socket otherwise.
No proxies, no cookie that leaves its host; what is sent goes to the host it is meant for and to no
other. What uses this declares
`requires = ["httpx"]`.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
import zlib
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import httpx

from executors._sdk import net, result
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from executors._sdk.call import Call

    T = TypeVar("T")

MAX_REDIRECTS = 5
MAX_URL = 8192
PARALLEL = 4
CONNECT_TIMEOUT_S = 10.0
SILENCE_TIMEOUT_S = 15.0
TOTAL_TIMEOUT_S = 30.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GZIP = frozenset({"gzip", "x-gzip"})


class Fetched:
    """What a server gave: `body` is decompressed and whole, `charset` as it said or None."""

    __slots__ = ("body", "charset", "final_url", "media_type", "status", "url")

    def __init__(self, url: str, final_url: str, response: httpx.Response, body: bytes) -> None:
        media_type, _, parameters = response.headers.get("content-type", "").partition(";")
        self.url = url
        self.final_url = final_url
        self.status = response.status_code
        self.media_type = media_type.strip().lower() or "application/octet-stream"
        self.charset = _charset(parameters)
        self.body = body


class Fetcher:
    """Fetches addresses for one call. `max_bytes` bounds each body, decompressed."""

    def __init__(self, call: Call, *, max_bytes: int, accept: str = "*/*") -> None:
        self._max_bytes = max_bytes
        self._headers = {
            "User-Agent": call.user_agent,
            "Accept": accept,
            "Accept-Language": "it, en;q=0.7" if call.lang == "it" else "en, *;q=0.5",
            # What is not asked for need not be unpacked: two packings, both bounded below.
            "Accept-Encoding": "gzip, identity",
        }
        self._tls = httpx.create_ssl_context(trust_env=False)

    def get(self, url: str, *, total_timeout_s: float = TOTAL_TIMEOUT_S) -> Fetched:
        """One address, redirects followed by hand.

        Raises `Failure`: invalid_args (no web address), host_denied, host_not_found, tls_failed,
        timeout, network, http_status (params `status`), too_large (params `limit`), unsupported.
        """
        deadline = time.monotonic() + total_timeout_s
        target = parse_url(url)
        with self._client() as client:
            for _ in range(MAX_REDIRECTS + 1):
                try:
                    fetched = self._hop(client, url, target, deadline)
                except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
                    raise failure_of(exc, target.host) from exc
                if isinstance(fetched, Fetched):
                    return fetched
                if _site(fetched) != _site(target):
                    client.cookies.clear()
                target = fetched
        raise Failure("network", f"more than {MAX_REDIRECTS} redirects", host=target.host)

    def post(
        self,
        url: str,
        document: Mapping[str, Any],
        *,
        headers: Mapping[str, str],
        total_timeout_s: float = TOTAL_TIMEOUT_S,
    ) -> Fetched:
        """What an address answers to a JSON document, whatever the status.

        Redirects are not followed: the headers may hold a secret. Raises `Failure` as `get` does,
        but for http_status.
        """
        deadline = time.monotonic() + total_timeout_s
        target = parse_url(url)
        sent = json.dumps(document).encode()
        with self._client() as client:
            try:
                fetched = self._hop(client, url, target, deadline, sent, headers)
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
                raise failure_of(exc, target.host) from exc
        if not isinstance(fetched, Fetched):
            raise Failure("network", "the service redirects elsewhere", host=target.host)
        return fetched

    def _client(self) -> httpx.Client:
        """One of its own for each address: neither cookies nor connections are shared."""
        return httpx.Client(
            verify=self._tls, trust_env=False, follow_redirects=False, headers=self._headers
        )

    def _hop(
        self,
        client: httpx.Client,
        url: str,
        target: httpx.URL,
        deadline: float,
        sent: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Fetched | httpx.URL:
        """The body at `target`, or where it points to. `sent`: a JSON document that is posted;
        then any status is an answer."""
        left = _left(deadline, target.host)
        timeout = httpx.Timeout(min(left, SILENCE_TIMEOUT_S), connect=min(left, CONNECT_TIMEOUT_S))
        if sent is None:
            request = client.build_request("GET", target, timeout=timeout)
        else:
            told = {"Content-Type": "application/json", **(headers or {})}
            request = client.build_request(
                "POST", target, content=sent, headers=told, timeout=timeout
            )
        response = client.send(request, stream=True)
        try:
            location = response.headers.get("location")
            if response.status_code in _REDIRECTS and location:
                return _next(target, location)
            if sent is None and not response.is_success:
                raise Failure(
                    "http_status",
                    f"{response.status_code} {response.reason_phrase}"[:100].strip(),
                    status=response.status_code,
                    host=target.host,
                )
            body = b"".join(self._body(response, target.host, deadline))
        finally:
            response.close()
        return Fetched(url, str(target), response, body)

    def _body(self, response: httpx.Response, host: str, deadline: float) -> Iterator[bytes]:
        length = response.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self._max_bytes:
            raise _too_large(self._max_bytes)
        packing = response.headers.get("content-encoding", "").strip().lower()
        if packing not in {"", "identity", *_GZIP}:
            raise Failure("unsupported", f"the body is packed with {packing[:40]!r}")
        unpacker = Gunzip() if packing in _GZIP else None
        room = self._max_bytes
        for raw in response.iter_raw():
            _left(deadline, host)
            for piece in unpacker.feed(raw, room) if unpacker else (raw,):
                room -= len(piece)
                if room < 0:
                    raise _too_large(self._max_bytes)
                yield piece
        if unpacker is not None and not unpacker.is_complete:
            raise Failure("network", "the packed body ends too early", host=host)

    def get_many(
        self, call: Call, urls: Sequence[str], then: Callable[[Fetched], T]
    ) -> list[T | Failure]:
        """`then` of each fetched address in the order of `urls`, or the failure of it.

        A few at a time. `then` runs here, one after the other; a `Failure` it raises counts for
        its address. What has not come after the total time is a `timeout`.
        """
        found: list[T | Failure] = [Failure("timeout", "not reached in time") for _ in urls]
        deadline = time.monotonic() + TOTAL_TIMEOUT_S * (1 + (len(urls) - 1) // PARALLEL)
        pool = ThreadPoolExecutor(PARALLEL)
        waiting: dict[Future[Fetched], int] = {
            pool.submit(self.get, url): index for index, url in enumerate(urls)
        }
        try:
            while waiting:
                left = deadline - time.monotonic()
                ready, _ = wait(waiting, timeout=max(left, 0), return_when=FIRST_COMPLETED)
                if not ready:
                    break
                for future in ready:
                    index = waiting.pop(future)
                    try:
                        found[index] = then(future.result())
                    except Failure as failure:
                        found[index] = failure
                call.progress(len(urls) - len(waiting), len(urls))
        finally:
            # A server that drips its headers holds a thread; the call does not wait for it.
            pool.shutdown(wait=False, cancel_futures=True)
        return found


class Gunzip:
    """Unpacks gzip piece by piece, never more than was asked for at once."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self._begun = False

    @property
    def is_complete(self) -> bool:
        return self._stream.eof or not self._begun

    def feed(self, data: bytes, room: int) -> Iterator[bytes]:
        """The unpacked bytes of `data`; stops soon after `room` is exceeded.

        Raises `Failure(network)` for what is no gzip. Several streams behind each other are one.
        """
        while data:
            if self._stream.eof:
                # Padding behind the end is common and harmless.
                if not data.startswith(b"\x1f\x8b"):
                    return
                self._stream = zlib.decompressobj(wbits=31)
            self._begun = True
            try:
                piece = self._stream.decompress(data, min(room + 1, 1 << 20))
            except zlib.error as exc:
                raise Failure("network", "the packed body is broken") from exc
            room -= len(piece)
            yield piece
            if room < 0:
                return
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail


def parse_url(text: str) -> httpx.URL:
    """A web address in strict form. `name.example/x` gets `https://`.

    Raises `Failure` invalid_args for what two parsers could read in two ways. Whether the host may
    be contacted is for the broker to say.
    """
    text = text.strip()
    if "://" not in text and text[:1].isalnum() and "." in text.partition("/")[0]:
        text = f"https://{text}"
    if (
        len(text) > MAX_URL
        or "\\" in text
        or any(c.isspace() or not c.isprintable() for c in text)
    ):
        raise Failure("invalid_args", "no web address")
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, UnicodeError) as exc:
        raise Failure("invalid_args", "no web address") from exc
    if url.scheme not in {"http", "https"} or not url.host or url.userinfo:
        raise Failure("invalid_args", "an address begins with http:// or https:// and a host")
    if url.port is not None and not 0 < url.port < 65536:
        raise Failure("invalid_args", "no such port")
    return url.copy_with(fragment=None)


def failed_entry(url: str, failure: Failure) -> dict[str, Any]:
    """The entry of an address that did not work, its error with what people are told."""
    error = result.failure(failure.code, failure.detail, **failure.params)["error"]
    return {"ok": False, "url": url, "error": error}


def _next(here: httpx.URL, location: str) -> httpx.URL:
    try:
        joined = here.join(location)
    except (httpx.InvalidURL, UnicodeError) as exc:
        raise Failure("network", "the redirect leads nowhere", host=here.host) from exc
    target = parse_url(str(joined))
    if here.scheme == "https" and target.scheme == "http":
        raise Failure("tls_failed", "the redirect leaves https", host=target.host)
    return target


def _site(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _left(deadline: float, host: str) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise Failure("timeout", "the server is too slow", host=host)
    return left


def _too_large(limit: int) -> Failure:
    return Failure("too_large", f"more than {limit} bytes", limit=limit)


def _charset(parameters: str) -> str | None:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()[:40] or None
    return None


def failure_of(exc: BaseException, host: str) -> Failure:
    """What an exception of httpx stands for, found in what caused it."""
    link: BaseException | None = exc
    while link is not None:
        if isinstance(link, net.HostDenied):
            return Failure("host_denied", str(link), host=host)
        if isinstance(link, ssl.SSLError):
            return result.of_tls(link, host=host)
        if isinstance(link, socket.gaierror):
            return result.of_lookup(link, host=host)
        link = link.__cause__ or link.__context__
    if isinstance(exc, (httpx.TimeoutException, TimeoutError)):
        return Failure("timeout", "the server does not answer", host=host)
    if isinstance(exc, (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError)):
        return Failure("invalid_args", "no web address")
    return Failure("network", str(exc)[:200] or type(exc).__name__, host=host)
