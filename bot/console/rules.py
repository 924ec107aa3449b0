"""Who may speak to the console from where, decided from the headers of a request. Pure.

The console listens on loopback, where every page that a browser of this machine has open can
send requests too, under any name that leads here. So the name it is called by must be one of
ours (a foreign one that leads here is a rebound one), and what changes something must come from
a page of our own.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import parse_qsl

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MOST_FIELDS = 64


def known_hosts(port: int, also: Iterable[str]) -> frozenset[str]:
    """The values of `Host` that are ours; `also` as they stand, with or without a port."""
    return frozenset({f"{name}:{port}" for name in LOOPBACK} | {name.lower() for name in also})


def is_called_right(hosts: Collection[str], known: Collection[str]) -> bool:
    """Whether the `Host` of a request (all of them: there must be one) is ours."""
    return len(hosts) == 1 and next(iter(hosts)).lower() in known


def is_own_page(origins: Collection[str], host: str, site: str | None) -> bool:
    """Whether a request that changes something comes from a page of ours: by its `Origin`, which
    browsers send with every form, and `Sec-Fetch-Site`, which newer ones do."""
    own = {f"http://{host.lower()}", f"https://{host.lower()}"}
    return (
        len(origins) == 1 and next(iter(origins)).lower() in own and site in {None, "same-origin"}
    )


def may_be_shown(site: str | None, mode: str | None, dest: str | None) -> bool:
    """Whether a page may be read for whoever asks: other sites may lead a person here, and not
    fetch or embed what is here."""
    if site in {None, "same-origin", "none"}:
        return True
    return mode == "navigate" and dest == "document"


def csrf_of(secret: str) -> str:
    """What the forms of a session carry; tells nothing of the session's secret."""
    return hmac.new(secret.encode(), b"metnos console form", hashlib.sha256).hexdigest()


def is_own_form(given: str | None, secret: str) -> bool:
    return given is not None and hmac.compare_digest(
        given.encode("utf-8", "replace"), csrf_of(secret).encode()
    )


def read_form(body: bytes) -> Mapping[str, str] | None:
    """The first value of each field; None when it is no form or has too many fields."""
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return None
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found


def preferred(accepted: str, langs: Collection[str], default: str) -> str:
    """The first language of an `Accept-Language` that we speak, as browsers order them."""
    for part in accepted[:200].lower().split(","):
        if (lang := part.partition(";")[0].strip().partition("-")[0]) in langs:
            return lang
    return default
