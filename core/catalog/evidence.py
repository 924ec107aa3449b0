"""What this installation's own past turns say about which tool a request wants.

Nearest neighbours over word stems and character n-grams of earlier requests. Pure and in memory:
whoever keeps the turns adds them in order, and asks for the votes on a request before adding it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from core.catalog.lexicon import stem, tokens

_NEIGHBOURS = 5
_MIN_SIMILARITY = 0.15
# What is often wanted is a little more likely wanted now.
_HABIT = 0.2
_MAX_WORDS = 60


class Evidence:
    """Past (request, first tool that worked) pairs; the latest `capacity` of them are kept."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = (), *, capacity: int = 1000) -> None:
        self._capacity = capacity
        self._rows: list[tuple[frozenset[str], str]] = []
        self._postings: dict[str, list[int]] = {}
        self._weights: list[float] = []
        self._tools: Counter[str] = Counter()
        self._weighed_at = 0
        for query, tool in pairs:
            self.add(query, tool)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, query: str, tool: str) -> None:
        """Learn that the request was served by the tool. Twice counts as two turns."""
        self._rows.append((_grams(query), tool))
        if len(self._rows) <= self._capacity:
            self._index(len(self._rows) - 1)
            return
        # A quarter is dropped at a time, so that rebuilding stays rare.
        self._rows = self._rows[max(1, self._capacity // 4) :]
        self._postings.clear()
        self._weights.clear()
        self._tools.clear()
        self._weighed_at = 0
        for number in range(len(self._rows)):
            self._index(number)

    def votes(self, query: str) -> dict[str, float]:
        """Tool → how strongly past turns speak for it, from 0 to a little over 1.

        The tools of the nearest requests share the similarity of the nearest one; every tool used
        before has a small vote by habit. Empty while nothing was learnt.
        """
        votes = {
            tool: _HABIT * math.sqrt(count / len(self._rows))
            for tool, count in sorted(self._tools.items())
        }
        near = self._neighbours(_grams(query))
        whole = math.fsum(similarity**2 for similarity, _ in near)
        for similarity, tool in near:
            votes[tool] += near[0][0] * similarity**2 / whole
        return votes

    def _neighbours(self, grams: frozenset[str]) -> list[tuple[float, str]]:
        """Similarity and tool of the most similar rows, nearest first, later ones before older."""
        self._reweigh()
        scores: dict[int, float] = {}
        own = 0.0
        # Grams that half of all requests share say nothing and would cost the most.
        common = max(12, len(self._rows) // 2)
        for gram in sorted(grams):
            rows = self._postings.get(gram, [])
            weight = self._idf(len(rows))
            own += weight
            if len(rows) <= common:
                for number in rows:
                    scores[number] = scores.get(number, 0.0) + weight
        near = sorted(
            ((total / math.sqrt(own * self._weights[row]), row) for row, total in scores.items()),
            reverse=True,
        )[:_NEIGHBOURS]
        return [(min(sim, 1.0), self._rows[row][1]) for sim, row in near if sim >= _MIN_SIMILARITY]

    def _index(self, number: int) -> None:
        grams, tool = self._rows[number]
        for gram in grams:
            self._postings.setdefault(gram, []).append(number)
        self._tools[tool] += 1
        self._weights.append(self._weight(grams))

    def _reweigh(self) -> None:
        """Refresh the weights of the rows once so many came that the frequencies moved."""
        if len(self._rows) >= self._weighed_at * 1.2:
            self._weights = [self._weight(grams) for grams, _ in self._rows]
            self._weighed_at = len(self._rows)

    def _idf(self, frequency: int) -> float:
        return math.log(1 + (len(self._rows) + 1) / (frequency + 0.5))

    def _weight(self, grams: frozenset[str]) -> float:
        # fsum: the order of a set of strings differs between processes, the sum must not.
        return math.fsum(self._idf(len(self._postings.get(gram, ()))) for gram in grams) or 1.0


def _grams(query: str) -> frozenset[str]:
    grams: set[str] = set()
    for word in tokens(query)[:_MAX_WORDS]:
        grams.add("=" + stem(word))
        padded = f" {word} "
        for size in (3, 4):
            grams.update(padded[start : start + size] for start in range(len(padded) - size + 1))
    return frozenset(grams)
