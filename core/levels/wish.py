"""What one request lets a plan do: the tools it speaks of and the values that stand in it.

Pure. Decides by the person's words alone, before any model is asked: a tool that changes something
is there only when its verb was used, one that destroys only when the verb is beyond doubt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from core.catalog.lexicon import load_lexicon, request_tokens, stem
from core.catalog.manifest import Manifest
from core.levels.alike import Said, meant, without_echoes
from core.levels.columns import columns_in
from core.levels.deeds import (
    DESTRUCTIVE,
    MEANT,
    deed_at,
    destination,
    events_asked_for,
    has_phrase,
    is_asked_for,
    known_stem,
    looks_for,
    spoken,
    words_beside_files,
)
from core.levels.mentions import Mentions, find_mentions
from core.levels.offhand import NOTES_EVENTS, SENDS, deed_of, is_question, speaks_of_mail
from core.levels.spans import PathSpan, Spans, find_spans
from core.vocabulary import object_of, verb_of

# Points of the pre-filter. Below the first a tool is spoken of by accident only ("ciao" gives
# eleven to the web tools); what works on the results of others needs less.
_SPOKEN_OF = 14.0
_WORKS_ON = 6.0
_CLEARLY = 30.0
_NEXT = 6
_NEARLY = 0.3

_HOURS = frozenset(
    """night midnight noon midday morning evening afternoon dark late early asleep awake sunset
    sunrise dawn notte mezzanotte mezzogiorno mattina mattino sera pomeriggio buio tardi presto
    svegli sveglio sveglia alba tramonto""".split()
)
# Things that have no name of their own, and the tools for a time that says nothing else.
_KNOWN_BY_ID = frozenset({"messages", "events", "contacts"})
_TIMES = frozenset({"read_events"})
_CHOOSING = frozenset({"filter_entries"})
_ROWS = frozenset({"read", "get"})
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
    `columns`: those of a table, as the person calls them. `mentions`: times, names and addresses.
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
    mentions: Mentions = field(default_factory=Mentions)


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
    mentions = find_mentions(request)
    words = request_tokens(spoken(request, own))
    stems = [known_stem(word) for word in words]
    senses = load_lexicon().senses(words, stems, related=0, implied=0)
    verbs = senses.verbs
    changing = {name: m for name, m in manifests.items() if m.is_mutating}
    said = Said(
        spans,
        frozenset(words),
        relevance,
        frozenset(verb for verb, weight in verbs.items() if weight == 1.0),
        lambda manifest: _is_named(manifest, stems) or has_phrase(manifest, words),
        verbs.get("find", 0.0) == 1.0,
        bool(mentions.mails),
        frozenset(name for name, weight in senses.objects.items() if weight == 1.0),
    )
    only_asks, beside = is_question(request), words_beside_files(request, own)
    asked_for = {n for n, m in changing.items() if is_asked_for(m, own, verbs, beside, only_asks)}
    if speaks_of_mail(request):
        asked_for -= {SENDS}
    deed = deed_of(request)
    is_sure = deed in changing and (deed != NOTES_EVENTS or not asked_for)
    if is_sure:
        asked_for = {deed}
    asked_for = asked_for if wide else meant(asked_for, manifests, said)
    followed = _followed(changing, manifests, relevance, verbs)
    asked_for |= followed
    if not (own.paths or own.urls or own.patterns or only_asks or wide):
        asked_for |= events_asked_for(changing, relevance, verbs, bool(mentions.times))
    trusted = {n for n in changing if wide and verb_of(n) not in DESTRUCTIVE}
    acting = frozenset({deed} if is_sure and not wide else asked_for | trusted)
    tools = {
        name: manifest
        for name, manifest in manifests.items()
        if name in acting
        or (
            not manifest.is_mutating
            and (wide or _is_spoken_of(manifest, own, relevance.get(name, 0.0)))
        )
    }
    looked = [m for m in tools.values() if not m.is_mutating]
    if (
        not wide
        and not is_sure
        and any("entries" not in m.args.get("required", ()) for m in looked)
    ):
        tools |= _next_best(manifests, relevance)
    if is_sure and not wide:
        tools = {deed: changing[deed]}
    if wide:
        clauses = MOST_CLAUSES
    elif acting and not _needs_reading(acting, verbs, dictated=bool(spans.contents)):
        # Of mail and events the things to do it to are found by reading.
        tools = {n: m for n, m in tools.items() if verb_of(n) != "read" or brings_items(m)}
    if _names_its_files(spans) and not looks_for(verbs, words):
        tools = {name: m for name, m in tools.items() if verb_of(name) != "find"}
    if gives and not wide:
        reads = verbs.get("read", 0.0) >= MEANT
        kept = {n for n in tools if reads or verb_of(n) != "read"} | {"find_files"}
        tools = {name: m for name, m in manifests.items() if name in kept}
    tools |= _companions(acting, manifests)
    if mentions.names and any(brings_items(m) and verb_of(n) in _ROWS for n, m in tools.items()):
        # `the shifts of Sara in a.xlsx`: of what is read, what was named.
        tools |= {n: m for n, m in manifests.items() if n in _CHOOSING}
    tools = _without_rivals(tools, frozenset(stems), spans.urls)
    tools = tools if wide else without_echoes(tools, said)
    if not tools and spans.places and not _HOURS.isdisjoint(words):
        # `is it dark in Oslo yet?` speaks of the time without saying so.
        tools = {n: m for n, m in manifests.items() if _needs_only_a_place(m)}
    if not acting and mentions.times and (tools or only_asks):
        # `anything on at the weekend?` speaks of the calendar without saying so.
        tools |= {n: m for n, m in manifests.items() if n in _TIMES}
    if not tools and spans.coords:
        tools = {n: m for n, m in manifests.items() if _is_of_places(m)}
    adds = not _ADDING.isdisjoint(words)
    asked = max(clauses, len(_FURTHER.findall(request[:8000])) + 1)
    plain = {verb_of(name) for name in acting if verbs.get(verb_of(name), 0.0) == 1.0}
    asked = max(asked, len(plain), 1 + bool(followed or {"create_dirs", "move_files"} <= acting))
    if len(spans.paths) > 1 and any(verb_of(name) == "compare" for name in tools):
        asked = max(asked, 2)
    goal = destination(spans, asked_for, deed_at(request, asked_for))
    fewest = 2 if not wide and _speaks_of_two(tools, relevance, spans, asked) else 1
    known = frozenset(stems)
    wants = all(path.grade != "said" for path in spans.paths) and any(
        verb_of(name) in _BLIND_VERBS and _is_named(changing[name], known) for name in acting
    )
    columns = columns_in(request)
    said_words = frozenset(words)
    return Wish(
        spans, tools, acting, adds, said_words, asked, goal, wants, wide, fewest, columns,
        mentions,
    )  # fmt: skip


def _sent(files: Sequence[str]) -> Spans:
    """Files that were sent, as a text would have named them."""
    return Spans(paths=tuple(PathSpan(path, "said", "", at) for at, path in enumerate(files)))


def _is_named(manifest: Manifest, stems: Collection[str]) -> bool:
    """Whether a word of the tool's own affinity stands in the request, in whatever form."""
    own = {stem(word) for words in manifest.affinity.values() for word in words if " " not in word}
    return not own.isdisjoint(stems)


def _names_its_files(spans: Spans) -> bool:
    """Whether the files are named one by one, so that none has to be found."""
    said = [path for path in spans.paths if path.grade == "said"]
    measured = any(a.unit in {"bytes", "days"} for a in spans.amounts)
    return bool(said) and all(p.is_file for p in said) and not spans.patterns and not measured


def _companions(acting: Collection[str], manifests: Mapping[str, Manifest]) -> dict[str, Manifest]:
    """What brings the things that a changing tool works on by their ids, mail and events: nobody
    can name those."""
    return {
        other: manifests[other]
        for name in acting
        if any(arg.endswith("ids") for arg in manifests[name].properties)
        for other in manifests[name].companions
        if other in manifests
        and object_of(other) in _KNOWN_BY_ID
        and brings_items(manifests[other])
    }


def _followed(
    changing: Mapping[str, Manifest],
    manifests: Mapping[str, Manifest],
    relevance: Mapping[str, float],
    verbs: Mapping[str, float],
) -> set[str]:
    """What is made of what another tool finds: `find a free hour and put in gym`."""
    puts = max(verbs.get("write", 0.0), verbs.get("create", 0.0), verbs.get("set", 0.0))
    return {
        other
        for name, manifest in manifests.items()
        if puts >= MEANT and not manifest.is_mutating and relevance.get(name, 0.0) >= _CLEARLY
        for other in manifest.companions
        if other in changing and verb_of(other) == "create"
    }


def _next_best(
    manifests: Mapping[str, Manifest], relevance: Mapping[str, float]
) -> dict[str, Manifest]:
    """The tools that only look, next to those that are plainly spoken of: which of them serves is
    for the model to choose."""
    looking = {n: m for n, m in manifests.items() if not m.is_mutating}
    ranked = sorted(looking, key=lambda name: -relevance.get(name, 0.0))[:_NEXT]
    most = max((relevance.get(name, 0.0) for name in ranked), default=0.0)
    least = max(_WORKS_ON, _NEARLY * most)
    return {n: looking[n] for n in ranked if relevance.get(n, 0.0) >= least}


def _is_of_places(manifest: Manifest) -> bool:
    return not manifest.is_mutating and "place" in manifest.types.values()


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


def brings_items(manifest: Manifest) -> bool:
    """Whether a tool brings several things of its own, for others to work on: mail, events, rows,
    processes. A text that is read is one."""
    return (
        not manifest.is_mutating
        and "entries" not in manifest.args.get("required", ())
        and "blob" not in manifest.output.get("entries", {}).values()
        and (verb_of(manifest.name) in {"find", "list"} or manifest.render == "list")
    )


def _is_spoken_of(manifest: Manifest, spans: Spans, points: float) -> bool:
    if "entries" in manifest.args.get("required", ()):
        verb = verb_of(manifest.name)
        wanted = {
            "filter": bool(spans.sought),
            "sort": spans.descending is not None,
            "compute": spans.operation is not None,
        }
        return points >= _WORKS_ON or wanted.get(verb, False)
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
