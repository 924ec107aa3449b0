"""Hosts and addresses that want inside, by code: every way to write what must not be reached.

`hostile()` gives (what it is, the host as a request holds it, what the worst resolver answers).
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterator
from typing import Any

from core.egress import rules

SEED = 20261130
PUBLIC = "93.184.215.14"

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


def hostile(seed: int = SEED) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """More than 1500 requests, none of which may lead to a connection."""
    for address in INNER_V4 + INNER_V6:
        yield "literal", address, (address,)
        yield "bracketed", f"[{address}]", (address,)
    for form in [*FORMS, *ODD]:
        yield "form", form, ("127.0.0.1",)
        yield "form, public answer", form, (PUBLIC,)
    for address in INNER_V4 + INNER_V6:
        yield "name leads inside", "rebind.example", (address,)
        yield "name leads inside too", "both.example", (PUBLIC, address)
        yield "inside comes last", "last.example", (*[PUBLIC] * 8, address)
    yield from written(random.Random(seed))


def written(random_: random.Random) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Inner addresses in the forms that C libraries, browsers and gateways read."""
    networks = [ipaddress.ip_network(n) for n in (*rules.PRIVATE_V4, *rules.NEVER_V4)]
    for _ in range(100):
        network = random_.choice(networks)
        number = int(network.network_address) + random_.randrange(network.num_addresses)
        a, b, c, d = number.to_bytes(4, "big")
        plain, turned = f"{a}.{b}.{c}.{d}", number ^ 0xFFFFFFFF
        forms = {
            "dotted": plain,
            "decimal": f"{number}",
            "hex": f"{number:#x}",
            "octal": f"0{number:o}",
            "dotted octal": f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
            "dotted hex": f"{a:#x}.{b:#x}.{c:#x}.{d:#x}",
            "two parts": f"{a}.{(b << 16) + (c << 8) + d}",
            "three parts": f"{a}.{b}.{(c << 8) + d}",
            "mapped": f"::ffff:{plain}",
            "mapped hex": f"[::ffff:{a:x}{b:02x}:{c:x}{d:02x}]",
            "compatible": f"::{plain}",
            "translated": f"::ffff:0:{plain}",
            "NAT64": f"64:ff9b::{plain}",
            "local NAT64": f"64:ff9b:1::{plain}",
            "6to4": f"2002:{a:x}{b:02x}:{c:x}{d:02x}::1",
            "Teredo": f"2001:0:4136:e378:8000:63bf:{turned >> 16:x}:{turned & 0xFFFF:x}",
            "with user": f"user@{plain}",
            "with dot": f"{plain}.",
        }
        for kind, form in forms.items():
            if kind == "with dot":
                form += "."
            yield kind, form, (plain,)
