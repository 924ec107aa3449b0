"""Which columns a person wishes for, as they call them: `a sheet with name, date and hash`.

Pure.
"""

from __future__ import annotations

import re

from core.catalog.lexicon import fold

# What fields of files, rows and mails are called. The executor knows which field each one means.
_FIELDS = frozenset(
    """nome nomi data date dimensione dimensioni peso hash impronta impronte sha256 sha-256 md5
    checksum percorso estensione tipo modifica titolo name names size sizes weight path extension
    type modified title subject oggetto mittente sender from importo amount""".split()
)
_LED = re.compile(
    r"(?i)\b(?:con|with|colonne|columns|campi|fields)\b\s*:?\s*(?P<what>[^.;:!?\n]{3,200})"
)
_BETWEEN = re.compile(r"(?i)\s*,\s*(?:e|ed|and)?\s*|\s+(?:e|ed|and)\s+")
_ARTICLE = re.compile(r"(?i)^(?:il|lo|la|i|gli|le|l['’]|the|its|their|loro)\s*")


def columns_in(request: str) -> tuple[str, ...]:
    """The columns, in their order; none when fewer than two are named or one is no known field."""
    for match in reversed(list(_LED.finditer(request[:2000]))):
        parts = [_ARTICLE.sub("", part.strip()) for part in _BETWEEN.split(match["what"])]
        names = [part for part in parts if part]
        if len(names) >= 2 and all(fold(name) in _FIELDS for name in names):
            return tuple(dict.fromkeys(names))
    return ()
