"""The word list of meanings (`words/meaning.toml`): its phrases, and slips of the fingers. Pure.

Read from the package once; what it says is described at its head.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.levels.meaning_forms import forms


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that mean `name` of a `kind`; a last `*` stands for any ending."""

    kind: str
    name: str
    words: tuple[str, ...]
    lang: str = ""


class MeaningWords:
    """The word list, ready to be matched."""

    def __init__(self, table: dict[str, dict[str, dict[str, str]]]) -> None:
        # Kept compactly: the words stand in memory as long as the bot runs.
        self._exact: dict[str, tuple[Phrase, ...]] = {}
        self._open: dict[str, tuple[Phrase, ...]] = {}
        self.known: set[str] = set()
        self.prefixes: dict[str, set[str]] = {}
        self.heads: set[str] = set()
        exact: dict[str, list[Phrase]] = {}
        begun: dict[str, list[Phrase]] = {}
        once: dict[str, str] = {}
        for kind, concepts in table.items():
            for name, said in concepts.items():
                texts = {lang: _texts(said, lang) for lang in ("it", "en")}
                for lang, other in (("it", "en"), ("en", "it")):
                    for text in texts[lang]:
                        words = tuple([once.setdefault(word, word) for word in text.split("_")])
                        phrase = Phrase(kind, name, words, "" if text in texts[other] else lang)
                        first = words[0]
                        if first.endswith("*"):
                            begun.setdefault(first[:3], []).append(phrase)
                        else:
                            exact.setdefault(first, []).append(phrase)
                        self._know(phrase)
        for kept, found in ((self._exact, exact), (self._open, begun)):
            for first, phrases in found.items():
                phrases.sort(key=lambda one: (len(one.words), _weight(one)), reverse=True)
                kept[first] = tuple(phrases)

    def _know(self, phrase: Phrase) -> None:
        for word in phrase.words:
            if word.endswith("*"):
                self.prefixes.setdefault(word[:-1], set()).add(phrase.kind)
                self.heads.add(word[:-1][:_HEAD])
            else:
                self.known.add(word)

    def knows(self, word: str) -> bool:
        return word in self.known or any(
            _fits(kind, f"{word[:n]}*", word)
            for n in range(3, len(word) + 1)
            for kind in self.prefixes.get(word[:n], ())
        )

    def at(self, words: Sequence[str], start: int) -> Phrase | None:
        """The longest phrase that begins here."""
        first, best = words[start], None
        for phrase in (*self._exact.get(first, ()), *self._open.get(first[:3], ())):
            size = len(phrase.words)
            if best is not None and (size, _weight(phrase)) <= (len(best.words), _weight(best)):
                continue
            if start + size <= len(words) and _matches(phrase, words, start):
                best = phrase
        return best


def _texts(said: dict[str, str], lang: str) -> dict[str, None]:
    """All that stands under a meaning in one language, the forms of its verbs included."""
    written = said.get(lang, "").split()
    return dict.fromkeys([*written, *forms(lang, said.get(f"{lang}_verbs", ""))])


def _weight(phrase: Phrase) -> int:
    """Of phrases of one length the one that is written out most goes first."""
    return sum(len(word) for word in phrase.words) - sum("*" in word for word in phrase.words)


def _matches(phrase: Phrase, words: Sequence[str], start: int) -> bool:
    for at, pattern in enumerate(phrase.words, start):
        if pattern != words[at] and not (
            pattern[-1] == "*" and _fits(phrase.kind, pattern, words[at])
        ):
            return False
    return True


def _fits(kind: str, pattern: str, word: str) -> bool:
    if not pattern.endswith("*"):
        return word == pattern
    if not word.startswith(pattern[:-1]):
        return False
    ending = word[len(pattern) - 1 :]
    if kind == "action":
        return _OF_NOUNS.fullmatch(ending) is None
    return kind not in _INFLECTED or _INFLECTION.fullmatch(ending) is not None


# What `*` stands for behind nouns and adjectives; another ending makes another word.
_INFLECTED = frozenset({"thing", "trait", "degree", "number", "not"})
_INFLECTION = re.compile(r"[aeiou]?|h[ei]|i[aeo]|s|es")
# Behind a verb these make a noun of it: `prenot-azioni` are things, and ask for nothing.
_OF_NOUNS = re.compile(
    r"[aei]?(?:zion[ei]|sion[ei]|ment[oi]|t?or[ei]|tric[ei]|tur[ae]|bil[ei]|bilita|tiv[aoei]|nz[ae]"
    r"|ist[aei]|tori[oa])"
)


# -- words of two kinds ---------------------------------------------------------------------------

# Before an English verb that is a noun or an adjective too, or an Italian one that is a noun.
_NO_VERB_AFTER = frozenset(
    """the my your our all any are is was were no some every each still which what many of show
    list find see display in from for with by as an only la le una delle della l alla alle nella
    nei dai ai i dei sui con cartella cartelle folder folders file
    files archivi archivio documenti""".split()
)
_TWOFOLD = frozenset(
    """open read download copy update call share mark play forward reply answer book backup move
    start stop archive duplicate save reserve pause change edit post put copia modifica chiama
    carica segna sposta archivia cambia zip""".split()
)
_AS_NOUN = {
    "open": ("trait", "open"),
    "read": ("trait", "seen"),
    "download": ("thing", "download_item"),
    "archive": ("thing", "archive"),
    "compress": ("thing", "zip"),
}
# Deeds whose participles (`cancellati`) tell what was done before, and ask for nothing.
_PAST = frozenset(
    """delete cancel empty move copy rename create add send forward reply open close download
    upload save compress unpack convert enable disable run stop share mark update install undo
    restore archive restart label""".split()
)
_PARTICIPLE = re.compile(r"\w{3,}(?:at|ut|it)[oaie]$")

# Endings that tell, behind a beginning that any ending follows: `elimin-ero`, `-avo`, `-ano`.
_TELLING = re.compile(
    r"(?:h?er|ir)(?:o|a|anno|emo|ete)|[aei]v(?:o|i|a|amo|ate|ano)|[aei]rono|h?ano|ono|[aei]mmo"
    r"|isco|iscono"
)


def _is_told(deed: str, pattern: str, word: str, before: str) -> bool:
    """Whether this form tells what somebody does, did or will do, and asks for nothing."""
    if before in {"am", "m"} and word.endswith("ing"):
        return True
    if not pattern.endswith("*"):
        return False
    ending = word[len(pattern) - 1 :]
    return (deed == "delete" and ending == "o") or _TELLING.fullmatch(ending) is not None


def as_it_stands(phrase: Phrase, said: Sequence[str]) -> tuple[str, str]:
    """Kind and name of a phrase where it stands; `said` are its words after the one before."""
    if phrase.kind != "action" or len(phrase.words) > 1:
        return phrase.kind, phrase.name
    before, word = (said[0] if len(said) > 1 else ""), said[-1]
    if _is_told(phrase.name, phrase.words[0], word, before):
        return "trait", f"told_{phrase.name}"
    if phrase.lang != "en" and phrase.name in _PAST and _PARTICIPLE.match(word):
        return "trait", f"was_{phrase.name}"
    if word in _TWOFOLD and before in _NO_VERB_AFTER:
        return _AS_NOUN.get(phrase.name, ("thing", f"a_{phrase.name}"))
    return phrase.kind, phrase.name


@lru_cache(maxsize=1)
def load_words() -> MeaningWords:
    path = Path(__file__).parent / "words" / "meaning.toml"
    table: Any = tomllib.loads(path.read_text("utf-8"))
    return MeaningWords(table)


# -- spelling -------------------------------------------------------------------------------------

_TRANSPOSE_FROM, _DOUBLE_FROM, _EDIT_FROM = 3, 4, 6
_LONGEST_ENDING = 3
_HEAD = 4
"""So many first letters are looked at before a listed beginning is searched."""


@lru_cache(maxsize=1)
def real_words() -> frozenset[str]:
    """Words of both languages that are one slip away from a listed one and are no slips."""
    path = Path(__file__).parent / "words" / "real.txt"
    lines = path.read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def spelt(word: str, shown: str, words: MeaningWords) -> str:
    """The word as the list spells it, when it is plainly a slip; else as it is. Names (a capital
    inside the text) are left alone by the caller's folding, short words by length."""
    if words.knows(word) or len(word) < _TRANSPOSE_FROM or (shown[:1].isupper() and shown[1:2]):
        return word
    if word in real_words() or shown.endswith("ò"):
        return word
    found = slips(word)
    return found if found is not None else word


@lru_cache(maxsize=4096)
def slips(word: str) -> str | None:
    """The only listed word that one slip makes this word of, or the listed beginning of one."""
    words = load_words()
    for likely in (_swapped(word), _doubled(word)):
        likeliest = {made for made in likely if made in words.known or _opens(made, words)}
        if len(likeliest) == 1:
            return likeliest.pop()
    found = {
        made
        for made in _one_slip_from(word)
        if made in words.known or (len(made) >= _EDIT_FROM and _opens(made, words))
    }
    whole = {made for made in found if made in words.known}
    best = whole or found
    if len(best) == 1:
        return best.pop()
    phrases = {_concept(made, words) for made in best}
    return sorted(best)[0] if len(phrases) == 1 and None not in phrases else None


def _opens(made: str, words: MeaningWords) -> bool:
    """Whether a listed beginning fits, with no more than an ending after it."""
    if made[:_HEAD] not in words.heads:
        return False
    shortest = max(_HEAD + 1, len(made) - _LONGEST_ENDING)
    return any(made[:size] in words.prefixes for size in range(shortest, len(made) + 1))


def _concept(word: str, words: MeaningWords) -> str | None:
    phrase = words.at([word], 0)
    return None if phrase is None else f"{phrase.kind}.{phrase.name}"


def _one_slip_from(word: str) -> Iterable[str]:
    """Words from which one slip of the fingers makes this one. The first letter is right, but for
    a transposition."""
    yield from _swapped(word)
    size = len(word)
    if size < _DOUBLE_FROM:
        return
    yield from _doubled(word)
    if size < _EDIT_FROM:
        yield from _short_slips(word)
        return
    for at in range(1, size + 1):
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield word[:at] + letter + word[at:]
            if at < size and letter != word[at]:
                yield word[:at] + letter + word[at + 1 :]
        if at < size:
            yield word[:at] + word[at + 1 :]


def _doubled(word: str) -> Iterable[str]:
    """A letter doubled, or one of two left out."""
    if len(word) < _DOUBLE_FROM:
        return
    for at in range(len(word)):
        yield word[: at + 1] + word[at] + word[at + 1 :]
        if at and word[at] == word[at - 1]:
            yield word[:at] + word[at + 1 :]


def _short_slips(word: str) -> Iterable[str]:
    """One letter left out inside a word that is short without it."""
    for at in range(1, len(word)):
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield word[:at] + letter + word[at:]


def _swapped(word: str) -> Iterable[str]:
    """Two letters changed places."""
    for at in range(len(word) - 1):
        if word[at] != word[at + 1]:
            yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]
