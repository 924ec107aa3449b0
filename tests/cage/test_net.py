"""The network hook: hostile hosts and addresses against a resolver that answers what they want."""

from __future__ import annotations

import ipaddress
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import dedent
from typing import Any

import pytest

from core.errors import ErrorCode
from executors._sdk import net, result
from tests.cage.conftest import Room

PUBLIC = "93.184.215.14"


def resolver(*addresses: str) -> Any:
    """A look-up that always gives these addresses and counts how often it is asked."""

    def resolve(host: str, port: int, family: int = 0, kind: int = 0) -> list[Any]:
        resolve.asked += 1  # type: ignore[attr-defined]
        return [
            (socket.AF_INET6, kind, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, kind, 6, "", (address, port))
            for address in addresses
        ]

    resolve.asked = 0  # type: ignore[attr-defined]
    return resolve


INNER_V4 = """0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255
127.0.0.1 127.1.2.3 127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2
172.16.0.1 172.20.10.2 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1
192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250
240.0.0.1 255.255.255.255""".split()
INNER_V6 = """:: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:93.184.215.14 ::ffff:0:127.0.0.1
64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1
2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:10::1 2001:20::1 2001:2::1 2001:db8::1 2002:7f00:1::
2002:a9fe:a9fe::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fd12:3456::1 fe80::1 febf::1 fec0::1
ff02::1 ff0e::1 4000::1 e000::1""".split()
FORMS = """127.1 127.0.1 0x7f.0.0.1 0x7f000001 0x7f.1 017700000001 0177.0.0.1 2130706433
2130706433. 3232235777 0xa9fea9fe 2852039166 0251.0376.0251.0376 127.0.0.01 127.0.0.256
1.2.3.4.5 1.2.3 1 0 00 0x 0xg.1 999999999999 127.0.0.1. 0.0.0.0 [::1] [::]
[::ffff:127.0.0.1] [127.0.0.1] [localhost] [::1 ::1] [[::1]] ::1%lo [::1%25lo]
fe80::1%eth0 ::ffff:7f00:1 0:0:0:0:0:0:0:1 localhost LOCALHOST localhost. a.localhost
LocalHost.LocalDomain.localhost printer.local nas.internal metadata.google.internal
router.home.arpa x.onion x.invalid x.test user@example.com example.com@127.0.0.1
user:pw@example.com example.com:80 example.com:80@x http://example.com //example.com
example.com/ example.com/x example.com?x example.com#x example.com\\
example.com\\@127.0.0.1 \\example.com exa%6dple.com %31%32%37.0.0.1 127.0.0.1%00
-example.com example-.com exa..mple.com .example.com . .. example.com.. *.example.com
exa$mple.com exa!mple.com (example.com) <example.com> {x} x|y x^y x`y "x" 'x' x;y x,y x=y
x&y x+y １２７.0.0.1 127。0。0。1 127．0．0．1 ①②⑦.0.0.1 ⓔxample.com ⅼocalhost loc\u00adalhost
exam\u200bple.com example\u202e.com ℡.com ﬀ.com ß\u0301.com／x example.com／x \u212a.com
example。com faß.example""".split()
ODD: list[Any] = [
    "",
    " ",
    " example.com",
    "example.com ",
    "exa mple.com",
    "example.com\n",
    "example.com\r\nHost: x",
    "example\t.com",
    "example.com\x00.evil.example",
    "\x00",
    "\x7f.com",
    "a" * 64 + ".com",
    ("a" * 60 + ".") * 5 + "com",
    "1.0.0.127.in-addr.arpa\x00",
    None,
    5,
    2130706433,
    b"127.0.0.1",
    b"\xff\xfe",
    ("127.0.0.1",),
    ["example.com"],
    "xn--\x00",
    "\ud800.com",
    "🦊" * 80 + ".com",
]
HOSTILE: list[Any] = [*INNER_V4, *INNER_V6, *(f"[{a}]" for a in INNER_V6), *FORMS, *ODD]


@pytest.mark.parametrize("host", HOSTILE, ids=lambda host: ascii(host)[:40])
def test_hostile_host_is_denied_even_when_it_leads_inside(host: Any):
    """The resolver gives the worst answer: what the C library would make of the form."""
    guard = net.Guard(resolve=resolver("127.0.0.1"))

    with pytest.raises(net.HostDenied):
        guard.addresses(host, 443)


@pytest.mark.parametrize("host", [*INNER_V4, *INNER_V6, *FORMS], ids=lambda host: ascii(host)[:40])
def test_hostile_form_is_denied_before_the_look_up(host: str):
    lookup = resolver(PUBLIC)

    with pytest.raises(net.HostDenied):
        net.Guard(resolve=lookup).addresses(host, 443)

    assert lookup.asked == 0


@pytest.mark.parametrize("address", [*INNER_V4, *INNER_V6])
def test_public_name_that_leads_inside_is_denied(address: str):
    for found in ([address], [PUBLIC, address], [address, PUBLIC], [PUBLIC] * 8 + [address]):
        with pytest.raises(net.HostDenied):
            net.Guard(resolve=resolver(*found)).addresses("rebind.example", 443)


def test_random_inner_addresses_in_every_way_to_write_them_are_denied():
    """Corpus by code, seed 20261130: decimal, octal, hex, short, mapped, 6to4, NAT64 forms."""
    seed = 20261130
    random_ = random.Random(seed)
    networks = [ipaddress.ip_network(n) for n in (*net.PRIVATE_V4, *net.NEVER_V4)]
    tried = 0
    for _ in range(150):
        network = random_.choice(networks)
        number = int(network.network_address) + random_.randrange(network.num_addresses)
        a, b, c, d = number.to_bytes(4, "big")
        forms = [
            f"{a}.{b}.{c}.{d}",
            f"{number}",
            f"{number:#x}",
            f"0{number:o}",
            f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
            f"{a:#x}.{b:#x}.{c:#x}.{d:#x}",
            f"{a}.{(b << 16) + (c << 8) + d}",
            f"{a}.{b}.{(c << 8) + d}",
            f"::ffff:{a}.{b}.{c}.{d}",
            f"[::ffff:{a:x}{b:02x}:{c:x}{d:02x}]",
            f"::{a}.{b}.{c}.{d}",
            f"64:ff9b::{a}.{b}.{c}.{d}",
            f"2002:{a:x}{b:02x}:{c:x}{d:02x}::1",
        ]
        for form in forms:
            guard = net.Guard(resolve=resolver(f"{a}.{b}.{c}.{d}"))
            with pytest.raises(net.HostDenied):
                guard.addresses(form, 80)
            tried += 1
    print(f"{tried} forms denied, seed {seed}")


def test_every_reserved_range_of_the_standard_library_is_denied():
    """Where `ipaddress` says an address is not global, so do we; seed 7."""
    random_ = random.Random(7)
    for _ in range(20_000):
        v4 = ipaddress.IPv4Address(random_.getrandbits(32))
        v6 = ipaddress.IPv6Address(random_.getrandbits(128) >> random_.choice((0, 0, 2, 40)))
        for address in (v4, v6):
            if not address.is_global or address.is_multicast:
                assert not net.is_allowed(str(address)), address


@pytest.mark.parametrize(
    ("host", "clean"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("a_b.example", "a_b.example"),
        ("perché.example", "xn--perch-fsa.example"),
        ("xn--perch-fsa.example", "xn--perch-fsa.example"),
        ("8.8.8.8", "8.8.8.8"),
        ("[2606:4700::1111]", "2606:4700::1111"),
        ("2606:4700:0:0::1111", "2606:4700::1111"),
        ("1e100.net", "1e100.net"),
        ("0x7f.example", "0x7f.example"),
        (b"example.com", "example.com"),
    ],
)
def test_public_host_is_asked_once_under_its_clean_name(host: Any, clean: str):
    lookup = resolver(PUBLIC, "2606:4700::1111")

    found = net.Guard(resolve=lookup).addresses(host, 443)

    assert net.clean_host(host) == clean
    assert [entry[4][0] for entry in found] == [PUBLIC, "2606:4700::1111"]
    assert lookup.asked == 1


@pytest.mark.parametrize("port", [22, 25, 8080, 0, -1, 65536, None, "http", "80 ", 443.0, True])
def test_other_ports_are_denied(port: Any):
    with pytest.raises(net.HostDenied):
        net.Guard(resolve=resolver(PUBLIC)).addresses("example.com", port)


@pytest.mark.parametrize(
    ("grants", "host", "port", "address", "allowed"),
    [
        (("nas.example",), "NAS.example", 8080, "192.168.1.5", True),
        (("nas.example:8080",), "nas.example", 8080, "192.168.1.5", True),
        (("nas.example:8080",), "nas.example", 8081, "192.168.1.5", False),
        (("nas.example:8080",), "nas.example", 443, "192.168.1.5", False),
        (("nas.example:8080",), "nas.example", 443, PUBLIC, True),
        (("nas.example",), "x.nas.example", 80, "192.168.1.5", False),
        (("nas.example",), "nas.example", 80, "169.254.169.254", False),
        (("nas.example",), "nas.example", 80, "100.100.100.200", False),
        (("nas.example",), "nas.example", 80, "::ffff:192.168.1.5", False),
        (("nas.example",), "192.168.1.5", 80, "192.168.1.5", False),
        (("localhost",), "localhost", 8888, "::1", True),
        (("127.0.0.1",), "127.0.0.1", 8888, "127.0.0.1", True),
        (("127.0.0.1:8888",), "127.0.0.1", 8889, "127.0.0.1", False),
        (("127.0.0.1",), "127.1", 80, "127.0.0.1", False),
        (("127.0.0.1",), "127.0.0.2", 80, "127.0.0.2", False),
        (("[fd12::1]:81",), "fd12::1", 81, "fd12::1", True),
        (("fd12::1",), "[fd12:0::1]", 81, "fd12::1", True),
        (("169.254.169.254",), "169.254.169.254", 80, "169.254.169.254", True),
        (("", "*", "bad host", "nas.example:99999"), "nas.example", 80, "10.0.0.1", False),
    ],
)
def test_granted_host_reaches_what_was_granted(grants, host, port, address, allowed):
    guard = net.Guard(grants, resolve=resolver(address))
    if allowed:
        assert guard.addresses(host, port)
    else:
        with pytest.raises(net.HostDenied):
            guard.addresses(host, port)


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


def test_connection_goes_to_the_checked_address_without_a_second_look_up():
    with listening() as port:
        lookup = resolver("127.0.0.1")
        guard = net.Guard((f"nas.example:{port}",), resolve=lookup)

        with guard.create_connection(("nas.example", port), timeout=5) as connection:
            assert connection.recv(10) == b"hello"

        assert lookup.asked == 1


def test_connection_tries_the_next_address_and_keeps_the_first_error():
    with listening() as port:
        guard = net.Guard(("nas.example",), resolve=resolver("127.0.0.2", "127.0.0.1"))
        with guard.create_connection(("nas.example", port), 5) as connection:
            assert connection.recv(10) == b"hello"
    with pytest.raises(ConnectionRefusedError):
        guard.create_connection(("nas.example", port), 5)
    with pytest.raises(ExceptionGroup):
        guard.create_connection(("nas.example", port), 5, all_errors=True)


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
        granted = await room.run(
            CONNECT, args, private_hosts=("localhost",), capabilities="network:http"
        )
        refused = await room.run(CONNECT, args, capabilities="network:http")

    assert granted.content == "hello"
    assert refused.error is not None
    assert refused.error.code is ErrorCode.HOST_DENIED


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
        dedent(code), requires=("httpx",), memory_mb=1024, capabilities="network:http"
    )

    assert observation.error is not None
    assert observation.error.code is ErrorCode.HOST_DENIED


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (net.HostDenied("x"), "host_denied"),
        (socket.gaierror(-2, "unknown"), "network"),
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
