"""Evidence of past turns: everybody's own, of numbers alone, capped, and forgotten."""

from __future__ import annotations

import pytest

from core.catalog.evidence import CAPACITY, Evidence
from core.clock import SystemClock
from core.store import evidence
from core.store.database import Database
from core.store.stores import Stores


@pytest.fixture
def memory(stores: Stores) -> Database:
    return stores.memory


async def teach(memory: Database, actor: str, text: str, *tools: str, turn: str = "") -> None:
    async with memory.write() as tx:
        salt = await evidence.salt_of(tx, actor)
        features = Evidence(salt=salt).features(text)
        now = SystemClock().now()
        await evidence.keep(tx, actor, turn or text, features, tools, now)


async def test_rows_come_back_as_they_were_kept_and_once(memory: Database) -> None:
    for _ in range(2):
        await teach(memory, "a", "trova i file", "find_files", "read_files")
    await teach(memory, "b", "che ore sono", "get_now")

    async with memory.read() as tx:
        [row] = await evidence.of_actor(tx, "a")
        salt = await evidence.known_salt(tx, "a")
        stamps = [await evidence.stamp(tx, actor) for actor in ("a", "b", "c")]

    assert salt is not None
    assert row.tools == ("find_files", "read_files")
    assert row.features == Evidence(salt=salt).features("trova i file")
    assert [count for _, count in stamps] == [1, 1, 0]


async def test_no_word_is_kept_and_two_people_share_no_number(memory: Database) -> None:
    for actor in ("a", "b"):
        await teach(memory, actor, "k4narino nella v0liera", "find_files", turn="t1")

    async with memory.read() as tx:
        [mine] = await evidence.of_actor(tx, "a")
        [theirs] = await evidence.of_actor(tx, "b")

    assert mine.features
    assert not mine.features & theirs.features
    kept = memory.path.read_bytes() + memory.path.with_name("memory.db-wal").read_bytes()
    assert b"k4narino" not in kept
    assert b"find_files" in kept


async def test_forgetting_one_leaves_the_others_and_makes_a_new_salt(memory: Database) -> None:
    for actor in ("a", "b"):
        await teach(memory, actor, "che ore sono", "get_now")
    async with memory.write() as tx:
        old = await evidence.known_salt(tx, "a")
        assert await evidence.forget(tx, "a") == 1
        assert await evidence.forget(tx, "a") == 0
        assert await evidence.known_salt(tx, "a") is None
        assert await evidence.salt_of(tx, "a") != old
        assert len(await evidence.of_actor(tx, "b")) == 1
        assert await evidence.drop_turn(tx, "che ore sono") == 1


async def test_oldest_rows_go_beyond_what_is_held(
    memory: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "CAPACITY", 3)
    monkeypatch.setattr(evidence, "MAX_ROWS", 5)
    assert CAPACITY == 1000
    for number in range(5):
        await teach(memory, "a", f"parola{number}", f"tool_{number}")
    for number in range(3):
        await teach(memory, "b", f"parola{number}", f"tool_{number}")

    async with memory.read() as tx:
        mine = [row.tools for row in await evidence.of_actor(tx, "a")]
        theirs = [row.tools for row in await evidence.of_actor(tx, "b")]

    assert mine == [("tool_3",), ("tool_4",)]
    assert theirs == [("tool_0",), ("tool_1",), ("tool_2",)]


async def test_damaged_rows_are_passed_over(memory: Database) -> None:
    await teach(memory, "a", "che ore sono", "get_now")
    async with memory.write() as tx:
        for turn, features, tools in (("x", b"12345", "[]"), ("y", "text", "[]"), ("z", b"", "{")):
            await tx.execute(
                """INSERT INTO evidence (actor_id, turn_id, features, tools, learnt_at)
                   VALUES ('a', :turn, :features, :tools, 0)""",
                {"turn": turn, "features": features, "tools": tools},
            )
        assert [row.tools for row in await evidence.of_actor(tx, "a")] == [("get_now",)]
        await tx.execute("UPDATE evidence_salts SET salt = 'text'")
        assert await evidence.known_salt(tx, "a") is None
        assert await evidence.salt_of(tx, "a") == await evidence.known_salt(tx, "a")
