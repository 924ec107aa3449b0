"""What a household says and its plan does: such turns are worth remembering."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.levels.fastpath import lesson_of
from core.levels.tracing import NotKept
from core.observation import Effects
from core.plan import Plan, Step
from tests.support.remembering import ended_well, turn_of


def kept(request: str, tool: str, args: dict[str, Any]) -> tuple[bool, bool]:
    """Whether a plan is kept, and whether it serves other values."""
    context = turn_of(request)
    end = ended_well(context, Plan((Step(tool, args),)))
    steps = tuple(
        replace(step, observation=replace(step.observation, effects=Effects.DONE))
        for step in end.state.steps
    )
    try:
        lesson = lesson_of(context, replace(end, state=replace(end.state, steps=steps)))
    except NotKept:
        return False, False
    return True, bool(lesson.shape or lesson.wording)


def noted(path: str, text: str) -> dict[str, Any]:
    return {"path": path, "content": text, "mode": "append"}


@pytest.mark.parametrize(
    ("request_", "tool", "args", "serves"),
    [
        ('segna "latte" in a.md', "write_files", noted("a.md", "latte"), True),
        ('scrivi "pane" nella lista della spesa', "write_files", noted("spesa.txt", "pane"),
         True),
        ('put "milk" on the shopping list', "write_files", noted("~/shopping.txt", "milk"), True),
        ("metti a.txt nella cartella Documenti", "move_files",
         {"paths": ["a.txt"], "dst": "Documenti"}, True),
        ("put a.txt into the folder Papers", "move_files",
         {"paths": ["a.txt"], "dst": "Papers"}, True),
        ("leggi la lista della spesa", "read_files", {"paths": ["spesa.txt"]}, True),
        ("cerca *.csv", "find_files", {"patterns": ["*.csv"]}, True),
        ("leggi l'ultima riga di a.md", "read_files", {"paths": ["a.md"], "tail_lines": 1}, True),
        ("trova i file modificati oggi", "find_files", {"modified_within_days": 1}, False),
    ],
)  # fmt: skip
def test_plan_is_kept(request_: str, tool: str, args: dict[str, Any], serves: bool):
    assert kept(request_, tool, args) == (True, serves)


@pytest.mark.parametrize(
    ("request_", "tool", "args"),
    [
        ('aggiungi "latte" alla lista', "write_files", noted("spesa.txt", "latte")),
        ('aggiungi "latte" alla lista della spesa', "read_files", {"paths": ["spesa.txt"]}),
        ("leggi la lista", "read_files", {"paths": ["spesa.txt"]}),
        ("metti in ordine i file", "delete_files", {"paths": ["a.txt"]}),
        ("a.txt", "read_files", {"paths": ["a.txt"]}),
    ],
)
def test_plan_is_not_kept(request_: str, tool: str, args: dict[str, Any]):
    assert kept(request_, tool, args) == (False, False)
