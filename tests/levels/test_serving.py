"""What a turn was served with stands in its state: at its end that very row counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.clock import SystemClock
from core.config import load_settings
from core.errors import ErrorCode, ErrorInfo, StoreCorrupt
from core.levels import reuse
from core.levels.fastpath import Fastpath
from core.levels.meaning import meaning_of
from core.levels.nearness import Nearness
from core.llm.embedder import embedder_of
from core.plan import Plan, Step
from core.store import plan_cache
from core.store.plan_cache import StoredPlan
from core.store.stores import open_stores
from core.turn_state import Remembered, TurnState
from tests.support.remembering import ANNA, BRUNO, ended_well, served, turn_of

FIRST, SAME = "che ore sono?", "mi dici l'ora?"
FAULT = ErrorInfo(ErrorCode.INVALID_ARGS)


class Memory:
    def __init__(self, fastpath: Fastpath) -> None:
        self.fastpath = fastpath

    async def teach(self, request: str = FIRST) -> None:
        context = turn_of(request)
        await self.fastpath.learn(context, ended_well(context))

    async def rows(self) -> list[StoredPlan]:
        async with self.fastpath._stores.memory.read() as tx:
            return await plan_cache.listed(tx)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    settings, clock = load_settings(metnos_home=tmp_path / "home"), SystemClock()
    stores = await open_stores(settings, clock)
    nearness = Nearness(embedder_of(settings, "hashing"), stores, clock)
    yield Memory(Fastpath(stores, clock, nearness))
    await nearness.close()
    await stores.close()


async def test_use_counts_once_for_the_row_that_served_also_after_a_restart(memory: Memory):
    await memory.teach()
    context = turn_of(SAME)
    hit = await memory.fastpath.find(context)
    assert hit is not None

    for _ in range(2):
        await memory.fastpath.learn(context, served(context, hit.mark))

    [row] = await memory.rows()
    assert (row.uses, row.why) == (1, "meaning")
    standing = await memory.fastpath.serving(context, hit.mark)
    assert standing is not None
    assert standing.own


async def test_row_that_serves_is_the_one_that_counts_though_a_nearer_one_was_taught_since(
    memory: Memory,
):
    await memory.teach()
    context = turn_of(SAME)
    hit = await memory.fastpath.find(context)
    assert hit is not None
    await memory.teach(SAME)

    await memory.fastpath.learn(context, served(context, hit.mark))

    assert {row.id: row.uses for row in await memory.rows()} == {hit.row.id: 1, hit.row.id + 1: 0}


async def test_flush_during_a_hit_is_harmless(memory: Memory):
    await memory.teach()
    context = turn_of(FIRST)
    hit = await memory.fastpath.find(context)
    assert hit is not None
    async with memory.fastpath._stores.memory.write() as tx:
        await plan_cache.flush(tx)
    await memory.teach()

    await memory.fastpath.learn(context, served(context, hit.mark))
    await memory.fastpath.learn(context, served(context, hit.mark, FAULT))

    [row] = await memory.rows()
    assert row.uses == 0
    assert await memory.fastpath.serving(context, hit.mark) is None


async def test_plan_that_was_taught_anew_meanwhile_is_neither_counted_nor_forgotten(
    memory: Memory,
):
    await memory.teach()
    context = turn_of(FIRST)
    hit = await memory.fastpath.find(context)
    assert hit is not None
    other, plan = turn_of(FIRST), Plan((Step("find_files", {}),))
    await memory.fastpath.learn(other, ended_well(other, plan))

    await memory.fastpath.failed(hit)
    await memory.fastpath.learn(context, served(context, hit.mark, FAULT))

    [row] = await memory.rows()
    assert row.id == hit.row.id
    assert row.lesson.plan == plan


async def test_failure_forgets_ones_own_plan_only(memory: Memory):
    await memory.teach()
    for actor, left in ((BRUNO, 1), (ANNA, 0)):
        context = turn_of(SAME, actor)
        hit = await memory.fastpath.find(context)
        assert hit is not None
        await memory.fastpath.failed(hit)
        await memory.fastpath.learn(context, served(context, hit.mark, FAULT))
        assert len(await memory.rows()) == left


def test_state_of_a_turn_keeps_what_serves_it():
    state = replace(TurnState("t", "x"), remembered=Remembered(7, "t0", "template"))

    assert TurnState.from_json(state.to_json()) == state
    assert TurnState.from_json({"turn_id": "t", "request": "x"}).remembered is None
    with pytest.raises(StoreCorrupt):
        TurnState.from_json({**state.to_json(), "remembered": {"row": "x"}})


async def learnt_by_an_earlier_list(memory: Memory, **columns: str) -> None:
    async with memory.fastpath._stores.memory.write() as tx:
        await tx.execute("UPDATE plan_cache SET edition = 'earlier'")
        for name, value in columns.items():
            await tx.execute(f"UPDATE plan_cache SET {name} = :v", {"v": value})


async def test_new_word_list_serves_what_it_reads_as_the_earlier_one_did(memory: Memory):
    plan = Plan((Step("read_files", {"paths": ["a.md"], "tail_lines": 2}),))
    await memory.teach()
    learning = turn_of("leggi le ultime 2 righe di a.md")
    await memory.fastpath.learn(learning, ended_well(learning, plan))
    await learnt_by_an_earlier_list(memory)
    other = turn_of("leggi le ultime 3 righe di b.md")

    assert await memory.fastpath.find(turn_of(SAME)) is None
    assert await memory.fastpath.find(other) is None
    assert await memory.fastpath.find(turn_of(FIRST)) is not None
    await memory.fastpath.read_again()

    found = [await memory.fastpath.find(one) for one in (turn_of(SAME), other)]
    assert [hit and hit.how for hit in found] == ["meaning", "template"]


async def test_new_word_list_serves_nothing_that_only_the_earlier_one_held_for_the_same(
    memory: Memory,
):
    """The row of a reading is kept by the key that a listing has today."""
    plan = Plan((Step("read_files", {"paths": ["a.md"]}),))
    learning = turn_of("leggi a.md")
    await memory.fastpath.learn(learning, ended_well(learning, plan))
    shape, wording, _ = reuse.keys_of(meaning_of("elenca a.md"))
    await learnt_by_an_earlier_list(memory, shape=shape, wording=wording)

    for _ in range(2):
        assert await memory.fastpath.find(turn_of("elenca b.md")) is None
        await memory.fastpath.read_again()
    hit = await memory.fastpath.find(turn_of("leggi b.md"))
    assert hit is not None
    assert hit.how == "template"


@pytest.mark.parametrize(
    "columns",
    [
        {"request": "leggi b.md e c.md"},
        {"request": "non leggere a.md"},
        {"request": "", "text": "svuota il cestino"},
        {"plan_json": "[]"},
    ],
    ids=["other values", "negated", "no values", "damaged"],
)
async def test_row_that_is_read_otherwise_now_serves_the_same_words_at_most(
    memory: Memory, columns: dict[str, str]
):
    plan = Plan((Step("read_files", {"paths": ["a.md"]}),))
    learning = turn_of("leggi a.md")
    await memory.fastpath.learn(learning, ended_well(learning, plan))
    await learnt_by_an_earlier_list(memory, **columns)
    await memory.fastpath.read_again()

    assert await memory.fastpath.find(turn_of("leggi b.md")) is None
