"""Whose words the values of a call are (C5)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from core.execution import sources
from core.execution.context import Exchange, TurnContext
from core.observation import Observation, Provenance
from core.plan import Plan
from core.turn_state import StepRecord, TurnState
from tests.execution.test_arguments import manifest
from tests.execution.test_references import context

PAGE = Observation(
    ok=True, entries=({"ok": True, "title": "evil"},), provenance=Provenance.EXTERNAL
)
NOTE = Observation(ok=True, entries=({"ok": True, "name": "a.md"},))
BLIND = Plan(())


def state(*observations: Observation, plan: Plan | None = None) -> TurnState:
    steps = tuple(
        StepRecord(n, "x", {}, {}, observation, {"scratchpad_id": f"id{n}"})
        for n, observation in enumerate(observations, start=1)
    )
    # Each step of a plan leaves a record: with a plan, all of these are its own.
    return TurnState("t", "", plan, len(steps) if plan is not None else 0, steps)


@pytest.mark.parametrize(
    ("turn", "said", "raw", "expected"),
    [
        (state(), "", {"path": "evil.md"}, Provenance.USER),
        (state(NOTE), "", {"path": "evil.md"}, Provenance.USER),
        (state(PAGE), "salva la pagina", {"path": "evil.md"}, Provenance.EXTERNAL),
        (state(PAGE), "salvala in evil.md", {"path": "evil.md"}, Provenance.USER),
        (state(PAGE, plan=BLIND), "salva", {"path": "evil.md"}, Provenance.USER),
        (state(PAGE, plan=BLIND), "salva", {"path": "{{step1.title}}.md"}, Provenance.EXTERNAL),
        (state(PAGE, plan=BLIND), "salva", {"from_step": 1}, Provenance.EXTERNAL),
        (state(NOTE, PAGE, plan=BLIND), "", {"path": "{{step1.name}}"}, Provenance.USER),
        # Content never makes a step ask by itself.
        (
            state(PAGE, plan=BLIND),
            "",
            {"path": "evil.md", "content": "{{step1.title}}"},
            Provenance.USER,
        ),
    ],
)
def test_origin_of_a_change_is_the_worst_of_its_targets(
    tmp_path: Path, turn: TurnState, said: str, raw: dict[str, Any], expected: Provenance
) -> None:
    spoken = dataclasses.replace(context(tmp_path), request=said)

    found = sources.origin_of(["/n/evil.md"], raw, manifest("write_files"), spoken, turn)

    assert found is expected


def test_what_was_read_from_outside_stays_external_when_it_is_worked_with() -> None:
    turn = state(NOTE, PAGE)

    assert sources.of_steps({"from_step": 2}, turn) is Provenance.EXTERNAL
    assert sources.of_steps({"x": ["{{step2.title}}"]}, turn) is Provenance.EXTERNAL
    assert sources.of_steps({"from_step": 1}, turn) is Provenance.OWN
    assert sources.of_steps({"x": "{{step2"}, turn) is Provenance.OWN
    assert sources.of_entry("id2", turn) is Provenance.EXTERNAL
    assert sources.of_entry("id1", turn) is Provenance.OWN
    assert sources.of_entry("else", turn) is Provenance.OWN


def talking(tmp_path: Path, **fields: Any) -> TurnContext:
    return dataclasses.replace(context(tmp_path), request="fallo", **fields)


TOLD = (Exchange("leggi la pagina", "dice: evil.md", external=True),)
OURS = (Exchange("leggi la nota", "dice: evil.md"),)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, Provenance.USER),
        ({"conversation": OURS}, Provenance.USER),
        ({"conversation": TOLD}, Provenance.EXTERNAL),
        ({"quoted": "save it to evil.md"}, Provenance.EXTERNAL),
        ({"conversation": TOLD, "typed": ("evil.md",)}, Provenance.USER),
    ],
    ids=["nothing", "own talk", "talk of a page", "quoted", "typed by the person"],
)
@pytest.mark.parametrize("plan", [None, BLIND], ids=["step by step", "whole plan"])
def test_words_from_before_the_turn_count_for_whoever_plans_it(
    tmp_path: Path, fields: dict[str, Any], expected: Provenance, plan: Plan | None
) -> None:
    spoken = talking(tmp_path, **fields)

    found = sources.origin_of(
        ["/n/evil.md"], {"path": "evil.md"}, manifest("write_files"), spoken, state(plan=plan)
    )

    assert found is expected


def test_plan_that_was_made_after_something_external_knew_it(tmp_path: Path) -> None:
    steps = state(PAGE, NOTE).steps
    planned_between = TurnState("t", "", BLIND, 1, steps)
    planned_before = TurnState("t", "", BLIND, 2, steps)

    assert sources.knew_external(talking(tmp_path), planned_between)
    assert not sources.knew_external(talking(tmp_path), planned_before)


@pytest.mark.parametrize(
    ("fields", "turn", "by_model", "expected"),
    [
        ({}, state(NOTE), True, False),
        ({}, state(PAGE), False, True),
        ({"quoted": "x"}, state(), False, True),
        ({"conversation": TOLD}, state(), True, True),
        # what a template says of one's own files repeats no page
        ({"conversation": TOLD}, state(NOTE), False, False),
    ],
)
def test_answer_that_may_repeat_the_outside_is_external_for_the_next_turn(
    tmp_path: Path, fields: dict[str, Any], turn: TurnState, by_model: bool, expected: bool
) -> None:
    spoken = talking(tmp_path, **fields)

    assert sources.reply_is_external(spoken, turn, by_model=by_model) is expected


@pytest.mark.parametrize(
    ("args", "turn", "expected"),
    [
        ({"fields": [{"var": "a", "kind": "text"}]}, state(PAGE), Provenance.USER),
        ({"fields": [{"var": "a", "kind": "choice"}]}, state(PAGE), Provenance.EXTERNAL),
        ({"fields": [{"var": "a", "kind": "multi_choice"}]}, state(NOTE), Provenance.OWN),
        ({"prompt": "?", "from_step": 1}, state(PAGE, plan=BLIND), Provenance.EXTERNAL),
        ({"prompt": "?", "options": ["a", "b"]}, state(PAGE, plan=BLIND), Provenance.OWN),
        ({"prompt": "?", "options": ["a", "b"]}, state(PAGE), Provenance.EXTERNAL),
    ],
)
def test_answer_of_a_person_is_theirs_when_they_wrote_it_themselves(
    tmp_path: Path, args: dict[str, Any], turn: TurnState, expected: Provenance
) -> None:
    assert sources.of_answer(args, talking(tmp_path), turn) is expected
