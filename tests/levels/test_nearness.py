"""The embedder is a second lock beside equality of meaning: whatever it does, a miss at worst."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from core.clock import SystemClock
from core.config import load_settings
from core.levels.calibration import Calibration
from core.levels.fastpath import Fastpath, Hit
from core.levels.nearness import Nearness
from core.levels.vectors import Vector, packed
from core.llm.embedder import Embedder, EndpointEmbedder, embedder_of
from core.store import embedder_floors, plan_cache
from core.store.stores import Stores, open_stores
from tests.support.embedding import broken, hanging, honest, saying
from tests.support.model_servers import Handler, serving
from tests.support.remembering import ended_well, turn_of

HASHING = embedder_of(load_settings(metnos_embedder="hashing"))
FIRST, SAME = "che ore sono?", "mi dici l'ora?"


class Memory:
    """The fast path over real stores, with an embedder at work."""

    def __init__(self, stores: Stores, embedder: Embedder | None, **limits: Any) -> None:
        self.stores = stores
        self.nearness = Nearness(embedder, stores, SystemClock(), **limits)
        self.fastpath = Fastpath(stores, SystemClock(), self.nearness)

    async def teach(self, request: str = FIRST) -> None:
        context = turn_of(request)
        assert await self.fastpath.learn(context, ended_well(context)) is not None

    async def find(self, request: str) -> Hit | None:
        return await self.fastpath.find(turn_of(request))

    async def how(self, request: str) -> str | None:
        hit = await self.find(request)
        return None if hit is None else hit.how

    async def rows(self) -> list[plan_cache.StoredPlan]:
        async with self.stores.memory.read() as tx:
            return await plan_cache.listed(tx)

    async def settle(self) -> None:
        self.nearness.start()
        async with asyncio.timeout(30):
            await self.nearness.settled()


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    opened = await open_stores(load_settings(metnos_home=tmp_path / "home"), SystemClock())
    yield opened
    await opened.close()


@asynccontextmanager
async def remembering(
    stores: Stores, embedder: Embedder | None = HASHING, **limits: Any
) -> AsyncIterator[Memory]:
    memory = Memory(stores, embedder, **limits)
    try:
        yield memory
    finally:
        await memory.nearness.close()


@asynccontextmanager
async def at_endpoint(
    stores: Stores, *answers: Handler, model: str = "m", **limits: Any
) -> AsyncIterator[tuple[Memory, Any]]:
    async with serving(*answers) as served:
        embedder = EndpointEmbedder(served.url, model)
        async with remembering(stores, embedder, **limits) as memory:
            yield memory, served


async def test_row_is_measured_when_it_is_learnt_and_serves_what_means_the_same(stores: Stores):
    async with remembering(stores) as memory:
        await memory.teach()

        [row] = await memory.rows()
        assert (row.embedder, row.vector is not None) == (memory.nearness.name, True)
        assert await memory.how(SAME) == "meaning"
        assert await memory.how("what time is it?") == "meaning"
        assert await memory.how("che giorno è?") is None


async def test_without_embedder_only_the_same_words_serve(stores: Stores):
    async with remembering(stores, None) as memory:
        memory.nearness.start()
        await memory.teach()

        assert await memory.how(FIRST) == "exact"
        assert await memory.how(SAME) is None
        [row] = await memory.rows()
        assert row.why == "unmeasured"


async def test_hit_below_the_floor_is_none(stores: Stores):
    async with remembering(stores) as memory:
        await memory.teach()
        async with stores.memory.write() as tx:
            found = Calibration(0.999, 40, 0, 0, 0)
            now = SystemClock().now()
            await embedder_floors.keep(tx, memory.nearness.name, found, source="file", now=now)

        assert await memory.how(SAME) is None
        assert (await memory.rows())[0].why == "too_far"
        assert await memory.how(FIRST) == "exact"


async def test_row_of_another_embedder_is_a_miss_until_it_is_measured_again(stores: Stores):
    async with at_endpoint(stores, honest) as (other, _):
        await other.settle()
        await other.teach()
        assert await other.how(SAME) == "meaning"

    async with remembering(stores) as memory:
        assert await memory.how(SAME) is None
        assert await memory.how(FIRST) == "exact"
        await memory.settle()
        assert await memory.how(SAME) == "meaning"
        assert {row.embedder for row in await memory.rows()} == {memory.nearness.name}


@pytest.mark.parametrize(
    "damaged",
    [None, b"", b"123", b"\xff" * 1024, packed((math.nan, 1.0)), packed((1.0,)), "text"],
)
async def test_damaged_vector_is_a_miss_and_measured_again(stores: Stores, damaged: object):
    async with remembering(stores) as memory:
        await memory.teach()
        async with stores.memory.write() as tx:
            await tx.execute("UPDATE plan_cache SET vector = :v", {"v": damaged})

        assert await memory.how(SAME) is None
        assert await memory.how(FIRST) == "exact"
        await memory.settle()
        assert await memory.how(SAME) == "meaning"


async def test_unknown_endpoint_is_calibrated_by_itself_and_a_miss_until_then(stores: Stores):
    async with at_endpoint(stores, honest) as (memory, served):
        await memory.teach()
        assert await memory.how(SAME) is None

        await memory.settle()

        async with stores.memory.read() as tx:
            floor = await embedder_floors.find(tx, "endpoint-m")
        assert floor is not None
        assert floor.source == "shipped"
        assert floor.pairs > 90
        assert 0.8 < floor.floor < 1
        assert await memory.how(SAME) == "meaning"
        asked = len(served.paths)
        assert await memory.how("leggi a.md") is None
        assert await memory.how(FIRST) == "exact"
        assert len(served.paths) == asked, "only what has a row of its meaning is sent out"


@pytest.mark.parametrize(
    "answer",
    [
        broken,
        hanging,
        saying(lambda text: [math.nan, 1.0]),
        saying(lambda text: [0.0] * 257),
        saying(lambda text: [1.0] * (1 + len(text))),
    ],
    ids=["dead", "hanging", "nan", "zero", "other lengths"],
)
async def test_endpoint_that_fails_later_is_a_miss_and_no_error(
    stores: Stores, answer: Handler, caplog: pytest.LogCaptureFixture
):
    async with at_endpoint(stores, honest) as (good, _):
        await good.settle()
        await good.teach()

    async with at_endpoint(stores, answer, patience_s=0.2) as (memory, served):
        with caplog.at_level(logging.WARNING, "core.levels.nearness"):
            for _ in range(3):
                assert await memory.how(SAME) is None
        assert await memory.how(FIRST) == "exact"
        lines = [one for one in caplog.records if one.message == "embedder down"]
        assert len(lines) <= 1
        if lines:
            assert len(served.paths) == 1, "it is left to rest"
            assert SAME not in caplog.text


async def test_endpoint_that_comes_back_measures_what_was_learnt_meanwhile(stores: Stores):
    async with at_endpoint(stores, broken, broken, broken, honest, rest_s=0.01) as (memory, _):
        memory.nearness.start()
        await memory.teach()
        await memory.settle()

        assert (await memory.rows())[0].vector is not None
        assert await memory.how(SAME) == "meaning"


async def test_endpoint_that_is_not_there_keeps_nothing_from_being_learnt(stores: Stores):
    async with remembering(stores, EndpointEmbedder("http://127.0.0.1:9/v1", "m")) as memory:
        memory.nearness.start()
        await memory.teach()

        assert await memory.how(FIRST) == "exact"


class Slow:
    """An embedder that is loaded when the test says so."""

    name, is_light = HASHING.name if HASHING else "", False

    def __init__(self) -> None:
        self.loaded = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        await self.loaded.wait()
        assert HASHING is not None
        return await HASHING.embed(texts)


async def test_embedder_that_loads_holds_no_turn_up(stores: Stores):
    slow = Slow()
    async with remembering(stores, slow, patience_s=60) as memory:
        memory.nearness.start()
        async with asyncio.timeout(30):
            await memory.teach()
            assert await memory.how(SAME) is None
            assert await memory.how(FIRST) == "exact"
        slow.loaded.set()
        await memory.settle()
        assert await memory.how(SAME) == "meaning"


async def test_half_a_pair_of_surrogates_is_no_failure(stores: Stores):
    async with at_endpoint(stores, honest) as (memory, _):
        assert await memory.nearness.vector_of("ora \ud83d?") is not None


async def test_closing_in_the_middle_of_the_work_is_quiet(stores: Stores):
    async with at_endpoint(stores, hanging) as (memory, served):
        memory.nearness.start()
        async with asyncio.timeout(30):
            await served.asked.wait()
        await memory.nearness.close()
        await memory.nearness.close()


async def test_flush_while_rows_are_measured_is_harmless(stores: Stores):
    async with at_endpoint(stores, honest) as (memory, _):
        await memory.teach()
        [row] = await memory.rows()
        async with stores.memory.write() as tx:
            await plan_cache.flush(tx)
            await plan_cache.measure(tx, row.id, row.lesson.text, (1.0,), "endpoint-m")
        await memory.settle()

        assert await memory.rows() == []
