"""Past turns in the choice of candidates: learnt where they end well, everybody's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.catalog.evidence import Evidence
from core.clock import SystemClock
from core.levels.past import Past
from core.levels.proposers import metis
from core.messages import ChatAddress, Role, TurnClosed
from core.store import actors, evidence, turns
from core.store.evidence import Served
from core.store.feedback import Vote
from core.turn_memory import TurnMemory
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Rule

LUCA: dict[str, Any] = {"address": ChatAddress("telegram", "7"), "sender_id": "7"}
RULES = [
    Rule(user="ore", after=0, calls=[("get_now", {})]),
    Rule(
        user="ore", plan={"steps": [{"tool": "get_now", "args": {}}]}, text="Sono le dieci."
    ),
    Rule(user="manca", after=0, calls=[("read_files", {"paths": ["non-ci-sono.md"]})]),
    Rule(text="Detto."),
]  # fmt: skip


async def host_of(house: House) -> str:
    async with house.stores.main.read() as tx:
        host = await actors.find_host(tx)
    assert host is not None
    return host.id


async def kept(house: House, actor_id: str) -> list[Served]:
    async with house.stores.memory.read() as tx:
        return await evidence.of_actor(tx, actor_id)


async def teach(house: House, actor_id: str, text: str, tool: str) -> None:
    async with house.stores.memory.write() as tx:
        features = Evidence(salt=await evidence.salt_of(tx, actor_id)).features(text)
        await evidence.keep(tx, actor_id, text, features, [tool], SystemClock().now())


async def offered(house: House, text: str, **fields: Any) -> set[str]:
    """The tools that whoever planned this was to choose from, as the log has them."""
    await ask(house, text, **fields)
    log = sorted((house.settings.metnos_home / "turns").glob("*.jsonl"))[-1]
    return set(json.loads(log.read_bytes().splitlines()[-1])["candidates"])


@pytest.mark.parametrize(("engine", "verb"), [("simple", "leggi"), ("metis", "trova")])
async def test_what_served_such_requests_is_offered_to_whom_it_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, verb: str
) -> None:
    monkeypatch.setattr(metis, "MOST_CANDIDATES", 1)
    async with open_scripted(tmp_path, RULES, metnos_engine=engine, metnos_most_tools=0) as (
        house,
        _,
    ):
        host = await host_of(house)
        async with house.stores.main.write() as tx:
            luca = await actors.add(tx, Role.GUEST, "Luca", house.clock)
            await actors.link(tx, "telegram", "7", luca.id)
        await ask(house, "che ore sono")
        assert [row.tools for row in await kept(house, host)] == [("get_now",)]

        assert "find_places" not in await offered(house, f"{verb} zorblax")
        for number in range(3):
            await teach(house, host, f"{verb} zorblax {number}", "find_places")
        assert "find_places" in await offered(house, f"{verb} uno zorblax")
        others = await offered(house, f"{verb} lo zorblax", **LUCA)
        assert "find_places" not in others, "a guest learns from their own turns"
        async with house.stores.memory.write() as tx:
            await evidence.forget(tx, host)
        assert "find_places" not in await offered(house, f"{verb} ancora zorblax")


async def test_prefix_of_the_prompt_is_the_same_bytes_whatever_was_learnt(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, RULES, metnos_most_tools=0, metnos_memory=True) as (
        house,
        model,
    ):
        host = await host_of(house)
        await ask(house, "leggi appunti.md")
        before = json.dumps(model.asked[-1].body["tools"])
        for number in range(20):
            await teach(house, host, f"leggi appunti{number}.md", "read_files")
            await teach(house, host, f"che ore sono {number}", "get_now")

        await ask(house, "leggi diario.md")

        assert json.dumps(model.asked[-1].body["tools"]) == before
        systems = [a.body["messages"][0]["content"] for a in model.asked]
        assert len(set(systems)) == 1


async def test_only_what_ended_well_and_was_planned_is_learnt(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, RULES, metnos_most_tools=0) as (house, model):
        host = await host_of(house)
        await ask(house, "ciao")
        assert await kept(house, host) == [], "nothing was used"
        failed = await ask(house, "leggi quello che manca")
        assert isinstance(failed, TurnClosed)
        assert await kept(house, host) == [], "it did not work"
        await ask(house, "che ore sono")
        asked = len(model.asked)
        again = await ask(house, "che ore sono")
        assert len(model.asked) == asked, "from memory"
        assert again.reply.plain.endswith("⚡")
        assert len(await kept(house, host)) == 1

        async with house.stores.main.read() as tx:
            first = (await turns.list_turns(tx))[1]
        memory = TurnMemory(None, past=Past(house.stores, house.clock))
        await memory.judge(first, Vote.UP)
        assert len(await kept(house, host)) == 1
        await memory.judge(first, Vote.DOWN)
        assert await kept(house, host) == []


async def test_without_memory_nothing_is_learnt(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, RULES, metnos_most_tools=0, metnos_memory=False) as (
        house,
        _,
    ):
        await ask(house, "che ore sono")

        assert await kept(house, await host_of(house)) == []


async def test_past_is_read_once_and_again_when_another_process_changed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    real = evidence.of_actor

    async def counted(*args: Any) -> list[Served]:
        nonlocal reads
        reads += 1
        return await real(*args)

    async with open_scripted(tmp_path, RULES, metnos_most_tools=0) as (house, _):
        host = await host_of(house)
        await teach(house, host, "uno zorblax", "find_places")
        monkeypatch.setattr(evidence, "of_actor", counted)
        for number in range(5):
            await ask(house, f"dimmi le ore {number}")
        assert reads == 1
        assert len(await evidence_rows(house, host)) == 6
        await teach(house, host, "altro zorblax", "find_places")
        await ask(house, "dimmi le ore ancora")
        assert reads == 2


async def evidence_rows(house: House, actor_id: str) -> list[Any]:
    async with house.stores.memory.read() as tx:
        return await tx.fetch_all(
            "SELECT * FROM evidence WHERE actor_id = :actor", {"actor": actor_id}
        )
