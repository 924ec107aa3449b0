"""What a short text looks like: a yes, a no, a cancel, a request, a path. Italian and English.

Pure. The whole text must have the shape; a sentence that only holds one has none. Both languages
are understood at once: a person who is asked in one may well answer in the other.
"""

from __future__ import annotations

import re
import unicodedata

MAX_YES_NO = 30
# Longer than words of people are, addresses apart.
MAX_WORD = 60


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
    |ok yes|yes ok|sounds good|that's fine|👍|✅|👌|✔"""
)
_NO = _forms(
    """no|n|nope|nah|no grazie|non farlo|non ora|non adesso|per ora no|no per ora|meglio di no
    |assolutamente no|certo che no|rifiuto|rifiuta|non procedere|non confermo|non approvo
    |no thanks|no thank you|don't|do not|don't do it|do not do it|not now|no don't|i don't approve
    |refuse|reject|deny|decline|no way|of course not|absolutely not|better not|please don't
    |👎|❌|✋|✖"""
)
_ALWAYS = _forms(
    """sempre|si sempre|si per sempre|si d'ora in poi|si anche le prossime volte|d'ora in poi si
    |always|yes always|yes from now on|from now on yes|yes every time"""
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
_SMALL_TALK = _forms(
    """grazie|grazie mille|ciao|buongiorno|buonasera|buonanotte|salve|ehi|scusa|aspetta|un attimo
    |thanks|thank you|hello|hi|hey|good morning|good evening|good night|sorry|wait|one moment"""
)
NONE = _forms("nessuno|nessuna|niente|none|none of them|nothing")
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
# Joiners, variation selectors and skin tones: a thumb up is a thumb up.
_UNSEEN = frozenset("\u200b\u200d\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
_PATH = re.compile(r"(?:~|\.{1,2})?/\S.*|[A-Za-z]:\\.+|[^\s/]+(?:/[^/]+)+/?|[^\s/]+\.\w{1,8}")
_POINT = re.compile(r"([+-]?\d{1,2}(?:\.\d+)?)\s*[,;\s]\s*([+-]?\d{1,3}(?:\.\d+)?)")


def fold(text: str) -> str:
    """Lower case, NFKC, without accents, end punctuation and doubled spaces, for comparing."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    text = unicodedata.normalize("NFKD", text)
    kept = "".join(c for c in text if not unicodedata.combining(c) and c not in _UNSEEN)
    return " ".join(kept.split()).strip(" .!,;:…")


def has_breaks(text: str) -> bool:
    return any(unicodedata.category(c) in {"Cc", "Zl", "Zp"} for c in text)


def is_always(text: str) -> bool:
    """Whether the whole text is a yes from now on: `sempre`, `sì, sempre`, `always`, …"""
    return " ".join(fold(text).replace(",", " ").split()) in _ALWAYS


def looks_like_request(text: str) -> bool:
    """Whether a text reads as a question or an order of its own rather than as what was asked."""
    words = fold(text).replace(",", " ").split()
    if not words or "?" in text or "\n" in text or len(text) > 200:
        return True
    return words[0] in _OPENERS or " ".join(words) in _SMALL_TALK


def looks_like_address(text: str) -> bool:
    """Whether a text may be a place that somebody typed: a few words, or signs of an address."""
    folded = fold(text)
    words = folded.replace(",", " ").split()
    if looks_like_request(text) or folded in _YES | _NO | SKIPS | _SMALL_TALK:
        return False
    return len(words) <= 4 or "," in text or any(c.isdigit() for c in text)


def looks_like_key(text: str) -> bool:
    """Whether a text holds what nobody says: a run of signs as keys and tokens have it, or the
    frame of a key file."""
    if "-----BEGIN " in text:
        return True
    return any(len(word) > MAX_WORD and "://" not in word for word in text.split())


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


def read_coordinates(text: str) -> tuple[float, float] | None:
    """Latitude and longitude in degrees, as maps copy them: `45.07, 7.68`."""
    match = _POINT.fullmatch(text.strip())
    if match is None:
        return None
    lat, lon = float(match[1]), float(match[2])
    return (lat, lon) if abs(lat) <= 90 and abs(lon) <= 180 and "." in text else None
