"""Accounts: the services that a person has of their own, and what it takes to connect to each.

Words only. A secret never stands in an `Account`: it is in the vault under `secret_name`, and
reaches the child that needs it over its descriptor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

HINT = "account:"
"""A manifest's hint `account:KIND`: without such an account the program is dormant. With `?` at
the end it works without one, too."""

MAX_VALUE = 300
_NAME = re.compile(r"[^\W_][\w .@+-]{0,59}")
_HOST = re.compile(
    r"(?i)(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,62}\.?)*|\[[0-9a-f:.]+\]|[0-9a-f:.]+"
)


class AccountKind(StrEnum):
    MAIL = "mail"
    CALENDAR = "calendar"
    CONTACTS = "contacts"
    PLACES = "places"


class FieldKind(StrEnum):
    TEXT = "text"
    ADDRESS = "address"
    HOST = "host"
    PORT = "port"
    URL = "url"
    SAFETY = "safety"
    SECRET = "secret"  # noqa: S105 - a kind, not one


@dataclass(frozen=True, slots=True)
class AccountField:
    """One thing to be known of an account. `default` stands where nothing is said; None: it must
    be said, unless `optional`."""

    name: str
    kind: FieldKind
    default: str | int | None = None
    optional: bool = False


HOME = "home"
"""Of a calendar or address book: the one more server that name and password may go to, since the
first says that what is looked for lies there."""

SAFETIES = ("tls", "starttls", "none")
"""How a connection is made safe. `none` is for servers on this machine."""

_T, _F = FieldKind, AccountField
FIELDS: Mapping[AccountKind, tuple[AccountField, ...]] = {
    AccountKind.MAIL: (
        _F("address", _T.ADDRESS),
        _F("user", _T.TEXT, optional=True),
        _F("imap_host", _T.HOST),
        _F("imap_port", _T.PORT, 993),
        _F("imap_safety", _T.SAFETY, "tls"),
        _F("smtp_host", _T.HOST),
        _F("smtp_port", _T.PORT, 465),
        _F("smtp_safety", _T.SAFETY, "tls"),
        _F("password", _T.SECRET),
    ),
    AccountKind.CALENDAR: (
        _F("url", _T.URL),
        _F(HOME, _T.URL, optional=True),
        _F("user", _T.TEXT),
        _F("password", _T.SECRET),
    ),
    AccountKind.CONTACTS: (
        _F("url", _T.URL),
        _F(HOME, _T.URL, optional=True),
        _F("user", _T.TEXT),
        _F("password", _T.SECRET),
    ),
    AccountKind.PLACES: (
        _F("url", _T.URL, "https://places.googleapis.com"),
        _F("key", _T.SECRET),
    ),
}

# Domains of mail → (IMAP host, SMTP host, SMTP port, SMTP safety), as the providers publish them.
_PROVIDERS: Mapping[str, tuple[str, str, int, str]] = {
    "gmail.com": ("imap.gmail.com", "smtp.gmail.com", 465, "tls"),
    "googlemail.com": ("imap.gmail.com", "smtp.gmail.com", 465, "tls"),
    "icloud.com": ("imap.mail.me.com", "smtp.mail.me.com", 587, "starttls"),
    "me.com": ("imap.mail.me.com", "smtp.mail.me.com", 587, "starttls"),
    "yahoo.com": ("imap.mail.yahoo.com", "smtp.mail.yahoo.com", 465, "tls"),
    "yahoo.it": ("imap.mail.yahoo.com", "smtp.mail.yahoo.com", 465, "tls"),
    "fastmail.com": ("imap.fastmail.com", "smtp.fastmail.com", 465, "tls"),
    "gmx.com": ("imap.gmx.com", "mail.gmx.com", 587, "starttls"),
    "posteo.de": ("posteo.de", "posteo.de", 465, "tls"),
    "mailbox.org": ("imap.mailbox.org", "smtp.mailbox.org", 465, "tls"),
    "libero.it": ("imapmail.libero.it", "smtp.libero.it", 465, "tls"),
    "virgilio.it": ("in.virgilio.it", "out.virgilio.it", 465, "tls"),
    "alice.it": ("in.alice.it", "out.alice.it", 587, "starttls"),
    "tim.it": ("in.alice.it", "out.alice.it", 587, "starttls"),
    "tiscali.it": ("imap.tiscali.it", "smtp.tiscali.it", 465, "tls"),
    "aruba.it": ("imaps.aruba.it", "smtps.aruba.it", 465, "tls"),
    "pec.it": ("imaps.pec.aruba.it", "smtps.pec.aruba.it", 465, "tls"),
}


class AccountInvalid(ValueError):
    """A value that an account cannot have; `field` is its name. People are told by the text
    `account.bad.{reason}`."""

    def __init__(self, field_name: str, reason: str) -> None:
        super().__init__(f"{field_name}: {reason}")
        self.field, self.reason = field_name, reason


@dataclass(frozen=True, slots=True)
class Account:
    """One account of one person. `name` is what they call it, unique among theirs however it is
    written; `values` are all fields but the secret one."""

    actor_id: str
    name: str
    kind: AccountKind
    values: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def secret_name(self) -> str:
        """Under which its secret lies in the vault."""
        return f"account:{self.name.casefold()}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """`host:port` of each server, an IPv6 address in brackets."""
        found = []
        for one in FIELDS[self.kind]:
            value = self.values.get(one.name)
            if one.kind is FieldKind.URL and value:
                parts = urlsplit(str(value))
                port = parts.port or (443 if parts.scheme == "https" else 80)
                found.append(_with_port(parts.hostname or "", port))
            elif one.kind is FieldKind.HOST and value:
                port = int(self.values[one.name.replace("_host", "_port")])
                found.append(_with_port(str(value), port))
        return tuple(dict.fromkeys(found))


def secret_field(kind: AccountKind) -> str:
    return next(one.name for one in FIELDS[kind] if one.kind is FieldKind.SECRET)


def kinds_of(hints: Iterable[str]) -> tuple[frozenset[AccountKind], frozenset[AccountKind]]:
    """The kinds of account that these hints need, and those that they can use. Kinds that are not
    known are passed over."""
    needed, used = set(), set()
    for hint in hints:
        if hint.startswith(HINT):
            name = hint.removeprefix(HINT)
            if name.rstrip("?") in set(AccountKind):
                kind = AccountKind(name.rstrip("?"))
                used.add(kind)
                if not name.endswith("?"):
                    needed.add(kind)
    return frozenset(needed), frozenset(used)


def guess_mail(address: str) -> dict[str, str | int]:
    """What a mail account of this address probably needs; a domain that is not known is taken to
    have `imap.` and `smtp.` in front of it."""
    domain = address.rpartition("@")[2].strip().lower()
    if not domain:
        return {}
    known = _PROVIDERS.get(domain) or (f"imap.{domain}", f"smtp.{domain}", 465, "tls")
    imap, smtp, port, safety = known
    return {"imap_host": imap, "smtp_host": smtp, "smtp_port": port, "smtp_safety": safety}


def is_known_provider(address: str) -> bool:
    return address.rpartition("@")[2].strip().lower() in _PROVIDERS


def clean_name(name: str) -> str:
    """Raises `AccountInvalid`."""
    name = " ".join(name.split())
    if not _NAME.fullmatch(name):
        raise AccountInvalid("name", "name")
    return name


def clean_values(kind: AccountKind, given: Mapping[str, Any]) -> dict[str, str | int]:
    """All fields of an account but the secret one, each in its form. Raises `AccountInvalid` for
    one that is missing, unknown or cannot be."""
    unknown = set(given) - {one.name for one in FIELDS[kind]}
    if unknown:
        raise AccountInvalid(min(unknown), "unknown")
    guessed: Mapping[str, str | int] = {}
    if kind is AccountKind.MAIL:
        guessed = guess_mail(str(given.get("address") or ""))
    values: dict[str, str | int] = {}
    for one in FIELDS[kind]:
        if one.kind is FieldKind.SECRET:
            continue
        value = given.get(one.name)
        if value in (None, ""):
            value = guessed.get(one.name, one.default)
        if value in (None, ""):
            if not one.optional:
                raise AccountInvalid(one.name, "missing")
            continue
        values[one.name] = clean_value(one, value)
    if kind is AccountKind.MAIL:
        values.setdefault("user", values["address"])
    if str(values.get("url")).startswith("https:") and str(values.get(HOME)).startswith("http:"):
        raise AccountInvalid(HOME, "url")  # what is sent locked up goes nowhere in the open
    return values


def clean_value(one: AccountField, value: Any) -> str | int:
    """What was said for a field, in its form. Raises `AccountInvalid` for what cannot be."""
    text = str(value).strip()
    if len(text) > MAX_VALUE or any(not c.isprintable() for c in text):
        raise AccountInvalid(one.name, "signs")
    match one.kind:
        case FieldKind.PORT:
            if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 65536:
                raise AccountInvalid(one.name, "port")
            return int(text)
        case FieldKind.HOST:
            if not _HOST.fullmatch(text):
                raise AccountInvalid(one.name, "host")
            return text.strip("[]").lower()
        case FieldKind.URL:
            return _clean_url(one.name, text)
        case FieldKind.SAFETY:
            if text not in SAFETIES:
                raise AccountInvalid(one.name, "safety")
        case FieldKind.ADDRESS:
            head, _, domain = text.rpartition("@")
            if not head or "." not in domain or " " in text:
                raise AccountInvalid(one.name, "address")
        case _:
            pass
    return text


def _clean_url(name: str, text: str) -> str:
    try:
        parts = urlsplit(text)
        bad = parts.scheme not in {"http", "https"} or not parts.hostname or bool(parts.username)
        _ = parts.port
    except ValueError:
        bad = True
    if bad:
        raise AccountInvalid(name, "url")
    return text


def _with_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
