"""Where a call may connect: forms, ranges, ports, host scope and grants, without a network."""

from __future__ import annotations

import ipaddress
import random
from typing import Any

import pytest

from core.catalog.manifest import Capability
from core.egress import rules
from core.egress.rules import Reach, Target, check_addresses, clean_grant, clean_host, is_allowed
from core.errors import CallRefused, ErrorCode
from tests.egress.corpus import FORMS, INNER_V4, INNER_V6, ODD, PUBLIC
from tests.support.broker import reach_of


def refused(reach: Reach, host: Any, port: Any = 443) -> bool:
    try:
        reach.target(host, port)
    except CallRefused as exc:
        return exc.code is ErrorCode.HOST_DENIED
    return False


@pytest.mark.parametrize(
    "host",
    [*INNER_V4, *INNER_V6, *(f"[{a}]" for a in INNER_V6), *FORMS, *ODD],
    ids=lambda host: ascii(host)[:40],
)
def test_hostile_host_is_denied_before_the_look_up(host: Any):
    assert refused(reach_of(), host)


@pytest.mark.parametrize("address", [*INNER_V4, *INNER_V6])
def test_public_name_that_leads_inside_is_denied(address: str):
    for found in ([address], [PUBLIC, address], [address, PUBLIC], [PUBLIC] * 8 + [address]):
        with pytest.raises(CallRefused):
            check_addresses(Target("rebind.example", 443), found)


def test_every_reserved_range_of_the_standard_library_is_denied():
    """Where `ipaddress` says an address is not global, so do we; seed 7."""
    random_ = random.Random(7)
    for _ in range(20_000):
        v4 = ipaddress.IPv4Address(random_.getrandbits(32))
        v6 = ipaddress.IPv6Address(random_.getrandbits(128) >> random_.choice((0, 0, 2, 40)))
        for address in (v4, v6):
            if not address.is_global or address.is_multicast:
                assert not is_allowed(str(address)), address


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
    ],
)
def test_public_host_is_allowed_under_its_clean_name(host: str, clean: str):
    assert clean_host(host) == clean
    assert reach_of().target(host, 443) == Target(clean, 443)
    check_addresses(Target(clean, 443), [PUBLIC, "2606:4700::1111"])


@pytest.mark.parametrize("port", [22, 25, 8080, 0, -1, 65536, None, "http", "80", 443.0, True])
def test_other_ports_are_denied(port: Any):
    assert refused(reach_of(), "example.com", port)


@pytest.mark.parametrize(
    ("grants", "host", "port", "address", "allowed"),
    [
        (("nas.example",), "NAS.example", 8080, "192.168.1.5", True),
        (("nas.example:8080",), "nas.example", 8080, "192.168.1.5", True),
        (("nas.example:8080",), "nas.example", 8081, "192.168.1.5", False),
        (("nas.example:8080",), "nas.example", 443, "192.168.1.5", False),
        (("nas.example:8080",), "nas.example", 443, PUBLIC, True),
        (("nas.example:81", "nas.example:82"), "nas.example", 81, "10.0.0.1", True),
        (("nas.example", "nas.example:82"), "nas.example", 99, "10.0.0.1", True),
        (("nas.example:82", "nas.example"), "nas.example", 99, "10.0.0.1", True),
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
    try:
        check_addresses(reach_of(*grants).target(host, port), [address])
    except CallRefused:
        assert not allowed
    else:
        assert allowed


@pytest.mark.parametrize(
    ("hints", "host", "allowed"),
    [
        (("api.example",), "api.example", True),
        (("api.example",), "API.example.", True),
        (("api.example",), "evil.example", False),
        (("api.example",), "api.example.evil.example", False),
        (("*.api.example",), "a.api.example", True),
        (("*.api.example",), "api.example", False),
        (("*.api.example",), "evilapi.example", False),
        (("*.1.1.1",), "9.1.1.1", False),
        (("arg:urls",), "any.example", True),
        ((), "any.example", False),
    ],
)
def test_host_scope_of_the_manifest_holds(hints: tuple[str, ...], host: str, allowed: bool):
    reach = reach_of(rights=[Capability("network:http", hints)])

    assert refused(reach, host) is not allowed


@pytest.mark.parametrize(
    ("address", "host", "port", "allowed"),
    [
        ("https://photon.example", "photon.example", 443, True),
        ("https://photon.example/base", "PHOTON.example", 443, True),
        ("https://photon.example", "api.photon.example", 443, False),
        ("https://photon.example", "other.example", 443, False),
        ("https://photon.example", "photon.example", 8443, False),
        ("http://localhost:2322", "localhost", 2322, False),
        ("https://photon.example:x", "other.example", 443, False),
        ("https://*", "any.example", 443, False),
        ("", "", 443, False),
    ],
)
def test_service_opens_the_one_host_of_its_address(
    address: str, host: str, port: int, allowed: bool
):
    right = Capability("network:http", ("service:photon",))
    reach = Reach.of([right], [], {"photon": address, "other": "https://other.example"})

    assert reach is not None
    assert refused(reach, host, port) is not allowed


def test_service_inside_is_reached_only_at_the_port_that_was_granted():
    right = Capability("network:http", ("service:photon",))
    services = {"photon": "http://localhost:2322"}
    reach = Reach.of([right], ["localhost:2322", "nas.example"], services)

    assert reach is not None
    assert not refused(reach, "localhost", 2322)
    assert refused(reach, "localhost", 2323)
    assert refused(reach, "nas.example", 80)


def test_host_scope_holds_for_granted_hosts_too():
    reach = reach_of("nas.example", rights=[Capability("network:http", ("api.example",))])

    assert refused(reach, "nas.example", 80)


@pytest.mark.parametrize(
    ("right", "ports"),
    [
        ("network:http", {80, 443}),
        ("mail:send", {465, 587}),
        ("mail:read", {143, 993}),
        ("calendar:read", {80, 443}),
    ],
)
def test_capability_opens_its_own_ports(right: str, ports: set[int]):
    reach = reach_of(rights=[Capability("compute:pure"), Capability(right, ("arg:x",))])

    tried = (25, 80, 143, 443, 465, 587, 993)
    assert {p for p in tried if not refused(reach, "mx.example", p)} == ports


@pytest.mark.parametrize("right", ["compute:pure", "fs:read", "code:exec", "system:admin"])
def test_manifest_without_a_network_capability_has_no_reach(right: str):
    assert Reach.of([Capability(right, ("arg:x",))], ["nas.example"]) is None


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("NAS.example", "nas.example"),
        ("nas.example.:8080", "nas.example:8080"),
        ("192.168.1.5", "192.168.1.5"),
        ("fd12:0::1", "fd12::1"),
        ("[fd12::1]:81", "[fd12::1]:81"),
        ("nas.example:0", None),
        ("nas.example:http", None),
        ("nas.example:", None),
        ("http://nas.example", None),
        ("127.1", None),
        ("*", None),
        ("", None),
    ],
)
def test_grant_has_one_spelling(text: str, clean: str | None):
    if clean is None:
        with pytest.raises(CallRefused):
            clean_grant(text)
    else:
        assert clean_grant(text) == clean
        assert clean_grant(clean) == clean


def test_tables_of_ranges_do_not_overlap_what_is_public():
    assert is_allowed(PUBLIC)
    assert not any(is_allowed(n.partition("/")[0], private=True) for n in rules.NEVER_V4)
