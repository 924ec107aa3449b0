"""What worked once costs no model the second time, and is never reused wrongly."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.messages import FinalKind
from core.store import plan_cache
from core.store.plan_cache import StoredPlan
from tests.core.test_questions import asked, note, press
from tests.core.test_turn import lines
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Rule

CLOCK = Rule(plan={"steps": [{"tool": "get_now", "args": {}}]})


def planned(tool: str, **args: Any) -> dict[str, Any]:
    return {"steps": [{"tool": tool, "args": args}]}


async def kept(house: House) -> list[StoredPlan]:
    async with house.stores.memory.read() as tx:
        return await plan_cache.listed(tx)


async def until_used(house: House) -> None:
    """Memory is written after the end of a turn was told."""
    async with asyncio.timeout(30):
        while not any(row.uses == 1 for row in await kept(house)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "again", ["che ore sono?", "Che ore sono", "mi dici l'ora?", "what time is it?"]
)
async def test_request_of_the_same_meaning_asks_no_model(tmp_path: Path, again: str):
    async with open_scripted(tmp_path, [CLOCK], metnos_engine="metis") as (house, model):
        first = await ask(house, "che ore sono?")
        asked = len(model.asked)
        second = await ask(house, again)

        assert (first.final_kind, second.final_kind) == (FinalKind.ANSWER, FinalKind.ANSWER)
        assert asked == 1
        assert len(model.asked) == 1
        assert second.reply.plain.endswith(" ⚡")
        assert "⚡" not in first.reply.plain
        log = lines(house)
        assert [line["match_source"] for line in log] == ["engine", "fastpath"]
        assert (log[1]["tokens_in"], log[1]["model_calls"]) == (0, 0)
        await until_used(house)


async def test_template_serves_other_values_of_its_own_actor(tmp_path: Path):
    rules = [Rule(plan=planned("read_files", paths=["a.md"], tail_lines=2))]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, model):
        (tmp_path / "notes/a.md").write_text("uno\ndue\ntre\n")
        (tmp_path / "notes/b.md").write_text("rosso\nverde\nblu\n")
        await ask(house, "leggi le ultime due righe di a.md")

        closed = await ask(house, "leggi le ultime 1 righe di b.md")

        assert len(model.asked) == 1
        assert "blu" in closed.reply.plain
        assert "verde" not in closed.reply.plain


@pytest.mark.parametrize(
    "other",
    [
        "che ore sono a Lima?",
        "che ore erano?",
        'cosa vuol dire "che ore sono?"',
        "non dirmi che ore sono",
    ],
)
async def test_near_miss_is_planned_anew(tmp_path: Path, other: str):
    async with open_scripted(tmp_path, [CLOCK], metnos_engine="metis") as (house, model):
        await ask(house, "che ore sono?")
        await ask(house, other)

        assert len(model.asked) >= 2


async def test_plan_that_fails_before_it_did_anything_is_forgotten_and_planned_anew(
    tmp_path: Path,
):
    rules = [Rule(plan=planned("read_files", paths=["a.md"]))]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, model):
        note = tmp_path / "notes/a.md"
        note.write_text("latte\n")
        await ask(house, "leggi a.md")
        note.unlink()

        closed = await ask(house, "leggi a.md")

        assert len(model.asked) == 2
        assert closed.final_kind is not FinalKind.ANSWER
        assert await kept(house) == []


async def test_change_is_asked_for_again_each_time(tmp_path: Path):
    rules = [Rule(plan=planned("write_files", path="a.md", content="latte", mode="overwrite"))]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, model):
        await ask(house, 'scrivi "latte" in a.md')
        closed = await ask(house, 'scrivi "pane" in b.md')

        assert len(model.asked) == 1
        assert (tmp_path / "notes/b.md").read_text() == "pane"
        assert closed.reply.plain.rstrip().endswith("⚡")


async def test_turn_that_waits_for_a_yes_counts_its_row_after_a_restart(tmp_path: Path):
    rules = [Rule(plan=planned("delete_files", paths=["a.md"]))]
    for name in "ab":
        note(tmp_path, f"{name}.md")
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, _):
        await press(house, await asked(house, "cancella a.md"), "✅")
        [row] = await kept(house)
        question = await asked(house, "cancella b.md")

    async with open_scripted(tmp_path, [], metnos_engine="metis") as (house, model):
        await press(house, question, "✅")

        assert not model.asked
        assert not (tmp_path / "notes/b.md").exists()
        await until_used(house)
        [again] = await kept(house)
        assert (again.id, again.uses, again.why) == (row.id, 1, "template")
