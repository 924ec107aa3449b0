"""One or several: the grammatical number of words, Italian and English. Pure."""

from __future__ import annotations

ONE = frozenset("un uno una an".split())
_SINGULAR = frozenset("il lo la l".split())
_PLURAL = frozenset(
    "i gli le miei mie tuoi tue nostri nostre questi queste quei tutti tutte".split()
)
_THISONE = (
    _SINGULAR
    | ONE
    | frozenset(
        """the this that a my your our mio mia tuo tua nostro nostra questo questa quel quello
        quella""".split()
    )
)
DEFINITE = _THISONE - ONE - {"a"}
# Words that are the same for one and for many: many, unless something before says one.
_INVARIANT = frozenset("foto video file email mail promemoria attivita".split())
_MASS = frozenset("posta corrispondenza mail".split())


def adjective_number(word: str) -> str:
    """Of an Italian adjective: `1`, `n`, or empty for an adverb."""
    if word.endswith(("nte", "nde", "ore", "ale", "o", "a")):
        return "1"
    return "n" if word.endswith(("i", "e")) else ""


def noun_number(before: str, word: str, english: bool) -> str:
    """Whether a thing was named as one (`1`) or as several (`n`); `?` and its word when that
    cannot be told."""
    if english:
        mass = word in _MASS and before not in ONE | {"this", "that"}
        several = word.endswith("s") and not word.endswith(("ss", "us"))
        return "n" if mass or several or word in {"media", "people"} else "1"
    if word in _MASS and (word != "mail" or before not in _THISONE):
        return "n"
    if before in _PLURAL:
        return "n"
    if before in _SINGULAR:
        return "1"
    if word in _INVARIANT and before not in _THISONE:
        return "n"
    if word.endswith(("o", "a", "one")) and word not in _INVARIANT:
        return "1"
    return "n" if word.endswith(("i", "e", "s")) else f"?{word}"
