"""Calendars and address books over HTTP (WebDAV, CalDAV, CardDAV): found, read, changed.

Nothing is overwritten blindly: what changes a resource names the version (ETag) that it saw, and
what makes one demands that none is there. Name and password go to the account's own server, and
to the one more (`home`) that its person allowed by name; what points to any other is refused.
What uses this declares `requires = ["httpx"]`.
"""

from __future__ import annotations

import time
from datetime import UTC
from functools import lru_cache
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import httpx

from executors._sdk.dav_parts import (
    BOOKS,
    MAX_BODY,
    Collection,
    D,
    Kind,
    Node,
    PictureSieve,
    Resource,
    holds_events,
)
from executors._sdk.encodings import lossless
from executors._sdk.http import Gunzip, failure_of
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from typing import Any, Self

    from executors._sdk.call import Call

CONNECT_TIMEOUT_S = 10.0
SILENCE_TIMEOUT_S = 15.0
TOTAL_TIMEOUT_S = 45.0
MAX_COLLECTIONS = 50
MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_GONE = frozenset({404, 410})
_FELL_OVER = frozenset({500, 502, 504})
_SPACES = (
    'xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav" '
    'xmlns:A="urn:ietf:params:xml:ns:carddav"'
)


class Dav:
    """A connection to one account's server; a context manager.

    Every method raises `Failure`: wrong_credentials (params `name`), permission_denied, not_found,
    network, timeout, tls_failed, certificate_expired, host_not_found, host_denied, http_status
    (params `status`), too_large, bad_answer for one that is none, other_server (params `name`,
    `host`, and as `home` the address to be allowed) when the collections lie where the login may
    not go.

    A path here is one on the account's server; what lies on its `home` is a whole address.
    """

    def __init__(self, call: Call, account: Mapping[str, Any], kind: Kind) -> None:
        self._name = str(account["name"])
        self._base = httpx.URL(str(account["url"]))
        more = [httpx.URL(str(account["home"]))] if account.get("home") else []
        self._allowed = {_origin(one) for one in (self._base, *more)}
        self._kind = kind
        self._login = (str(account["user"]), str(account["password"]))
        self._deadline = time.monotonic() + TOTAL_TIMEOUT_S
        self._client = httpx.Client(
            verify=_tls(),
            trust_env=False,
            follow_redirects=False,
            auth=httpx.BasicAuth(*self._login),
            headers={"User-Agent": call.user_agent, "Accept-Encoding": "identity"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._client.close()

    # -- finding ----------------------------------------------------------------------------------

    def collections(self) -> list[Collection]:
        """The calendars or address books of the account. An address that is one itself is the
        only one; else they are looked for by way of the principal (RFC 6764, 5397)."""
        here = self._look(self._base.raw_path.decode("ascii"))
        if here is not None and here.is_a(self._kind.resource):
            return [self._collection(here)]
        homes = self._linked(here, self._kind.home) or self._homes(here)
        found: list[Collection] = []
        for home in homes[:5]:
            nodes = self._propfind(home, 1)
            found += [
                self._collection(node)
                for node in nodes
                if node.is_a(self._kind.resource) and holds_events(node)
            ]
        if not found:
            raise Failure("not_found", "the server has none for this account",
                          path=self._base.host)  # fmt: skip
        return found[:MAX_COLLECTIONS]

    def _homes(self, here: Node | None) -> list[str]:
        principals = self._linked(here, f"{D}current-user-principal")
        if not principals:
            known = self._look(self._kind.well_known) or self._look("/")
            principals = self._linked(known, f"{D}current-user-principal")
        for principal in principals[:1]:
            homes = self._linked(self._look(principal), self._kind.home)
            if homes:
                return homes
        raise Failure("not_found", "there is no calendar or address book at this address",
                      path=self._base.host)  # fmt: skip

    def _linked(self, node: Node | None, name: str) -> list[str]:
        """Where the addresses in a property of a node lead."""
        listed = node.hrefs(name) if node is not None else []
        return [self._own_path(href, node.href, looks=True) for href in listed] if node else []

    def _look(self, path: str) -> Node | None:
        """What is known of one path; None when the server has nothing there."""
        try:
            nodes = self._propfind(path, 0)
        except Failure as failure:
            if failure.code == "not_found" or failure.params.get("status") in {405, 501}:
                return None
            raise
        return nodes[0] if nodes else None

    def _propfind(self, path: str, depth: int) -> list[Node]:
        body = (
            f"<D:propfind {_SPACES}><D:prop><D:resourcetype/><D:displayname/>"
            "<D:current-user-principal/><D:current-user-privilege-set/><D:getetag/>"
            "<C:calendar-home-set/><A:addressbook-home-set/>"
            "<C:supported-calendar-component-set/></D:prop></D:propfind>"
        )
        return self._multistatus("PROPFIND", path, str(depth), body)

    def _collection(self, node: Node) -> Collection:
        name = node.text(f"{D}displayname") or unquote(node.href.rstrip("/").rsplit("/", 1)[-1])
        rights = node.props.get(f"{D}current-user-privilege-set")
        may = rights is None or any(
            rights.find(f".//{D}{right}") is not None
            for right in ("all", "write", "write-content", "bind")
        )
        return Collection(node.href, " ".join(name.split())[:100], is_writable=may)

    # -- reading ----------------------------------------------------------------------------------

    def events(self, collection: Collection, start: datetime, end: datetime) -> list[Resource]:
        """The resources with an event between two moments: the server picks them."""
        span = " ".join(
            f'{name}="{moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")}"'
            for name, moment in (("start", start), ("end", end))
        )
        body = (
            f"<C:calendar-query {_SPACES}><D:prop><D:getetag/><C:calendar-data/></D:prop>"
            '<C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT">'
            f"<C:time-range {span}/></C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"
        )
        return self._report(collection.href, body)

    def cards(self, collection: Collection) -> list[Resource]:
        """All cards of an address book, without pictures."""
        body = (
            f"<A:addressbook-query {_SPACES}><D:prop><D:getetag/><A:address-data/></D:prop>"
            "</A:addressbook-query>"
        )
        return self._report(collection.href, body)

    def get(self, href: str) -> Resource | None:
        """One resource; None when it is not there any more."""
        status, headers, body = self._send("GET", href)
        if status in _GONE:
            return None
        self._check(status, href)
        text = lossless(body)
        return Resource(href, headers.get("etag", "") or self._version(href), text)

    def _report(self, path: str, body: str) -> list[Resource]:
        nodes = self._multistatus("REPORT", path, "1", body)
        return [
            Resource(node.href, node.text(f"{D}getetag"), node.text(self._kind.data))
            for node in nodes
            if node.text(self._kind.data)
        ]

    def _version(self, href: str) -> str:
        node = self._look(href)
        return node.text(f"{D}getetag") if node is not None else ""

    # -- changing ---------------------------------------------------------------------------------

    def add(self, href: str, text: str) -> str | None:
        """Make a resource; its version. None when one is there already: nothing changes then."""
        return self._put(href, text, {"If-None-Match": "*"})

    def replace(self, resource: Resource, text: str) -> str:
        """Put another text in the place of this very version. Raises `changed_since`."""
        version = self._put(resource.href, text, {"If-Match": resource.version})
        if version is None:
            raise Failure("changed_since", "it has changed meanwhile")
        return version

    def delete(self, resource: Resource) -> None:
        """Delete this very version; one that is gone is gone. Raises `changed_since`."""
        status, _, _ = self._told("DELETE", resource.href, {"If-Match": resource.version})
        if status == 412:
            if self._look(resource.href) is None:
                return
            raise Failure("changed_since", "it has changed meanwhile")
        if status not in _GONE:
            self._check(status, resource.href)

    def _put(self, href: str, text: str, condition: Mapping[str, str]) -> str | None:
        headers = {"Content-Type": self._kind.media_type, **condition}
        status, got, _ = self._told("PUT", href, headers, text.encode())
        if status == 412:
            return None
        self._check(status, href)
        return got.get("etag", "") or self._version(href)

    def _told(
        self, method: str, href: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> tuple[int, httpx.Headers, bytes]:
        """Tell the server to change something. Raises `Failure`, unsure where it may have done it
        all the same: it went away afterwards, or fell over."""
        try:
            status, got, body = self._send(method, href, headers, content)
            if status in _FELL_OVER:
                self._check(status, href)
        except Failure as failure:
            reached = not isinstance(failure.__cause__, (httpx.ConnectError, httpx.ConnectTimeout))
            if reached and failure.code in {"network", "timeout", "http_status"}:
                raise failure.unsure() from failure.__cause__
            raise
        return status, got, body

    # -- speaking ---------------------------------------------------------------------------------

    def _multistatus(self, method: str, path: str, depth: str, body: str) -> list[Node]:
        headers = {"Depth": depth, "Content-Type": "application/xml; charset=utf-8"}
        document = f'<?xml version="1.0" encoding="utf-8"?>{body}'.encode()
        for _ in range(MAX_REDIRECTS):
            status, got, answer = self._send(method, path, headers, document)
            if status not in _REDIRECTS:
                break
            path = self._own_path(got.get("location", ""), path, looks=method == "PROPFIND")
        self._check(status, path)
        if status != 207:
            raise Failure("http_status", "no calendar server", status=status, host=self._base.host)
        return list(self._nodes(answer, path))

    def _nodes(self, answer: bytes, path: str) -> Iterator[Node]:
        if b"<!DOCTYPE" in answer or b"<!ENTITY" in answer:
            raise Failure(
                "bad_answer", "the server's answer declares entities", host=self._base.host
            )
        try:
            root = ET.fromstring(answer)  # noqa: S314 - no document type, no entity
        except ET.ParseError as exc:
            raise Failure(
                "bad_answer", "the server's answer is no XML", host=self._base.host
            ) from exc
        for response in root.iter(f"{D}response"):
            href = (response.findtext(f"{D}href") or "").strip()
            props: dict[str, ET.Element] = {}
            for group in response.iter(f"{D}propstat"):
                if " 200" in (group.findtext(f"{D}status") or " 200"):
                    props |= {one.tag: one for prop in group.iter(f"{D}prop") for one in prop}
            if href:
                yield Node(self._own_path(href, path), props)

    def _own_path(self, href: str, path: str, *, looks: bool = False) -> str:
        """Where an address of an answer leads: a path here, a whole address on the `home`. Raises
        host_denied for another server; other_server while the collections are looked for."""
        try:
            target = self._base.join(path).join(href)
        except (httpx.InvalidURL, ValueError) as exc:
            raise Failure(
                "bad_answer", "the server names an address that is none", host=self._base.host
            ) from exc
        origin = _origin(target)
        if origin not in self._allowed:
            if looks and target.host and target.scheme in {"https", self._base.scheme}:
                raise Failure("other_server", "the server points to another one", name=self._name,
                              host=target.netloc.decode("ascii"),
                              home=str(target.copy_with(raw_path=b"/")))  # fmt: skip
            raise Failure("host_denied", "the server points to another one", host=target.host)
        at_home = origin != _origin(self._base)
        return str(target) if at_home else target.raw_path.decode("ascii")

    def _send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> tuple[int, httpx.Headers, bytes]:
        status, got, body = self._once(method, path, headers, content)
        if status == 401 and "digest" in got.get("www-authenticate", "").lower():
            self._client.auth = httpx.DigestAuth(*self._login)
            status, got, body = self._once(method, path, headers, content)
        return status, got, body

    def _once(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None,
        content: bytes | None,
    ) -> tuple[int, httpx.Headers, bytes]:
        url = self._base.join(path)
        if _origin(url) not in self._allowed:  # an id may name any address
            raise Failure("host_denied", "not a server of this account", host=url.host)
        left = self._left()
        timeout = httpx.Timeout(min(left, SILENCE_TIMEOUT_S), connect=min(left, CONNECT_TIMEOUT_S))
        try:
            with self._client.stream(
                method, url, headers=headers, content=content, timeout=timeout
            ) as response:
                return response.status_code, response.headers, self._body(response)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
            raise failure_of(exc, url.host) from exc

    def _body(self, response: httpx.Response) -> bytes:
        packing = response.headers.get("content-encoding", "identity").strip().lower()
        if packing not in {"", "identity", "gzip"}:
            raise Failure("unsupported", f"the body is packed with {packing[:40]!r}")
        unpacker = Gunzip() if packing == "gzip" else None
        sieve = PictureSieve() if self._kind is BOOKS else None
        room, pieces = MAX_BODY, []
        for raw in response.iter_raw():
            self._left()
            for piece in unpacker.feed(raw, room) if unpacker else (raw,):
                kept = sieve.feed(piece) if sieve else piece
                room -= len(kept)
                if room < 0:
                    raise Failure("too_large", "the answer is too large", limit=MAX_BODY)
                pieces.append(kept)
        return b"".join([*pieces, sieve.end() if sieve else b""])

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise Failure("timeout", "the server is too slow", host=self._base.host)
        return left

    def _check(self, status: int, path: str) -> None:
        if 200 <= status < 300:
            return
        if status == 401:
            raise Failure("wrong_credentials", "the server refuses name or password",
                          name=self._name)  # fmt: skip
        if status == 403:
            raise Failure("permission_denied", "the server does not allow it", path=self._name)
        if status in _GONE:
            raise Failure("not_found", "the server has nothing there", path=unquote(path)[-80:])
        if status == 412:
            raise Failure("changed_since", "it has changed meanwhile")
        if status == 507:
            raise Failure("disk_full", "the server has no room")
        raise Failure("http_status", f"the server says {status}", status=status,
                      host=self._base.host)  # fmt: skip


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)
