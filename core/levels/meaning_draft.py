"""A meaning while it is put together: which words belong to which, and what goes without saying.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from core.levels.meaning_number import DEFINITE, ONE, adjective_number, noun_number
from core.levels.meaning_said import ASKING, PLACES, TRANSFERS, Said, drop, plain

# What holds things, named in the place of what it holds.
_CONTAINERS = frozenset(
    "calendario calendar agenda schedule rubrica casella inbox mailbox".split()
)
_INSIDE = frozenset(
    "in nel nella nell sul sulla on to into al alla from dal dalla of del della".split()
)

# Traits of the whole request, of no thing in particular.
_GLOBAL = frozenset(
    """first last_place how when where who why if past future together more less all in_order
    alphabetical asked list and_show show_and""".split()
)
_WHOLES = _CONTAINERS | {"book", "diary", "phonebook", "contacts", "list", "lista", "elenco"}
_READ_OUT = frozenset(
    """note report document pdf reminder task event news shopping_list photo video file
    folder""".split()
)
_REACH = 3
"""How many words an article may stand before its noun."""
# Things of which one and several are not told apart: there is one, it cannot be counted, or it is
# what others are told by.
_UNCOUNTED = frozenset(
    """time date weather forecast here address city location mail space disk memory cpu battery
    temperature computer network web news music audio trash shopping_list uptime desktop capability
    last_action rain snow sun wind humidity screen volume download_item archive home office size
    name sender subject topic type extension urgency priority importance day_date category title
    recipient telegram server wifi bluetooth clock_item keyboard text picture_text usb calendars
    slot documents_folder photos_folder music_folder videos_folder person""".split()
)


class Draft:
    """Takes words in their order, and settles what they come to."""

    def __init__(self) -> None:
        self.deeds: list[str] = []
        self.things: list[Said] = []
        self.traits: list[Said] = []
        self.degrees: list[Said] = []
        self.weak: list[str] = []
        self.nouns: list[tuple[str, str, str]] = []
        self.wholes: list[str] = []
        self._dropped: list[int] = []
        self._breaks: list[int] = []
        self.place = self.english = 0
        self.either = 0
        self._definite: set[int] = set()
        self.ofs: set[int] = set()
        self.foreign: dict[str, list[str]] = {"it": [], "en": []}
        self.article = ""
        self._article_at = 0
        self.words: dict[str, tuple[str, str]] = {}
        self.asides: set[str] = set()
        self.kinds: set[str] = set()
        self._every = False
        self.asks = self.at_hand = self.singled = False
        self.last = ""

    def aside(self, name: str) -> None:
        """A word that says something only beside some things."""
        if name == "or":
            self.either = self.place
        else:
            self.asides.add(name)

    def little(self, word: str) -> None:
        """A word that says nothing here, but `a`, which says that one is meant."""
        self.article = word if word in ONE | DEFINITE | {"a"} else ""
        self._article_at = self.place

    def breaks(self) -> None:
        """Something stands here over which an adjective does not reach."""
        self._breaks.append(self.place)
        self.last = ""

    def ends_with(self, role: str) -> None:
        """`Who is the unread mail from?` asks for its sender, `what is it about?` for its gist."""
        if role == "from" and self.has("who", self.traits) and self.has("mail", self.things):
            drop(self.traits, "who")
            self.things.insert(0, Said("sender", len(self.deeds), 0, "en"))
        elif role == "about" and not self.deeds and self.things:
            self.deeds.append("summarise")

    def step(self, lang: str) -> None:
        """One more word or phrase of the request; `lang` is the only language that has it."""
        self.place += 1
        self.english += {"en": 1, "it": -1}.get(lang, 0)

    def add_weak(self, name: str) -> None:
        self.weak.append(name)

    def trait(self, name: str, lang: str) -> None:
        """Which things, or how."""
        self.traits.append(self.said(name, lang))
        self._every |= name in {"all", "every"}
        self.last = "trait"

    def add(self, kind: str, name: str, said: Sequence[str], lang: str) -> None:
        """A word of this kind; `said` are its words, after the one before them."""
        self.last = kind
        if kind == "action":
            self.article = ""
            self.deeds.append(name)
            self._breaks.append(self.place)
        elif kind == "trait":
            self.trait(name, lang)
            self.words[name] = (said[0] if len(said) > 1 else "", said[-1])
        elif kind == "degree":
            self.degrees.append(self.said(name, lang))
            if lang == "it" and len(said) <= 3 and said[-1] not in {"piu", "spazio"}:
                self.degrees[-1].number = adjective_number(said[-1])
        else:
            self._thing(name, said, lang)

    def _thing(self, name: str, said: Sequence[str], lang: str) -> None:
        before = said[0] if len(said) > 1 else ""
        near = self.article if self.place - self._article_at <= _REACH else ""
        if near in ONE | {"a"} and lang != ("it" if near == "a" else "-") and ":" not in name:
            self.traits.append(self.said("a_one" if near == "a" else "one", lang))
            self.traits[-1].of = plain(name)
        self.article = ""
        self.nouns.append((plain(name), before, said[-1] if said else ""))
        if near in DEFINITE or before in DEFINITE:
            self._definite.add(len(self.nouns) - 1)
        if len(said) < 3 and said[-1] in _CONTAINERS and before not in _INSIDE:
            self.wholes.append(f"whole:{plain(name)}")
        self.things.append(self.said(name, lang))

    def said(self, name: str, lang: str) -> Said:
        """A word where the request stands now."""
        return Said(name, len(self.deeds), self.place, lang)

    # -- settling ---------------------------------------------------------------------------------

    @property
    def transfers(self) -> bool:
        """Whether something goes from one place to another."""
        return any(deed.removeprefix("not:") in TRANSFERS for deed in self.deeds)

    @property
    def changes(self) -> bool:
        """Whether something is changed."""
        return any(deed.removeprefix("not:") not in ASKING for deed in self.deeds)

    def roles(self, roles: Sequence[str], deed_of: Sequence[int]) -> list[str]:
        """The roles of values, where `a`, `di` count only if something goes somewhere, or if
        several could be confused. After `settled`."""
        letters = {"mail", "message"} & {plain(said.name) for said in self.things}
        told = self.transfers or bool(letters)
        read = bool(_READ_OUT & {plain(said.name) for said in self.things})

        def meant(role: str) -> str:
            *turned, last = role.split(":")
            if last == "in":
                last = "to" if self.transfers else ("in" if "summarise" in self.deeds else "")
            elif last in {"at", "a"}:
                # English `a` says of which there is one.
                last = "to" if (told or read) and (last == "at" or self.english <= 0) else ""
            elif last == "of":
                last = "of" if letters or self.transfers or len(roles) > 1 else ""
            return ":".join([*turned, last])

        many = len(self.deeds) > 1
        deed_of = [deed - sum(at < deed for at in self._dropped) for deed in deed_of]
        return [
            f"{meant(role)}#{deed}" if many else meant(role)
            for role, deed in zip(roles, deed_of, strict=True)
        ]

    def owner(self, said: Said) -> str:
        """The thing that a trait belongs to: English says it before its noun, Italian after."""
        if said.of:
            return said.of.strip("*")
        if said.name in _GLOBAL or said.name.partition(":")[0] in {"by", "of"}:
            return ""
        owners = [thing for thing in self.things if thing.name not in PLACES] or self.things
        before = [thing for thing in owners if thing.place < said.place]
        after = [thing for thing in owners if thing.place > said.place]
        near = after[0] if after and not self._between(said.place, after[0].place) else None
        if said.lang == "en" and near is not None:
            return plain(near.name)
        found = before[-1] if before else (after[0] if after else None)
        return "" if found is None else plain(found.name)

    def _between(self, start: int, end: int) -> bool:
        return any(start < place < end for place in self._breaks)

    def is_beside_thing(self, far: int = 1) -> bool:
        """Whether the word so far before the last one is a thing."""
        return bool(self.things) and self.things[-1].place == self.place - far

    def has(self, name: str, among: Iterable[Said]) -> bool:
        return any(said.name == name for said in among)

    def numbers(self) -> list[tuple[str, str]]:
        """Each thing with its grammatical number, as `noun_number` tells it."""
        english = self.english > 0
        return [(name, noun_number(before, word, english)) for name, before, word in self.nouns]

    def is_done(self) -> bool:
        """Whether there is a deed of which one can ask whether it was done."""
        return bool(self.deeds) and self.deeds != ["count"]

    def singles(self) -> list[str]:
        """Things of which one is meant that is known: `la cartella`, `my reminder`."""
        known = [
            (name, number)
            for at, ((name, _, word), (_, number)) in enumerate(
                zip(self.nouns, self.numbers(), strict=True)
            )
            if (at in self._definite or self._is_alone())
            and name not in _UNCOUNTED
            and word not in _WHOLES
        ]
        if self.degrees or any(self.has(one, self.traits) for one in ("next", "nearest")):
            return []
        places = [(said.place, plain(said.name)) for said in self.things]
        joined = {a for (at, a), (then, _) in pairwise(places) if then == at + 1}
        return [
            name
            for name, number in known
            if (number == "1" or (number[:1] == "?" and self._is_alone())) and name not in joined
        ]

    def _is_alone(self) -> bool:
        """`timer`, `new note`: one, though nothing before it says so."""
        some = self.deeds or self.asks or self.weak or self._every
        return not some and len(self.nouns) == 1

    def drop_deed(self, at: int) -> None:
        del self.deeds[at]
        for said in (*self.things, *self.traits, *self.degrees):
            said.deed -= said.deed > at
        self._dropped.append(at)
