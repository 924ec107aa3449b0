"""The words in which people ask for their accounts: to connect, to see, to disconnect one.

Whole sentences only; what says more than that is a request like any other. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.accounts import AccountKind
from core.plan import Step

SET_CREDENTIALS = "set_credentials"
FIND_CREDENTIALS = "find_credentials"
DELETE_CREDENTIALS = "delete_credentials"
CREDENTIALS = frozenset({SET_CREDENTIALS, FIND_CREDENTIALS, DELETE_CREDENTIALS})

MOST_CHARS = 160
_KINDS: Mapping[AccountKind, str] = {
    AccountKind.MAIL: r"posta(?: elettronica)?|e-?mail|mail|casella(?: di posta)?|mailbox",
    AccountKind.CALENDAR: r"calendari[oi]|agenda|calendars?",
    AccountKind.CONTACTS: r"rubrica|contatti|contacts?|address book",
    AccountKind.PLACES: r"luoghi|places",
}
_ANY = "|".join(_KINDS.values())
_IT = r"(?:(?:la|il|i|un|una|l'|lo)\s*)?(?:(?:mi[ao]|miei|nuov[ao])\s+)?"
_EN = r"(?:(?:my|an?|the)\s+)?(?:(?:new|another)\s+)?"
_WHAT_IT = rf"(?:(?:account|profilo)(?:\s+(?:di|della|del|dei)?\s*(?P<a>{_ANY}))?|(?P<b>{_ANY}))"
_WHAT_EN = rf"(?:(?:(?P<c>{_ANY})\s+)?account|(?P<d>{_ANY}))"
_AT = r"(?:\s+(?P<address>[^\s@]+@[^\s@]+\.[^\s@]{2,}))?"
_SET = (
    re.compile(rf"(?:collega|connetti)(?:mi)?\s+{_IT}{_WHAT_IT}{_AT}"),
    re.compile(
        rf"(?:aggiungi|configura|imposta)\s+{_IT}account(?:\s+(?:di\s+)?(?P<a>{_ANY}))?{_AT}"
    ),
    re.compile(rf"(?:connect|link|set up)\s+{_EN}{_WHAT_EN}{_AT}"),
    re.compile(rf"add\s+{_EN}(?:(?P<a>{_ANY})\s+)?account{_AT}"),
)
_FIND = re.compile(
    r"(?:quali|che)\s+account\s+(?:ho|ho collegato|sono collegati|hai)(?:\s+(?:collegat[oi]|qui))?"
    r"|(?:(?:mostra|elenca|dimmi)(?:mi)?\s+)?i\s+miei\s+account(?:\s+collegati)?"
    r"|(?:mostra|elenca)(?:mi)?\s+gli\s+account(?:\s+collegati)?"
    r"|(?:which|what)\s+accounts\s+(?:do i have|have i connected|are connected|are there)"
    r"|(?:(?:show|list|tell)(?:\s+me)?\s+)?my\s+(?:connected\s+)?accounts"
    r"|(?:show|list)(?:\s+me)?\s+the\s+(?:connected\s+)?accounts"
)
_NAME = r"[«“\"'‘]?(?P<name>[^«»“”\"‘’]{1,60}?)[»”\"'’]?"
_DELETE = (
    re.compile(rf"(?:scollega|disconnetti)\s+{_IT}(?P<kind>{_ANY})"),
    re.compile(rf"(?:scollega|disconnetti|rimuovi|elimina)\s+(?:l'|il mio )\s*account\s+{_NAME}"),
    re.compile(rf"(?:disconnect|unlink)\s+{_EN}(?P<kind>{_ANY})"),
    re.compile(rf"(?:disconnect|unlink|remove|delete)\s+(?:the|my)\s+account\s+{_NAME}"),
    re.compile(rf"(?:disconnect|unlink|remove|delete)\s+(?:the|my)\s+{_NAME}\s+account"),
)
_COURTESY = re.compile(
    r"^(?:per favore|ok|please)[\s,]+|[\s,]+(?:per favore|grazie|please|thanks)$"
)


def wish_of(request: str) -> Step | None:
    """The step that a request asks for, when the whole of it speaks of the person's accounts."""
    said = " ".join(request.replace("’", "'").split()).strip(" .!")
    if len(said) > MOST_CHARS:
        return None
    for _ in range(2):
        said = re.sub(_COURTESY.pattern, "", said, flags=re.IGNORECASE)
    low = said.lower()
    if _FIND.fullmatch(low.rstrip(" ?")):
        return Step(FIND_CREDENTIALS, {})
    for pattern in _DELETE:
        if match := re.compile(pattern.pattern, re.IGNORECASE).fullmatch(said):
            return Step(DELETE_CREDENTIALS, _whose(match.groupdict()))
    for pattern in _SET:
        if match := pattern.fullmatch(low):
            return Step(SET_CREDENTIALS, _about(match.groupdict()))
    return None


def kind_of(word: str | None) -> AccountKind | None:
    """The kind of account that a word names."""
    for kind, words in _KINDS.items():
        if word and re.fullmatch(words, word, re.IGNORECASE):
            return kind
    return None


def _about(found: Mapping[str, str | None]) -> dict[str, Any]:
    kind = next((k for name in "abcd" if (k := kind_of(found.get(name))) is not None), None)
    address = found.get("address")
    args: dict[str, Any] = {}
    if kind is not None or address:
        args["kind"] = (kind or AccountKind.MAIL).value
    if address and args["kind"] == AccountKind.MAIL:
        args["address"] = address
    return args


def _whose(found: Mapping[str, str | None]) -> dict[str, Any]:
    kind = kind_of(found.get("kind") or found.get("name"))
    return {"name": found["name"]} if kind is None else {"kind": kind.value}
