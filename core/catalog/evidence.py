"""What past turns say about which tool a request wants.

Nearest neighbours over the words of earlier requests and what these mean, weighed by how rare
each is; so a request in the other language is near too. Pure and in memory: whoever keeps the
turns adds them in order, and asks for the votes on a request before adding it. Nothing of a
request is held but salted numbers of its features.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b

from core.catalog.lexicon import STOP_WORDS, load_lexicon, stem, tokens

CAPACITY = 1000
_NEIGHBOURS = 5
_MIN_SIMILARITY = 0.15
# What is often wanted is a little more likely wanted now.
_HABIT = 0.2
# Tools after the first of a turn are what the rest of such requests needs.
_LATER = 0.5
_MOST_WORDS = 60
# What half of all requests share says nothing and would cost the most.
_COMMON = 2
_FEW = 12
FEATURE_BYTES = 6

Features = frozenset[int]


class Evidence:
    """Past requests, each with the tools that worked, the first of them first; the latest
    `capacity` of them are kept. `salt` is what the numbers of the features are made with."""

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]] = (),
        *,
        capacity: int = CAPACITY,
        salt: bytes = b"",
    ) -> None:
        self._capacity, self._salt = capacity, salt
        self._rows: list[tuple[Features, tuple[str, ...]]] = []
        self._postings: dict[int, list[int]] = {}
        self._weights: list[float] = []
        self._tools: Counter[str] = Counter()
        self._habits: dict[str, float] = {}
        self._weighed_at = 0
        for query, tool in pairs:
            self.add(query, tool)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, query: str, *tools: str) -> None:
        """Learn that the request was served by these tools, in this order. Twice counts as two
        turns."""
        self.learn(self.features(query), tools)

    def features(self, query: str) -> Features:
        """What of a request is compared: numbers from 0 below 2^48."""
        return frozenset(_number(self._salt, feature) for feature in features_of(query))

    def learn(self, features: Features, tools: Sequence[str]) -> None:
        """`add` for a request of which only its features are kept. Without tools it is nothing."""
        self.learn_all([(features, tools)])

    def learn_all(self, rows: Iterable[tuple[Features, Sequence[str]]]) -> None:
        """`learn` for many at once, oldest first."""
        before = len(self._rows)
        self._rows += [
            (features, tuple(dict.fromkeys(tools))) for features, tools in rows if tools
        ]
        if len(self._rows) > self._capacity:
            # A quarter is dropped at a time, so that rebuilding stays rare.
            most = max(1, self._capacity - self._capacity // 4)
            self._rows = self._rows[-most if before else -self._capacity :]
            self._postings.clear()
            self._weights.clear()
            self._tools.clear()
            before = self._weighed_at = 0
        for number in range(before, len(self._rows)):
            self._index(number)
        count = len(self._rows)
        if count >= self._weighed_at * 1.2:
            # So many came that the frequencies moved.
            self._weights = [self._weight(features) for features, _ in self._rows]
            self._weighed_at = count
        self._habits = {t: _HABIT * math.sqrt(n / count) for t, n in sorted(self._tools.items())}

    def votes(self, query: str) -> dict[str, float]:
        """Tool → how strongly past turns speak for it, from 0 to a little over 1.

        The tools of the nearest requests share the similarity of the nearest one; every tool that
        came first before has a small vote by habit. Empty while nothing was learnt.
        """
        votes = dict(self._habits)
        near = self._neighbours(self.features(query)) if self._rows else []
        whole = math.fsum(similarity**2 for similarity, _ in near)
        for similarity, (first, *later) in near:
            share = near[0][0] * similarity**2 / whole
            votes[first] = votes.get(first, 0.0) + share
            for tool in later:
                votes[tool] = votes.get(tool, 0.0) + share * _LATER
        return votes

    def _neighbours(self, features: Features) -> list[tuple[float, tuple[str, ...]]]:
        """Similarity and tools of the most similar rows, nearest first, later before older."""
        scores: dict[int, float] = {}
        own = 0.0
        common = max(_FEW, len(self._rows) // _COMMON)
        for feature in sorted(features):
            rows = self._postings.get(feature, [])
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
        features, tools = self._rows[number]
        for feature in features:
            self._postings.setdefault(feature, []).append(number)
        self._tools[tools[0]] += 1
        self._weights.append(self._weight(features))

    def _idf(self, frequency: int) -> float:
        return math.log(1 + (len(self._rows) + 1) / (frequency + 0.5))

    def _weight(self, features: Features) -> float:
        # fsum: the order of a set differs between processes, the sum must not.
        return math.fsum(self._idf(len(self._postings.get(f, ()))) for f in features) or 1.0


def features_of(query: str) -> frozenset[str]:
    """The stems of a request and what its words plainly mean; little words only where there are
    no others."""
    words = tokens(query)[:_MOST_WORDS]
    stems = [stem(word) for word in words]
    said = {f"={s}" for s, word in zip(stems, words, strict=True) if word not in STOP_WORDS}
    found = said or {f"={s}" for s in stems}
    senses = load_lexicon().senses(words, stems, related=0.0, implied=0.0)
    for kind, meant in (("verb", senses.verbs), ("object", senses.objects)):
        found.update(f"{kind}:{concept}" for concept, weight in meant.items() if weight == 1.0)
    found.update(f"qualifier:{c}" for c, weight in senses.qualifiers.items() if weight == 1.0)
    return frozenset(found)


@lru_cache(maxsize=8192)
def _number(salt: bytes, feature: str) -> int:
    return int.from_bytes(
        blake2b(feature.encode(), key=salt[:64], digest_size=FEATURE_BYTES).digest()
    )
