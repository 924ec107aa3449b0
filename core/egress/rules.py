"""Where a call may connect: strict names, ports by capability, and addresses that are not inside.

Pure. The ranges are listed here because `ipaddress.is_global` calls several inner ranges global
and differs between Python releases.
"""

from __future__ import annotations

import re
import socket
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from core.accounts import HINT
from core.errors import CallRefused, ErrorCode

# Which ports a capability opens. What is not named here is no right to the network.
PORTS: Mapping[str, frozenset[int]] = {
    "network:http": frozenset({80, 443}),
    "calendar:read": frozenset({80, 443}),
    "calendar:write": frozenset({80, 443}),
    "contacts:read": frozenset({80, 443}),
    "contacts:write": frozenset({80, 443}),
    "mail:read": frozenset({143, 993}),
    "mail:write": frozenset({143, 993}),
    "mail:send": frozenset({465, 587}),
}

# Inner ranges that a host granted by name may be in.
PRIVATE_V4 = ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
PRIVATE_V6 = ("::1/128", "fc00::/7")
# Refused also for a granted name; only the literal address itself can be granted.
NEVER_V4 = (
    "0.0.0.0/8",
    "100.100.100.200/32",  # metadata service of a cloud
    "168.63.129.16/32",  # metadata service of a cloud
    "169.254.0.0/16",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",  # 6to4 relays
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
)
# Outside 2000::/3 nothing is public: mapped, NAT64, site-local, link-local, multicast fall there.
PUBLIC_V6 = "2000::/3"
NEVER_V6 = (
    "2001::/23",  # Teredo, ORCHID, benchmarking and other protocol assignments
    "2001:db8::/32",
    "2002::/16",  # 6to4: an IPv4 address inside
    "3fff::/20",
    "fd00:ec2::254/128",  # metadata service of a cloud
)
INNER_NAMES = ("localhost", "local", "internal", "home.arpa", "onion", "invalid", "test")
ANY_HOST = "*"
SERVICE = "service:"

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ANY_PORT: frozenset[int] = frozenset()
Network = tuple[int, int]


class Right(Protocol):
    """A capability as a manifest declares it."""

    @property
    def name(self) -> str: ...
    @property
    def hints(self) -> tuple[str, ...]: ...


def _network(text: str) -> Network:
    address, _, length = text.partition("/")
    packed = _packed(address)
    shift = len(packed) * 8 - int(length)
    return int.from_bytes(packed, "big") >> shift, shift


def _packed(address: str) -> bytes:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.inet_pton(family, address)


_PRIVATE = {4: [_network(n) for n in PRIVATE_V4], 16: [_network(n) for n in PRIVATE_V6]}
_NEVER = {4: [_network(n) for n in NEVER_V4], 16: [_network(n) for n in NEVER_V6]}
_PUBLIC_V6 = [_network(PUBLIC_V6)]


def is_allowed(address: str, *, private: bool = False) -> bool:
    """Whether a literal IPv4 or IPv6 address may be connected to.

    `private`: the host was granted by name. What is no plain address is not allowed.
    """
    try:
        packed = _packed(address)
    except (OSError, ValueError):
        return False
    number = int.from_bytes(packed, "big")
    if _within(number, _NEVER[len(packed)]):
        return False
    if _within(number, _PRIVATE[len(packed)]):
        return private
    return len(packed) == 4 or _within(number, _PUBLIC_V6)


def _within(number: int, networks: list[Network]) -> bool:
    return any(number >> shift == prefix for prefix, shift in networks)


def clean_host(host: object) -> str:
    """The host in its one form: lower case, ASCII, no brackets, no last dot.

    Raises `CallRefused(host_denied)` for what is no strict host name or canonical address: other
    ways to write a number (`127.1`, `0x7f.1`, `2130706433`), controls, user info, zone ids,
    look-alike dots.
    """
    if not isinstance(host, str) or not host:
        raise _denied("no host name")
    name = (host if host.isascii() else _to_ascii(host)).lower()
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
        if ":" not in name:
            raise _denied("not a host name")
    if ":" in name:
        try:
            return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, name))
        except (OSError, ValueError):
            raise _denied("not an address") from None
    name = name.removesuffix(".")
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _denied("not a host name")
    if _NUMBER_LABEL.fullmatch(labels[-1]):
        try:
            plain = socket.inet_ntoa(socket.inet_pton(socket.AF_INET, name))
        except (OSError, ValueError):
            plain = ""
        if plain != name:
            raise _denied("not an address in its usual form")
    return name


def _to_ascii(host: str) -> str:
    """The punycode form; only of names with one spelling (no look-alike dots, no zero widths)."""
    if unicodedata.normalize("NFKC", host) != host:
        raise _denied("not a host name")
    try:
        plain = host.lower().encode("idna")
        if plain.decode("idna") != host.lower():
            raise _denied("not a host name")
    except UnicodeError:
        raise _denied("not a host name") from None
    return plain.decode("ascii")


def opens_network(rights: Iterable[Right]) -> bool:
    """Whether one of these capabilities is a right to the network."""
    return any(right.name in PORTS for right in rights)


def is_address(name: str) -> bool:
    """Whether a clean host is an address and needs no look-up."""
    return ":" in name or bool(_NUMBER_LABEL.fullmatch(name.rpartition(".")[2]))


def clean_grant(text: str) -> str:
    """A granted host in its one form: `name`, `name:port`, an address, or `[v6]:port`.

    Raises `CallRefused(host_denied)` for what can never be a host.
    """
    name, port = _split_grant(text)
    host = clean_host(name)
    if port is None:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _split_grant(text: str) -> tuple[str, int | None]:
    """ "name", "name:port", "[v6]:port" or a bare v6 address; no port stands for any."""
    name, colon, port = text.strip().rpartition(":")
    if colon and (":" not in name or name[-1:] == "]"):
        if not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536):
            raise _denied("not a port")
        return name, int(port)
    return text.strip(), None


@dataclass(frozen=True, slots=True)
class Target:
    """A destination that may be looked up. `granted`: by name, so it may be inside."""

    name: str
    port: int
    granted: bool = False


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one call reaches: its manifest's rights, and what was granted to its actor.

    `hosts`: names, `*.name` for all below one, or `*`. `granted`: clean name → ports, none for
    all. Both must hold: a grant opens what is inside, it does not widen the manifest. `own`: clean
    name → the very ports of the actor's accounts there.
    """

    ports: frozenset[int] = frozenset()
    hosts: tuple[str, ...] = ()
    granted: Mapping[str, frozenset[int]] = field(default_factory=dict)
    own: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rights: Iterable[Right],
        private_hosts: Iterable[str],
        services: Mapping[str, str] | None = None,
        accounts: Mapping[str, Iterable[str]] | None = None,
    ) -> Reach | None:
        """The reach of a manifest's capabilities for an actor with these granted hosts.

        None: no capability opens the network. A hint `arg:NAME` stands for any host (redirects
        lead on from there), `service:NAME` for the one host of that service's address,
        `account:KIND` for exactly the `host:port` of these accounts; a capability without hints
        opens none. Grants that are no host are passed over.
        """
        ports: set[int] = set()
        hosts: list[str] = []
        own: list[str] = []
        found = False
        for right in rights:
            if right.name not in PORTS:
                continue
            found = True
            for hint in right.hints:
                if hint.startswith(HINT):
                    own += (accounts or {}).get(hint.removeprefix(HINT).rstrip("?"), ())
                else:
                    ports |= PORTS[right.name]
                    hosts += _hosts_of(hint, services or {})
        if not found:
            return None
        return cls(
            frozenset(ports), tuple(dict.fromkeys(hosts)), _by_name(private_hosts), _by_name(own)
        )

    def target(self, host: object, port: object) -> Target:
        """The destination a request means, before any look-up.

        Raises `CallRefused(host_denied)` when form, port or host are not allowed.
        """
        name = clean_host(host)
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
            raise _denied("not a port")
        own = port in self.own.get(name, frozenset())
        if not own and not any(_matches(name, pattern) for pattern in self.hosts):
            raise _denied(f"{name} is not among the hosts of this tool")
        ports = self.granted.get(name)
        granted = ports is not None and (ports == _ANY_PORT or port in ports)
        if not granted and not own and port not in self.ports:
            raise _denied(f"port {port} is not allowed")
        if not granted and any(name == end or name.endswith("." + end) for end in INNER_NAMES):
            raise _denied(f"{name} is an inner name")
        if is_address(name) and not granted and not is_allowed(name):
            raise _denied(f"{name} is an inner address")
        return Target(name, port, granted)


def check_addresses(target: Target, addresses: Iterable[str]) -> None:
    """Raise `CallRefused(host_denied)` when any one address of the target is not allowed."""
    for address in addresses:
        literal = target.granted and address == target.name
        if not literal and not is_allowed(address, private=target.granted):
            raise _denied(f"{target.name} leads to an inner address")


def _hosts_of(hint: str, services: Mapping[str, str]) -> list[str]:
    if hint.startswith("arg:"):
        return [ANY_HOST]
    if not hint.startswith(SERVICE):
        return [hint.lower()]
    try:
        name = urlsplit(services.get(hint.removeprefix(SERVICE), "")).hostname
        return [clean_host(name)] if name else []
    except (ValueError, CallRefused):
        return []


def _by_name(texts: Iterable[str]) -> dict[str, frozenset[int]]:
    """Clean host → ports; what is no host is passed over."""
    found: dict[str, frozenset[int]] = {}
    for text in texts:
        try:
            name, port = _split_grant(text)
            name = clean_host(name)
        except CallRefused:
            continue
        if port is None:
            found[name] = _ANY_PORT
        elif found.get(name) != _ANY_PORT:
            found[name] = found.get(name, _ANY_PORT) | {port}
    return found


def _matches(name: str, pattern: str) -> bool:
    if pattern == ANY_HOST:
        return True
    if pattern.startswith("*."):
        return name.endswith(pattern[1:]) and not is_address(name)
    return name == pattern


def _denied(detail: str) -> CallRefused:
    return CallRefused(ErrorCode.HOST_DENIED, detail)
