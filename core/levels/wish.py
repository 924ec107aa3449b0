"""What one request lets a plan do: the tools it speaks of and the values that stand in it.

Pure. Decides by the person's words alone, before any model is asked: a tool that changes something
is there only when its verb was used, one that destroys only when the verb is beyond doubt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from core.catalog.lexicon import load_lexicon, request_tokens, stem, tokens, without_pronoun
from core.catalog.manifest import Manifest
from core.levels.alike import Said, meant, without_echoes
from core.levels.columns import columns_in
from core.levels.file_words import KNOWN_EXTENSIONS
from core.levels.offhand import NOTES_EVENTS, is_question, notes_event
from core.levels.spans import PathSpan, Spans, find_spans
from core.vocabulary import is_foreign, verb_of

DESTRUCTIVE = frozenset({"delete"})

# Points of the pre-filter. Below the first a tool is spoken of by accident only ("ciao" gives
# eleven to the web tools); what works on the results of others needs less.
_SPOKEN_OF = 14.0
_WORKS_ON = 6.0
_CLEARLY = 30.0
_MEANT = 0.4

_HOURS = frozenset(
    """night midnight noon midday morning evening afternoon dark late early asleep awake sunset
    sunrise dawn notte mezzanotte mezzogiorno mattina mattino sera pomeriggio buio tardi presto
    svegli sveglio sveglia alba tramonto""".split()
)
# Of an address: its text is wanted, or it as it is. A name's ending tells, too.
_TO_READ = frozenset(
    map(
        stem,
        "testo articolo notizia leggi dice parla riassumi blog text article news read".split(),
    )
) | frozenset(map(stem, "say says summarise summarize story".split()))
_TO_FETCH = frozenset(
    map(stem, "scarica preleva risponde raggiungibile attivo online funziona stato codice".split())
) | frozenset(map(stem, "download fetch curl up down reachable status code responds api".split()))
_DATA = re.compile(r"(?i)[^/:]/[^?#]*\.(?!html?\b|php\b|aspx?\b)[a-z0-9]{2,4}(?:[?#]|$)")
# What opens a further wish behind "and": `e dimmi …`, `and what …`.
_FURTHER = re.compile(
    r"""(?ix) [.?!;] \s+ \w | \b(?:e|ed|and|then|poi|quindi)\s+ (?:anche\s+|also\s+)?
    (?: che | cosa | quant[oiae] | qual[ei]? | dove | quando | chi | dimmi | mostrami | fammi
      | what | how | which | where | when | who | is | are | tell | show | give | let )\b"""
)
MOST_CLAUSES = 4
_BLIND_VERBS = DESTRUCTIVE | {"move"}
_EXCEPTING = frozenset(
    "tranne eccetto salvo fuorche except excepting apart besides unless keeping".split()
)
_NEGATING = frozenset("non not t dont never mai senza without".split())
_ASKING = frozenset({"read", "find", "list", "get"})
_ADDING = frozenset(
    """aggiungi aggiungere aggiungici aggiungilo aggiungila accoda accodare appendi annota annotare
    appunta appuntati segna segnati appuntare jot append add appending adding note""".split()
)


@dataclass(frozen=True, slots=True)
class Wish:
    """`tools` may stand in the plan, in the catalogue's order; `acting` are those of them that
    change something and that the person asked for. `adds`: they said to add to what is there.
    `clauses`: how many things are asked, roughly; so many steps may start from the text alone.
    `destination`: the place that something is to be put into, when the person names one.
    `wants_target`: something is to be moved or deleted, so that there must be a thing to do it to.
    `wide`: made for a model that can be trusted to choose. `fewest`: so many steps at least.
    `columns`: those of a table, as the person calls them.
    """

    spans: Spans
    tools: Mapping[str, Manifest]
    acting: frozenset[str] = frozenset()
    adds: bool = False
    words: frozenset[str] = frozenset()
    clauses: int = 1
    destination: PathSpan | None = None
    wants_target: bool = False
    wide: bool = False
    fewest: int = 1
    columns: tuple[str, ...] = ()


def make_wish(
    request: str,
    manifests: Mapping[str, Manifest],
    relevance: Mapping[str, float],
    *,
    clauses: int = 1,
    earlier: Sequence[str] = (),
    files: Sequence[str] = (),
    wide: bool = False,
    gives: bool = False,
) -> Wish:
    """Read a request. `relevance` are the pre-filter's points; `earlier` the person's requests
    before this one, newest first, and `files` what they sent: what was named or sent stands in
    where this one names nothing. `wide`, for models that can be trusted to choose: every tool but
    those that destroy unasked. `gives`: files themselves are wanted, which are to be found, not
    read."""
    spans = find_spans(request)
    own = spans
    if files:
        spans = spans.with_antecedents(_sent(files))
    elif earlier:
        spans = spans.with_antecedents(find_spans(earlier[0]))
    words = request_tokens(_spoken(request, own))
    stems = [_known(word) for word in words]
    verbs = load_lexicon().senses(words, stems, related=0, implied=0).verbs
    changing = {name: m for name, m in manifests.items() if m.is_mutating}
    said = Said(
        spans,
        frozenset(words),
        relevance,
        frozenset(verb for verb, weight in verbs.items() if weight == 1.0),
        lambda manifest: _is_named(manifest, stems) or _has_phrase(manifest, words),
        verbs.get("find", 0.0) == 1.0,
    )
    only_asks = is_question(request)
    asked_for = {n for n, m in changing.items() if _is_asked_for(m, own, verbs, words, only_asks)}
    is_note = NOTES_EVENTS in changing and not asked_for and notes_event(request)
    if is_note:
        asked_for = {NOTES_EVENTS}
    asked_for = asked_for if wide else meant(asked_for, manifests, said)
    trusted = {n for n in changing if wide and verb_of(n) not in DESTRUCTIVE}
    acting = frozenset(asked_for | trusted)
    tools = {
        name: manifest
        for name, manifest in manifests.items()
        if name in acting
        or (
            not manifest.is_mutating
            and (wide or _is_spoken_of(manifest, own, relevance.get(name, 0.0)))
        )
    }
    if is_note and not wide:
        tools = {NOTES_EVENTS: changing[NOTES_EVENTS]}
    if wide:
        clauses = MOST_CLAUSES
    elif acting and not _needs_reading(acting, verbs, dictated=bool(spans.contents)):
        tools = {name: m for name, m in tools.items() if verb_of(name) != "read"}
    if _names_its_files(spans) and not _looks_for(verbs, words):
        tools = {name: m for name, m in tools.items() if verb_of(name) != "find"}
    if gives and not wide:
        reads = verbs.get("read", 0.0) >= _MEANT
        kept = {n for n in tools if reads or verb_of(n) != "read"} | {"find_files"}
        tools = {name: m for name, m in manifests.items() if name in kept}
    tools = _without_rivals(tools, frozenset(stems), spans.urls)
    tools = tools if wide else without_echoes(tools, said)
    if not tools and spans.places and not _HOURS.isdisjoint(words):
        # `is it dark in Oslo yet?` speaks of the time without saying so.
        tools = {n: m for n, m in manifests.items() if _needs_only_a_place(m)}
    adds = not _ADDING.isdisjoint(words)
    asked = max(clauses, len(_FURTHER.findall(request[:8000])) + 1)
    goal = _destination(spans, asked_for, _deed_at(request, asked_for))
    fewest = 2 if not wide and _speaks_of_two(tools, relevance, spans, asked) else 1
    known = frozenset(stems)
    wants = all(path.grade != "said" for path in spans.paths) and any(
        verb_of(name) in _BLIND_VERBS and _is_named(changing[name], known) for name in acting
    )
    columns = columns_in(request)
    said_words = frozenset(words)
    return Wish(spans, tools, acting, adds, said_words, asked, goal, wants, wide, fewest, columns)


def _sent(files: Sequence[str]) -> Spans:
    """Files that were sent, as a text would have named them."""
    return Spans(paths=tuple(PathSpan(path, "said", "", at) for at, path in enumerate(files)))


def _is_named(manifest: Manifest, stems: Collection[str]) -> bool:
    """Whether a word of the tool's own affinity stands in the request, in whatever form."""
    own = {stem(word) for words in manifest.affinity.values() for word in words if " " not in word}
    return not own.isdisjoint(stems)


def _spoken(request: str, spans: Spans) -> str:
    """The request without what is quoted or dictated: words in there are no orders."""
    for said in (*spans.quoted, *spans.contents):
        request = request.replace(said, " ", 1)
    return request


def _destination(spans: Spans, asked_for: Collection[str], deed_at: int) -> PathSpan | None:
    """Where something is to be put: the last name that the words make a target. What stands before
    the deed says where to look (`find the pdfs in X and make a sheet`)."""
    if all(verb_of(name) in DESTRUCTIVE for name in asked_for):
        return None
    targets = [
        path
        for path in spans.paths
        if path.role == "target" and path.at >= deed_at and path.text not in KNOWN_EXTENSIONS
    ]
    sure = [path for path in targets if path.grade != "hinted"]
    found = sure or targets
    return found[-1] if found else None


def _deed_at(request: str, asked_for: Collection[str]) -> int:
    """Where the first word stands that plainly names a deed of these tools; 0 when none does."""
    lexicon, wanted = load_lexicon(), {verb_of(name) for name in asked_for}
    for match in re.finditer(r"[^\W\d_]+", request[:2000]):
        for word in tokens(match[0]):
            verbs = lexicon.senses([word], [_known(word)], related=0, implied=0).verbs
            if any(verbs.get(verb, 0.0) == 1.0 for verb in wanted):
                return match.start()
    return 0


def _names_its_files(spans: Spans) -> bool:
    """Whether the files are named one by one, so that none has to be found."""
    said = [path for path in spans.paths if path.grade == "said"]
    measured = any(a.unit in {"bytes", "days"} for a in spans.amounts)
    return bool(said) and all(p.is_file for p in said) and not spans.patterns and not measured


def _looks_for(verbs: Mapping[str, float], words: Sequence[str]) -> bool:
    return verbs.get("find", 0.0) == 1.0 or not {"dove", "where"}.isdisjoint(words)


def _needs_only_a_place(manifest: Manifest) -> bool:
    return "place" in manifest.types.values() and not manifest.args.get("required")


def _speaks_of_two(
    tools: Mapping[str, Manifest], relevance: Mapping[str, float], spans: Spans, clauses: int
) -> bool:
    """Whether something is asked beside what is to be done with a file or an address."""
    named = bool(spans.urls) or any(path.grade == "said" for path in spans.paths)
    return (
        clauses > 1
        and named
        and any(
            "place" in manifest.types.values() and relevance.get(name, 0.0) >= _CLEARLY
            for name, manifest in tools.items()
        )
    )


def _without_rivals(
    tools: dict[str, Manifest], stems: Collection[str], urls: Sequence[str]
) -> dict[str, Manifest]:
    """The tools without those that fetch an address in the way that was not meant.

    What brings a body is for downloading and asking whether a server answers; what brings only
    text is for reading. The words tell; where they do not, both stay.
    """
    rivals = {n: m for n, m in tools.items() if "url" in m.types.values()}
    raw = {n for n, m in rivals.items() if "blob" in m.output.get("entries", {}).values()}
    reads = not _TO_READ.isdisjoint(stems)
    fetches = not _TO_FETCH.isdisjoint(stems) or any(_DATA.search(url) for url in urls)
    if reads == fetches or not raw or len(raw) == len(rivals):
        return tools
    unwanted = raw if reads else set(rivals) - raw
    return {name: m for name, m in tools.items() if name not in unwanted}


def _needs_reading(acting: frozenset[str], verbs: Mapping[str, float], *, dictated: bool) -> bool:
    """Whether what is to be done needs a look into things: moving, deleting and writing down what
    was dictated do not, unless the person wants to read as well."""
    blind = _BLIND_VERBS | {"write"} if dictated else _BLIND_VERBS
    return verbs.get("read", 0.0) >= 1.0 or any(verb_of(name) not in blind for name in acting)


def _known(word: str) -> str:
    """The stem under which the lexicon knows a word, pronouns at its end taken off if need be."""
    lexicon = load_lexicon()
    stemmed, bare = stem(word), without_pronoun(word)
    return bare if bare is not None and not lexicon.knows(stemmed) else stemmed


def _is_asked_for(
    manifest: Manifest,
    spans: Spans,
    verbs: Mapping[str, float],
    words: Sequence[str],
    only_asks: bool,
) -> bool:
    if is_foreign(manifest.name):
        return _has_phrase(manifest, words)
    verb = verb_of(manifest.name)
    weight = verbs.get(verb, 0.0)
    if verb in DESTRUCTIVE and _is_taken_back(words):
        return False
    if weight == 1.0 or _has_phrase(manifest, words):
        return True
    if verb in DESTRUCTIVE or only_asks:  # `any new mail?` makes nothing
        return False
    if weight >= _MEANT:
        # `write hello into a.txt` sends nothing to anybody.
        into = any(path.grade == "said" and path.is_file for path in spans.paths)
        return verb != "send" or verbs.get("write", 0.0) < 1.0 or not into
    # `sling a.txt into Archive`, `fetch URL into a.txt`: a thing and a place for it say enough.
    goes = any(path.role == "target" and path.grade != "hinted" for path in spans.paths)
    said = [path for path in spans.paths if path.grade == "said"]
    if verb == "write":
        return goes and bool(spans.urls) and bool(said)
    # `where is a.txt in Archive` names a place as well: nothing may be asked of it.
    asks = _looks_for(verbs, words) or any(
        weight >= 0.5 and other in _ASKING for other, weight in verbs.items()
    )
    return verb == "move" and goes and len(said) > 1 and not asks


def _is_taken_back(words: Sequence[str]) -> bool:
    """Whether a destroying word is negated, or something is excepted from it."""
    if not _EXCEPTING.isdisjoint(words):
        return True
    lexicon = load_lexicon()
    for at, word in enumerate(words):
        verbs = lexicon.senses([word], [_known(word)], related=0, implied=0).verbs
        if not DESTRUCTIVE.isdisjoint(verbs) and not _NEGATING.isdisjoint(
            words[max(0, at - 3) : at]
        ):
            return True
    return False


def _has_phrase(manifest: Manifest, words: Sequence[str]) -> bool:
    """Whether one of the tool's own affinity phrases stands in the request, word by word."""
    said = f" {' '.join(words)} "
    return any(
        f" {' '.join(tokens(phrase))} " in said
        for phrases in manifest.affinity.values()
        for phrase in phrases
    )


def _is_spoken_of(manifest: Manifest, spans: Spans, points: float) -> bool:
    if "entries" in manifest.args.get("required", ()):
        return points >= _WORKS_ON or (manifest.name.startswith("filter") and bool(spans.sought))
    if points >= _SPOKEN_OF:
        return True
    kinds = set(manifest.types.values())
    if any(a.unit == "lines" and a.bound for a in spans.amounts) and any(
        name.endswith("_lines") for name in manifest.properties
    ):
        return True
    said = any(path.grade != "hinted" for path in spans.paths)
    sized = any(a.unit in {"bytes", "days"} and a.bound for a in spans.amounts)
    return (
        ("url" in kinds and bool(spans.urls))
        or ("path" in kinds and (said or bool(spans.patterns)))
        or ("size" in kinds and "path" in kinds and sized and "paths" not in manifest.properties)
    )
