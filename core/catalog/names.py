"""Names that look like other names. Pure.

A person reads `find_files`; a name with a Cyrillic letter in it reads the same and is another.
"""

from __future__ import annotations

import unicodedata

from core.catalog.reasons import Reason
from core.vocabulary import (
    META_TOOLS,
    OBJECTS,
    QUALIFIERS,
    RECURRING_TOOLS,
    VERBS,
    is_executor_name,
)

# Letters of other alphabets, digits and signs that are read as a Latin letter or as `_`.
_LOOKS_LIKE = {
    "a": "аαɑạ@4",
    "b": "ЬƄьв8",
    "c": "сϲᴄ",
    "d": "ԁɗ",
    "e": "еєҽ3",
    "f": "ғƒ",
    "g": "ɡց9",
    "h": "һհ",
    "j": "јϳ",
    "k": "кκ",
    "l": "iіιıӏɩlǀ|1!",
    "m": "мϻ",
    "n": "пոռη",
    "o": "оοσօо0",
    "p": "рρ",
    "q": "ԛգ",
    "r": "гᴦ",
    "s": "ѕꜱ5$",
    "t": "тτ7",
    "u": "υսцᴜ",
    "v": "νѵᴠ",
    "w": "ԝωѡᴡ",
    "x": "хχ",
    "y": "уүγʏ",
    "z": "ᴢ2",
    "_": "-.‐‑‒–—ˍ ",
}
_FOLD = str.maketrans({look: letter for letter, looks in _LOOKS_LIKE.items() for look in looks})


def skeleton(text: str) -> str:
    """What a hurried eye reads: equal for names that can be taken for one another."""
    flat = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    flat = "".join(char for char in flat if unicodedata.category(char) not in {"Mn", "Cf", "Cc"})
    flat = flat.translate(_FOLD).replace("rn", "m").replace("vv", "w")
    while "__" in flat:
        flat = flat.replace("__", "_")
    return flat.strip("_")


_VERBS = frozenset(map(skeleton, VERBS))
_OBJECTS = frozenset(map(skeleton, OBJECTS))
_QUALIFIERS = frozenset(map(skeleton, QUALIFIERS))
_BUILTINS = frozenset(map(skeleton, META_TOOLS | RECURRING_TOOLS))


def name_refusal(name: str) -> Reason | None:
    """Why a folder of this name is no executor; None when the name is right.

    `CONFUSABLE` when it reads like an executor or a builtin without being it, `BAD_NAME` when it
    is simply not in the vocabulary. No two names of the vocabulary read alike, so a refused folder
    never casts doubt on the right one beside it.
    """
    looks = skeleton(name)
    if is_executor_name(name):
        return None
    if name in META_TOOLS or name in RECURRING_TOOLS:
        return Reason.BAD_NAME
    verb, *rest = looks.split("_")
    reads_as_executor = (
        verb in _VERBS
        and bool(rest)
        and rest[0] in _OBJECTS
        and all(word in _QUALIFIERS for word in rest[1:])
    )
    if reads_as_executor or looks in _BUILTINS or looks == "sdk":
        # A name in plain letters that merely breaks a rule (too many qualifiers) misleads nobody.
        return Reason.BAD_NAME if _is_plain(name) else Reason.CONFUSABLE
    return Reason.BAD_NAME


def _is_plain(name: str) -> bool:
    verb, *rest = name.split("_")
    return verb in VERBS and bool(rest) and all(w in OBJECTS | QUALIFIERS for w in rest)
