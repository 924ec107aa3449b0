"""A catalogue made ready for ranking, and how many points a request gives each of its tools.

Points come from what the words mean (verb and object of the tool's name), from the words of its
affinity and description, and from what goes without saying. Pure; no manifest is needed, whatever
has the fields of `RankItem` is ranked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Protocol

from core.catalog.lexicon import (
    COMMA,
    STOP,
    STOP_WORDS,
    Lexicon,
    Senses,
    load_lexicon,
    raise_to,
    request_tokens,
    stem,
    tokens,
    without_pronoun,
)
from core.vocabulary import object_of, qualifiers_of, verb_of


class RankItem(Protocol):
    """What the ranking reads of an executor; a manifest is one."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> Mapping[str, str]: ...
    @property
    def affinity(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def companions(self) -> Sequence[str]: ...
    @property
    def producer_for(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Item:
    """A bare `RankItem`: builtins, benchmarks, tests."""

    name: str
    description: Mapping[str, str] = field(default_factory=dict)
    affinity: Mapping[str, Sequence[str]] = field(default_factory=dict)
    companions: Sequence[str] = ()
    producer_for: Sequence[str] = ()


# Points. An affinity word counts double; both are scaled by how rare the word is.
_AFFINITY = 6.0
_DESCRIPTION = 3.0
_LITTLE_WORDS = 4.0
_VERB = 10.0
_OBJECT = 12.0
_VERB_OF_OBJECT = 10.0
_QUALIFIER = 8.0
_LEADER = 6.0
# Factors.
_NEAR = 0.4
_IMPLIED = 0.7
_LENT = 0.9
_ASKED_FOR = 0.5
_OPEN_QUESTION = 0.4
_QUALIFIER_UNSAID = 0.75
_PROVIDER_UNSAID = 0.4

_DESCRIPTION_CHARS = 300
_MAX_CLAUSES = 4
_PROVIDERS = frozenset({"github"})
_ASKING = ("read", "find", "get", "list")
_HANDLING = ("read", "write", "delete", "move", "open", "compress", "share", "change")
_THEN = frozenset(["poi", "quindi", "infine", "dopodiche", "then", "finally", "afterwards"])
_AND = frozenset(["e", "ed", "and"])
# What opens a further wish beside the plain names of actions.
_OPENERS = frozenset(
    """fai fa falle fallo fanne fammi fammene fammelo fammela dai dammi dimmi dille digli metti
    tira tirami porta passa passami gira giralo girala girali girale mostra mostrami controlla
    guarda vedi aggiungi segna togli prepara prepararmi preparami usa poi
    put stick give make let tell show text email mail message pop chuck check add mark drop tag
    take turn ping work""".split()
)
# Behind these `è` stands, which folded looks like `e`.
_BEFORE_IS = frozenset("c che cos cosa dov dove com come qual quale quand non".split())
_MOST_PARTS = 6
_TAKEN_UP = re.compile(r"(?<!^apri)(?<=[a-z]{3})(?:l[oaie]|ne)$")
_ENOUGH_BEFORE = 3


class PrefilterIndex:
    """A catalogue made ready for ranking. Built once per catalogue signature, then only read."""

    def __init__(self, items: Iterable[RankItem], *, lexicon: Lexicon | None = None) -> None:
        self._items = sorted(items, key=lambda item: item.name)
        self._lexicon = lexicon or load_lexicon()
        self.names: tuple[str, ...] = tuple(item.name for item in self._items)
        self._position = {name: number for number, name in enumerate(self.names)}
        self._verb = [verb_of(name) for name in self.names]
        self._qualifiers = [qualifiers_of(name) for name in self.names]
        self._by_verb = _group((verb,) for verb in self._verb)
        self._by_object = _group((object_of(name),) for name in self.names)
        self._by_qualifier = _group(self._qualifiers)
        # Objects of many tools say a little less about each of them.
        self._rarity = {
            concept: 0.6 + 0.4 * self._idf(len(those))
            for concept, those in self._by_object.items()
        }
        self._companions = self._read_companions()
        self._text: dict[str, list[tuple[int, float]]] = {}
        self._little: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        self._phrases: dict[int, list[frozenset[str]]] = {}
        self._read_texts()
        self._typos = _typo_table({*self._lexicon.words(), *self._affinity_words})

    def __len__(self) -> int:
        return len(self.names)

    def position(self, name: str) -> int | None:
        """Where the tool stands in `names`, None if it does not."""
        return self._position.get(name)

    def companions_of(self, position: int) -> Sequence[int]:
        """Positions of the tools that go along with this one, in the order of their names."""
        return self._companions.get(position, ())

    def called(self, query: str, names: Iterable[str]) -> list[str]:
        """Those of the tools, in the order given, that the request calls by a whole phrase of
        their affinity. A bare verb calls none: everybody says it of everything."""
        said = {self.stem(word) for word in request_tokens(query)}
        return [
            name
            for name in names
            if (place := self.position(name)) is not None
            and any(phrase <= said for phrase in self._phrases_of(place))
        ]

    def _phrases_of(self, place: int) -> list[frozenset[str]]:
        if place not in self._phrases:
            words = [
                frozenset(stem(word) for word in tokens(phrase) if word not in STOP_WORDS)
                for phrases in self._items[place].affinity.values()
                for phrase in phrases
            ]
            self._phrases[place] = [
                phrase for phrase in words if not all(map(self._lexicon.is_only_verb, phrase))
            ]
        return self._phrases[place]

    def clauses(self, query: str) -> list[list[str]]:
        """The request's tokens, cut where a further action begins; at most four pieces."""
        pieces: list[list[str]] = [[]]
        words = request_tokens(query)
        for word, following in zip_longest(words, words[1:], fillvalue=""):
            opens = word in _AND and pieces[-1] and self._lexicon.is_verb(self.stem(following))
            if (word in _THEN or opens) and len(pieces) < _MAX_CLAUSES:
                pieces.append([])
            else:
                pieces[-1].append(word)
        return [piece for piece in pieces if piece]

    def parts(self, query: str) -> list[list[str]]:
        """The request's tokens cut finer than `clauses`: at the ends of sentences too, and at
        commas before what sounds like an order. At most six pieces."""
        pieces: list[list[str]] = [[]]
        joined = False
        for word in request_tokens(query, stops=True):
            ends = word in _THEN or word == STOP
            own = pieces[-1]
            pauses = word == COMMA or (word in _AND and _BEFORE_IS.isdisjoint(own[-1:]))
            if own and (ends or (joined and self._opens(word)) or self._takes_up(word, own)):
                if joined and own[-1] in _AND:
                    own.pop()
                if len(pieces) < _MOST_PARTS:
                    pieces.append([])
            joined = pauses or (joined and ends)
            if word not in (STOP, COMMA):
                pieces[-1].append(word)
        return [piece for piece in pieces if piece]

    def _opens(self, word: str) -> bool:
        """Whether the word sounds like an order: it names an action plainly, or has an Italian
        imperative's pronouns behind it."""
        if word in _OPENERS or self._lexicon.is_verb(self.stem(word)):
            return True
        bare = without_pronoun(word)
        return bare is not None and self._lexicon.may_be_verb(bare)

    def _takes_up(self, word: str, before: Sequence[str]) -> bool:
        """Whether the word is an Italian order that takes up what was said before it, as `mettili`
        does in `le foto di ieri mettili in Album`."""
        return (
            len(before) >= _ENOUGH_BEFORE
            and before[-1] not in STOP_WORDS
            and not before[-1].isdigit()
            and _TAKEN_UP.search(word) is not None
            and (bare := without_pronoun(word)) is not None
            and self._lexicon.may_be_verb(bare)
        )

    def stem(self, word: str) -> str:
        """The stem under which the lexicon or the catalogue knows the word, typos forgiven."""
        stemmed = stem(word)
        known = self._lexicon.knows(stemmed) or self._lexicon.is_part(stemmed)
        if known or word in STOP_WORDS or not word.isalpha():
            return stemmed
        bare = without_pronoun(word)
        if bare is not None and (self._lexicon.knows(bare) or self._lexicon.begins(bare)):
            return bare
        if stemmed in self._text or len(word) < 5:
            return stemmed
        for written in (stemmed, bare, word):
            if written is not None and len(written) >= 5 and (meant := self._meant(written)):
                return meant
        return stemmed

    def points(self, words: Sequence[str]) -> dict[int, float]:
        """Position → points of the tools that a clause speaks of."""
        stems = [self.stem(word) for word in words]
        senses = self._lexicon.senses(words, stems, related=_NEAR, implied=_IMPLIED)
        _fill_in(senses)
        points = self._by_meaning(senses)
        for word in dict.fromkeys(stems):
            for number, weight in self._text.get(word, ()):
                points[number] = points.get(number, 0.0) + weight
        for start, word in enumerate(stems):
            for phrase, number in self._little.get(word, ()):
                if tuple(stems[start : start + len(phrase)]) == phrase:
                    points[number] = points.get(number, 0.0) + _LITTLE_WORDS
        for number in self._leaders(senses, points):
            points[number] = points.get(number, 0.0) + _LEADER
        return points

    def deeds(self, words: Sequence[str], points: Mapping[int, float]) -> list[int]:
        """The best tool by these points of each action that a part plainly names, but for mere
        looking: what is to be done goes unsaid by nobody."""
        stems = [self.stem(word) for word in words]
        verbs = self._lexicon.senses(words, stems, related=_NEAR, implied=_IMPLIED).verbs
        named = [
            self._by_verb.get(v, ()) for v, w in verbs.items() if w == 1.0 and v not in _ASKING
        ]
        return [max(those, key=lambda n: (points.get(n, 0.0), -n)) for those in named if those]

    def _by_meaning(self, senses: Senses) -> dict[int, float]:
        points: dict[int, float] = {}
        verbs, objects, qualifiers = senses.verbs, senses.objects, senses.qualifiers
        for concept, weight in verbs.items():
            for number in self._by_verb.get(concept, ()):
                points[number] = points.get(number, 0.0) + _VERB * weight
        self._lend(senses)
        for concept, weight in objects.items():
            those = self._by_object.get(concept, ())
            # An object that no said action fits is asked for: the source of what is acted with.
            source = not self._acted_on(concept, verbs)
            for number in those:
                verb = self._verb[number]
                fit = verbs.get(verb, 0.0)
                if source and verb in _ASKING:
                    fit = max(fit, _ASKED_FOR)
                gain = (_OBJECT + _VERB_OF_OBJECT * fit) * weight * self._rarity[concept]
                points[number] = points.get(number, 0.0) + gain
        for number in points:
            if own := self._qualifiers[number]:
                said = max(max(qualifiers.get(q, 0.0), objects.get(q, 0.0)) for q in own)
                if said >= 0.5:
                    points[number] += _QUALIFIER * said
                else:
                    unsaid = _QUALIFIER_UNSAID if _PROVIDERS.isdisjoint(own) else _PROVIDER_UNSAID
                    points[number] *= unsaid
        return points

    def _lend(self, senses: Senses) -> None:
        """Let an action that the object itself has no tool for reach what the object also is.

        Photos are moved by what moves files.
        """
        actions = {verb: w for verb, w in senses.verbs.items() if w == 1.0 and verb not in _ASKING}
        named = [concept for concept, weight in senses.objects.items() if weight == 1.0]
        for concept in named:
            if not self._acted_on(concept, actions):
                for other in self._lexicon.near("object", concept):
                    if self._acted_on(other, actions):
                        raise_to(senses.objects, other, _LENT)

    def _acted_on(self, concept: str, verbs: Mapping[str, float]) -> bool:
        those = self._by_object.get(concept, ())
        return any(verbs.get(self._verb[number], 0.0) >= 0.5 for number in those)

    def _leaders(self, senses: Senses, points: Mapping[int, float]) -> set[int]:
        """The best tool of each plainly named object and qualifier, so that none goes without."""
        named = [
            those
            for said, table in (
                (senses.objects, self._by_object),
                (senses.qualifiers, self._by_qualifier),
            )
            for concept, weight in said.items()
            if weight == 1.0 and (those := table.get(concept))
        ]
        return {max(those, key=lambda n: (points.get(n, 0.0), -n)) for those in named}

    def _meant(self, written: str) -> str | None:
        """The known stem within one slip of the pen, None if there is none."""
        found = {
            known
            for shorter in _shortened(written)
            for known in self._typos.get(shorter, ())
            if known[0] == written[0]
        }
        return min(
            found,
            key=lambda k: (abs(len(k) - len(written)), not self._lexicon.knows(k), k),
            default=None,
        )

    def _idf(self, frequency: int) -> float:
        """Rarity from 1 (one tool) down towards 0 (all of them)."""
        count = len(self.names)
        return math.log(1 + count / frequency) / math.log(1 + count)

    def _read_companions(self) -> dict[int, list[int]]:
        together: dict[int, set[int]] = {}
        for number, item in enumerate(self._items):
            for name in item.companions:
                if (other := self.position(name)) is not None:
                    together.setdefault(number, set()).add(other)
            for name in item.producer_for:
                if (consumer := self.position(name)) is not None:
                    together.setdefault(consumer, set()).add(number)
        return {number: sorted(others - {number}) for number, others in together.items()}

    def _read_texts(self) -> None:
        found: dict[str, dict[int, float]] = {}
        self._affinity_words: set[str] = set()
        for number, item in enumerate(self._items):
            mine: dict[str, float] = {}
            for phrase in [*item.name.split("_"), *(p for w in item.affinity.values() for p in w)]:
                words = tokens(phrase)
                stems = [stem(word) for word in words if word not in STOP_WORDS]
                if not stems and words:
                    # Only little words, like "who am I": they count together or not at all.
                    whole = tuple(stem(word) for word in words)
                    self._little.setdefault(whole[0], []).append((whole, number))
                for stemmed in stems:
                    raise_to(mine, stemmed, _AFFINITY / math.sqrt(len(stems)))
            self._affinity_words.update(mine)
            for text in item.description.values():
                for word in tokens(text[:_DESCRIPTION_CHARS]):
                    if word not in STOP_WORDS:
                        raise_to(mine, stem(word), _DESCRIPTION)
            for stemmed, weight in mine.items():
                found.setdefault(stemmed, {})[number] = weight
        for stemmed, those in found.items():
            idf = self._idf(len(those))
            self._text[stemmed] = [(number, weight * idf) for number, weight in those.items()]


def _fill_in(senses: Senses) -> None:
    """What goes without saying: handling means files, a question without object the web, and an
    object without action that somebody wants to know."""
    if not senses.objects:
        if any(senses.verbs.get(verb, 0.0) == 1.0 for verb in _HANDLING):
            senses.objects["files"] = _OPEN_QUESTION
            return
        senses.objects["urls"] = _OPEN_QUESTION
    elif senses.verbs:
        return
    for verb in _ASKING:
        raise_to(senses.verbs, verb, _ASKED_FOR)


def _group(concepts: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """Concept → positions that have it."""
    table: dict[str, list[int]] = {}
    for number, own in enumerate(concepts):
        for concept in own:
            table.setdefault(concept, []).append(number)
    return table


def _typo_table(stems: Iterable[str]) -> dict[str, list[str]]:
    """What is left of each stem when at most one letter is lost → the stems it may be."""
    table: dict[str, list[str]] = {}
    for known in stems:
        if len(known) >= 4:
            for shorter in _shortened(known):
                table.setdefault(shorter, []).append(known)
    return table


def _shortened(word: str) -> set[str]:
    return {word, *(word[:cut] + word[cut + 1 :] for cut in range(len(word)))}
