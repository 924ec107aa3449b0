"""What a request asks for, in terms that do not depend on how it was said. Pure.

Two requests with equal meanings want the same thing done; unequal ones may or may not. The word
list (`words/meaning.toml`, Italian and English) says which words say nothing, which turn round
what follows, and which mean the same. A word that it does not know stands for itself, so that
what nobody foresaw makes requests different rather than equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from core.catalog.lexicon import fold
from core.levels.amounts import UNITS
from core.levels.meaning_words import MeaningWords, load_words, spelt

MAX_CHARS = 600
"""Beyond this a request is a text of its own, and not compared."""

ValueKind = Literal["url", "mail", "path", "number", "quoted", "name", "word"]

_QUOTED = re.compile(
    r"[\"“”„«»]\s*([^\"“”„«»]{1,400}?)\s*[\"“”„«»]|(?<!\w)['‘’]([^'‘’]{2,400})['‘’](?!\w)"
)
_TOKEN = re.compile(
    r"""(?ix)
      (?P<url> https?://[^\s<>"'«»“”]+ | www\.[^\s<>"'«»“”]+ )
    | (?P<mail> [\w.+-]+@[\w-]+(?:\.[\w-]+)+ )
    | (?P<path> ~?(?:\.{0,2}/[\w.~+-]*)+ | [\w.+-]+(?:/[\w.+-]+)+/?
        | [\w*+-][\w.*+-]*\.[a-z][a-z0-9]{1,4}\b )
    | (?P<number> [+-]?\d[\d.,:]* [%°€$]? (?:[a-z]{1,3}\b)? | [\w-]*\d[\w-]* )
    | (?P<mark> [#@]\w+ )
    | (?P<word> [^\W\d_]+ )
    """
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """Something that stands for itself: a name, a number, a quotation, an unknown word.

    `text` is compared (folded; number words as digits), `raw` is as the person wrote it. `role` is
    what it is to the rest: `to`, `from`, `by`, `not:near`, ….
    """

    kind: ValueKind
    text: str
    raw: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """`deeds` and `things` in the order of the request, `traits` as a sorted bag, `values` in
    their order. `words`: every word, for requests of which only the values may differ: `None`
    stands for the next value.

    `moving`: it speaks of a time that moves, so that only the very same words mean the same.
    """

    deeds: tuple[str, ...] = ()
    things: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()
    words: tuple[str | None, ...] = ()
    moving: bool = False

    @property
    def key(self) -> str:
        """Equal for requests that want the same; empty for what must not be compared."""
        return self.key_with([value.text for value in self.values])

    def key_with(self, values: Sequence[str]) -> str:
        """The key with these texts in place of the values, one for each."""
        if self.moving or not (self.deeds or self.things or self.traits):
            return ""
        said = [f"{v.role}:{text}" for v, text in zip(self.values, values, strict=True)]
        return "|".join(" ".join(part) for part in (self.deeds, self.things, self.traits, said))

    def wording_with(self, values: Sequence[str]) -> str:
        """All words as they stand, with these texts in place of the values."""
        texts = iter(values)
        return " ".join(next(texts) if word is None else word for word in self.words)

    @property
    def features(self) -> tuple[str, ...]:
        """What it consists of, for a short list of what may mean the same."""
        return (*self.deeds, *self.things, *self.traits, *(value.text for value in self.values))


@lru_cache(maxsize=4096)
def meaning_of(text: str) -> Meaning:
    """Read a request. Never raises; what is no request of words has an empty `key`."""
    if len(text) > MAX_CHARS:
        return Meaning(moving=True)
    reader = _Reader()
    for piece in _pieces(text):
        reader.take(piece)
    return reader.meaning()


# -- pieces ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Piece:
    """`kind` is one of the word list, or of a value; `said` the words, after the one before."""

    kind: str
    name: str
    raw: str
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    raw: str
    opens: bool
    """First of a sentence, so that a capital says nothing."""


def _pieces(text: str) -> Iterator[_Piece]:
    words = load_words()
    at = 0
    for quote in _QUOTED.finditer(text):
        yield from _plain(text, at, quote.start(), words)
        inside = (quote[1] or quote[2]).strip()
        yield _Piece("quoted", fold(inside), inside)
        at = quote.end()
    yield from _plain(text, at, len(text), words)


def _plain(text: str, start: int, end: int, words: MeaningWords) -> Iterator[_Piece]:
    run: list[_Word] = []
    for match in _TOKEN.finditer(text, start, end):
        raw = match[0]
        if match.lastgroup == "word":
            before = text[: match.start()].rstrip(" \t\n'’(-")
            opens = not before or before[-1] in ".?!:;…\n"
            run.append(_Word(spelt(fold(raw), raw, words), raw, opens))
            continue
        yield from _phrases(run, words)
        run = []
        raw = raw.rstrip(".,:;!?)")
        kind = "name" if match.lastgroup == "mark" else match.lastgroup or "word"
        yield _Piece(kind, fold(raw), raw)
    yield from _phrases(run, words)


def _phrases(run: Sequence[_Word], words: MeaningWords) -> Iterator[_Piece]:
    texts = [word.text for word in run]
    at = 0
    while at < len(run):
        phrase = words.at(texts, at)
        size = 1 if phrase is None else len(phrase.words)
        said = tuple(texts[max(0, at - 1) : at + size])
        raw = " ".join(word.raw for word in run[at : at + size])
        if phrase is None or (size == 1 and _is_named(run[at], phrase.kind)):
            named = run[at].raw[:1].isupper() and not run[at].opens
            yield _Piece("name" if named else "word", texts[at], raw, said)
        else:
            yield _Piece(phrase.kind, phrase.name, raw, said)
        at += size


_BRANDS = frozenset("telegram excel internet windows linux gmail outlook".split())


def _is_named(word: _Word, kind: str) -> bool:
    """Whether a capital inside a sentence makes a common word a name (`in Documents`)."""
    return (
        kind in {"thing", "trait", "degree", "action"}
        and not word.opens
        and word.raw[:1].isupper()
        and not word.raw.isupper()
        and word.text not in _BRANDS
    )


# -- putting together -----------------------------------------------------------------------------

_ONE = frozenset("un uno una an".split())
_SINGULAR = frozenset("il lo la l".split())
_PLURAL = frozenset("i gli le".split())
# Roles that tell two requests apart also where what follows is known.
_TELLING = frozenset("with to near before after over under about within".split())
_DANGLING = frozenset("near before after over under".split())
_SUPERLATIVES = {
    "old": "oldest",
    "new": "newest",
    "big": "biggest",
    "small": "smallest",
    "heavy": "heaviest",
    "light": "lightest",
    "high": "highest",
    "low": "lowest",
    "long": "longest",
    "short": "shortest",
}
_MOST = frozenset({"heaviest", "highest", "biggest"})
_LEAST = frozenset({"lightest", "lowest", "smallest"})
_VALUES = frozenset({"url", "mail", "path", "number", "quoted", "name", "word"})


class _Reader:
    """Puts the pieces of one request together."""

    def __init__(self) -> None:
        self._deeds: list[str] = []
        self._things: list[str] = []
        self._traits: list[str] = []
        self._degrees: list[str] = []
        self._values: list[Value] = []
        self._words: list[str | None] = []
        self._moving = False
        self._not = False
        self._role = ""
        self._numbers: set[str] = set()
        self._joins = self._counts = False

    def take(self, piece: _Piece) -> None:
        kind = piece.kind
        if kind in _VALUES:
            self._value(piece)
            return
        self._joins = self._counts = False
        self._words += fold(piece.raw).split()
        match kind:
            case "little":
                return
            case "window":
                self._moving = True
            case "not":
                self._not = not self._not
            case "role":
                self._role = piece.name
            case _:
                self._known(kind, piece)

    def _value(self, piece: _Piece) -> None:
        kind: ValueKind = piece.kind  # type: ignore[assignment]
        if kind in {"name", "word"} and self._joins:
            # Words beside each other that nobody knows are one name: `New York`.
            last = self._values[-1]
            both = "name" if "name" in {kind, last.kind} else "word"
            self._values[-1] = replace(
                last,
                kind=both,  # type: ignore[arg-type]
                text=f"{last.text} {piece.name}",
                raw=f"{last.raw} {piece.raw}",
            )
            return
        if self._counts and kind in {"name", "word"} and piece.name in UNITS:
            last = self._values[-1]
            self._values[-1] = replace(
                last, text=f"{last.text} {piece.name}", raw=f"{last.raw} {piece.raw}"
            )
            self._counts = False
            return
        self._values.append(Value(kind, piece.name, piece.raw, self._marked(self._role)))
        self._words.append(None)
        self._joins, self._counts = kind in {"name", "word"}, kind == "number"
        self._rest()

    def _known(self, kind: str, piece: _Piece) -> None:
        if kind == "number":
            self._values.append(Value("number", piece.name, piece.raw, self._marked(self._role)))
            self._words[-len(piece.raw.split()) :] = [None]
            self._rest()
            return
        if kind == "thing" and self._role == "by":
            # `by sender` tells how, wherever it stands.
            self._traits.append(self._marked(f"by:{piece.name}"))
            self._rest()
            return
        role = f"{self._role}:" if self._role in _TELLING and kind != "action" else ""
        into = {
            "action": self._deeds,
            "thing": self._things,
            "trait": self._traits,
            "degree": self._degrees,
        }[kind]
        into.append(self._marked(f"{role}{piece.name}"))
        if kind == "thing":
            if len(piece.said) > 1 and piece.said[0] in _ONE:
                self._traits.append("one")
            self._numbers.add(_number(piece.said))
        self._rest()

    def _marked(self, name: str) -> str:
        return f"not:{name}" if self._not else name

    def _rest(self) -> None:
        self._not, self._role = False, ""

    def meaning(self) -> Meaning:
        if self._not or self._role in _DANGLING:
            # Something is turned round, or meant, that was not understood.
            self._traits.append(f"{'not' if self._not else self._role}:?")
        self._settle()
        return Meaning(
            tuple(self._deeds),
            tuple(dict.fromkeys(self._things)),
            (*sorted(set(self._traits)), *(f"~{one}" for one in self._degrees)),
            tuple(self._values),
            tuple(self._words),
            self._moving,
        )

    def _settle(self) -> None:
        """What goes without saying, and what means the same only beside something else."""
        things, traits, degrees = self._things, self._traits, self._degrees
        if "fresh" in traits and {"mail", "message"} & set(things):
            _rename(traits, {"fresh": "unread"})
        if "mail" in things:
            _drop(things, "message")
            _drop(traits, "received")
        if {"address", "weather", "forecast"} & set(things):
            _drop(things, "here")
        if "weather" in things:
            _drop(traits, "how")
        if self._deeds == ["undo"]:
            _drop(things, "last_action")
        if "process" in things:
            _rename(traits, {"active": "running", "not:active": "not:running"})
            for one in ("memory", "cpu"):
                if one in things:
                    _drop(things, one)
                    traits.append(f"by:{one}")
        if "first" in traits:
            _rename(degrees, _SUPERLATIVES)
        if {"by:memory", "by:cpu"} & set(traits):
            for said, meant in (("more", "heaviest"), ("less", "lightest")):
                if said in traits:
                    _drop(traits, said)
                    degrees.append(meant)
            _rename(degrees, dict.fromkeys(_MOST, "heaviest") | dict.fromkeys(_LEAST, "lightest"))
        self._settle_order()

    def _settle_order(self) -> None:
        deeds, things, traits, degrees = self._deeds, self._things, self._traits, self._degrees
        if not any(one in _SUPERLATIVES.values() for one in degrees):
            return
        if "sort" not in deeds and "first" not in traits:
            # `the largest file` is one, `the largest files` are some.
            traits.append("of:" + "".join(sorted(self._numbers)))
            return
        _drop(deeds, "sort")
        _drop(traits, "first")
        traits.append("in_order")
        # What it is ordered by goes without saying.
        for measure, said in (
            ("day_date", {"oldest", "newest"}),
            ("size", {"biggest", "smallest"}),
        ):
            if said & set(degrees):
                _drop(things, measure)
                _drop(traits, f"by:{measure}")


def _number(said: Sequence[str]) -> str:
    """Whether a thing was named as one (`1`) or as several (`n`); `?` and its word when that
    cannot be told."""
    before, word = (said[0], said[-1]) if len(said) > 1 else ("", said[-1] if said else "")
    if before in _PLURAL or word.endswith("s"):
        return "n"
    if before in _SINGULAR:
        return "1"
    return "n" if word.endswith("i") else f"?{word}"


def _drop(names: list[str], name: str) -> None:
    names[:] = [one for one in names if one != name]


def _rename(names: list[str], meant: dict[str, str]) -> None:
    names[:] = [meant.get(one, one) for one in names]
