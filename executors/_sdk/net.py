"""The one way out: `socket.create_connection` with a checked name and checked addresses.

Whatever connects through `socket.create_connection` (httpx, imaplib, smtplib, urllib) then asks
here first. The name is looked up once, every address found must be allowed, and the connection
goes to one of those very addresses, so that a second look-up cannot lead elsewhere. The ranges are
listed here because `ipaddress.is_global` calls several inner ranges global.

This is a contract and no wall: the cage's kernel rules are the wall.
"""

from __future__ import annotations

import re
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

PORTS = frozenset({80, 443})

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

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_UNSET: Any = getattr(socket, "_GLOBAL_DEFAULT_TIMEOUT", None)
Network = tuple[int, int]


class HostDenied(OSError):
    """The engine's rules do not allow this host, address or port. The code is `host_denied`."""

    metnos_code = "host_denied"


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

    Raises `HostDenied` for what is no strict host name or canonical address: other ways to write
    a number (`127.1`, `0x7f.1`, `2130706433`), controls, user info, zone ids, look-alike dots.
    """
    if isinstance(host, bytes):
        host = host.decode("latin-1")
    if not isinstance(host, str) or not host:
        raise HostDenied("no host name")
    name = (host if host.isascii() else _to_ascii(host)).lower()
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
        if ":" not in name:
            raise HostDenied("not a host name")
    if ":" in name:
        try:
            return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, name))
        except (OSError, ValueError):
            raise HostDenied("not an address") from None
    name = name.removesuffix(".")
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise HostDenied("not a host name")
    if _NUMBER_LABEL.fullmatch(labels[-1]):
        try:
            plain = socket.inet_ntoa(socket.inet_pton(socket.AF_INET, name))
        except (OSError, ValueError):
            plain = ""
        if plain != name:
            raise HostDenied("not an address in its usual form")
    return name


def _to_ascii(host: str) -> str:
    """The punycode form; only of names with one spelling (no look-alike dots, no zero widths)."""
    import unicodedata

    if unicodedata.normalize("NFKC", host) != host:
        raise HostDenied("not a host name")
    try:
        plain = host.lower().encode("idna")
        if plain.decode("idna") != host.lower():
            raise HostDenied("not a host name")
    except UnicodeError:
        raise HostDenied("not a host name") from None
    return plain.decode("ascii")


def _is_address(name: str) -> bool:
    return ":" in name or bool(_NUMBER_LABEL.fullmatch(name.rpartition(".")[2]))


class Guard:
    """Decides where connections may go. `private_hosts`: "name" or "name:port" of granted hosts.

    `resolve` is `socket.getaddrinfo` or a double of it.
    """

    def __init__(
        self,
        private_hosts: Iterable[str] = (),
        *,
        ports: Iterable[int] = PORTS,
        resolve: Callable[..., list[Any]] | None = None,
    ) -> None:
        self._ports = frozenset(ports)
        self._resolve = resolve or socket.getaddrinfo
        self._granted: dict[str, set[int]] = {}
        for text in private_hosts:
            name, port = _split_grant(text)
            try:
                self._granted.setdefault(clean_host(name), set()).add(port)
            except HostDenied:
                continue

    def addresses(self, host: object, port: object) -> list[tuple[Any, ...]]:
        """Look the host up once and return what `getaddrinfo` gave, every address checked.

        Raises `HostDenied` when the form, the port or any one address is not allowed, and
        `socket.gaierror` when the name is not known.
        """
        name = clean_host(host)
        number = _port(port)
        ports = self._granted.get(name, set())
        granted = 0 in ports or number in ports
        if not granted and number not in self._ports:
            raise HostDenied(f"port {number} is not allowed")
        if not granted and any(name == end or name.endswith("." + end) for end in INNER_NAMES):
            raise HostDenied(f"{name} is an inner name")
        if _is_address(name) and not granted and not is_allowed(name):
            raise HostDenied(f"{name} is an inner address")
        found = self._resolve(name, number, 0, socket.SOCK_STREAM)
        if not found:
            raise OSError(f"no address for {name}")
        for *_, target in found:
            literal = granted and target[0] == name
            if not literal and not is_allowed(str(target[0]), private=granted):
                raise HostDenied(f"{name} leads to an inner address")
        return found

    def create_connection(
        self,
        address: tuple[Any, ...],
        timeout: Any = _UNSET,
        source_address: Any = None,
        *,
        all_errors: bool = False,
    ) -> socket.socket:
        """As `socket.create_connection`, to checked addresses only."""
        errors: list[OSError] = []
        for family, kind, protocol, _, target in self.addresses(address[0], address[1]):
            connection = None
            try:
                connection = socket.socket(family, kind, protocol)
                if timeout is not _UNSET:
                    connection.settimeout(timeout)
                if source_address:
                    connection.bind(source_address)
                connection.connect(target)
            except OSError as exc:
                errors.append(exc)
                if connection is not None:
                    connection.close()
            else:
                return connection
        if all_errors and len(errors) > 1:
            raise ExceptionGroup("create_connection failed", errors)
        raise errors[0]


def _split_grant(text: str) -> tuple[str, int]:
    """ "name", "name:port", "[v6]:port" or a bare v6 address; port 0 stands for any."""
    name, colon, port = text.strip().rpartition(":")
    if colon and port.isdecimal() and len(port) <= 5 and (":" not in name or name[-1:] == "]"):
        return name, int(port)
    return text.strip(), 0


def _port(port: object) -> int:
    if isinstance(port, str) and port.isascii() and port.isdecimal():
        port = int(port)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        raise HostDenied("not a port")
    return port


def install(private_hosts: Iterable[str] = (), *, ports: Iterable[int] = PORTS) -> None:
    """Put the guard in the place of `socket.create_connection` of this process. The cage does it
    as soon as `socket` is imported; calling it again replaces the guard."""
    socket.create_connection = Guard(private_hosts, ports=ports).create_connection
