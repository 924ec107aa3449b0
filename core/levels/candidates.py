"""Which tools a model may choose from, and their forms, the same bytes for the same set."""

from __future__ import annotations

from core.catalog import prefilter
from core.catalog.loader import Catalog
from core.execution.context import TurnContext
from core.levels.router import Traits
from core.llm.client import ToolSpec
from core.vocabulary import object_of, verb_of

BLOCK = 6
# The catalogue of the host, and those of guests with different rights.
_MOST_INDEXES = 4
_MOST_SPECS = 2048


class Candidates:
    """Chooses by the pre-filter; the index of a catalogue is built when a choice needs it.

    The set is rounded up to whole blocks of a fixed order and listed in that order (C4), so that
    the server's prefix cache meets the same bytes again.
    """

    def __init__(self) -> None:
        self._indexes: dict[str, prefilter.PrefilterIndex] = {}
        self._specs: dict[tuple[str, str], ToolSpec] = {}

    def choose(self, context: TurnContext, *, k_max: int) -> tuple[str, ...]:
        """Names in catalogue order: all of them when they are `k_max` at most."""
        names = sorted(context.catalog.offered)
        if len(names) <= k_max:
            return tuple(names)
        ranked = prefilter.choose(context.request, self._index_of(context.catalog), k_max=k_max)
        return tuple(prefilter.stable_block(ranked, BLOCK, names, limit=k_max))

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
