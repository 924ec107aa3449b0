"""What a stranger gets of the house: the time, places and sums, and no trace is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.execution.guests import is_public
from core.store.scratchpad import has_entries
from tests.support.house import open_scripted
from tests.support.scripted_model import Rule

CANARY = "canarino-73"
RULES = [
    Rule(user="ore", after=0, calls=[("get_now", {})]),
    Rule(user="ore", after=1, text=lambda ask: f"L'orologio dice {ask.last_result}"),
    Rule(user="leggi", after=0, calls=[("read_files", {"paths": ["segreto.md"]})]),
    Rule(user="leggi", after=1, text="Ecco: non posso."),
    Rule(user="scarica", after=0, calls=[("get_urls", {"urls": ["https://a.example"]})]),
    Rule(user="scarica", after=1, text="Non posso."),
    Rule(user="chiedimi", after=0, calls=[("request_location_from_user", {"prompt": "Dove?"})]),
    Rule(user="chiedimi", after=1, text="Non so dove sei."),
    Rule(text="Ciao."),
]


async def test_public_tools_are_pure_and_reach_no_file_and_no_chosen_server(tmp_path: Path):
    async with open_scripted(tmp_path, RULES) as (house, _):
        executors = house.loader.current().executors
        public = {name for name, one in executors.items() if is_public(one.manifest)}

    assert {"get_now", "get_places", "find_places", "compute_entries"} <= public
    assert public.isdisjoint(
        {"read_files", "find_files", "list_dirs", "write_files", "delete_files", "get_urls"}
    )


async def test_stranger_is_told_the_time_and_nothing_of_it_is_kept(tmp_path: Path):
    async with open_scripted(tmp_path, RULES) as (house, model):
        reply = await house.turns.answer_public(f"che ore sono? {CANARY}", "it")
        async with house.stores.main.read() as tx:
            kept = [
                await tx.fetch_all(f"SELECT * FROM {table}")
                for table in ("turns", "effects", "scratchpad", "suspensions", "outbox")
            ]
            used = await tx.fetch_all("SELECT actor_id, turns FROM usage")
        offered = {name for ask in model.asked for name in ask.tool_names}

    assert "L'orologio dice" in reply.plain
    assert ":" in reply.plain
    assert kept == [[], [], [], [], []]
    assert [(row["actor_id"], row["turns"]) for row in used] == [("public", 1)]
    assert "read_files" not in offered
    assert "get_now" in offered
    for path in tmp_path.rglob("*"):
        if path.is_file() and "model" not in path.name:
            assert CANARY.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("request_", ["leggi segreto.md", "scarica la pagina"])
async def test_stranger_reaches_no_file_and_no_page(tmp_path: Path, request_: str):
    async with open_scripted(tmp_path, RULES) as (house, _):
        reply = await house.turns.answer_public(request_, "it")
        async with house.stores.main.read() as tx:
            assert not await has_entries(tx, "public", "x")

    assert "segreto" not in reply.plain.replace("segreto.md", "")


async def test_stranger_is_not_asked_anything(tmp_path: Path):
    async with open_scripted(tmp_path, RULES) as (house, _):
        reply = await house.turns.answer_public("chiedimi dove sono", "it")
        async with house.stores.main.read() as tx:
            waits = await tx.fetch_all("SELECT * FROM suspensions")

    assert not waits
    assert reply.plain
    assert not reply.buttons


async def test_empty_request_is_told_what_to_do(tmp_path: Path):
    async with open_scripted(tmp_path, RULES) as (house, model):
        reply = await house.turns.answer_public("  ", "en")

    assert "after my name" in reply.plain
    assert not model.asked
