"""Walks of the runner with a model that says what it is told: caps, loops, plans, ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.messages import FinalKind
from tests.core.test_turn import lines
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Ask, Rule


def planned(*steps: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"steps": [{"tool": tool, "args": args} for tool, args in steps]}


async def test_run_of_a_model_that_keeps_inventing_tools_ends_at_the_step_cap(
    tmp_path: Path,
) -> None:
    rules = [Rule(calls=lambda a: [(f"get_thing_{len(a.body['messages'])}", {})])]
    async with open_scripted(tmp_path, rules) as (house, model):
        closed = await ask(house, "fai qualcosa", data={"interactive": False})

        assert closed.final_kind is FinalKind.CAP_STEPS
        assert "30 passi" in closed.reply.plain
        assert len(model.asked) == 31
        assert lines(house)[0]["final_kind"] == "cap_steps"


async def test_run_of_one_tool_asked_over_and_over_says_which_cap_was_hit(tmp_path: Path) -> None:
    zones = ["Roma", "Tokyo", "Lima", "Parigi"]
    rules = [Rule(calls=lambda a: [("get_now", {"timezone": zones[len(a.results)]})])]
    async with open_scripted(tmp_path, rules) as (house, _):
        request = "che ore sono a Roma, Tokyo, Lima e Parigi?"
        closed = await ask(house, request, data={"interactive": False})

        assert closed.final_kind is FinalKind.CAP_SAME_EXECUTOR
        assert "(3)" in closed.reply.plain
        assert len(lines(house)[0]["steps"]) == 4


async def test_run_of_a_loop_says_that_it_stopped_and_what_failed(tmp_path: Path) -> None:
    rules = [Rule(calls=[("read_files", {"paths": ["missing.md"]})])]
    async with open_scripted(tmp_path, rules) as (house, _):
        closed = await ask(house, "leggi missing.md")

        assert closed.final_kind is FinalKind.LOOP_BREAK
        assert "Mi sono fermato" in closed.reply.plain
        assert "missing.md" in closed.reply.plain


async def test_run_of_three_vector_calls_in_a_row_is_told_to_make_one(tmp_path: Path) -> None:
    def one_by_one(asked: Ask) -> list[tuple[str, dict[str, Any]]]:
        return [("read_files", {"paths": [f"{len(asked.results)}.md"]})]

    rules = [Rule(after=n, calls=one_by_one) for n in range(3)] + [Rule(after=3, text="Letti.")]
    async with open_scripted(tmp_path, rules) as (house, model):
        for n in range(4):
            (tmp_path / f"notes/{n}.md").write_text("x")
        await ask(house, "leggi 0.md, 1.md e 2.md")

        assert json.loads(model.asked[3].last_result)["error"]["code"] == "vectorise"


@pytest.mark.parametrize("engine", ["metis"])
async def test_plan_that_says_the_same_step_twice_answers_with_the_first(
    tmp_path: Path, engine: str
) -> None:
    step = ("read_files", {"paths": ["a.md"]})
    rules = [Rule(plan=planned(step, step))]
    async with open_scripted(tmp_path, rules, metnos_engine=engine) as (house, _):
        (tmp_path / "notes/a.md").write_text("latte\n")

        closed = await ask(house, "leggi a.md")

        assert closed.final_kind is FinalKind.ANSWER
        assert closed.reply.plain.count("latte") == 1
        assert "ripetendo" not in closed.reply.plain


async def test_plan_whose_answer_speaks_of_its_steps_is_answered_with_it(tmp_path: Path) -> None:
    rules = [
        Rule(
            plan=planned(
                ("read_files", {"paths": ["a.md"]}),
                ("final_answer", {"text": "Nel file c'è: {{step1.text}} (${step1.bytes} byte)"}),
            )
        )
    ]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, _):
        (tmp_path / "notes/a.md").write_text("**latte**")

        closed = await ask(house, "leggi a.md")

        assert closed.reply.plain == "Nel file c'è: **latte** (9 byte)"
        assert closed.final_kind is FinalKind.ANSWER
        # What an observation brought is shown as it stands, never as markup.
        assert {block.kind for block in closed.reply.blocks} == {"text"}


@pytest.mark.parametrize("text", ["Ci sono tre righe.", "Dice {{step1.nothing}}."])
async def test_plan_whose_answer_knows_no_result_is_answered_by_the_steps(
    tmp_path: Path, text: str
) -> None:
    read = ("read_files", {"paths": ["a.md"]})
    rules = [Rule(plan=planned(read, ("final_answer", {"text": text})))]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, _):
        (tmp_path / "notes/a.md").write_text("latte")

        closed = await ask(house, "leggi a.md")

        assert "latte" in closed.reply.plain
        assert text not in closed.reply.plain


async def test_plan_that_stays_wrong_does_not_run_and_one_answer_instead_is_taken(
    tmp_path: Path,
) -> None:
    wrong = planned(("read_files", {"paths": ["a.md"], "colour": "red"}))
    rules = [
        Rule(user="sempre", plan=wrong),
        Rule(user="poi", plan=wrong, times=1),
        Rule(user="poi", plan=planned(("final_answer", {"text": "Non lo so fare."}))),
    ]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, model):
        always = await ask(house, "sempre a.md")
        then = await ask(house, "poi a.md")

        assert always.final_kind is FinalKind.ERROR
        assert lines(house)[0]["steps"] == []
        assert then.reply.plain == "Non lo so fare."
        assert len(model.asked) == 4


async def test_plan_cost_stands_with_its_first_step(tmp_path: Path) -> None:
    rules = [Rule(plan=planned(("get_now", {}), ("read_files", {"paths": ["a.md"]})))]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, _):
        (tmp_path / "notes/a.md").write_text("latte")
        await ask(house, "che ore sono, e leggi a.md")

        line = lines(house)[0]
        assert line["steps"][0]["tokens_in"] == line["tokens_in"] > 0
        assert line["steps"][1]["tokens_in"] == 0


async def test_run_of_an_unreachable_model_still_names_the_engine(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, [Rule(status=401)]) as (house, _):
        await ask(house, "ciao")

        assert lines(house)[0]["engine"] == "simple"


async def test_run_at_a_provider_without_tools_is_planned_under_a_schema(tmp_path: Path) -> None:
    rules = [
        Rule(status=400, when=lambda ask: bool(ask.tool_names)),
        Rule(plan=planned(("read_files", {"paths": ["a.md"]}))),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        (tmp_path / "notes/a.md").write_text("latte")

        first = await ask(house, "leggi a.md")
        second = await ask(house, "leggi il file a.md")

        assert "latte" in first.reply.plain
        assert "latte" in second.reply.plain
        assert [bool(asked.tool_names) for asked in model.asked] == [True, False, False]
        assert [line["engine"] for line in lines(house)] == ["metis", "metis"]


async def test_run_at_a_provider_that_refuses_everything_tells_the_first_refusal(
    tmp_path: Path,
) -> None:
    async with open_scripted(tmp_path, [Rule(status=404)]) as (house, _):
        closed = await ask(house, "leggi a.md")

        assert closed.error is not None
        assert closed.error.code.value == "model_refused"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Dice: ${step1.text}!", "Dice: latte!"),
        ("${step1.entries}", "latte"),  # no text: the step's own answer
        ("Con ${step9.text} si intende un passo.", "${step9.text}"),
    ],
)
async def test_answer_with_references_shows_what_they_stand_for(
    tmp_path: Path, said: str, told: str
) -> None:
    rules = [Rule(after=0, calls=[("read_files", {"paths": ["a.md"]})]), Rule(after=1, text=said)]
    async with open_scripted(tmp_path, rules) as (house, _):
        (tmp_path / "notes/a.md").write_text("latte")

        closed = await ask(house, "leggi a.md")

        assert told in closed.reply.plain
        assert closed.final_kind is FinalKind.ANSWER
