"""What a short text says: yes or no, a number, a date, a place in a list. Italian and English.

Pure. The whole text must have the shape; a sentence that only holds one has none.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date, timedelta

from core.levels.number_words import number_of

MAX_YES_NO = 30
MAX_SHAPE = 60


def _forms(listed: str) -> frozenset[str]:
    return frozenset(form.strip() for form in listed.split("|"))


# fmt: off
_YES = _forms(
    """si|s|yes|y|yeah|yep|yup|sure|ok|okay|okey|va bene|d'accordo|certo|certamente|esatto|procedi
    |procedi pure|fai pure|fallo|fai|vai|vai pure|confermo|conferma|confermato|approvo|approva
    |si grazie|si procedi|si fallo|si vai|si certo|si va bene|si confermo|si questa volta
    |certo che si|ma si|volentieri|ok grazie|ok procedi|ok vai|ok fallo|ok si|si ok
    |yes please|yes do it|yes go ahead|yes this time|do it|go ahead|go on|confirm|confirmed
    |i confirm|approve|approved|i approve|agreed|of course|please do|proceed|ok do it|ok go ahead
    |ok yes|yes ok|sounds good|fine|that's fine|👍|✅|👌|✔"""
)
_NO = _forms(
    """no|n|nope|nah|no grazie|non farlo|non ora|non adesso|per ora no|no per ora|meglio di no
    |assolutamente no|certo che no|rifiuto|rifiuta|non procedere|non confermo|non approvo
    |no thanks|no thank you|don't|do not|don't do it|do not do it|not now|no don't|i don't approve
    |refuse|reject|deny|decline|no way|of course not|absolutely not|better not|please don't
    |👎|❌|✋|✖"""
)
CANCELS = _forms(
    """annulla|annullare|annulla tutto|annulla la richiesta|annulla la domanda|lascia stare
    |lascia perdere|lasciamo stare|lasciamo perdere|lascia cosi|fa niente|fa nulla|non importa
    |non fa niente|come non detto|niente lascia stare|no lascia stare|no lascia perdere
    |✖ lascia stare|/annulla|cancel|/cancel|cancel it|cancel that|forget it|forget that
    |forget about it|never mind|nevermind|drop it|leave it|no forget it|no never mind
    |✖ forget it"""
)
SKIPS = _forms(
    """salta|passa|salta questo|avanti|nessuno|nessuna|niente|non serve|-|—
    |skip|skip it|skip this|pass|next|none|nothing|not needed"""
)
ALL = _forms("tutti|tutte|tutto|tutti quanti|tutte quante|all|all of them|everything")
NONE = _forms("nessuno|nessuna|niente|none|none of them|nothing")
_ORDINALS = {
    "primo": 1, "prima": 1, "first": 1, "secondo": 2, "seconda": 2, "second": 2,
    "terzo": 3, "terza": 3, "third": 3, "quarto": 4, "quarta": 4, "fourth": 4,
    "quinto": 5, "quinta": 5, "fifth": 5, "sesto": 6, "sesta": 6, "sixth": 6,
    "settimo": 7, "settima": 7, "seventh": 7, "ottavo": 8, "ottava": 8, "eighth": 8,
    "nono": 9, "nona": 9, "ninth": 9, "decimo": 10, "decima": 10, "tenth": 10,
}
_MONTHS = {
    name: number
    for number, names in enumerate(
        [
            "gennaio gen january jan", "febbraio feb february", "marzo mar march",
            "aprile apr april", "maggio mag may", "giugno giu june jun", "luglio lug july jul",
            "agosto ago august aug", "settembre set sett september sep sept",
            "ottobre ott october oct", "novembre nov november", "dicembre dic december dec",
        ],
        start=1,
    )
    for name in names.split()
}
_WEEKDAYS = {
    name: number
    for number, names in enumerate(
        [
            "lunedi lun monday mon", "martedi mar tuesday tue", "mercoledi mer wednesday wed",
            "giovedi gio thursday thu", "venerdi ven friday fri", "sabato sab saturday sat",
            "domenica dom sunday sun",
        ]
    )
    for name in names.split()
}
_DAYS = {
    "oggi": 0, "today": 0, "stasera": 0, "tonight": 0, "domani": 1, "tomorrow": 1,
    "dopodomani": 2, "dopo domani": 2, "the day after tomorrow": 2, "day after tomorrow": 2,
    "ieri": -1, "yesterday": -1, "l'altro ieri": -2, "ieri l'altro": -2, "altroieri": -2,
    "the day before yesterday": -2, "day before yesterday": -2,
}
_SPANS = {
    "giorno": 1, "giorni": 1, "day": 1, "days": 1,
    "settimana": 7, "settimane": 7, "week": 7, "weeks": 7,
}
_OPENERS = frozenset(
    """che chi cosa come dove quando quanto quanti quanta quante quale quali perche c'e ci dimmi
    fammi mostrami trova cerca leggi apri scrivi elenca crea sposta elimina cancella manda invia
    ricordami aggiungi calcola scarica conta ordina filtra riassumi spiega traduci prepara puoi
    potresti vorrei metti copia rinomina
    what who how where when which why whose is are do does did can could would will please tell
    show find search read open write list create move delete remove send remind add compute
    download count sort filter summarise summarize explain translate prepare i'd put copy
    rename""".split()
)
# fmt: on
_NUMERAL = re.compile(r"[+-]?\d{1,3}(?:[.,'\u00a0 ]\d{3})+(?:[.,]\d+)?|[+-]?\d+(?:[.,]\d+)?")
_PATH = re.compile(r"(?:~|\.{1,2})?/\S.*|[A-Za-z]:\\.+|[^\s/]+(?:/[^/]+)+/?|[^\s/]+\.\w{1,8}")
_POINT = re.compile(r"([+-]?\d{1,2}(?:\.\d+)?)\s*[,;\s]\s*([+-]?\d{1,3}(?:\.\d+)?)")


def fold(text: str) -> str:
    """Lower case, NFKC, without accents, end punctuation and doubled spaces, for comparing."""
    text = unicodedata.normalize("NFKC", text[:400]).casefold().replace("\u2019", "'")
    text = unicodedata.normalize("NFKD", text)
    kept = "".join(c for c in text if not unicodedata.combining(c) and c not in "\u200d\ufe0f")
    return " ".join(kept.split()).strip(" .!,;:…")


def has_breaks(text: str) -> bool:
    return any(unicodedata.category(c) in {"Cc", "Zl", "Zp"} for c in text)


def looks_like_request(text: str) -> bool:
    """Whether a text reads as a question or an order of its own rather than as what was asked."""
    words = fold(text).replace(",", " ").split()
    if not words or "?" in text or "\n" in text or len(text) > 200:
        return True
    return words[0] in _OPENERS


def looks_like_path(text: str) -> bool:
    return _PATH.fullmatch(text) is not None and "?" not in text


def read_yes_no(text: str) -> bool | None:
    """True or False when the whole text is a listed form of yes or no; else None."""
    if len(text) > MAX_YES_NO or "?" in text or "\n" in text:
        return None
    said = " ".join(fold(text).replace(",", " ").replace("si'", "si").split())
    if said in _YES:
        return True
    return False if said in _NO else None


def split_list(text: str) -> list[str]:
    """The parts of "a, b e c"."""
    parts = re.split(r"\s*[,;\n]\s*|\s+(?:e|ed|and|&)\s+", text.strip())
    return [part for part in parts if part]


def read_place_in_list(text: str) -> int | None:
    """1 for `1`, `1)`, `n. 1`, `la prima`, `the first one`, `uno`; None for anything else."""
    words = fold(text).split()
    while words and words[0] in {
        "il",
        "la",
        "lo",
        "the",
        "numero",
        "number",
        "n",
        "n.",
        "no.",
        "opzione",
        "option",
        "#",
    }:
        words = words[1:]
    if len(words) == 2 and words[1] in {"one", "opzione", "option"}:
        words = words[:1]
    if len(words) != 1:
        return None
    word = words[0].strip("#().°ªº")
    place = int(word) if word.isascii() and word.isdigit() and len(word) < 5 else None
    place = place or _ORDINALS.get(word) or number_of(word)
    return place if place is not None and place >= 1 else None


def read_number(text: str, *, lang: str) -> int | float | None:
    """A number in digits or words. `1.500` is 1500 in Italian and 1.5 in English."""
    if len(text) > MAX_SHAPE:
        return None
    folded = fold(text)
    if (match := _NUMERAL.fullmatch(folded)) is not None:
        return _numeral(match[0], comma=lang == "it")
    return _number_in_words(folded)


def read_date(text: str, *, today: date) -> date | None:
    """A day: `oggi`, `tomorrow`, `12 marzo`, `March 12 2027`, `12/03`, `2026-03-12`, `venerdì`,
    `fra 3 giorni`. Days of the year and of the week are the next ones, today included for the
    former. The day stands before the month, unless that is impossible."""
    if len(text) > MAX_SHAPE:
        return None
    folded = fold(text)
    if folded in _DAYS:
        return today + timedelta(days=_DAYS[folded])
    try:
        return _numeric_date(folded, today) or _named_date(folded, today)
    except (ValueError, OverflowError):  # the 31st of February
        return None


def read_coordinates(text: str) -> tuple[float, float] | None:
    """Latitude and longitude in degrees, as maps copy them: `45.07, 7.68`."""
    match = _POINT.fullmatch(text.strip())
    if match is None:
        return None
    lat, lon = float(match[1]), float(match[2])
    return (lat, lon) if abs(lat) <= 90 and abs(lon) <= 180 and "." in text else None


def _numeral(text: str, *, comma: bool) -> int | float:
    text = re.sub(r"['\u00a0 ]", "", text)
    decimal, thousands = (",", ".") if comma else (".", ",")
    if text.count(thousands) == 1 and decimal not in text:
        # A single sign of the other language: thousands only when three digits follow.
        whole, _, rest = text.partition(thousands)
        if len(rest) != 3 or len(whole.lstrip("+-")) > 3:
            decimal, thousands = thousands, decimal
    plain = text.replace(thousands, "").replace(decimal, ".")
    return float(plain) if "." in plain else int(plain)


def _number_in_words(folded: str) -> int | float | None:
    words = [w for w in folded.replace("-", " ").split() if w not in {"and", "e"}]
    half = 0.0
    if len(words) > 1 and words[-1] in {"mezzo", "mezza", "half"}:
        words, half = words[:-1], 0.5
        if words[-1] == "a" and len(words) > 1:
            words = words[:-1]
    negative = bool(words) and words[0] in {"meno", "minus"}
    total = group = 0
    rest = words[1:] if negative else words
    if rest and rest[0] in {"un", "una", "a", "an"}:
        rest = ["uno", *rest[1:]] if len(rest) == 1 else rest[1:]
    if not rest:
        return None
    for word in rest:
        value = _word_value(word)
        if value is None:
            return None
        if value == 1000:
            total, group = total + max(group, 1) * 1000, 0
        elif value == 100:
            group = max(group, 1) * 100
        else:
            group += value
    number = total + group
    return (-1 if negative else 1) * (number + half if half else number)


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


def _numeric_date(folded: str, today: date) -> date | None:
    if match := re.fullmatch(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})", folded):
        return date(int(match[1]), int(match[2]), int(match[3]))
    match = re.fullmatch(r"(\d{1,2})[-/.](\d{1,2})(?:[-/.](\d{4}|\d{2}))?", folded)
    if match is None:
        return None
    day, month = int(match[1]), int(match[2])
    if month > 12 >= day:
        day, month = month, day
    return _day_of_year(day, month, match[3], today)


def _named_date(folded: str, today: date) -> date | None:
    words = [
        w for w in re.split(r"[\s,]+", folded) if w not in {"il", "the", "of", "di", "on", "l'"}
    ]
    match words:
        case ["fra" | "tra" | "in", many, unit] if unit in _SPANS:
            number = 1 if many in {"un", "una", "a", "one"} else _small(many)
            return None if number is None else today + timedelta(days=number * _SPANS[unit])
        case (
            [name] | ["next" | "prossimo" | "prossima", name] | [name, "prossimo" | "prossima"]
        ) if name in _WEEKDAYS:
            return today + timedelta(days=(_WEEKDAYS[name] - today.weekday() - 1) % 7 + 1)
        case [first, second, *year] if len(year) <= 1 and (not year or year[0].isdigit()):
            said = year[0] if year else None
            if second.strip(".") in _MONTHS and (day := _day(first)):
                return _day_of_year(day, _MONTHS[second.strip(".")], said, today)
            if first.strip(".") in _MONTHS and (day := _day(second)):
                return _day_of_year(day, _MONTHS[first.strip(".")], said, today)
    return None


def _day(word: str) -> int | None:
    word = re.sub(r"(?<=\d)(?:st|nd|rd|th|°|º)$", "", word)
    return 1 if word in {"primo", "first"} else _small(word)


def _small(word: str) -> int | None:
    if word.isascii() and word.isdigit() and len(word) <= 4:
        return int(word)
    return number_of(word)


def _day_of_year(day: int, month: int, year: str | None, today: date) -> date:
    if year is not None:
        return date(int(year) + (2000 if len(year) == 2 else 0), month, day)
    for candidate in range(today.year, today.year + 9):  # the 29th of February waits for its year
        if (month, day) == (2, 29) and candidate % 4:
            continue
        found = date(candidate, month, day)
        if found >= today:
            return found
    raise ValueError("no such day")
