"""Which tools of the catalogue a request may need, best first: what the model gets to see.

Pure and deterministic: the same request over the same catalogue and evidence gives the same list.
How many points a tool gets is `prefilter_index`'s business; here they become a short list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest

from core.catalog.evidence import Evidence
from core.catalog.prefilter_index import Item, PrefilterIndex, RankItem

__all__ = [
    "K_MAX",
    "K_MIN",
    "Evidence",
    "Item",
    "PrefilterIndex",
    "RankItem",
    "Ranked",
    "adaptive_k",
    "choose",
    "rank",
    "stable_block",
]

K_MIN = 5
K_MAX = 40
_SURE = 0.7
_UNSURE = 0.3

# Points of one whole vote of the past: more than the words of any request can give a tool.
_EVIDENCE = 40.0
# The first clause is done first, so its tools go first.
_LATER_CLAUSE = 0.85
_BEST_OF_CLAUSE = 2
# A score is points times this. Less than one point is the noise of common words and scores 0.
_SCALE = 10


@dataclass(frozen=True, slots=True)
class Ranked:
    """A tool and its score: a whole number >= 0, comparable only within one ranking."""

    name: str
    score: int


def rank(
    query: str,
    items: Sequence[RankItem] | PrefilterIndex,
    *,
    k_min: int = K_MIN,
    k_max: int = K_MAX,
    evidence: Evidence | None = None,
) -> list[Ranked]:
    """Order tools by relevance to the request and keep the best few.

    K shrinks to `k_min` when the first is clearly ahead and grows to `k_max` when scores are
    close. Tools that score 0 are left out, unless all do: then it is the catalogue by name.
    The best of every clause and the companions of what was kept come along, behind the others
    when they scored less. Equal scores go by name.

    Returns at most `k_max` items, best first; an empty catalogue gives none. Raises nothing.
    """
    index = items if isinstance(items, PrefilterIndex) else PrefilterIndex(items)
    scores, leaders = _scores(query, index, evidence)
    if not scores:
        return [Ranked(name, 0) for name in index.names[:k_max]]
    best = nsmallest(k_max, scores, key=lambda number: (-scores[number], number))
    kept = best[: adaptive_k([scores[number] for number in best], k_min=k_min, k_max=k_max)]
    companions = [other for number in kept for other in index.companions_of(number)]
    # What goes along pushes out the last of what was kept, but no best one of a clause.
    spared = list(dict.fromkeys([*kept[:1], *leaders]))[:k_max]
    extra = [number for number in dict.fromkeys(companions) if number not in kept]
    chosen = dict.fromkeys([*spared, *extra][:k_max])
    chosen |= dict.fromkeys([n for n in kept if n not in chosen][: k_max - len(chosen)])
    ordered = sorted(chosen, key=lambda number: (-scores.get(number, 0), number))
    return [Ranked(index.names[number], scores.get(number, 0)) for number in ordered]


def choose(
    query: str,
    index: PrefilterIndex,
    *,
    k_min: int = K_MIN,
    k_max: int = K_MAX,
    evidence: Evidence | None = None,
) -> list[str]:
    """The names of `rank`, best first."""
    return [
        ranked.name for ranked in rank(query, index, k_min=k_min, k_max=k_max, evidence=evidence)
    ]


def adaptive_k(scores: Sequence[int], *, k_min: int = K_MIN, k_max: int = K_MAX) -> int:
    """How many of the scores, given best first and above 0, are worth showing.

    Confidence is the lead of the first over the second, as a part of the first.
    """
    if not scores:
        return 0
    second = scores[1] if len(scores) > 1 else 0
    confidence = (scores[0] - second) / scores[0]
    doubt = min(1.0, max(0.0, (_SURE - confidence) / (_SURE - _UNSURE)))
    return min(len(scores), k_max, k_min + round(doubt * (k_max - k_min)))


def stable_block(
    names: Sequence[str],
    block_size: int,
    order: Sequence[str],
    *,
    limit: int | None = None,
) -> list[str]:
    """The candidates rounded up to whole blocks of the catalogue, in catalogue order.

    `order` is the whole catalogue in an order that never changes between requests; it is cut into
    blocks of `block_size`. Requests that need the same blocks then get the same list, byte for
    byte, and the model's prefix cache holds. With `limit`, blocks of better candidates (`names` is
    best first) are taken while the whole stays within it; a block that no longer fits gives its
    own candidates only, as far as there is room. Names not in `order` are dropped.
    """
    place = {name: number for number, name in enumerate(order)}
    known = [name for name in dict.fromkeys(names) if name in place]
    room = len(order) if limit is None else limit
    chosen: set[int] = set()
    for name in known:
        start = place[name] // block_size * block_size
        block = range(start, min(start + block_size, len(order)))
        new = set(block) - chosen
        if len(chosen) + len(new) <= room:
            chosen |= new
        elif len(chosen) < room:
            chosen.add(place[name])
    return [order[number] for number in sorted(chosen)]


def _scores(
    query: str, index: PrefilterIndex, evidence: Evidence | None
) -> tuple[dict[int, int], list[int]]:
    """Positions with a score above 0, and the best positions of each clause after the first."""
    points: dict[int, float] = {}
    leaders: list[int] = []
    for turn, clause in enumerate(index.clauses(query)):
        found = index.points(clause)
        if turn:
            leaders += nsmallest(_BEST_OF_CLAUSE, found, key=lambda n: (-found[n], n))
        weight = _LATER_CLAUSE if turn else 1.0
        for number, value in found.items():
            points[number] = max(points.get(number, 0.0), value * weight)
    if evidence is not None:
        for tool, vote in evidence.votes(query).items():
            if (place := index.position(tool)) is not None:
                points[place] = points.get(place, 0.0) + _EVIDENCE * vote
    scores = {n: round(value * _SCALE) for n, value in points.items() if value >= 1.0}
    return scores, [number for number in leaders if number in scores]
