"""Rows of L1 that are not what they were: a miss or the right plan, never another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.clock import SystemClock
from core.errors import StoreError
from core.levels.autopath import Autopath
from core.levels.fastpath import lesson_of
from core.plan import Plan, Step
from core.store import antis, observations
from core.store import autopath as champions
from core.store.feedback import Vote
from core.store.turns import StoredTurn
from tests.levels.test_bad_memory import JUNK, SCALE, Memory, asked, opened
from tests.support.remembering import NOW, catalog, ended_well, turn_of

CLOCK, SAME = "che ore sono?", "mi dici l'ora?"
OTHER = Plan((Step("list_dirs", {}),))
TABLES = {
    "observations": """version turn_id actor_id lang intent said cluster plan_json way fingerprint
        tools families level latency_ms verdict verdict_at at exact embedder embedding""",
    "champions": """version intent said cluster lang plan_json way fingerprint status is_champion
        up down ran broke latency_ms score tools families taught_by why created_at used_at
        changed_at""",
    "anti_autopaths": "actor_id intent fingerprint",
}
CELLS = [(table, column) for table, names in TABLES.items() for column in names.split()]

Run = Callable[[Callable[[Autopath, Memory], Coroutine[Any, Any, None]]], None]


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs something with one memory for all examples, emptied before each."""
    with asyncio.Runner() as runner:
        opening = opened(tmp_path_factory.mktemp("merit"))
        memory = runner.run(opening.__aenter__())

        async def emptied(work: Callable[[Autopath, Memory], Coroutine[Any, Any, None]]) -> None:
            for table in TABLES:
                await memory.execute(f"DELETE FROM {table}")
            await work(Autopath(memory.stores, SystemClock()), memory)

        yield lambda work: runner.run(emptied(work))
        runner.run(opening.__aexit__(None, None, None))


async def shown(autopath: Autopath, request: str, plan: Plan, vote: Vote | None) -> StoredTurn:
    """A turn that ended well, and what was thought of it."""
    context = turn_of(request)
    outcome = ended_well(context, plan)
    await autopath.observe(context, outcome, lesson_of(context, outcome))
    turn = asked(request, context.turn_id)
    await autopath.judge(turn, vote)
    return turn


@pytest.mark.parametrize(("table", "column"), CELLS)
@settings(max_examples=max(2, round(6 * SCALE)), deadline=None)
@given(junk=st.one_of(JUNK, st.sampled_from(["active", "shadow", "demoted", "up", "down"])))
def test_damaged_row_is_passed_over(one_store: Run, table: str, column: str, junk: Any):
    async def damaged(autopath: Autopath, memory: Memory) -> None:
        turn = await shown(autopath, CLOCK, NOW, Vote.UP)
        await shown(autopath, "mostrami le cartelle", OTHER, Vote.DOWN)
        look = await autopath.look(turn_of(CLOCK))
        assert look.hit is not None
        assert look.hit.plan == NOW
        try:
            await memory.execute(f"UPDATE {table} SET {column} = :junk", junk=junk)
        except (StoreError, OverflowError):
            return  # the database itself refuses it
        await looked_at(autopath, memory, turn)

    one_store(damaged)


async def looked_at(autopath: Autopath, memory: Memory, turn: StoredTurn) -> None:
    for request in (CLOCK, SAME, "mostrami le cartelle"):
        look = await autopath.look(turn_of(request))
        assert look.hit is None or look.hit.plan == (OTHER if "cartelle" in request else NOW)
        if look.hit is not None:
            await autopath.broke(turn_of(request), look.hit.mark)
    for vote in (Vote.DOWN, None, Vote.UP):
        await autopath.judge(turn, vote)
    await autopath.seen(turn)
    await autopath.anew(turn)
    now = SystemClock().now()
    async with memory.stores.memory.read() as tx:
        await observations.listed(tx)
        await champions.listed(tx)
        await champions.count(tx)
        await antis.listed(tx, now)
    await autopath.age(list(catalog().executors))
    await shown(autopath, SAME, NOW, Vote.UP)
