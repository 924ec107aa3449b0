"""Numbers that a person said as an answer, in digits or in words. Italian and English. Pure."""

from __future__ import annotations

import re

from core.answer_shapes import fold
from core.levels.number_words import number_of

MAX_CHARS = 60
# Beyond it JSON readers no longer agree on a whole number.
MAX_NUMBER = 2**53

# fmt: off
_ORDINALS = {
    "primo": 1, "prima": 1, "first": 1, "secondo": 2, "seconda": 2, "second": 2,
    "terzo": 3, "terza": 3, "third": 3, "quarto": 4, "quarta": 4, "fourth": 4,
    "quinto": 5, "quinta": 5, "fifth": 5, "sesto": 6, "sesta": 6, "sixth": 6,
    "settimo": 7, "settima": 7, "seventh": 7, "ottavo": 8, "ottava": 8, "eighth": 8,
    "nono": 9, "nona": 9, "ninth": 9, "decimo": 10, "decima": 10, "tenth": 10,
}
# fmt: on
_NUMERALS = {
    "it": re.compile(r"[+-]?(?:\d{1,3}(?:[.' ]\d{3})+|\d+)(?:,\d+)?"),
    "en": re.compile(r"[+-]?(?:\d{1,3}(?:[,' ]\d{3})+|\d+)(?:\.\d+)?"),
}
_LIST_WORDS = frozenset("il la lo the numero number n n. no. opzione option #".split())


def read_number(text: str, *, lang: str) -> int | float | None:
    """A number in digits or words. `1.500` is 1500 in Italian and 1.5 in English."""
    if len(text) > MAX_CHARS:
        return None
    folded = fold(text)
    number = _numeral(folded, lang)
    if number is None:
        number = _number_in_words(folded)
    return number if number is None or abs(number) <= MAX_NUMBER else None


def read_place_in_list(text: str) -> int | None:
    """1 for `1`, `1)`, `n. 1`, `la prima`, `the first one`, `uno`; None for anything else."""
    words = fold(text).split()
    while words and words[0] in _LIST_WORDS:
        words = words[1:]
    if len(words) == 2 and words[1] in {"one", "opzione", "option"}:
        words = words[:1]
    if len(words) != 1:
        return None
    word = words[0].strip("#().°ªº")
    place = int(word) if word.isascii() and word.isdigit() and len(word) < 5 else None
    place = place or _ORDINALS.get(word) or number_of(word)
    return place if place is not None and place >= 1 else None


def small_number(word: str) -> int | None:
    """One word as a whole number: digits (four at most) or a number word."""
    if word.isascii() and word.isdigit() and len(word) <= 4:
        return int(word)
    return number_of(word)


def _numeral(folded: str, lang: str) -> int | float | None:
    """Digits as the language writes them, else as the other one does."""
    own, other = ("it", "en") if lang == "it" else ("en", "it")
    for writing in (own, other):
        if _NUMERALS[writing].fullmatch(folded):
            decimal = "," if writing == "it" else "."
            whole, _, part = folded.partition(decimal)
            whole = re.sub(r"[.,' ]", "", whole)
            return float(f"{whole}.{part}") if part else int(whole)
    return None


def _number_in_words(folded: str) -> int | float | None:
    words = folded.replace("-", " ").split()
    negative = bool(words) and words[0] in {"meno", "minus"}
    words = words[1:] if negative else words
    part = 0.0
    if words and words[-1] in {"mezzo", "mezza", "half"}:
        part, words = 0.5, words[:-1]
        words = words[:-1] if words and words[-1] == "a" else words
        if not words:
            return -0.5 if negative else 0.5
        if words.pop() not in {"e", "and"}:
            return None
    elif point := next((w for w in words if w in {"virgola", "point"}), None):
        at = words.index(point)
        digits = [small_number(word) for word in words[at + 1 :]]
        if not digits or any(digit is None or digit > 9 for digit in digits):
            return None
        part, words = float("0." + "".join(map(str, digits))), words[:at]
    whole = _whole_in_words([w for w in words if w not in {"e", "and"}])
    if whole is None:
        return None
    number = whole + part if part else whole
    return -number if negative else number


def _whole_in_words(words: list[str]) -> int | None:
    """`one hundred twenty five`: each word adds below the last one, or multiplies by its unit."""
    if words and words[0] in {"un", "una", "a", "an"}:
        words = words[1:] or (["uno"] if words[0] in {"un", "una"} else [])
    total = group = 0
    for place, word in enumerate(words):
        value = _word_value(word)
        if value is None or (value == 0 and len(words) > 1):
            return None
        if value in {100, 1000} and place:
            if not 0 < group < value or (value == 1000 and total):
                return None
            if value == 1000:
                total, group = group * 1000, 0
            else:
                group *= 100
        elif _fits_below(value, total, group):
            total, group = (value, 0) if value >= 1000 else (total, group + value)
        else:
            return None
    return total + group if words else None


def _fits_below(value: int, total: int, group: int) -> bool:
    """Whether a word may follow: units after tens, tens after hundreds, all after thousands."""
    if value >= 1000:
        return total == group == 0
    if value >= 100:
        return group == 0
    if value >= 10:
        return group % 100 == 0
    return group % 10 == 0 and group % 100 != 10


def _word_value(word: str) -> int | None:
    """Of one word, Italian ones glued together too: `duecentocinquanta`, `tremila`."""
    if (plain := number_of(word)) is not None:
        return plain
    for sign, unit in (("mila", 1000), ("mille", 1000), ("cento", 100)):
        before, found, after = word.partition(sign)
        if not found:
            continue
        many = _word_value(before) if before else 1
        more = _word_value(after) if after else 0
        if many is None or more is None or many >= unit or more >= unit:
            return None
        return many * unit + more
    return None
