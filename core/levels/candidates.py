"""Which tools a model may choose from, and their forms, the same bytes for the same set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from core.accounts import AccountKind
from core.catalog import prefilter
from core.catalog.loader import Catalog
from core.execution.context import TurnContext
from core.levels.offhand import asks, deed_of
from core.levels.router import Traits
from core.llm.client import ToolSpec
from core.vocabulary import family_of, object_of, verb_of

# What most requests need, what is needed least last. These tools stand first in every list that
# is cut, so that requests of every day meet the same bytes; what another request needs besides
# takes the place of the last ones. As many as a local model is shown.
EVERYDAY = (
    "find_files",
    "read_files",
    "write_files",
    "get_now",
    "filter_entries",
    "compute_entries",
    "list_dirs",
    "sort_entries",
    "move_files",
    "delete_files",
    "read_urls_html",
    "get_urls",
)
# What requests of several steps pass results to, most wanted first: what fills a list that grows.
PIPED = (
    "describe_entries",
    "sort_entries",
    "extract_entries",
    "send_messages",
    "filter_entries",
    "create_files_spreadsheet",
    "group_entries",
    "compute_entries",
    "classify_entries",
    "compare_entries",
    "write_files",
    "move_files",
)
# What people ask for without a word that says so, most often first: what fills the list where it
# is not clear at all what is wanted.
HARDLY_SAID = (
    "read_messages",
    "create_events",
    "read_events",
    "send_messages",
    "find_contacts",
    "get_weather",
)
# A list grows by so many tools for a request that is not plain, behind what it held anyhow; the
# first of the piped ones are among them.
SPARE = 8
_AT_LEAST = 3
BLOCK = 3
Points = Mapping[str, float]
# A tool is needed when it has this share of the points of the best one, else it is an echo.
_NEEDED = 0.65
# With this share it takes a place that nothing else needs, where the list is cut anyhow.
_LIKELY = 0.3
# An everyday tool that has this share is not pushed out.
_KEPT = 0.3
# A tool with a qualifier is meant when it has this share of the points of the one without.
_ECHO = 0.8
# So many of the tools that a needed one gets from what it works on come along with it.
_SOURCES = 2
# So many tools that somebody added to the house come along by the words they were given.
_CALLED = 3
_OURS = "Metnos"
# What no request names.
_UNSAID = frozenset({"entries"})
# Points below which a clause speaks of nothing.
_SPOKEN_OF = 10.0
# Half of the everyday tools are never pushed out, and blocks are rounded up to so many tools.
_FIXED = 0.5
_ROUNDED = 4
# Points above which a request speaks of a tool beyond doubt.
CLEARLY = 30.0
# With these one that surely asks speaks of it clearly enough.
_ASKED = 25.0
# Who says more words than these mostly wants more than one thing.
_FEW_WORDS = 9
# Points of what is said without a word that means anything, and how many words greet.
_HARDLY = 12.0
_GREETING = 3
# Points of a plain request's best tool, and the share of them that others are meant with, too.
_SURELY = 25.0
_MEANT = 0.5
# The catalogue of the host, and those of guests with different rights.
_MOST_INDEXES = 4
_MOST_SPECS = 2048


class Candidates:
    """Chooses by the pre-filter; the index of a catalogue is built when a choice needs it.

    A list that is cut begins with the everyday tools and takes others in whole blocks of one
    family (C4), so that the server's prefix cache meets the same bytes again.
    """

    def __init__(self) -> None:
        self._indexes: dict[str, prefilter.PrefilterIndex] = {}
        self._specs: dict[tuple[str, str], ToolSpec] = {}

    def choose(self, context: TurnContext, *, k_max: int, spare: int = SPARE) -> tuple[str, ...]:
        """What a prompt may hold: at most `k_max` names in an order that requests share, `spare`
        more behind them at most (see `_room`); all of them, by name, when they are not more than
        `k_max`."""
        names = sorted(context.catalog.offered)
        if len(names) <= k_max:
            return tuple(names)
        index = self._index_of(context.catalog)
        ranked, parts, leaders = _read(context, index)
        needed = [
            *_offhand(context),
            *_called(context, index),
            *leaders,
            *_with_sources(_needed(ranked, parts), ranked, index),
        ]
        likely = _needed(ranked, parts, share=_LIKELY, kept=_LIKELY / 2)
        chosen = stable_choice(names, needed, most=k_max, likely=likely)
        meant = _needed(ranked, parts, share=_MEANT)
        room = _room(context.request, parts, needed, set(meant) <= set(chosen), spare=spare)
        if _offhand(context):
            room = min(room, spare // 2)  # it is known what it is for
        first = [*HARDLY_SAID, *needed] if _most(parts) < _SURELY else needed
        rest = (one.name for one in ranked)
        besides = dict.fromkeys([*first, *PIPED[:_AT_LEAST], *likely, *PIPED, *rest])
        more = [n for n in besides if n not in chosen and index.position(n) is not None]
        return (*chosen, *sorted(more[:room], key=_family))

    def best(self, context: TurnContext, *, k_max: int) -> tuple[str, ...]:
        """The everyday tools and those that fit best, by name, for what stands in no prompt."""
        names = sorted(context.catalog.offered)
        if len(names) <= k_max:
            return tuple(names)
        index = self._index_of(context.catalog)
        ranked, parts, leaders = _read(context, index)
        first = [one.name for one in ranked[:1]]
        everyday = [name for name in EVERYDAY if name in names][: k_max // 2]
        best = [
            *first,
            *_offhand(context),
            *_called(context, index),
            *leaders,
            *everyday,
            *_needed(ranked, parts, share=_MEANT),
        ]
        found = dict.fromkeys([*best, *(one.name for one in ranked)])
        return tuple(sorted([name for name in found if name in context.catalog.offered][:k_max]))

    def traits(self, context: TurnContext) -> Traits:
        """What the pre-filter sees in a request: clauses, and verbs and objects of its best."""
        index = self._index_of(context.catalog)
        best = prefilter.choose(context.request, index, k_min=1, k_max=3)
        return Traits(
            chars=len(context.request),
            clauses=len(index.clauses(context.request)),
            verbs=frozenset(map(verb_of, best)),
            objects=frozenset(map(object_of, best)),
        )

    def relevance(self, context: TurnContext) -> tuple[dict[str, float], int]:
        """Points of every tool that the request speaks of, the most that one of its clauses
        gives; and how many clauses there are."""
        index = self._index_of(context.catalog)
        found: dict[str, float] = {}
        clauses = index.clauses(context.request)
        for clause in clauses:
            for number, points in index.points(clause).items():
                name = index.names[number]
                found[name] = max(found.get(name, 0.0), points)
        return found, len(clauses)

    def lacking(self, context: TurnContext) -> AccountKind | None:
        """The kind of account that the person must add before this can be done: what the request
        asks for most clearly sleeps for want of it. One that only speaks of it lacks nothing."""
        catalog = context.catalog
        if not catalog.dormant or not asks(context.request):
            return None
        awake = replace(catalog, dormant={}, signature=f"{catalog.signature} awake")
        points, _ = self.relevance(replace(context, catalog=awake))
        best = max(
            points, key=lambda name: (points[name], name not in catalog.dormant), default=""
        )
        return catalog.dormant.get(best) if points.get(best, 0.0) >= _ASKED else None

    def spec(self, catalog: Catalog, name: str, lang: str) -> ToolSpec:
        manifest = catalog.executors[name].manifest
        known = (manifest.digest, lang)
        if known not in self._specs:
            if len(self._specs) >= _MOST_SPECS:
                self._specs.clear()
            self._specs[known] = ToolSpec(
                name, manifest.description[lang], manifest.tool_schema(lang)
            )
        return self._specs[known]

    def _index_of(self, catalog: Catalog) -> prefilter.PrefilterIndex:
        index = self._indexes.get(catalog.signature)
        if index is None:
            if len(self._indexes) >= _MOST_INDEXES:
                self._indexes.clear()
            index = self._indexes[catalog.signature] = prefilter.PrefilterIndex(
                [executor.manifest for executor in catalog.offered.values()]
            )
        return index


def _offhand(context: TurnContext) -> list[str]:
    """What a request is for that has no word for it."""
    deed = deed_of(context.request)
    return [deed] if deed in context.catalog.offered else []


def _called(context: TurnContext, index: prefilter.PrefilterIndex) -> list[str]:
    """Tools of the person's own, written or connected, that the request calls by their words:
    what they are about may be named by nothing that the shipped ones know."""
    own = [
        name
        for name, executor in context.catalog.offered.items()
        if executor.manifest.author != _OURS
    ]
    return index.called(context.request, own)[:_CALLED]


def _read(
    context: TurnContext, index: prefilter.PrefilterIndex
) -> tuple[list[prefilter.Ranked], list[Points], list[str]]:
    """The ranking of a request, the points that each of its parts gives, and its leaders."""
    ranked = prefilter.rank(context.request, index, evidence=context.past)
    parts: list[Points] = []
    best: list[str] = []
    deeds: list[int] = []
    for words in index.parts(context.request):
        points = index.points(words)
        deeds += index.deeds(words, points)
        own = {index.names[number]: value for number, value in points.items()}
        best += _best(own)
        parts.append(own)
    leaders = dict.fromkeys([*best, *(index.names[number] for number in deeds)])
    return ranked, parts, list(leaders)


def _best(points: Points) -> list[str]:
    """What a part of a request speaks of most, and what it most wants done with a list: that
    these are there goes before whole families and everyday tools."""
    spoken_of = [name for name, own in points.items() if own >= _SPOKEN_OF]
    piped = [name for name in spoken_of if object_of(name) in _UNSAID]
    return [max(some, key=lambda n: (points[n], n)) for some in (spoken_of, piped) if some]


def _most(parts: Sequence[Points]) -> float:
    return max((max(points.values(), default=0.0) for points in parts), default=0.0)


def _room(
    request: str, parts: Sequence[Points], needed: Sequence[str], fits: bool, *, spare: int
) -> int:
    """How many tools are shown besides those chosen. None where a request says clearly, in few
    words, that it wants one thing of every day, nor where it greets; half of them where it so
    wants another thing and all it may mean `fits` among the chosen; else all of them."""
    words = len(request.split())
    most = _most(parts)
    if most < _HARDLY:
        return 0 if words <= _GREETING else spare
    if len(parts) > 1 or words > _FEW_WORDS or most < _SURELY:
        return spare
    if all(name in EVERYDAY for name in needed):
        return 0
    return spare // 2 if fits else spare


def _needed(
    ranked: Sequence[prefilter.Ranked],
    parts: Sequence[Points],
    *,
    share: float = _NEEDED,
    kept: float = _KEPT,
) -> list[str]:
    """The tools that the request, or one of its parts by its own measure, speaks of; best
    first."""
    points = {one.name: float(one.score) for one in ranked}
    found = _clear(points, least=1.0, share=share, kept=kept)
    for part in parts:
        found |= _clear(part, least=_SPOKEN_OF, share=share, kept=kept)
    return [one.name for one in ranked if one.name in found]


def _clear(points: Points, *, least: float, share: float, kept: float) -> set[str]:
    """The tools with this share of the most points, everyday ones with what they are kept at,
    but for those that are only the echo of a plainer one: `find_files` brings `find_files_hash`
    along whatever is looked for."""
    most = max(points.values(), default=0.0)
    return {
        name
        for name, own in points.items()
        if own >= max((kept if _is_modest(name) else share) * most, least)
        and own >= _ECHO * points.get("_".join(name.split("_")[:2]), 0.0)
    }


def _is_modest(name: str) -> bool:
    """Whether a tool has few points even when it is meant: nobody says the object of what works on
    the list of a step, only what is to be done with it."""
    return name in EVERYDAY or object_of(name) in _UNSAID


def _with_sources(
    needed: Sequence[str], ranked: Sequence[prefilter.Ranked], index: prefilter.PrefilterIndex
) -> list[str]:
    """The needed tools, behind each that is not of every day where it most likely gets from what
    it works on."""
    points = {one.name: one.score for one in ranked}
    found: list[str] = []
    for name in needed:
        found.append(name)
        place = None if name in EVERYDAY else index.position(name)
        if place is not None:
            sources = [index.names[n] for n in index.companions_of(place)]
            found += sorted(sources, key=lambda other: -points.get(other, 0))[:_SOURCES]
    return found


def stable_choice(
    names: Sequence[str], needed: Sequence[str], *, most: int, likely: Sequence[str] = ()
) -> tuple[str, ...]:
    """At most `most` of the `names`: everyday tools in their order, then what else is `needed`
    (best first), rounded up to blocks; what is `likely` goes before everyday tools that are not
    needed, where anything else is needed at all.

    Needed tools are never left out for the sake of a block or of an everyday tool that is not
    needed, as long as there is room. When nothing else is needed the list is the same for every
    request; else it begins alike.
    """
    there = set(names)
    everyday = [name for name in EVERYDAY if name in there][:most]
    blocks = _blocks([name for name in names if name not in everyday])
    block_of = {name: block for block in blocks for name in block}
    needed = [name for name in dict.fromkeys(needed) if name in there]
    others = [name for name in needed if name in block_of]
    fixed = everyday[: round(len(everyday) * _FIXED)]
    taken = list(dict.fromkeys([*fixed, *needed]))[:most] if others else everyday
    wanted = {name for name in taken if name in everyday}
    extra = {name for name in taken if name in block_of}
    for name in others:
        block = extra | set(block_of[name])
        if len(block) <= _ROUNDED and len(wanted) + len(block) <= most:
            extra = block
    for name in likely if extra else ():
        kind = extra if name in block_of else wanted
        if name in there and len(wanted | extra | {name}) <= most:
            kind.add(name)
    for name in (name for block in blocks for name in block):
        if len(everyday) + len(extra) >= most:
            break
        extra.add(name)
    room = most - len(extra)
    kept = set(wanted)
    for name in everyday:
        if len(kept) < room:
            kept.add(name)
    first = [name for name in everyday if name in kept]
    return (*first, *(name for block in blocks for name in block if name in extra))


def _blocks(names: Sequence[str]) -> list[list[str]]:
    """Tools of one object and qualifier, three at most: what one kind of request needs. Another
    family that comes or goes leaves them as they are."""
    blocks: list[list[str]] = []
    for _, family in groupby(sorted(names, key=_family), key=lambda name: _family(name)[0]):
        members = list(family)
        blocks += [members[at : at + BLOCK] for at in range(0, len(members), BLOCK)]
    return blocks


def _family(name: str) -> tuple[str, str]:
    return family_of(name), name
