"""What is to be written, as a person dictates it: quoted, before the file's name, or after it.

Italian and English. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from core.catalog.lexicon import STOP_WORDS
from core.execution.values import fold
from core.levels.file_words import INTO, URL


class NamedFile(Protocol):
    """A name of a file or folder in the text: see `spans.PathSpan`."""

    @property
    def text(self) -> str: ...
    @property
    def grade(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def at(self) -> int: ...


_WRITE = r"""(?: scriv\w+ | annot\w+ | appunt\w+ | aggiung\w+ | segn\w+ | salv\w+ | mett\w+
    | inser\w+ | registr\w+ | write | jot(?:\ down)? | note(?:\ down)? | add | append | put | save
    | store | record | overwrite )"""
_LEAD = re.compile(
    r"""(?ix) ^ (?: (?:just|only|solo|soltanto|me|mi)\s+ )*
    (?: (?:the|la|il|l')?\s*
        (?:words?|text|lines?|parol[ae]|testo|riga|frase|sentence|following)\s+
        (?:(?:di|of)\s+)? )?"""
)
_CONTENT_BEFORE = re.compile(
    rf"""(?isx) \b {_WRITE} \b \s+ (?P<what>[^,;]+?) \s+ (?:{"|".join(sorted(INTO))}) \s+
    (?: (?:the|il|lo|la|my|mio|un|una|a)\s+ | l' )* (?: (?:file|nota|note)\s+ )? $"""
)
_CONTENT_AFTER = re.compile(
    r"""(?isx) ^ ['"»”]? \s* (?: (?:that|che|with|con|scrivi|write)\b | : ) \s* (?P<what>.+?) \s*
    (?: [,;]? \s+ (?:e\ poi|and\ then|poi|then)\b .* )? $"""
)
_POINTING = frozenset(
    """it them this that result results page content contents list text lo la li le risultato
    risultati pagina contenuto elenco lista testo tutto all everything""".split()
)


def contents_of(text: str, paths: Sequence[NamedFile], quoted: Sequence[str]) -> tuple[str, ...]:
    """What is to be written: quoted, before the file's name, or after it."""
    files = [path for path in paths if path.grade == "said" or path.role == "target"]
    found = [q for q in quoted if all(q != path.text for path in files)]
    if found:
        return tuple(dict.fromkeys(found))
    for path in files:
        before, after = text[: path.at], text[path.at + len(path.text) :]
        if match := _CONTENT_BEFORE.search(before):
            found += (
                [] if _is_to_be_made(match["what"]) else [_LEAD.sub("", match["what"]).strip()]
            )
        if match := _CONTENT_AFTER.match(after):
            found.append(_LEAD.sub("", match["what"]).strip(" .\n"))
    names = {path.text for path in files}
    kept = [what for what in found if what and not URL.search(what) and not _is_pointing(what)]
    return tuple(dict.fromkeys(what for what in kept if what not in names))


def _is_to_be_made(what: str) -> bool:
    """`una poesia sul mare`: a kind of text, not the text."""
    words = fold(what).split()
    return any(word in {"un", "una", "uno", "a", "an"} for word in words[:2])


def _is_pointing(what: str) -> bool:
    """`it`, `the result`, `il testo di`: said of something that another step brings."""
    words = re.findall(r"\w+", fold(what))
    return all(word in _POINTING or word in STOP_WORDS for word in words)
