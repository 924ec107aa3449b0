"""What a person's verbs ask to have done, and where to. Pure.

A tool that changes something is asked for only by its own verb or words; one that destroys only
beyond doubt. The name of a file asks for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from core.catalog.lexicon import load_lexicon, request_tokens, stem, tokens, without_pronoun
from core.catalog.manifest import Manifest
from core.levels.file_words import KNOWN_EXTENSIONS
from core.levels.spans import PathSpan, Spans
from core.vocabulary import is_foreign, object_of, verb_of

DESTRUCTIVE = frozenset({"delete"})
MEANT = 0.4
_EXCEPTING = frozenset(
    "tranne eccetto salvo fuorche except excepting apart besides unless keeping".split()
)
_NEGATING = frozenset("non not t dont never mai senza without".split())
_GOING_ON = frozenset("e ed and poi then you puoi potresti".split())
_ASKING = frozenset({"read", "find", "list", "get"})


def destination(spans: Spans, asked_for: Collection[str], deed_at: int) -> PathSpan | None:
    """Where something is to be put: the last name that the words make a target. What stands before
    the deed says where to look (`find the pdfs in X and make a sheet`)."""
    verbs = {verb_of(name) for name in asked_for}
    if verbs <= DESTRUCTIVE:
        return None
    if "create_dirs" in asked_for and "move" in verbs:
        # `make a folder X and put a.pdf in it`
        made = next((p for p in spans.paths if not p.is_file and p.grade != "hinted"), None)
        if made is not None:
            return made
    files = [path for path in spans.paths if path.grade == "said" and path.is_file]
    if verbs <= {"create"} and len(files) == 1 and all(object_of(n) == "files" for n in asked_for):
        return files[0] if files[0].role != "source" else None
    targets = [
        path
        for path in spans.paths
        if path.role == "target" and path.at >= deed_at and path.text not in KNOWN_EXTENSIONS
    ]
    sure = [path for path in targets if path.grade != "hinted"]
    found = sure or targets
    return found[-1] if found else None


def deed_at(request: str, asked_for: Collection[str]) -> int:
    """Where the first word stands that plainly names a deed of these tools; 0 when none does."""
    lexicon, wanted = load_lexicon(), {verb_of(name) for name in asked_for}
    for match in re.finditer(r"[^\W\d_]+", request[:2000]):
        for word in tokens(match[0]):
            verbs = lexicon.senses([word], [known_stem(word)], related=0, implied=0).verbs
            if any(verbs.get(verb, 0.0) == 1.0 for verb in wanted):
                return match.start()
    return 0


def known_stem(word: str) -> str:
    """The stem under which the lexicon knows a word, pronouns at its end taken off if need be."""
    lexicon = load_lexicon()
    stemmed, bare = stem(word), without_pronoun(word)
    return bare if bare is not None and not lexicon.knows(stemmed) else stemmed


def is_asked_for(
    manifest: Manifest,
    spans: Spans,
    verbs: Mapping[str, float],
    words: Sequence[str],
    only_asks: bool,
) -> bool:
    """Whether the words ask for what a changing tool does. `only_asks`: they are a question."""
    if is_foreign(manifest.name):
        return has_phrase(manifest, words)
    verb = verb_of(manifest.name)
    weight = verbs.get(verb, 0.0)
    if verb in DESTRUCTIVE and _is_taken_back(words):
        return False
    if only_asks and (weight < 1.0 or not _goes_on(words)):
        return False  # `what is written in a.txt` asks and orders nothing
    files = [path for path in spans.paths if path.grade == "said" and path.is_file]
    into = any(path.role == "target" for path in files)
    if verb == "create" and weight < 1.0 and verbs.get("read", 0.0) == 1.0 and not into:
        return has_phrase(manifest, words) and object_of(manifest.name) != "files"
    # `export the events into a.xlsx` makes it; `open a.xlsx` does not.
    makes_file = verb == "create" and object_of(manifest.name) == "files"
    if makes_file and into and verbs.get("write", 0.0) >= MEANT:
        return True
    if weight == 1.0 or has_phrase(manifest, words):
        return True
    if verb in DESTRUCTIVE:
        return False
    if verb == "write" and verbs.get("create", 0.0) == 1.0 and files and spans.contents:
        return True  # `make a file a.md saying …`
    if weight >= MEANT:
        # `write hello into a.txt` sends nothing to anybody.
        into = any(path.grade == "said" and path.is_file for path in spans.paths)
        return verb != "send" or verbs.get("write", 0.0) < 1.0 or not into
    # `sling a.txt into Archive`, `fetch URL into a.txt`: a thing and a place for it say enough.
    goes = any(path.role == "target" and path.grade != "hinted" for path in spans.paths)
    said = [path for path in spans.paths if path.grade == "said"]
    if verb == "write":
        return goes and bool(spans.urls) and bool(said)
    # `where is a.txt in Archive` names a place as well: nothing may be asked of it.
    asks = looks_for(verbs, words) or any(
        weight >= 0.5 and other in _ASKING for other, weight in verbs.items()
    )
    return verb == "move" and goes and len(said) > 1 and not asks


def events_asked_for(
    changing: Mapping[str, Manifest],
    relevance: Mapping[str, float],
    verbs: Mapping[str, float],
    has_time: bool,
) -> set[str]:
    """What is to be done with an event that is called by what it is, not an event: `cancel the
    dentist on Monday`, `move yoga to six`. Its tool fits best among those of its deed."""
    deeds = {
        "delete": max(verbs.get("cancel", 0.0), verbs.get("delete", 0.0)),
        "change": max(verbs.get("move", 0.0), verbs.get("change", 0.0)),
    }
    found = set()
    for verb, weight in deeds.items():
        name = f"{verb}_events"
        alike = {verb, "move"} if verb == "change" else {verb}
        others = [relevance.get(n, 0.0) for n in changing if verb_of(n) in alike and n != name]
        own = relevance.get(name, 0.0)
        if name in changing and has_time and weight >= MEANT and own > max(others, default=0.0):
            found.add(name)
    return found


def _goes_on(words: Sequence[str]) -> bool:
    """Whether a question may hold an order, too: `what is in a.txt, and save it`."""
    return any(word in _GOING_ON and before != "c" for before, word in pairwise(words))


def _is_taken_back(words: Sequence[str]) -> bool:
    """Whether a destroying word is negated, or something is excepted from it."""
    if not _EXCEPTING.isdisjoint(words):
        return True
    lexicon = load_lexicon()
    for at, word in enumerate(words):
        verbs = lexicon.senses([word], [known_stem(word)], related=0, implied=0).verbs
        if not DESTRUCTIVE.isdisjoint(verbs) and not _NEGATING.isdisjoint(
            words[max(0, at - 3) : at]
        ):
            return True
    return False


def has_phrase(manifest: Manifest, words: Sequence[str]) -> bool:
    """Whether one of the tool's own affinity phrases stands in the request, word by word."""
    said = f" {' '.join(words)} "
    return any(
        f" {' '.join(tokens(phrase))} " in said
        for phrases in manifest.affinity.values()
        for phrase in phrases
    )


def looks_for(verbs: Mapping[str, float], words: Sequence[str]) -> bool:
    return verbs.get("find", 0.0) == 1.0 or not {"dove", "where"}.isdisjoint(words)


def spoken(request: str, spans: Spans, beside: Sequence[str] = ()) -> str:
    """The request without what is quoted or dictated, and without these `beside`: words in there
    are no orders."""
    for said in (*spans.quoted, *spans.contents, *beside):
        request = request.replace(said, " ", 1)
    return request


def words_beside_files(request: str, spans: Spans) -> list[str]:
    """The words of a request without what is quoted, dictated, or the name of a file."""
    files = [path.text for path in spans.paths if path.grade == "said"]
    return request_tokens(spoken(request, spans, files))
