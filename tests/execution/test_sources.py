"""Whose words the values of a call are (C5)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from core.execution import sources
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
