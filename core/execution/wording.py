"""What a folded text speaks of, in Italian and English: numbers, amounts, times, places. Pure.

Word lists for one question only, "may this value come from that text?". Generous on purpose: a
doubt is a yes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"[^\W\d_]+")

_NUMBERS = {
    word: number
    for number, words in {
        0: "zero vuoti vuote vuoto vuota empty",
        0.5: "mezzo mezza mezz half",
        1: "un uno una one primo prima first single singolo ultimo ultima",
        2: "due two paio coppia couple secondo seconda second both entrambi",
        3: "tre three terzo terza third",
        4: "quattro four quarto quarta fourth",
        5: "cinque five quinto quinta fifth",
        6: "sei six sesto sesta sixth",
        7: "sette seven settimo settima seventh",
        8: "otto eight ottavo ottava eighth",
        9: "nove nine nono nona ninth",
        10: "dieci ten decina decimo decima tenth",
        11: "undici eleven",
        12: "dodici twelve dozzina dozen",
        15: "quindici fifteen quindicina",
        20: "venti twenty ventina",
        24: "ventiquattro",
        30: "trenta thirty trentina",
        40: "quaranta forty",
        50: "cinquanta fifty cinquantina",
        60: "sessanta sixty",
        90: "novanta ninety",
        100: "cento hundred centinaio",
        1000: "mille thousand migliaio",
        1_000_000: "milione million",
    }.items()
    for word in words.split()
}
_VAGUE = frozenset(
    """ultimi ultime ultimo ultima primi prime primo prima inizio fine coda testa alcuni alcune
    qualche pochi poche recenti recente grande grandi enorme enormi piccolo piccoli piccole grosso
    grossi piu meno massimo minimo breve brevi lungo lunghi pesante pesanti
    last first latest top bottom beginning start end head tail some few several recent big bigger
    biggest large larger largest huge small smaller smallest short long most least max maximum
    minimum brief heavy heavier newest oldest""".split()
)
_TIMES = frozenset(
    """oggi ieri domani dopodomani altroieri stamattina stamani mattina pomeriggio sera stasera
    notte stanotte mezzanotte mezzogiorno settimana settimane mese mesi anno anni giorno giorni
    giornata ora ore minuto minuti secondi trimestre weekend lunedi martedi mercoledi giovedi
    venerdi sabato domenica gennaio febbraio marzo aprile maggio giugno luglio agosto settembre
    ottobre novembre dicembre natale pasqua
    today yesterday tomorrow tonight morning afternoon evening night midnight noon week weeks month
    months year years day days hour hours minute minutes seconds quarter fortnight monday tuesday
    wednesday thursday friday saturday sunday january february march april june july august
    september october november december christmas easter""".split()
)
_PLACE = re.compile(
    r"\b(?:a|ad|in|nel|nella|nello|nell'|negli|nelle|al|alla|all'|di|del|della|dell'|da|per|su|"
    r"at|on|for|of|near|around)\s+(?:the\s+|la\s+|il\s+|l')?(?P<word>[^\W\d_]{3,})"
)
# What follows such a word without being a place.
_NO_PLACE = frozenset(
    """adesso questo questa questi queste ora momento giorno punto pratica tempo casa favore
    piacere meno piu dove quando preciso precisa data oggi domani ieri esatta esatto orario
    italiano inglese
    now this that the moment time day date today tomorrow once least last first please me you here
    there exact current italian english""".split()
)


def numbers_in(text: str) -> Iterator[float]:
    """Every number of a text, in digits or words; `1.234` both as it may be meant."""
    for match in _DIGITS.finditer(text):
        digits = match[0]
        if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", digits):
            yield float(re.sub(r"[.,]", "", digits)[:15])
        whole, _, rest = digits.replace(",", ".").partition(".")
        yield float(f"{whole[:15]}.{rest.replace('.', '')[:15] or 0}")
    for word in _WORD.findall(text):
        if word in _NUMBERS:
            yield _NUMBERS[word]


def is_vague(text: str) -> bool:
    """Whether it asks for a part without saying how much (`the last lines`, `big files`)."""
    return not _VAGUE.isdisjoint(_WORD.findall(text))


def speaks_of_time(text: str) -> bool:
    return not _TIMES.isdisjoint(_WORD.findall(text))


def names_a_place(text: str) -> bool:
    """Whether a word stands where the name of a place would."""
    return any(
        m["word"] not in _NO_PLACE and m["word"] not in _TIMES for m in _PLACE.finditer(text)
    )
