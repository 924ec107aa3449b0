"""L2: what can be known of a plan before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from core.catalog.loaded import NO_SDK, Catalog, LoadedExecutor
from core.errors import ErrorCode
from core.levels.validator import problem_of
from core.plan import Plan, Step
from tests.execution.test_arguments import manifest

TOOLS = ("get_now", "read_files", "sort_entries", "write_files", "find_files", "compare_entries")
CATALOG = Catalog({name: LoadedExecutor(manifest(name), {}) for name in TOOLS}, (), NO_SDK, "x")
READ = ("read_files", {"paths": ["a.md"]})


def code_of(*steps: tuple[str, dict[str, Any]]) -> ErrorCode | None:
    found = problem_of(Plan(tuple(Step(tool, args) for tool, args in steps)), CATALOG)
    return None if found is None else found.code


@pytest.mark.parametrize(
    "steps",
    [
        [READ],
        [READ, ("write_files", {"path": "b.md", "content": "{{step1.text}}"})],
        [("find_files", {}), ("sort_entries", {"from_step": 1, "by": "size"})],
        [("find_files", {}), ("sort_entries", {"from_step": "1", "by": "size"})],
        [("read_files", {"paths": "a.md", "tail_lines": 0, "head_lines": None, "max_bytes": ""})],
        [("read_files", {"paths": ["a.md"], "from_step": None})],
        [("find_files", {"size_min": "10 MB"})],
        [READ, READ],
        [READ, ("find_files", {}), ("compare_entries", {"from_step": 1, "other_step": 2})],
        [READ, ("final_answer", {"text": "{{step1.text}}"})],
    ],
)
def test_problem_of_a_plan_that_may_run_is_none(steps: list[tuple[str, dict[str, Any]]]) -> None:
    assert code_of(*steps) is None


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([("make_coffee", {})], ErrorCode.UNKNOWN_TOOL),
        ([("read_files", {})], ErrorCode.MISSING_INPUT),
        ([("read_files", {"paths": ["a"], "colour": "red"})], ErrorCode.INVALID_ARGS),
        ([("read_files", {"paths": [1]})], ErrorCode.INVALID_ARGS),
        ([("read_files", {"paths": ["a"], "tail_lines": -1})], ErrorCode.INVALID_ARGS),
        ([("sort_entries", {"by": "size"})], ErrorCode.INVALID_ARGS),
        ([("sort_entries", {"from_step": 1, "by": "size"})], ErrorCode.BAD_REFERENCE),
        ([READ, ("sort_entries", {"from_step": "x", "by": "n"})], ErrorCode.BAD_REFERENCE),
        ([READ, ("get_now", {"from_step": 1})], ErrorCode.BAD_REFERENCE),
        (
            [READ, READ, ("compare_entries", {"from_step": 1, "other_step": 1})],
            ErrorCode.BAD_REFERENCE,
        ),
        (
            [READ, ("compare_entries", {"from_step": 1, "other_step": 2})],
            ErrorCode.BAD_REFERENCE,
        ),
        ([READ, ("compare_entries", {"from_step": 1})], ErrorCode.INVALID_ARGS),
        ([("write_files", {"path": "a", "content": "{{step2.text}}"})], ErrorCode.BAD_REFERENCE),
        ([("write_files", {"path": "a", "content": "{{step1.text}}"})], ErrorCode.BAD_REFERENCE),
        ([("write_files", {"path": "a", "content": "{{step1"})], ErrorCode.BAD_REFERENCE),
        ([("write_files", {"path": "a", "content": "${FILLER:x}"})], ErrorCode.BAD_REFERENCE),
        ([READ, ("final_answer", {"text": "{{step5.text}}"})], ErrorCode.BAD_REFERENCE),
        ([READ, READ, READ], ErrorCode.VECTORISE),
        ([READ] * 31, ErrorCode.CAP_STEPS),
    ],
)
def test_problem_of_a_plan_that_may_not_run_says_which(
    steps: list[tuple[str, dict[str, Any]]], code: ErrorCode
) -> None:
    assert code_of(*steps) is code
