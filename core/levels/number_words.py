"""Numbers written as words, Italian and English: `tre`, `venticinque`, `twenty-five`. Pure."""

from __future__ import annotations

from functools import lru_cache

_UNITS = {
    "it": "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici "
    "quattordici quindici sedici diciassette diciotto diciannove",
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen",
}
_TENS = {
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
}
_OTHERS = {
    "cento": 100, "hundred": 100, "mille": 1000, "thousand": 1000, "paio": 2, "couple": 2,
    "dozzina": 12, "dozen": 12, "decina": 10, "ventina": 20,
}  # fmt: skip


@lru_cache(maxsize=1)
def _table() -> dict[str, int]:
    table = dict(_OTHERS)
    for lang, words in _UNITS.items():
        units = words.split()
        table.update({word: value for value, word in enumerate(units)})
        for tens, word in enumerate(_TENS[lang].split(), start=2):
            table[word] = tens * 10
            for value in range(1, 10):
                unit = units[value]
                table[f"{word}-{unit}"] = table[word + unit] = tens * 10 + value
                if lang == "it" and unit[0] in "uo":  # ventuno, trentotto
                    table[word[:-1] + unit] = tens * 10 + value
    return table


def number_of(word: str) -> int | None:
    """The number that a folded word is, None for any other word.

    `uno`, `one`, `sei` are numbers here; whether they are meant as such is the caller's matter.
    """
    return _table().get(word)
