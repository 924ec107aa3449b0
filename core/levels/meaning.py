"""What a request asks for, in terms that do not depend on how it was said. Pure.

Two requests with equal meanings want the same thing done; unequal ones may or may not. The word
list (`words/meaning.toml`, Italian and English) says which words say nothing, which turn round
what follows, and which mean the same. A word that it does not know stands for itself, so that
what nobody foresaw makes requests different rather than equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from core.catalog.lexicon import fold
from core.levels.amounts import UNITS
from core.levels.meaning_draft import Draft
from core.levels.meaning_pieces import Piece, pieces
from core.levels.meaning_settle import settle

_TOO_LITTLE = frozenset("how where who when why past future asked may own yours look take".split())
"""Traits that alone say nothing: `where have I been?`, `where are you?`"""

MAX_CHARS = 600
"""Beyond this a request is a text of its own, and not compared."""

_TO_SOMETHING = frozenset(
    """delete cancel empty move copy rename add send forward reply open close download upload save
    print share mark flag edit update archive enable disable read""".split()
)
"""Deeds that say nothing where nothing is named: `delete it` may be anything."""

_NOUNS = frozenset({"draft", "spam"})
"""Traits that name something: `delete the drafts`."""

ValueKind = Literal["url", "mail", "path", "number", "quoted", "name", "word"]

# Whether there is any, in a question: there `some` and `a` say no number.
_EXISTS = re.compile(
    r"""(?x) \b(?: c\W?e | ci\ sono | ce\ n | esist\w+ | (?:e|sono)\ arrivat\w | any | got
      | se\ (?:c|ci|ho|mi|e|sono|abbiamo) | (?:if|whether)\ (?:there|i|we)
      | (?:is|are)\ there | do\ (?:i|we)\ have | have\ (?:i|we) | did\ (?:i|we) )\b
    | ^\W*(?:\w+\W+){0,2}(?:ho|abbiamo)\b"""
)
# Whether it is so, of what is known: `are the files empty?`
_IS_IT = re.compile(
    r"""(?ix) ^\W* (?: (?:is|are)\ (?:the|my|our|all|every|each|both)\b(?!\ weather)
      | (?:il|lo|la|l|i|gli|le|tutt[ie])\b (?:\W+\w+){1,3}? \W+ (?:è|sono)\ (?!stat) \w+ )"""
)
# `Which files will you delete?` deletes none.
_WHICH = re.compile(r"(?i)^\W*(?:which|what|whose|quali|quale|qual|che|cosa|chi)\b")
# `Which of my files is the newest?` asks for one.
_WHICH_ONE = re.compile(
    r"\b(?:which (?:one )?of (?:\w+ ){1,3}is|qual\w? (?:tra|fra|dei|delle|degli) (?:\w+ ){1,3}e)\b"
)


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
        traits = self.traits if self.values else set(self.traits) - _TOO_LITTLE
        if self.moving or not (self.deeds or self.things or traits):
            return ""
        acts = bool(self.deeds) and _TO_SOMETHING.issuperset(self.deeds)
        if acts and not (self.things or self.values) and _NOUNS.isdisjoint(traits):
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
    reader = _Reader(fold(text))
    if _IS_IT.match(text):
        reader.note("is_it")
    if _WHICH.match(text):
        reader.ask("which")
    for piece in pieces(text):
        reader.take(piece)
    return reader.meaning()


# -- putting together -----------------------------------------------------------------------------

# Roles that tell two requests apart also where what follows is known.
_TELLING = frozenset(
    "with to near before after over under least most about within from at as instead".split()
)
# Roles that count only beside some deeds; Italian `a` and English `a` are one word.
_SOFT = frozenset("at a of".split())
_ARTICLES = frozenset("the my our a an this that these those".split())
_ARTICLES_FOR = frozenset("the my our il lo la l i gli le".split())
_LETTERS = frozenset("send forward share".split())
_MINE = frozenset("my mine mio mia mie miei".split())
_AND = frozenset("e ed and nonche as_well_as poi then".split())
_NEAR = 3
"""How many words lie between `and` or `for` and what it stands before, at most, and one more."""
_GIVING = frozenset("show tell send read give forward email write bring".split())
_INTO = frozenset("in nel nello nella nell nei negli nelle".split())
_ONTO = frozenset("su sul sullo sulla sull sui sugli sulle on".split())
_WHERE_TO = _INTO | _ONTO | {"a"}
_ROLES_TO = {"at": "to:", "a": "to:", "to": "to:", "in": "to:", "on": "to:", "from": "from:"}
_VALUES = frozenset({"url", "mail", "path", "number", "quoted", "name", "word"})


class _Reader:
    """Puts the pieces of one request together."""

    def __init__(self, text: str) -> None:
        self._draft = Draft()
        self._draft.asks = _EXISTS.search(text) is not None
        self._draft.singled = _WHICH_ONE.search(text) is not None
        self._values: list[Value] = []
        self._deed_of: list[int] = []
        self._words: list[str | None] = []
        self._moving = False
        self._not = False
        self._role = ""
        self._joins = self._counts = self._owns = False
        self._for = self._for_thing = 0
        self._and = self._shown = -9
        self._ordered = -9
        self._after_show = False
        self._before = ""

    def ask(self, name: str) -> None:
        """Add what counts only where something would be changed."""
        self._draft.add_weak(name)

    def note(self, name: str) -> None:
        """Add what is true of the request as a whole."""
        self._draft.trait(name, "")
        self._draft.traits[-1].of = "*"

    def take(self, piece: Piece) -> None:
        kind = piece.kind
        self._draft.step(piece.lang)
        if kind in _VALUES:
            self._value(piece)
            return
        self._owns = self._joins
        self._joins = self._counts = False
        if kind in {"little", "aside", "role"} and piece.lang:
            self._draft.foreign[piece.lang].append(fold(piece.raw))
        words = fold(piece.raw).split()
        self._words += words
        if len(words) > 1 and not _MINE.isdisjoint(words):
            self._draft.aside("mine")  # `which of my processes`
        match kind:
            case "little":
                self._show(piece.name)
                if piece.raw.lower() != "è":
                    self._little("?" if piece.name == "?" else fold(piece.raw))
                else:
                    self._draft.little("e")
            case "aside":
                self._draft.aside(piece.name)
                self._draft.little(fold(piece.raw))
            case "weak":
                self._draft.add_weak(f"{_ROLES_TO.get(self._role, '')}{piece.name}")
                self._show("show" if piece.name == "list" else "")
            case "window":
                self._moving = True
            case "not":
                self._not = not self._not
                self._draft.breaks()
            case "role":
                if piece.name == "of" and self._ordered == self._draft.place - 1:
                    piece = replace(piece, name="by")  # `in ordine di urgenza`
                if piece.name == "of":
                    self._draft.ofs.add(self._draft.place)
                if piece.name not in _SOFT:
                    self._role = piece.name
                    self._draft.breaks()
                elif not self._role:
                    self._role = piece.name
                if fold(piece.raw) in {"for", "per"}:
                    self._for = self._draft.place
                    self._for_thing = self._draft.place
            case "number":
                self._add(Value("number", piece.name, piece.raw, self._marked(self._role)))
                self._words[-len(piece.raw.split()) :] = [None]
            case _:
                self._known(kind, piece)

    def _show(self, name: str) -> None:
        """`count and list them` asks for more than `count them`."""
        if name not in {"show", "show2"}:
            return
        place = self._draft.place
        if self._draft.deeds and self._and == place - 1:
            self._draft.trait("and_show", "")
        if self._and == place - 1:
            self._and = -9
        self._shown = place

    def _little(self, word: str) -> None:
        """`a Marco` and `in Work` say where to, `Marco's` whose; articles nothing."""
        if word in {"me", "mi"} and set(self._draft.deeds[-1:]) & _LETTERS:
            self._draft.trait("to_me", "")
        if word in _AND:
            if self._and != self._draft.place - 1:  # `and then` is one
                self._after_show = self._shown == self._draft.place - 1
            self._and = self._draft.place
        self._draft.little(word)
        if word in _WHERE_TO and not self._role:
            self._role = "a" if word == "a" else ("in" if word in _INTO else "on")
        elif self._owns and not self._values[-1].role:
            to = word in _ARTICLES and self._before in _GIVING  # `show Mum the photos`
            role = "of" if word == "s" else ("to" if to else "")
            self._values[-1] = replace(self._values[-1], role=role)

    def _value(self, piece: Piece) -> None:
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
        if kind == "number" and not self._role and self._draft.is_beside_thing():
            self._role = "nth"  # `line 10` is one, `10 lines` are ten
        elif kind == "number" and self._role == "of":
            self._role = "out_of"
        elif self._role == "by" and self._for:
            self._role = "for"
        self._before = piece.said[0] if len(piece.said) > 1 else ""
        self._add(Value(kind, piece.name, piece.raw, self._marked(self._role)))
        self._words.append(None)
        self._joins, self._counts = kind in {"name", "word"}, kind == "number"

    def _add(self, value: Value) -> None:
        self._values.append(value)
        self._draft.kinds.add(value.kind)
        self._deed_of.append(len(self._draft.deeds))
        self._draft.breaks()
        self._rest()

    def _known(self, kind: str, piece: Piece) -> None:
        if kind == "action":
            if self._after_show and self._and == self._draft.place - 1:
                self._draft.trait("show_and", "")
            self._and = -9  # `and sort them by name` joins deeds
        if kind in {"thing", "trait"} and self._draft.things and self._is_joined():
            self.note("and")
        if kind == "thing" and self._role == "by" and self._is_for(piece):
            self._draft.add(kind, self._marked(f"for:{piece.name}"), piece.said, piece.lang)
        elif kind == "thing" and self._role == "by":
            # `by sender` tells how, wherever it stands.
            self._draft.trait(self._marked(f"by:{piece.name}"), piece.lang)
        elif kind == "action" and self._is_to_do(piece):
            self._draft.trait(self._marked(f"to_{piece.name}"), piece.lang)
        elif kind == "action" and self._is_adjective(piece):
            self._draft.trait(self._marked("seen"), piece.lang)
        elif kind == "trait" and self._is_order(piece):
            deed = {"active": "enable"}.get(piece.name, piece.name)
            self._draft.add("action", self._marked(deed), piece.said, piece.lang)
        else:
            role = f"{self._role}:" if self._role in _TELLING and kind != "action" else ""
            self._draft.add(kind, self._marked(f"{role}{piece.name}"), piece.said, piece.lang)
            if self._role == "in" and kind == "thing":
                self._draft.things[-1].inside = True
            elif self._role in {"before", "after"} and kind == "action":
                self._draft.trait(f"{self._role}:{piece.name}", "")
            elif kind == "action" and piece.said[0] == "chi":
                self._draft.trait("who", "")
        self._rest()
        if kind == "action" and piece.name in _LETTERS and _is_to_me(fold(piece.raw)):
            self._draft.trait("to_me", "")
        if kind == "action" and piece.name == "sort":
            if piece.said[-1] in {"ordine", "order"}:
                self._ordered = self._draft.place
            elif piece.said[-2:] == ("order", "of"):
                self._role = "by"

    def _is_joined(self) -> bool:
        """`files and folders`, not `files in folders`."""
        last = self._draft.things[-1].place
        return last < self._and and self._draft.place - self._and <= _NEAR

    def _is_for(self, piece: Piece) -> bool:
        """`for the project`, `per la riunione`: not how, but what for."""
        apart = self._draft.place - self._for_thing
        return self._for_thing > 0 and apart <= _NEAR and piece.said[0] in _ARTICLES_FOR

    def _is_to_do(self, piece: Piece) -> bool:
        """`are there notes to delete?`, `note da eliminare`: which ones, and no order."""
        return piece.said[0] in {"to", "da"} and self._draft.is_beside_thing(2)

    def _is_order(self, piece: Piece) -> bool:
        """`attiva le notifiche`, `vuota il cestino`: an adjective follows its noun."""
        return (
            piece.said[-1] in {"attiva", "vuota"}
            and not self._draft.things
            and not self._values
            and not self._draft.deeds
        )

    def _is_adjective(self, piece: Piece) -> bool:
        """`archive read mail`, `mark all mail read`: what was read, beside a deed."""
        beside = self._draft.last in {"action", "trait"} or self._draft.deeds == ["mark"]
        return (
            piece.name == "read"
            and piece.said[-1] == "read"
            and (bool(self._draft.deeds) and beside and piece.said[0] not in {"and", "then", "to"})
        )

    def _marked(self, name: str) -> str:
        return f"not:{name}" if self._not else name

    def _rest(self) -> None:
        self._not, self._role, self._for, self._for_thing = False, "", 0, 0

    def meaning(self) -> Meaning:
        if self._not or self._role in _DANGLING:
            # Something is turned round, or meant, that was not understood.
            self._draft.trait(f"{'not' if self._not else self._role}:?", "")
        self._draft.ends_with(self._role)
        deeds, things, traits = settle(self._draft)
        roles = self._draft.roles([value.role for value in self._values], self._deed_of)
        return Meaning(
            deeds,
            things,
            traits,
            tuple(replace(v, role=role) for v, role in zip(self._values, roles, strict=True)),
            tuple(self._words),
            self._moving,
        )


def _is_to_me(words: str) -> bool:
    """`mandami`, `mi mandi`: to whom is said in the verb."""
    return any(word.endswith("mi") for word in words.split())


_DANGLING = frozenset("near before after over under within least most".split())
