"""Which tools a model may choose from, and their forms, the same bytes for the same set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from core.accounts import AccountKind
from core.catalog import prefilter
from core.catalog.loader import Catalog
from core.execution.context import TurnContext
from core.levels.offhand import NOTES_EVENTS, asks, notes_event
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
BLOCK = 3
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

    def choose(self, context: TurnContext, *, k_max: int) -> tuple[str, ...]:
        """What a prompt may hold: at most `k_max` names in an order that requests share; all of
        them, by name, when they are not more."""
        names = sorted(context.catalog.offered)
        if len(names) <= k_max:
            return tuple(names)
        index = self._index_of(context.catalog)
        ranked = prefilter.rank(context.request, index, evidence=context.past)
        needed = _needed(context.request, ranked, index)
        return stable_choice(
            names,
            [*_offhand(context), *_with_sources(needed, ranked, index)],
            most=k_max,
            likely=_needed(context.request, ranked, index, share=_LIKELY, kept=_LIKELY / 2),
        )

    def best(self, context: TurnContext, *, k_max: int) -> tuple[str, ...]:
        """The everyday tools and those that fit best, by name, for what stands in no prompt."""
        names = sorted(context.catalog.offered)
        if len(names) <= k_max:
            return tuple(names)
        index = self._index_of(context.catalog)
        ranked = prefilter.choose(context.request, index, k_max=k_max, evidence=context.past)
        everyday = [name for name in EVERYDAY if name in names][: k_max // 2]
        chosen = dict.fromkeys([*everyday, *_offhand(context), *ranked])
        return tuple(sorted(list(chosen)[:k_max]))

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
    there = NOTES_EVENTS in context.catalog.offered and notes_event(context.request)
    return [NOTES_EVENTS] if there else []


def _needed(
    request: str,
    ranked: Sequence[prefilter.Ranked],
    index: prefilter.PrefilterIndex,
    *,
    share: float = _NEEDED,
    kept: float = _KEPT,
) -> list[str]:
    """The tools that the request, or one of its clauses by its own measure, speaks of; best
    first."""
    points = {one.name: float(one.score) for one in ranked}
    found = _clear(points, least=1.0, share=share, kept=kept)
    for clause in index.clauses(request):
        points = {index.names[n]: own for n, own in index.points(clause).items()}
        found |= _clear(points, least=_SPOKEN_OF, share=share, kept=kept)
    return [one.name for one in ranked if one.name in found]


def _clear(points: Mapping[str, float], *, least: float, share: float, kept: float) -> set[str]:
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
