"""Cleaning what a person wrote, and guessing whether it is Italian or English.

Pure. The guess is used only where neither the person nor the channel has said the language.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

# Function words only: what a sentence of the language can hardly do without.
_WORDS = {
    "it": frozenset(
        """il lo la i gli le un uno una di del della dei delle dello che e ed o a al alla ai da
        dal in nel nella con su per tra fra mi ti ci si è sono ho hai ha che cosa quanto quanti
        quale quali dove come quando perché non più questo questa quello quella mio mia miei tuo
        sul sulla ore dimmi leggi scrivi trova cerca apri mostra metti fai fammi ciao grazie
        oggi ieri domani tutti tutte nella negli ultimi ultime""".split()
    ),
    "en": frozenset(
        """the a an of to in on at is are was were be do does did have has had what which who where
        when how why and or not no with from by for my your his her its our their this that these
        those it i you he she we they me him us them please tell show find read write open list
        today yesterday tomorrow hello hi thanks thank all any last first""".split()
    ),
}
_KEPT_FORMAT = {"\u200d", "\ufe0f"}


def guess_lang(text: str, *, default: str) -> str:
    """`it` or `en` by the function words of a text; `default` when they do not decide."""
    words = re.findall(r"[a-zà-ÿ']+", text.casefold())
    scores = {lang: sum(word in known for word in words) for lang, known in _WORDS.items()}
    best = max(scores, key=lambda lang: scores[lang])
    others = max(score for lang, score in scores.items() if lang != best)
    return best if scores[best] > others else default


def choose_lang(*named: str | None, known: Collection[str], text: str, default: str) -> str:
    """The first language named (the person's choice before the channel's code) that is known;
    `en-GB` and `EN` are `en`. The text is asked only when none is."""
    for name in named:
        short = (name or "").replace("_", "-").split("-", 1)[0].lower()
        if short in known:
            return short
    return guess_lang(text, default=default)


def clean_request(text: str) -> str:
    """The text without what nobody can see or say: NUL, half characters, bidi controls.

    Composed (NFC). Joiners that make one sign of several are kept.
    """
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    kept = "".join(
        char
        for char in text
        if char in "\n\t" or char in _KEPT_FORMAT or unicodedata.category(char) not in {"Cc", "Cf"}
    )
    return unicodedata.normalize("NFC", kept).strip()
