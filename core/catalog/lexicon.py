"""Words of requests: tokens, stems, and what they mean in the closed vocabulary.

Reads the word lists beside it (`words/*.toml`, Italian and English) once. Knows no catalogue.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

from core.catalog.phrases import TURNS_OF_PHRASE

Kind = Literal["verb", "object", "qualifier"]

# Beyond this a request is no request any more; the rest does not change the ranking.
MAX_TOKENS = 400
_MAX_CHARS = MAX_TOKENS * 25

_WORD = re.compile(r"[a-z0-9]+")
_INFINITIVE_PRONOUN = re.compile(
    r"(?<=[a-z]{3}[aei]r)(?:me|te|ce|ve|se|glie)?(?:mi|ti|ci|vi|si|lo|la|li|le|ne|gli)$"
)
_IMPERATIVE_PRONOUN = re.compile(
    r"(?<=[a-z]{3})(?:me|te|ce|ve|glie)?(?:mi|ti|ci|vi|lo|la|li|le|ne|gli)$"
)
_ENGLISH_ENDING = re.compile(r"(?<=[a-z]{3})(?:ings|ing|ied|ies|ed|s)$")
_VOWELS = re.compile(r"(?<=[a-z]{2})[aeiouy]+$")
_ITALIAN_ENDING = re.compile(r"(?:(?<=[a-z]{3})(?:ar|er|ir)|(?<=[a-z]{4})(?:and|end|at|ut|it))$")
# A past participle tells a state more often than it orders: `the saved files`, `le mail salvate`.
# So does an adjective: `i timer attivi`.
_PARTICIPLE = re.compile(r"[a-z]{3,}(?:at[oai]|ut[oaie]|it[oai]|ed)|[a-z]+tiv[oie]")

# Lengths are bounded so that no text makes these slow. A name's own words are dropped: a file
# called `todo.md` says nothing of tasks.
_SHAPES = re.compile(
    r"""(?ix)
    (?<![\w.,-])-?(?P<coords>\d)\d{0,2}\.\d{2,12}\s{0,2}[,;/\s]\s{0,2}-?\d{1,3}\.\d{2,12}(?![\w.])
    |\b(?:https?://|www\.)(?P<url>[\w.-]{1,200})[^\s<>"']{0,2000}
    |(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?P<address>\.)[\w.]{1,64}
    |(?<![\w@.])(?:[~.\w-]{0,80}/){0,20}[\w*-]{1,80}
        \.(?!(?:com|org|net|it|eu|io)\b)(?P<file>[a-z][a-z0-9]{1,4})\b(?![\w@])
    |(?<![\w:/.])(?:~|\.{1,2})?/(?P<path>\w)[\w./-]{0,400}
    """
)
STOP, COMMA = "xstop", "xcomma"
_STOP = re.compile(r"[.;:!?](?=\s|$)|\n")
_COMMA = re.compile(r",(?=\s)|\s-+\s|\s/\s")

_LITTLE_WORDS = """
    a ad ai al all alla alle allo agli anche c che chi ci come con cosa cui d da dai dal dall
    dalla dalle dallo dagli de degli dei del dell della delle dello di dove e ed era fa favore gli
    ha hai hanno ho i il in io l la le lei li lo loro lui ma me mi mia mie miei mio ne nei nel nell
    nella nelle nello negli noi non o od ogni per perche piu poi puoi potresti qual quale quali
    quando quanti quanto quel quella quelle quelli quello quest questa queste questi questo se sei
    si sia sono sta stai sto su sua sue sui sul sull sulla sulle sullo suo suoi ti te tu tua tue
    tuo tuoi un una uno va vi voglio vorrei voi
    about am an and any are as at be been but by can could did do does for from had has have he her
    his how if into is it its just let like my no not of off on one or our out please s she so some
    t than that the their them then there these they this those to up us was we were what when
    where which who will with would you your"""
STOP_WORDS = frozenset(_LITTLE_WORDS.split())


def fold(text: str) -> str:
    """Lower case without accents: NFKD, marks dropped."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def tokens(text: str) -> list[str]:
    """The letter and digit runs of a text, folded; at most `MAX_TOKENS` of them."""
    return _WORD.findall(fold(text[:_MAX_CHARS]))[:MAX_TOKENS]


def request_tokens(text: str, *, stops: bool = False) -> list[str]:
    """Tokens of a request, where addresses and names of things stand as marks.

    A URL becomes `xurl` and what it tells (`pdf`, `feed`, a known provider), an e-mail address
    `xaddress`, a file name `xfile` and its extension, a path `xpath`, coordinates `xcoords`, and
    turns of phrase what `phrases` makes of them; the word lists give the marks their meaning.
    With `stops` the end of a sentence is a mark too, `STOP`, and a comma `COMMA`.
    """
    marked = _SHAPES.sub(_mark, text[:_MAX_CHARS])
    for pattern, instead in TURNS_OF_PHRASE:
        marked = pattern.sub(instead, marked)
    if stops:
        marked = _COMMA.sub(f" {COMMA} ", _STOP.sub(f" {STOP} ", marked))
    return tokens(marked)


def _mark(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    shown = f" {match[kind]}" if kind == "file" else ""
    if kind == "url":
        shown = "".join(f" {said}" for said, told in _TOLD_BY_URL if told.search(match[0]))
    return f" x{kind}{shown} "


# What an address itself says of what is to be had there.
_TOLD_BY_URL = (
    ("github", re.compile(r"(?i)^[^/]*(?://)?[^/]{0,200}\bgithub\b")),
    ("pdf", re.compile(r"(?i)\.pdf(?:[?#]|$)")),
    ("feed", re.compile(r"(?i)/(?:[\w.-]{0,80}[./_-])?(?:feeds?|rss|atom)(?:[./?_-]|$)")),
)

# Words whose stem would be that of another: `never` and `neve`, snow, `posta` and `posto`,
# `notaio` and `not`.
_WHOLE = frozenset({"never", "posta", "posto", "posti", "notaio"})


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A light stem for both languages: `cercare`, `cerco`, `cercarlo` share one where regular.

    Takes a folded token. It conflates a little too much rather than too little: stems are only
    compared with stems.
    """
    if len(word) < 4 or not word.isalpha() or word in _WHOLE:
        return word
    word = _INFINITIVE_PRONOUN.sub("", word)
    word = _ENGLISH_ENDING.sub("", word)
    word = _VOWELS.sub("", word)
    return _ITALIAN_ENDING.sub("", word)


def without_pronoun(word: str) -> str | None:
    """The stem of an Italian imperative without its pronouns (`cercami`), None if it has none."""
    bare = _IMPERATIVE_PRONOUN.sub("", word)
    return stem(bare) if bare != word else None


@dataclass(frozen=True, slots=True)
class Senses:
    """What a piece of a request may mean: concepts with weights in (0, 1], by kind."""

    verbs: dict[str, float] = field(default_factory=dict)
    objects: dict[str, float] = field(default_factory=dict)
    qualifiers: dict[str, float] = field(default_factory=dict)

    def of(self, kind: Kind) -> dict[str, float]:
        if kind == "verb":
            return self.verbs
        return self.objects if kind == "object" else self.qualifiers


Meaning = tuple[Kind, str, float]
WordLists = Mapping[Kind, Mapping[str, Mapping[str, str]]]


class Lexicon:
    """The word lists, by stem. `load_lexicon` gives the shipped one."""

    def __init__(self, lists: WordLists) -> None:
        self._words: dict[str, list[Meaning]] = {}
        # First stem of a phrase → the whole phrases that begin with it.
        self._phrases: dict[str, list[tuple[tuple[str, ...], Meaning]]] = {}
        self._parts: set[str] = set()
        self._near: dict[Kind, dict[str, list[str]]] = {}
        self._implied = {
            verb: said["implies"] for verb, said in lists["verb"].items() if "implies" in said
        }
        self.concepts: dict[Kind, frozenset[str]] = {}
        for kind, table in lists.items():
            self.concepts[kind] = frozenset(table)
            self._near[kind] = {name: said.get("near", "").split() for name, said in table.items()}
            for concept, said in table.items():
                for key, weight in (("it", 1.0), ("en", 1.0), ("weak", 0.5)):
                    for word in said.get(key, "").split():
                        self._add(word, (kind, concept, weight))

    def _add(self, word: str, meaning: Meaning) -> None:
        first, *rest = (stem(part) for part in word.split("_"))
        if rest:
            self._parts.update((first, *rest))
            self._phrases.setdefault(first, []).append(((first, *rest), meaning))
        else:
            self._words.setdefault(first, []).append(meaning)

    def knows(self, stemmed: str) -> bool:
        return stemmed in self._words

    def begins(self, stemmed: str) -> bool:
        """Whether a phrase that has a meaning begins with the stem."""
        return stemmed in self._phrases

    def is_part(self, stemmed: str) -> bool:
        """Whether a phrase that has a meaning holds the stem."""
        return stemmed in self._parts

    def may_be_verb(self, stemmed: str) -> bool:
        """Whether the stem may name an action."""
        return any(kind == "verb" for kind, _, _ in self._words.get(stemmed, ()))

    def words(self) -> Iterable[str]:
        """Every single-word stem that has a meaning."""
        return self._words

    def near(self, kind: Kind, concept: str) -> Sequence[str]:
        """Concepts of the same kind that often serve the same wish."""
        return self._near[kind].get(concept, ())

    def is_verb(self, stemmed: str) -> bool:
        """Whether the stem plainly names an action, so that it may open a clause."""
        return any(
            kind == "verb" and weight == 1.0 for kind, _, weight in self._words.get(stemmed, ())
        )

    def is_only_verb(self, stemmed: str) -> bool:
        """Whether the stem plainly names an action and nothing else."""
        return self.is_verb(stemmed) and all(
            kind == "verb" for kind, _, _ in self._words.get(stemmed, ())
        )

    def senses(
        self, words: Sequence[str], stems: Sequence[str], *, related: float, implied: float
    ) -> Senses:
        """What the words, whose stems are given, may mean.

        A phrase stands for its words; participles count half as verbs. What a verb implies weighs
        `implied`, and related concepts (`near` in the lists) count `related` times.
        """
        found = Senses()
        covered = 0
        for index, stemmed in enumerate(stems):
            for phrase, (kind, concept, weight) in self._phrases.get(stemmed, ()):
                if tuple(stems[index : index + len(phrase)]) == phrase:
                    raise_to(found.of(kind), concept, weight)
                    covered = max(covered, index + len(phrase))
            meanings = self._words.get(stemmed)
            if meanings is None or index < covered:
                continue
            state = _PARTICIPLE.fullmatch(words[index]) is not None
            for kind, concept, weight in meanings:
                said = weight * 0.5 if state and kind == "verb" else weight
                raise_to(found.of(kind), concept, said)
        for verb, weight in found.verbs.items():
            if weight == 1.0 and verb in self._implied:
                raise_to(found.objects, self._implied[verb], implied)
        for kind, near in self._near.items():
            direct = dict(found.of(kind))
            for concept, weight in direct.items():
                for other in near.get(concept, ()):
                    raise_to(found.of(kind), other, weight * related)
        return found


def raise_to(weights: dict[str, float], concept: str, weight: float) -> None:
    """Make the concept weigh at least this much."""
    if weights.get(concept, 0.0) < weight:
        weights[concept] = weight


@lru_cache(maxsize=1)
def load_lexicon() -> Lexicon:
    """The lexicon shipped with the engine; read from disk once per process."""
    folder = Path(__file__).parent / "words"
    files: dict[Kind, str] = {
        "verb": "verbs.toml",
        "object": "objects.toml",
        "qualifier": "qualifiers.toml",
    }
    return Lexicon(
        {kind: tomllib.loads((folder / name).read_text("utf-8")) for kind, name in files.items()}
    )
