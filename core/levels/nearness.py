"""How near a request lies to one that was served before, by the embedder that is set.

A second lock beside equality of meaning, and never an error: an embedder that is down, hangs or
answers nonsense means a miss, logged once until it works again. What it needs before it can say
anything (to be loaded, a floor, the vectors of the rows) is done in the background.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from core.clock import Clock
from core.errors import StoreError
from core.levels.calibration import calibrate, shipped_pairs, texts_of
from core.levels.vectors import Vector, cosine
from core.llm.embedder import Embedder, EmbedderDown, EndpointEmbedder, known_floor
from core.store import embedder_floors, plan_cache
from core.store.database import Transaction
from core.store.plan_cache import StoredPlan
from core.store.stores import Stores

log = logging.getLogger(__name__)

PATIENCE_S = 1.0
"""How long a turn waits for a vector."""

REST_S = 30.0
"""How long nobody is asked after a failure, doubled at each further one."""

_MOST_REST_S = 900.0
_LOADING_S = 60.0
_BATCH = 8
"""Few at a time: a turn that comes in between waits for them."""

UNMEASURED, TOO_FAR = "unmeasured", "too_far"


class Nearness:
    """`embedder` None: it is off, and nothing is near. `start` it to have what it needs done."""

    def __init__(
        self,
        embedder: Embedder | None,
        stores: Stores,
        clock: Clock,
        *,
        patience_s: float = PATIENCE_S,
        rest_s: float = REST_S,
    ) -> None:
        self._embedder, self._stores, self._clock = embedder, stores, clock
        self._patience_s, self._rest_s = patience_s, rest_s
        self._loaded = embedder is not None and embedder.is_light
        self._rests_until, self._failures = 0.0, 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()

    @property
    def name(self) -> str:
        """Of the embedder, by which its vectors are known; "" when it is off."""
        return "" if self._embedder is None else self._embedder.name

    def start(self) -> None:
        """Begin the work in the background; called again it does nothing."""
        if self._embedder is not None and self._task is None:
            self._wake.set()
            self._task = asyncio.create_task(self._work(self._embedder))

    async def close(self) -> None:
        """End the work in the background. What is left undone is done after the next start."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and (exc := task.exception()) is not None:
                log.error("requests not measured", exc_info=exc)
        if self._embedder is not None:
            await close(self._embedder)

    async def settled(self) -> None:
        """Wait until the work in the background has nothing to do."""
        await self._settled.wait()

    # -- in a turn --------------------------------------------------------------------------------

    async def vector_of(self, text: str) -> Vector | None:
        """The vector of a text; None when the embedder cannot say, which takes no longer than its
        patience, and no time at all while it loads or rests."""
        embedder = self._embedder
        if embedder is None or not self._loaded:
            return None
        if self._clock.monotonic() < self._rests_until:
            return None
        try:
            return (await self._ask(embedder, [text], self._patience_s))[0]
        except EmbedderDown:
            return None

    async def measured(self, row_id: int, text: str) -> None:
        """Keep the vector of a row that was just learnt; when there is none yet, later. Raises
        `StoreError`."""
        if self._embedder is None:
            return
        vector = await self.vector_of(text)
        if vector is None:
            self._needs_work()
            return
        async with self._stores.memory.write() as tx:
            await plan_cache.measure(tx, row_id, text, vector, self.name)

    async def floor(self, tx: Transaction) -> float | None:
        """The cosine below which nothing is near; None: nobody has measured this embedder yet."""
        found = await embedder_floors.find(tx, self.name)
        return known_floor(self.name) if found is None else found.floor

    def refusal(self, row: StoredPlan, vector: Vector | None, floor: float | None) -> str | None:
        """Why a row of equal meaning is not near a request of this vector; None: it is."""
        if vector is None or floor is None:
            return UNMEASURED
        if row.embedder != self.name or row.vector is None or len(row.vector) != len(vector):
            return UNMEASURED
        return None if cosine(vector, row.vector) >= floor else TOO_FAR

    async def measure_again(self, tx: Transaction, row: StoredPlan) -> None:
        """Have a row measured in the background whose vector is missing, another embedder's,
        damaged, or of another size than this embedder's are now."""
        if self._embedder is not None:
            await plan_cache.measure(tx, row.id, row.lesson.text, None, "")
            self._needs_work()

    # -- in the background ------------------------------------------------------------------------

    def soon(self) -> None:
        """Have measured what is not measured yet; returns at once."""
        if self._embedder is not None:
            self._needs_work()

    def _needs_work(self) -> None:
        self._settled.clear()
        self._wake.set()

    async def _work(self, embedder: Embedder) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._settled.clear()
            try:
                await self._make_ready(embedder)
            except EmbedderDown:
                await self._rest()
            except StoreError as exc:
                log.warning("requests not measured", extra={"detail": exc.detail})
                await self._rest()
            else:
                if not self._wake.is_set():
                    self._settled.set()

    async def _rest(self) -> None:
        self._wake.set()
        await asyncio.sleep(max(self._rest_s, self._rests_until - self._clock.monotonic()))

    async def _make_ready(self, embedder: Embedder) -> None:
        """Load the embedder, find its floor, and measure the rows that it has not measured."""
        if not self._loaded:
            await self._ask(embedder, ["che ore sono"], _LOADING_S)
            self._loaded = True
        async with self._stores.memory.read() as tx:
            floor = await self.floor(tx)
        if floor is None:
            await self._calibrate(embedder)
        while True:
            async with self._stores.memory.read() as tx:
                rows = await plan_cache.unmeasured(tx, embedder.name, _BATCH)
            if not rows:
                return
            vectors = await self._ask(embedder, [text for _, text in rows], _LOADING_S)
            async with self._stores.memory.write() as tx:
                for (row_id, text), vector in zip(rows, vectors, strict=True):
                    await plan_cache.measure(tx, row_id, text, vector, embedder.name)

    async def _calibrate(self, embedder: Embedder) -> None:
        pairs = shipped_pairs()
        vectors = await embedded(embedder, texts_of(pairs))
        found = calibrate(pairs, vectors)
        async with self._stores.memory.write() as tx:
            now = self._clock.now()
            await embedder_floors.keep(tx, embedder.name, found, source="shipped", now=now)
        log.info("embedder calibrated", extra={"embedder": embedder.name, "floor": found.floor})

    # -- asking -----------------------------------------------------------------------------------

    async def _ask(
        self, embedder: Embedder, texts: Sequence[str], patience_s: float
    ) -> list[Vector]:
        """Raises `EmbedderDown`, also when it takes too long; it is left to rest then."""
        try:
            vectors = await _asked(embedder, texts, patience_s)
        except EmbedderDown as exc:
            self._failures += 1
            rest = min(_MOST_REST_S, self._rest_s * 2 ** min(self._failures - 1, 10))
            self._rests_until = self._clock.monotonic() + rest
            if self._failures == 1:
                log.warning("embedder down", extra={"embedder": self.name, "detail": exc.detail})
            raise
        if self._failures:
            log.info("embedder works again", extra={"embedder": self.name})
        self._failures = 0
        return vectors


async def close(embedder: Embedder) -> None:
    """Close what an embedder holds open."""
    if isinstance(embedder, EndpointEmbedder):
        await embedder.close()


async def embedded(embedder: Embedder, texts: Sequence[str]) -> dict[str, Vector]:
    """The vectors of many texts, a batch at a time. Raises `EmbedderDown`."""
    found: dict[str, Vector] = {}
    for start in range(0, len(texts), _BATCH):
        part = texts[start : start + _BATCH]
        found |= zip(part, await _asked(embedder, part, _LOADING_S), strict=True)
    return found


async def _asked(embedder: Embedder, texts: Sequence[str], patience_s: float) -> list[Vector]:
    # Half of a pair of surrogates is no text that could be sent.
    sound = [text.encode("utf-8", "replace").decode() for text in texts]
    try:
        async with asyncio.timeout(patience_s):
            return await embedder.embed(sound)
    except TimeoutError as exc:
        raise EmbedderDown(f"no vector within {patience_s:g} s") from exc
