"""Files that a person asks to be given, or made for them: which of those that the steps named.

Only regular files within the actor's own folders, under their one name; where they go is the
channel's. Looks at the file system, opens nothing.
"""

from __future__ import annotations

import mimetypes
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import CallRefused
from core.execution.paths import Scope, canonical_path
from core.execution.policy import is_spoken_of
from core.messages import Attachment
from core.turn_state import StepRecord
from core.vocabulary import object_of, verb_of

# As many as one album holds.
MOST_GIVEN = 10
_MOST_READ = 2000

_ENDING = r"[\w(][^\s/]*\.(?!com\b|it\b|org\b|net\b|eu\b)[a-z][a-z0-9]{1,4}\b"
_VERB_IT = (
    r"(?:manda|invia|spedisci|passa|gira|allega|mandar|inviar|spedir|passar|girar|allegar|dar|dam)"
)
_YOU_IT = r"(?:mandi|invii|spedisci|passi|giri|alleghi|dai)"
_NOUN_IT = (
    r"(?:file|foto|fotografi[ae]|immagin[ei]|document[oi]|pdf|allegat[oi]|fogli[o]?|scansion[ei]"
    r"|video|audio|fattur[ae]|ricevut[ae])"
)
_SMALL_IT = (
    r"(?:il|lo|la|i|gli|le|l|un|uno|una|quel|quell|quella|quelle|quei|quegli|questo|questa|questi"
    r"|queste|mio|mia|miei|mie|tutt[iea]|ultim[oaie]|prim[oaie]|stess[oaie]|quegli|dei|delle|\d+"
    r"|due|tre|quattro|cinque|anche|per|favore|pure)"
)
# Each ends at its own blank or apostrophe, so that there is one way only to read a run of them.
_FEW_IT = rf"(?:{_SMALL_IT}(?:['’]\s*|\s+)){{0,6}}"
_VERB_EN = r"(?:send|give|forward|pass|hand|get|attach|upload|share|let)"
_NOUN_EN = (
    r"(?:files?|photos?|pictures?|images?|documents?|pdfs?|attachments?|sheets?|spreadsheets?|scans?"
    r"|videos?|invoices?|receipts?)"
)
_SMALL_EN = (
    r"(?:the|a|an|my|your|that|this|those|these|all|both|of|last|latest|newest|first|same|\d+|two"
    r"|three|four|five|please|also|have|me|us)"
)
# What is wanted is something about the file, not the file.
_ABOUT = r"(?!['’]?s?\s+(?:lists?|names?|sizes?|paths?|contents?|counts?|types?)\b)"
_WISHES = re.compile(
    rf"""
      \b{_VERB_IT}(?:mi|ci)\s+{_FEW_IT}(?:{_NOUN_IT}\b|{_ENDING})
    | \b{_VERB_IT}(?:me|ce)l[oaie]\b
    | \bme\s+l[oaie]\s+{_YOU_IT}\b
    | \bmi\s+{_YOU_IT}\s+{_FEW_IT}(?:{_NOUN_IT}\b|{_ENDING})
    | \b(?:manda|invia|allega|metti)\s+{_FEW_IT}(?:{_NOUN_IT}\b|{_ENDING})
      (?=.*\b(?:qui|a\s+me|in\s+chat|su\s+telegram|in\s+allegato)\b)
    | \b{_VERB_EN}\s+(?:me|us)\s+(?:{_SMALL_EN}\s+){{0,6}}(?:{_NOUN_EN}\b{_ABOUT}|{_ENDING})
    | \b(?:send|give|forward)\s+(?:it|them|that)\s+(?:over\s+)?(?:to\s+(?:me|us)|here)\b
    | \b(?:send|give)\s+me\s+(?:it|them|that)\b
    | \b(?:send|attach|share|upload)\s+(?:{_SMALL_EN}\s+){{0,6}}(?:{_NOUN_EN}\b{_ABOUT}|{_ENDING})
      (?=.*\b(?:here|to\s+me|to\s+us|with\s+me|in\s+(?:this\s+)?chat|on\s+telegram)\b)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:non|do\s+not|don['’]?t|never|senza|without)\s+(?:\w+\s+){0,2}$", re.I)


@dataclass(frozen=True, slots=True)
class Given:
    """The files that go along with an answer, of `total` that would."""

    files: tuple[Attachment, ...] = ()
    total: int = 0


def wants_files(request: str) -> bool:
    """Whether the person asks for files themselves, not only for words about them."""
    request = request[:_MOST_READ]
    return any(not _NOT.search(request[: found.start()]) for found in _WISHES.finditer(request))


def given(request: str, steps: Sequence[StepRecord], scope: Scope) -> Given:
    """The files to give: those that the last step with any named; of these the ones that the
    request names, if it names some. Where the person did not ask for files, only those that a step
    made for them: a document that is wished for is wished to be seen."""
    wanted = wants_files(request)
    for record in reversed(steps):
        if not record.observation.ok or verb_of(record.tool) == "delete":
            continue
        if not wanted and not _makes_documents(record.tool):
            continue
        found = list(dict.fromkeys(_files(record, scope)))
        named = [file for file in found if is_spoken_of(file.path, [request])]
        if chosen := named or found:
            return Given(tuple(chosen[:MOST_GIVEN]), len(chosen))
    return Given()


def _makes_documents(tool: str) -> bool:
    return verb_of(tool) == "create" and object_of(tool) == "files"


def _files(record: StepRecord, scope: Scope) -> Iterator[Attachment]:
    observation = record.observation
    items: Sequence[object] = observation.items() or [observation.content]
    for item in items:
        path = item.get("path") if isinstance(item, dict) else None
        if isinstance(path, str) and (file := _file(path, scope)) is not None:
            yield file


def _file(path: str, scope: Scope) -> Attachment | None:
    """The file as an attachment; None for what is none, or not for this actor to have."""
    try:
        real = canonical_path(path, scope)
        about = os.lstat(real)
    except (CallRefused, OSError, ValueError):
        return None
    # Another name of the file may lie outside the open folders.
    if not scope.holds(real) or not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
        return None
    name = Path(real).name
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Attachment(real, name, kind, about.st_size)
