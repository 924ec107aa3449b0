"""Contacts as vCards (2.1, 3.0, 4.0): reading them line by line, and telling who is meant.

A card is read as far as it goes: a line that is broken spoils nothing else. Pictures, sounds and
keys are never looked at. What uses this declares `requires = ["vobject"]`.
"""

from __future__ import annotations

import quopri
import re

from vobject.base import ParseError, parseLine

from executors._sdk.values import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

MOST_LINES = 500
MOST_VALUES = 200
MAX_VALUE = 500
_CARD = re.compile(r"(?ims)^BEGIN:VCARD[ \t]*\r?$(.*?)^END:VCARD[ \t]*\r?$")
_FOLD = re.compile(r"\r?\n[ \t]")
_SOFT = re.compile(r"=\r?\n")
_KNOWN = frozenset(
    "FN N ORG TITLE ROLE NICKNAME EMAIL TEL ADR BDAY NOTE CATEGORIES URL UID KIND "
    "X-ADDRESSBOOKSERVER-KIND".split()
)
_WORD = re.compile(r"[^\W_]+")
_NO_DIGIT = re.compile(r"\D")
# Words that people put around what they look for.
_LITTLE = frozenset("il lo la l i gli le un una di del della dell the a an of my mio mia".split())


class Card:
    """One contact. `emails`, `phones`: (kind, value), the preferred first."""

    __slots__ = ("birthday", "categories", "emails", "name", "nickname", "note", "org", "phones",
                 "place", "title", "uid", "urls")  # fmt: skip

    def __init__(self) -> None:
        self.uid = self.name = self.nickname = self.org = self.title = ""
        self.place = self.birthday = self.note = self.categories = ""
        self.emails: list[tuple[str, str]] = []
        self.phones: list[tuple[str, str]] = []
        self.urls: list[str] = []

    @property
    def detail(self) -> str:
        """What tells this contact from another of the same name."""
        found = (self.org, self.title, *(v for _, v in self.emails), *(v for _, v in self.phones))
        return next((value for value in found if value and value != self.name), self.place)


def blocks_of(text: str) -> list[str]:
    """The cards of a text, each as it is written in it."""
    return [match[1] for match in _CARD.finditer(text)]


def may_hold(block: str, query: str) -> bool:
    """Whether a card could be meant by a query: told from its text, quickly, never wrongly no."""
    flat = _FOLD.sub("", block)
    if re.search(r"(?i)QUOTED-PRINTABLE|BASE64|ENCODING=B", flat):
        return True
    text = fold(flat)
    words = words_of(query)
    digits = digits_of(query)
    return all(_stem(word) in text for word in words) or (
        len(digits) >= 4 and digits[-6:] in digits_of(flat)
    )


def read_card(block: str) -> Card | None:
    """A card's contact; None for a list of people, and for what says nothing."""
    card = Card()
    named = ""
    for name, params, value in _lines(block):
        text = _plain(value)
        match name:
            case "KIND" | "X-ADDRESSBOOKSERVER-KIND" if text.lower() == "group":
                return None
            case "FN":
                card.name = card.name or text
            case "N":
                named = named or _name_of(value)
            case "ORG":
                card.org = card.org or ", ".join(p for p in _parts(value) if p)
            case "TITLE" | "ROLE":
                card.title = card.title or text
            case "EMAIL":
                _add(card.emails, params, text.removeprefix("mailto:"))
            case "TEL":
                _add(card.phones, params, re.sub(r"(?i)^tel:", "", text))
            case "ADR":
                card.place = card.place or ", ".join(p for p in _parts(value)[2:] if p)
            case "URL" if len(card.urls) < MOST_VALUES:
                card.urls.append(text)
            case "NICKNAME" | "NOTE" | "CATEGORIES" | "UID" | "BDAY":
                field = {"BDAY": "birthday"}.get(name, name.lower())
                setattr(card, field, getattr(card, field) or text)
            case _:
                pass
    first = [value for _, value in (*card.emails, *card.phones)][:1]
    card.name = card.name or named or card.nickname or card.org or "".join(first)
    return card if card.name else None


def rank_of(card: Card, query: str) -> int | None:
    """How well a query means a card: 0 by its whole name, number or address, 1 by its name, 2 by
    something else; None: not at all."""
    wanted = fold(query).strip()
    if "@" in wanted:
        return 0 if any(fold(mail) == wanted for _, mail in card.emails) else (
            2 if any(wanted in fold(mail) for _, mail in card.emails) else None
        )  # fmt: skip
    digits = digits_of(query)
    if len(digits) >= 4 and not re.search(r"[^\W\d_]", query):
        return 0 if any(_same_number(digits, number) for _, number in card.phones) else None
    words = words_of(query)
    if not words:
        return None
    named = _WORD.findall(fold(f"{card.name} {card.nickname}"))
    if sorted(words) == sorted(_WORD.findall(fold(card.name))):
        return 0
    if all(_stands(word, named) for word in words):
        return 1
    mails = " ".join(mail for _, mail in card.emails)
    more = f"{card.org} {card.title} {card.note} {card.categories} {card.place} {mails}"
    text = [*named, *_WORD.findall(fold(more))]
    return 2 if all(_stands(word, text) for word in words) else None


def words_of(query: str) -> list[str]:
    """The words of a query that count; all of them when none does."""
    found = _WORD.findall(fold(query))
    return [word for word in found if word not in _LITTLE] or found


def digits_of(text: str) -> str:
    return _NO_DIGIT.sub("", text)


# -- inside ---------------------------------------------------------------------------------------


def _lines(block: str) -> Iterator[tuple[str, Sequence[Any], str]]:
    if "QUOTED-PRINTABLE" in block.upper():
        block = _SOFT.sub("", block)
    for line in _FOLD.sub("", block).split("\n")[:MOST_LINES]:
        head = line[:40].split(":", 1)[0].split(";", 1)[0].rsplit(".", 1)[-1].strip().upper()
        if head not in _KNOWN:
            continue
        try:
            name, params, value, _ = parseLine(line.rstrip("\r"))
        except (ParseError, ValueError, IndexError):
            continue
        value = _decoded(value, params)
        yield name.upper(), params, value


def _decoded(value: str, params: Sequence[Any]) -> str:
    flat = {str(item).upper() for param in params for item in param}
    if "QUOTED-PRINTABLE" in flat:
        charset = next((p[1] for p in params if str(p[0]).upper() == "CHARSET" and len(p) > 1), "")
        data = quopri.decodestring(value.encode("utf-8", "replace"))
        try:
            return data.decode(charset or "utf-8", "replace")
        except LookupError:
            return data.decode("utf-8", "replace")
    return "" if flat & {"BASE64", "B"} else value


def _plain(value: str) -> str:
    text = re.sub(r"\\([nN,;:\\])", lambda m: " " if m[1] in "nN" else m[1], value)
    return " ".join(text.split())[:MAX_VALUE]


def _parts(value: str) -> list[str]:
    return [_plain(part) for part in re.split(r"(?<!\\);", value)]


def _name_of(value: str) -> str:
    parts = [*_parts(value), "", "", ""]
    return " ".join(part for part in (parts[1], parts[2], parts[0]) if part)


def _add(listed: list[tuple[str, str]], params: Sequence[Any], value: str) -> None:
    kinds = {str(item).lower() for param in params for item in param[1:]}
    kinds |= {str(param[0]).lower() for param in params}
    if not value or len(listed) >= MOST_VALUES or any(value == known for _, known in listed):
        return
    kind = next((k for k in ("cell", "work", "home", "fax") if k in kinds), "")
    if "pref" in kinds:
        listed.insert(0, (kind, value))
    else:
        listed.append((kind, value))


def _stands(word: str, words: Sequence[str]) -> bool:
    """Whether a word begins one of these; an English plural or possessive loses its `s`."""
    return any(other.startswith(word) or (len(word) > 3 and other == _stem(word))
               for other in words)  # fmt: skip


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def _same_number(digits: str, number: str) -> bool:
    """Whether two spellings are one number: with or without the country's prefix."""
    one, other = digits.lstrip("0"), digits_of(number).lstrip("0")
    short, long = sorted((one, other), key=len)
    if not short:
        return False
    return one == other or (len(short) >= 7 and long.endswith(short)) or (
        len(one) >= 4 and one == short and len(short) < 7 and long.endswith(short)
    )  # fmt: skip
