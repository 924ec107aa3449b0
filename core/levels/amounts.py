"""Amounts in a text: numbers with what they count and on which side they bound. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from core.execution.values import fold
from core.levels.number_words import number_of

Unit = Literal["", "lines", "days", "bytes", "chars", "km", "other"]
Bound = Literal["", "first", "last", "min", "max", "from", "to", "older"]


@dataclass(frozen=True, slots=True)
class Amount:
    """`value` in its unit: lines, days, bytes, characters, kilometres, or "" for a bare count.
    "other" counts what no argument here is measured in (`200 euro`)."""

    value: int | float
    unit: Unit = ""
    bound: Bound = ""


_LINES = frozenset("riga righe linea linee line lines row rows".split())
_CHARS = frozenset("carattere caratteri character characters chars".split())
_DAYS = {
    **dict.fromkeys("giorno giorni day days".split(), 1.0),
    **dict.fromkeys("ora ore h hour hours".split(), 1 / 24),
    **dict.fromkeys("settimana settimane week weeks".split(), 7.0),
    **dict.fromkeys("mese mesi month months".split(), 30.0),
    **dict.fromkeys("anno anni year years".split(), 365.0),
}
_BYTES = {
    **dict.fromkeys("b byte bytes".split(), 1),
    **dict.fromkeys("k kb kilo kilobyte kilobytes".split(), 10**3),
    **dict.fromkeys("mb mega megabyte megabytes".split(), 10**6),
    **dict.fromkeys("gb giga gigabyte gigabytes gig gigs".split(), 10**9),
    **dict.fromkeys("tb tera terabyte terabytes".split(), 10**12),
    "kib": 2**10, "mib": 2**20, "gib": 2**30,
}  # fmt: skip
_KM = {
    **dict.fromkeys("km chilometro chilometri kilometre kilometres kilometers".split(), 1.0),
    **dict.fromkeys("metri meters metres".split(), 0.001),
    **dict.fromkeys("miglia miles".split(), 1.609),
}  # fmt: skip
UNITS = frozenset(_BYTES) | frozenset(_KM)
"""Words that make one value with the number before them: `10 MB`."""
_COORDS = re.compile(
    r"(?<![\w.,+-])[+-]?\d{1,2}\.\d{2,12}\s*[,;\s]\s*[+-]?\d{1,3}\.\d{2,12}(?![.,]?\d|\w)"
)
_OTHER = frozenset(
    """euro euros eur dollari dollaro dollars usd sterline pounds gradi degrees c f bar kg chili
    grammi grams ml litri liters cup cups percent per cento am pm
    persone people minuti minutes secondi seconds minuto minute volte times""".split()
)
# Words that are never the name of a file, folder or place.
_MEASURES = (_DAYS, _BYTES, _KM)
NOT_A_NAME = (_LINES | _CHARS | _OTHER).union(*_MEASURES) | frozenset(
    """oggi ieri domani adesso ora subito poi dopo prima ultimo ultima ultimi ultime scorso scorsa
    primo primi prime ogni tutti tutte tutto tutta file files today yesterday tomorrow now right
    yet past last first next previous all every each order ordine fondo total totale tutto full
    morning evening night mattina sera notte pomeriggio afternoon midnight noon mezzanotte
    january february march april may june july august september october november december gennaio
    febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre monday
    tuesday wednesday thursday friday saturday sunday lunedi martedi mercoledi giovedi venerdi
    sabato domenica trova cerca leggi apri mostra mostrami dimmi elenca scarica salva scrivi
    aggiungi cancella elimina rimuovi sposta rinomina copia conta ordina filtra somma calcola metti
    find search read open show tell list download fetch save write add append delete remove move
    rename copy count sort filter sum compute put get look check want need give take words word
    time date day size name nome dimensione data formato format dettaglio detail piu meno more
    less than most least altogether there here qui qua piacere favore please thanks grazie ciao
    which what quali cosa pagina page sito site web url indirizzo address contenuto content
    contents testo text lista list elenco vecchi old grandi large big piccoli
    small recenti recent modificati modified changed cambiati creati created vuoti vuote empty
    sottocartelle subfolders righe lines parola parole english italian inglese italiano it en
    ancora again also anche solo only just back via""".split()
)

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_][\w-]*", re.UNICODE)
_FIRST = frozenset("primo prima primi prime first top head inizio".split())
_LAST = frozenset(
    "ultimo ultima ultimi ultime last past scorso scorsa scorsi scorse tail final".split()
)
_MIN = re.compile(
    r"""\b(?: over | above | exceeding | at\ least | more\ than
      | (?:larger|bigger|greater|heavier)\ than
      | oltre | almeno | piu\ (?:(?:grand|pesant)[ei]\ )?di | maggior[ei]\ di | superior[ei]\ a
      | sopra\ (?:i|le|il)? )\s*$""",
    re.VERBOSE,
)
_MAX = re.compile(
    r"""\b(?: under | below | (?:no\ more|less|smaller|lighter)\ than | at\ most | up\ to
      | max(?:imum)? | (?:non\ piu|meno|minor[ei]|piu\ piccol[oaie])\ di | inferior[ei]\ a
      | (?:al\ )?massimo | fino\ a | sotto\ (?:i|le|il)? )\s*$""",
    re.VERBOSE,
)
_OLDER = re.compile(
    r"\b(?:older than|more than|over|piu vecch[ioe]+ di|da piu di|oltre|before)\s*$"
)
_RANGE_TO = re.compile(
    r"\b(?:to|a|al|alla|fino alla|fino al|through|and|e)\s*(?:riga|line)?\s*$|[-–]\s*$"
)
_RANGE_FROM = re.compile(
    r"\b(?:from|da|dal|dalla|between|tra|fra)\s*(?:la|le)?\s*(?:rig[ah]e?|lines?|linea)?\s*$|\b(?:lines|righe)\s*$"
)
_THIS = frozenset("this questa questo quest".split())
_PERIODS = frozenset("settimana week mese month anno year".split())


def amounts_in(text: str) -> list[Amount]:
    """The amounts of a text in their order. Numbers inside paths must be blanked out before."""
    words = [(fold(m[0]), m.start(), m.end()) for m in _WORD.finditer(text)]
    plain = fold(text) if len(fold(text)) == len(text) else text.lower()
    found: list[Amount] = []
    for i, (word, start, end) in enumerate(words):
        value = _value(
            word, words[i - 1][0] if i else "", words[i + 1][0] if i + 1 < len(words) else ""
        )
        if value is None:
            found += _spoken(words, i)
            continue
        unit, factor = _unit(words, i, text[end : end + 2])
        bound = _bound(plain[max(0, start - 40) : start], words, i, unit)
        if (
            bound == "from"
            and unit == ""
            and re.search(r"\b(?:rig|lin)\w+\W+(?:\w+\W+){0,2}$", plain[:start])
        ):
            unit = "lines"
        # `righe da 10 a 20`: the second number of a range counts what the first does.
        if bound == "to" and unit == "" and found and found[-1].bound == "from":
            unit = found[-1].unit
        scaled = value * factor
        whole = int(scaled) if float(scaled).is_integer() else round(scaled, 4)
        found.append(Amount(whole, unit, bound))
    if re.search(r"\b(?:vuot[oiae]|empty|zero[- ]byte)\b", plain):
        found.append(Amount(0, "bytes", "max"))
    return found


def coordinates_in(text: str) -> list[str]:
    """Pairs of latitude and longitude as they are written: `45.4642, 9.19`."""
    return [match[0] for match in _COORDS.finditer(text)]


def _value(word: str, before: str, after: str) -> float | None:
    if word[0].isdigit():
        if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", word):
            return float(re.sub(r"[.,]", "", word))
        number = word.replace(",", ".")
        return float(number) if number.count(".") <= 1 else None
    if word in {"uno", "una", "un", "one", "a", "an", "sei"}:
        counted = after in _LINES or after in _DAYS or (after in _BYTES and len(after) > 1)
        if word == "sei":
            return 6.0 if counted or before in _FIRST | _LAST else None
        return 1.0 if counted and word not in {"a"} else None
    known = number_of(word)
    return None if known is None else float(known)


def _unit(words: list[tuple[str, int, int]], i: int, glued: str) -> tuple[Unit, float]:
    after = words[i + 1][0] if i + 1 < len(words) else ""
    if after in {"di", "of"} and i + 2 < len(words):  # `un paio di righe`
        after = words[i + 2][0]
    if after in _FIRST | _LAST and i + 2 < len(words):
        after = words[i + 2][0]
    before = words[i - 1][0] if i else ""
    if after in _LINES or (before in _LINES and after not in _DAYS and after not in _BYTES):
        return "lines", 1
    if after in _CHARS:
        return "chars", 1
    if after in _DAYS:
        return "days", _DAYS[after]
    if after in _BYTES and (len(after) > 1 or glued[:1].strip()):
        return "bytes", _BYTES[after]
    if after in _KM:
        return "km", _KM[after]
    if glued[:1] in {"%", "°", "€", "$"} or after in _OTHER:
        return "other", 1
    return "", 1


def _bound(before: str, words: list[tuple[str, int, int]], i: int, unit: Unit) -> Bound:
    near = {word for word, _, _ in words[max(0, i - 2) : i + 2]}
    if unit == "days" and _OLDER.search(before):
        return "older"
    if unit == "lines" or unit == "":
        if _RANGE_FROM.search(before):
            return "from"
        if _RANGE_TO.search(before) and re.search(
            r"\d+\s*(?:to|a|al|alla|fino|through|and|e|[-–])[^\d]*$", before
        ):
            return "to"
    if near & _FIRST:
        return "first"
    if near & _LAST:
        return "last"
    if _MIN.search(before):
        return "min"
    if _MAX.search(before):
        return "max"
    return ""


def _spoken(words: list[tuple[str, int, int]], i: int) -> list[Amount]:
    """Amounts without a number: `l'ultima riga`, `last week`, `oggi`."""
    word = words[i][0]
    before = {w.removeprefix("l'").removeprefix("dell'") for w, _, _ in words[max(0, i - 2) : i]}
    after = words[i + 1][0] if i + 1 < len(words) else ""
    singular = word.removeprefix("l'")
    if singular in {"riga", "linea", "line"} and before & (_FIRST | _LAST):
        return [Amount(1, "lines", "first" if before & _FIRST else "last")]
    recent = before & (_LAST | _THIS) or after in _LAST
    if word in _PERIODS and recent:
        return [Amount(int(_DAYS[word]), "days", "last")]
    if word in {"oggi", "today"}:
        return [Amount(1, "days", "last")]
    return []


_LARGEST = re.compile(
    r"""\b(?: largest | biggest | newest | latest | most\ recent | heaviest | longest | descending
      | top | decrescente | ultimi\ modificati | (?:di\ )?piu\ (?:memoria|ram|cpu|spazio)
      | (?:usano|consumano|mangiano|occupano)\ di\ piu | most\ (?:memory|ram|cpu|space)
      | piu\ (?:grand[ei]|recent[ei]|pesant[ei]|nuov[oiae]|lung(?:o|hi|a|he)) (?!\ d[ie]\b) )\b""",
    re.VERBOSE,
)
_SMALLEST = re.compile(
    r"""\b(?: smallest | oldest | lightest | shortest | ascending | alphabetical(?:ly)? | by\ name
      | crescente | alfabetic[oa] | per\ nome
      | piu\ (?:piccol|vecchi|legger|cort|antic)[oiaeh]{0,2} (?!\ d[ie]\b) )\b""",
    re.VERBOSE,
)


def direction_in(text: str) -> bool | None:
    """True when the largest or newest shall come first, False the other way, None when unsaid."""
    plain = fold(text)
    if _LARGEST.search(plain):
        return True
    return False if _SMALLEST.search(plain) else None


# What is worked out of a list, by the words that ask for it; "how many" is told by any list.
_OPERATIONS = {
    "sum": r"somma|totale|in tutto|complessiv\w+|sum|total|altogether|in all",
    "avg": r"in media|la media|medi[oa]|average|mean",
    "median": r"mediana|median",
}
_WEIGHS = re.compile(
    r"""(?x) \b(?: quanto\ (?:spazio|pesa|pesano|occupa|occupano) | how\ (?:much\ space|big|heavy)
      | (?:take|takes)\ up )\b"""
)


def operation_in(text: str) -> str | None:
    """`sum`, `avg` or `median` when the words ask for one over many items, else None."""
    plain = fold(text)
    for name, words in _OPERATIONS.items():
        if re.search(rf"\b(?:{words})\b", plain):
            # "How many in all" is a count, which any list tells.
            counts = re.search(r"\b(?:quant[ie]|how many|conta|count)\b", plain)
            return None if name == "sum" and counts else name
    return "sum" if _WEIGHS.search(plain) else None
