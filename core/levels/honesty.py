"""Sentences of a model that claim a change nobody made.

A closed list of done-forms per language maps words to verbs; a sentence that uses one of a verb
with no such step is dropped, and the caller says so (C7). Pure. Negations, questions, conditions,
offers and quoted text are no claims.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

# Words of change by the verb of the tool that does it. Participles only: done-forms.
_WORDS: dict[str, dict[str, str]] = {
    "it": {
        "write": r"scritt[oaie]|salvat[oaie]|aggiunt[oaie]|aggiornat[oaie]|modificat[oaie]"
        r"|annotat[oaie]|registrat[oaie]|sovrascritt[oaie]",
        "create": r"creat[oaie]|generat[oaie]|prenotat[oaie]|fissat[oaie]",
        "move": r"spostat[oaie]|rinominat[oaie]|archiviat[oaie]|trasferit[oaie]|copiat[oaie]",
        "delete": r"eliminat[oaie]|cancellat[oaie]|rimoss[oaie]|cestinat[oaie]|svuotat[oaie]",
        "send": r"inviat[oaie]|mandat[oaie]|spedit[oaie]|inoltrat[oaie]",
        "set": r"impostat[oaie]|attivat[oaie]|disattivat[oaie]|programmat[oaie]|pianificat[oaie]",
        "compress": r"compress[oaie]|zippat[oaie]",
        "share": r"condivis[oaie]",
        "install": r"installat[oaie]",
    },
    "en": {
        "write": r"written|wrote|saved|added|updated|modified|edited|recorded"
        r"|overwrote|overwritten",
        "create": r"created|generated|booked|made",
        "move": r"moved|renamed|archived|transferred|copied",
        "delete": r"deleted|removed|erased|trashed|emptied|cleared",
        "send": r"sent|emailed|mailed|forwarded|delivered",
        "set": r"set|enabled|disabled|scheduled|changed",
        "compress": r"compressed|zipped",
        "share": r"shared",
        "install": r"installed",
    },
}

# Verbs whose tools may stand for one another in speech: a saved file was written or created.
_SAME = ({"write", "create", "set", "change"}, {"move", "change"}, {"create", "compress"})

_FRAMES = {
    "it": r"(?:\b(?:ho|abbiamo|l'ho|li\s+ho|le\s+ho|è|sono|era|erano|viene|vengono)\s+"
    r"(?:(?:già|appena|anche|correttamente|stat[oaie]|quindi|tutt[oi]|poi|ora)\s+)*(?:{w})\b)"
    r"|(?:^\W*(?:fatto\W+)?(?:{w})\b)|(?:\b(?:{w})\s+(?:con\s+successo|correttamente)\b)",
    "en": r"(?:\b(?:i|i've|we|we've)\s+(?:(?:have|just|also|already|successfully|then|now)\s+)*"
    r"(?:{w})\b)|(?:\b(?:has|have|had|was|were|is|are|been|being|got)\s+"
    r"(?:(?:been|now|just|also|already|successfully|all)\s+)*(?:{w})\b)"
    r"|(?:^\W*(?:done\W+|successfully\s+)?(?:{w})\b)|(?:\b(?:{w})\s+successfully\b)",
}

# A sentence that is nothing but "done".
_BARE = re.compile(
    r"^\W*(?:(?:ecco|tutto|già)\s+)*fatto\W*$|^\W*(?:all\s+|it's\s+)?done\W*$", re.MULTILINE
)
ANY = "any"

_NO_CLAIM = {
    "it": r"\bnon\b|\bné\b|\bsenza\b|\bse\b|\bvuoi\b|\bdevo\b|\bposso\b|\bpotrei\b|\bsarà\b"
    r"|\bverrà\b|\bnessun|\bprima\s+che\b|\bultima\s+volta\b|\bultima\s+modifica\b|\bfu\b",
    "en": r"\bnot\b|n't\b|\bnever\b|\bwithout\b|\bif\b|\bwould\b|\bcould\b|\bcan\b|\bshall\b"
    r"|\bwill\b|\bno\b|\bnothing\b|\bunless\b|\blast\s+(?:modified|changed|updated)\b",
}

_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\w)[\"»”)]*|\n|$|\.(?=\w)[^.!?\n]*)+")
_FENCE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`|«[^»\n]*»|\"[^\"\n]*\")", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Checked:
    """What may be shown, and the sentences that were taken out of it."""

    text: str
    removed: tuple[str, ...] = ()


def check_claims(text: str, *, lang: str, done: Collection[str]) -> Checked:
    """Take out sentences that claim a change by a verb not in `done` (verbs of changing steps
    that worked). What lies in code or quotation marks is left alone."""
    kept: list[str] = []
    removed: list[str] = []
    for sentence in _sentences(text):
        verb = claimed_verb(sentence, lang)
        if verb is not None and not _covered(verb, done):
            removed.append(sentence.strip())
        else:
            kept.append(sentence)
    return Checked(_tidy("".join(kept)), tuple(removed)) if removed else Checked(text)


def claimed_verb(sentence: str, lang: str) -> str | None:
    """The verb that a sentence says was done (`any` for a bare "done"), None when none."""
    bare = _FENCE.sub(" x ", sentence).casefold().replace("’", "'")
    if bare.rstrip(' \n"»”)').endswith("?") or re.search(_NO_CLAIM[lang], bare):
        return None
    if _BARE.search(bare):
        return ANY
    for verb, pattern in _patterns(lang):
        if pattern.search(bare):
            return verb
    return None


@lru_cache(maxsize=8)
def _patterns(lang: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    frame = _FRAMES[lang]
    return tuple(
        (verb, re.compile(frame.replace("{w}", words), re.MULTILINE))
        for verb, words in _WORDS[lang].items()
    )


def _covered(verb: str, done: Collection[str]) -> bool:
    if verb == ANY:
        return bool(done)
    return verb in done or any(verb in group and group & set(done) for group in _SAME)


def _sentences(text: str) -> list[str]:
    """Sentences with their ends; fenced code stays one piece with what is around it."""
    pieces: list[str] = []
    for part in re.split(r"(```.*?(?:```|\Z))", text, flags=re.DOTALL):
        if part.startswith("```"):
            pieces.append(part)
        else:
            pieces += [match[0] for match in _SENTENCE.finditer(part) if match[0]]
    return pieces


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]{2,}", " ", text)).strip()


_REQUEST_VERBS = {
    "it": r"\b(?:scriv|salv|crea|sposta|rinomin|elimin|cancell|rimuov|mand|invi|spedisc|aggiung"
    r"|modific|cambi|archivi|copi|annot|comprim|zipp|svuot|cestin|segna|prenot|imposta)\w*",
    "en": r"\b(?:writ|sav|creat|mov|renam|delet|remov|send|add|edit|chang|archiv|copy|copi|zip"
    r"|compress|empty|trash|book|set|schedul|put|updat|append|eras|not)\w*",
}


def names_change(request: str) -> bool:
    """Whether the request names a verb of change in either language."""
    folded = request.casefold()
    return any(re.search(pattern, folded) for pattern in _REQUEST_VERBS.values())
