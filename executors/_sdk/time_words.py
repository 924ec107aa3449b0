"""The words that spans of time are made of, in Italian and English, as `windows` folds them."""

from __future__ import annotations

import re

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "gennaio gen january jan",
            "febbraio feb february",
            "marzo mar march",
            "aprile apr april",
            "maggio mag may",
            "giugno giu june jun",
            "luglio lug july jul",
            "agosto ago august aug",
            "settembre set sett september sep sept",
            "ottobre ott october oct",
            "novembre nov november",
            "dicembre dic december dec",
        ),
        1,
    )
    for name in names.split()
}
WEEKDAYS = {
    name: number
    for number, names in enumerate(
        (
            "lunedi lun monday mon",
            "martedi mart tuesday tue tues",
            "mercoledi merc wednesday wed",
            "giovedi giov thursday thu thurs",
            "venerdi ven friday fri",
            "sabato sab saturday sat",
            "domenica dom sunday sun",
        )
    )
    for name in names.split()
}
DAYS = {
    "oggi": 0,
    "today": 0,
    "odierno": 0,
    "odierna": 0,
    "ieri": -1,
    "yesterday": -1,
    "domani": 1,
    "tomorrow": 1,
    "dopodomani": 2,
    "day after tomorrow": 2,
    "altro ieri": -2,
    "altroieri": -2,
    "l'altro ieri": -2,
    "day before yesterday": -2,
}
# Part of a day → hours on the wall.
PARTS = {
    "mattina": (5, 12),
    "mattino": (5, 12),
    "mattinata": (5, 12),
    "morning": (5, 12),
    "pomeriggio": (12, 18),
    "afternoon": (12, 18),
    "sera": (18, 24),
    "serata": (18, 24),
    "evening": (18, 24),
    "notte": (21, 24),
    "night": (18, 24),
}
UNITS = {
    "minut": "minutes",
    "min": "minutes",
    "or": "hours",
    "hour": "hours",
    "h": "hours",
    "giorn": "days",
    "gg": "days",
    "g": "days",
    "day": "days",
    "d": "days",
    "settiman": "weeks",
    "week": "weeks",
    "w": "weeks",
    "mes": "months",
    "month": "months",
    "mo": "months",
    "ann": "years",
    "year": "years",
    "y": "years",
}
NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            "un uno una one a an",
            "due two paio couple",
            "tre three",
            "quattro four",
            "cinque five",
            "sei six",
            "sette seven",
            "otto eight",
            "nove nine",
            "dieci ten",
        ),
        1,
    )
    for word in words.split()
}
LAST = r"ultim[oaei]|scors[oaei]|passat[oaei]|last|past|previous"
NEXT = r"prossim[oaei]|next|coming|seguent[ei]|following"
THIS = r"quest[oaei]?|this|current|in corso|corrente"
UNIT = (
    r"minut[oi]|minutes?|min|or[ae]|hours?|h|giorn[oi]|gg|days?|d|settiman[ae]|weeks?|w|"
    r"mes[ei]|months?|mo|ann[oi]|years?|y|g"
)
COUNT = r"\d{1,4}|" + "|".join(NUMBERS)
ISO_DAY = r"\d{4}-\d{2}-\d{2}"
ISO = rf"{ISO_DAY}(?:[t ]\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?(?:z|[+-]\d{{2}}:?\d{{2}})?)?"
FILLER = re.compile(
    r"^(?:in|il|lo|la|l|i|gli|le|di|del|dello|della|dell|dei|degli|delle|nel|nella|nell|negli|nelle|"
    r"nei|da|dal|dalla|the|on|of|from|during|for|per|entro|within|over|alla|al|a|at)\b[' ]*"
)
