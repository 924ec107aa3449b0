"""A meaning while it is put together: which words belong to which, and what goes without saying.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from core.levels.meaning_number import ONE, adjective_number, noun_number

ASKING = frozenset(
    "summarise count group sort classify read compare compute explain suggest describe".split()
)
"""Deeds that change nothing. Beside all others it counts how much is meant, and who asks what."""

TRANSFERS = frozenset(
    """move copy send forward reply share convert translate write add upload download save rename
    extract update create remind compress archive tell call""".split()
)
"""Deeds with a beginning and an end, for which `from` and `to` are never of no account."""

# What holds things, named in the place of what it holds.
_CONTAINERS = frozenset(
    "calendario calendar agenda schedule rubrica casella inbox mailbox".split()
)
_INSIDE = frozenset(
    "in nel nella nell sul sulla on to into al alla from dal dalla of del della".split()
)

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
    "older": "oldest",
    "newer": "newest",
    "bigger": "biggest",
    "smaller": "smallest",
    "heavier": "heaviest",
    "lighter": "lightest",
    "higher": "highest",
    "lower": "lowest",
    "longer": "longest",
    "shorter": "shortest",
}
_OPPOSITES = ("oldest newest", "biggest smallest", "heaviest lightest", "highest lowest",
              "longest shortest")  # fmt: skip
_AGAINST = {a: b for pair in _OPPOSITES for a, b in (pair.split(), pair.split()[::-1])}
_MOST = frozenset({"heaviest", "highest", "biggest"})
_LEAST = frozenset({"lightest", "lowest", "smallest"})
# Deeds that only help another, and what they are alone.
_HELPERS = {"make_one": "create", "put": "add", "arrange": "sort"}
# Things that are told in full when they are shown.
_TOLD = frozenset("shopping_list reminder task event".split())
# Folders that have a name of their own, and places, which say where and not what.
_NAMED_AS = {"document": "documents_folder", "photo": "photos_folder", "music": "music_folder",
             "video": "videos_folder"}  # fmt: skip
_NAMED = frozenset({"download_item", "desktop", *_NAMED_AS})
_PLACES = frozenset({"download_item", "desktop", "trash", "disk", "archive", *_NAMED_AS.values()})
# Traits of the whole request, of no thing in particular.
_GLOBAL = frozenset(
    """first last_place how when where who why if past future together more less all in_order
    alphabetical asked list""".split()
)


@dataclass(slots=True)
class _Said:
    """One word that counts. `deed`: how many deeds stood before it; `place` in the request."""

    name: str
    deed: int
    place: int
    lang: str = ""
    of: str = ""
    number: str = ""


class Draft:
    """Takes words in their order, and settles what they come to."""

    def __init__(self) -> None:
        self.deeds: list[str] = []
        self.things: list[_Said] = []
        self._traits: list[_Said] = []
        self._degrees: list[_Said] = []
        self._weak: list[str] = []
        self._nouns: list[tuple[str, str, str]] = []
        self._wholes: list[str] = []
        self._dropped: list[int] = []
        self._breaks: list[int] = []
        self._place = self._english = 0
        self.last = ""

    def breaks(self) -> None:
        """Something stands here over which an adjective does not reach."""
        self._breaks.append(self._place)
        self.last = ""

    def step(self, lang: str) -> None:
        """One more word or phrase of the request; `lang` is the only language that has it."""
        self._place += 1
        self._english += {"en": 1, "it": -1}.get(lang, 0)

    def weak(self, name: str) -> None:
        self._weak.append(name)

    def trait(self, name: str, lang: str) -> None:
        self._traits.append(self._said(name, lang))
        self.last = "trait"

    def add(self, kind: str, name: str, said: Sequence[str], lang: str) -> None:
        """A word of this kind; `said` are its words, after the one before them."""
        self.last = kind
        if kind == "action":
            self.deeds.append(name)
            self._breaks.append(self._place)
        elif kind == "trait":
            self.trait(name, lang)
        elif kind == "degree":
            self._degrees.append(self._said(name, lang))
            if lang == "it" and len(said) <= 3 and said[-1] not in {"piu", "spazio"}:
                self._degrees[-1].number = adjective_number(said[-1])
        else:
            self._thing(name, said, lang)

    def _thing(self, name: str, said: Sequence[str], lang: str) -> None:
        before = said[0] if len(said) > 1 else ""
        if before in ONE and ":" not in name:
            self._traits.append(self._said("one", lang))
            self._traits[-1].of = _plain(name)
        self._nouns.append((_plain(name), before, said[-1] if said else ""))
        if len(said) < 3 and said[-1] in _CONTAINERS and before not in _INSIDE:
            self._wholes.append(f"whole:{_plain(name)}")
        self.things.append(self._said(name, lang))

    def _said(self, name: str, lang: str) -> _Said:
        return _Said(name, len(self.deeds), self._place, lang)

    # -- settling ---------------------------------------------------------------------------------

    @property
    def _transfers(self) -> bool:
        return any(deed.removeprefix("not:") in TRANSFERS for deed in self.deeds)

    @property
    def _changes(self) -> bool:
        return any(deed.removeprefix("not:") not in ASKING for deed in self.deeds)

    def settled(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """Deeds, things and traits as they are compared."""
        self._settle_deeds()
        self._settle_things()
        self._settle_order()
        if self._changes:
            names = [*self._weak, *self._wholes]
            names += [f"n:{thing}" for thing, number in self._numbers() if number == "n"]
            for name in dict.fromkeys(names):
                self._traits.append(_Said(name, 0, self._place, of="*"))
        many_deeds = len(self.deeds) > 1
        many_things = len({said.name for said in self.things}) > 1

        def marked(said: _Said) -> str:
            owner = self._owner(said) if many_things else ""
            deed = f"#{said.deed}" if many_deeds and said.of != "*" else ""
            return f"{said.name}{'@' if owner else ''}{owner}{deed}"

        things = [f"{said.name}#{said.deed}" if many_deeds else said.name for said in self.things]
        return (
            tuple(self.deeds),
            tuple(dict.fromkeys(things)),
            (
                *sorted({marked(t) for t in self._traits}),
                *(f"~{marked(d)}" for d in self._degrees),
            ),
        )

    def roles(self, roles: Sequence[str], deed_of: Sequence[int]) -> list[str]:
        """The roles of values, where `a`, `di` count only if something goes somewhere, or if
        several could be confused. After `settled`."""
        letters = {"mail", "message"} & {_plain(said.name) for said in self.things}
        told = self._transfers or bool(letters)

        def meant(role: str) -> str:
            *turned, last = role.split(":")
            if last in {"at", "a"}:
                last = "to" if told else ""
            elif last == "of":
                last = "of" if letters or len(roles) > 1 else ""
            return ":".join([*turned, last])

        many = len(self.deeds) > 1
        deed_of = [deed - sum(at < deed for at in self._dropped) for deed in deed_of]
        return [
            f"{meant(role)}#{deed}" if many else meant(role)
            for role, deed in zip(roles, deed_of, strict=True)
        ]

    def _owner(self, said: _Said) -> str:
        """The thing that a trait belongs to: English says it before its noun, Italian after."""
        if said.of:
            return said.of.strip("*")
        if said.name in _GLOBAL or said.name.partition(":")[0] in {"by", "of"}:
            return ""
        owners = [thing for thing in self.things if thing.name not in _PLACES] or self.things
        before = [thing for thing in owners if thing.place < said.place]
        after = [thing for thing in owners if thing.place > said.place]
        near = after[0] if after and not self._between(said.place, after[0].place) else None
        if said.lang == "en" and near is not None:
            return _plain(near.name)
        found = before[-1] if before else (after[0] if after else None)
        return "" if found is None else _plain(found.name)

    def _between(self, start: int, end: int) -> bool:
        return any(start < place < end for place in self._breaks)

    def _has(self, name: str, among: Iterable[_Said]) -> bool:
        return any(said.name == name for said in among)

    def _numbers(self) -> list[tuple[str, str]]:
        """Each thing with its grammatical number, as `noun_number` tells it."""
        english = self._english > 0
        return [(name, noun_number(before, word, english)) for name, before, word in self._nouns]

    def _settle_deeds(self) -> None:
        deeds, traits = self.deeds, self._traits
        for helper, alone in _HELPERS.items():
            # `fai un riassunto` is the summary, `fai una nota` makes one.
            if helper in deeds and (helper != "arrange" or "group" in deeds) and len(deeds) > 1:
                self._drop_deed(deeds.index(helper))
            ordered = {"alphabetical", "in_order"} & {said.name for said in traits}
            _swap(deeds, helper, "sort" if helper == "put" and ordered else alone)
        for at in range(len(deeds) - 1, 0, -1):
            if deeds[at] == deeds[at - 1]:
                self._drop_deed(at)
        if deeds == ["read"] and {said.name for said in self.things} & _TOLD:
            self._drop_deed(0)
        if {"group", "sort", "summarise", "compress"} & set(deeds):
            _drop(traits, "up")
        if "mark" in deeds or "update" in deeds:
            _rename(traits, {"to_read": "seen"})
            _drop(traits, "how")
        _rename(traits, {"to_read": "unread"})
        if deeds == ["move"] and any(t.name in {"to:archive", "at:archive"} for t in self.things):
            deeds[:] = ["archive"]
            _drop(self.things, "to:archive", "at:archive")
        if deeds == ["undo"]:
            _drop(self.things, "last_action")

    def _drop_deed(self, at: int) -> None:
        del self.deeds[at]
        for said in (*self.things, *self._traits, *self._degrees):
            said.deed -= said.deed > at
        self._dropped.append(at)

    def _settle_things(self) -> None:
        things, traits = self.things, self._traits
        if self._transfers or {"mail", "message"} & {said.name for said in things}:
            _each(things, lambda name: name.replace("at:", "to:"))
        else:
            _each(things, lambda name: name.replace("at:", "").replace("from:", ""))
        _each((*things, *traits, *self._degrees), lambda name: name.replace("not:with:", "not:"))
        names = {said.name for said in things}
        if "fresh" in {said.name for said in traits} and {"mail", "message"} & names:
            _rename(traits, {"fresh": "unread"})
        if "mail" in names:
            _drop(things, "message")
            _drop(traits, "received")
        if {"address", "weather", "forecast"} & names:
            _drop(things, "here")
        if "weather" in names:
            _drop(traits, "how")
        if "city" in names:
            _drop(things, "here")
        if "battery" in names:
            _drop(traits, "free")
        if {"sort", "group", "classify"} & set(self.deeds) and self._has("day_date", things):
            _drop(things, "day_date")
            self.trait("by:day_date", "")
        if "uptime" in names:
            _drop(things, "computer")
        if self._has("nearest", traits):
            _drop(traits, "where")
        if "space" in names and not self.deeds:
            _drop(things, "disk")
        self._name_folders()
        if "process" in names:
            _rename(traits, {"active": "running", "not:active": "not:running"})
            for one in ("memory", "cpu"):
                if one in names:
                    _drop(things, one)
                    self.trait(f"by:{one}", "")

    def _name_folders(self) -> None:
        """`cartella documenti`, `documents folder`: one place, of which the order says nothing;
        places stand last."""
        for first, second in zip(self.things, self.things[1:], strict=False):
            pair = {_plain(first.name), _plain(second.name)}
            if second.place == first.place + 1 and "folder" in pair and len(pair & _NAMED) == 1:
                found = (pair & _NAMED).pop()
                role = first.name.removesuffix(_plain(first.name))
                first.name = f"{role}{_NAMED_AS.get(found, found)}"
                second.name = "-"
        _drop(self.things, "-")
        if len(self.deeds) < 2 and not self._transfers:
            self.things.sort(key=lambda said: said.name in _PLACES)

    def _settle_order(self) -> None:
        traits, degrees = self._traits, self._degrees
        _each(degrees, lambda name: name.replace("from:", "").replace("at:", ""))
        if "sort" in self.deeds or self._has("first", traits):
            _rename(degrees, _SUPERLATIVES)
        if self._has("by:memory", traits) or self._has("by:cpu", traits):
            for said, meant in (("more", "heaviest"), ("less", "lightest")):
                if self._has(said, traits):
                    _drop(traits, said)
                    degrees.append(self._said(meant, ""))
            _rename(degrees, dict.fromkeys(_MOST, "heaviest") | dict.fromkeys(_LEAST, "lightest"))
            if degrees:
                _drop(traits, "usage")
        else:
            weighed = {"heaviest": "biggest", "lightest": "smallest"}
            process = self._has("process", self.things) or self._has("program", self.things)
            backwards = {big: heavy for heavy, big in weighed.items()}
            _rename(degrees, backwards if process else weighed)
        if not any(said.name in _AGAINST for said in degrees):
            if self._changes and degrees:
                self.trait("of:" + "".join(sorted({said.number for said in degrees})), "")
            return
        if "sort" not in self.deeds and not self._has("first", traits):
            # `the largest file` is one, `the largest files` are some.
            owners = {self._owner(one) for one in degrees}
            numbers = {one.number for one in degrees if one.number}
            numbers = numbers or {n for thing, n in self._numbers() if thing in owners}
            self.trait("of:" + "".join(sorted(numbers)), "")
            return
        if len(degrees) == 2 and degrees[1].name.rpartition(":")[2] == _AGAINST.get(
            degrees[0].name
        ):
            del degrees[1]  # from the oldest to the newest
        self.deeds[:] = [deed for deed in self.deeds if deed != "sort"]
        _drop(traits, "first")
        self.trait("in_order", "")
        # What it is ordered by goes without saying.
        told = {one.name for one in degrees}
        for measure, ends in (
            ("day_date", {"oldest", "newest"}),
            ("size", {"biggest", "smallest"}),
        ):
            if ends & told:
                _drop(self.things, measure)
                _drop(traits, f"by:{measure}")


def _plain(name: str) -> str:
    return name.rpartition(":")[2]


def _swap(names: list[str], name: str, other: str) -> None:
    names[:] = [other if one == name else one for one in names]


def _drop(said: list[_Said], *names: str) -> None:
    said[:] = [one for one in said if one.name not in names]


def _rename(said: list[_Said], meant: dict[str, str]) -> None:
    _each(said, lambda name: meant.get(name, name))


def _each(said: Iterable[_Said], change: Callable[[str], str]) -> None:
    for one in said:
        one.name = change(one.name)
