"""Caps and guards: what is the same again, too often or too much."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.errors import CallRefused, ErrorCode, ErrorInfo
from core.execution import guards
from core.observation import Effects, Observation
from core.turn_state import StepRecord
from tests.execution.test_arguments import manifest


def step(number: int, tool: str, args: dict[str, Any], **fields: Any) -> StepRecord:
    observation = fields.pop("observation", Observation(ok=True))
    raw = fields.pop("raw", args)
    return StepRecord(
        number,
        tool,
        raw,
        args,
        observation,
        {},
        key=guards.call_key(tool, args),
        ran=True,
        **fields,
    )


def read(number: int, path: str, **args: Any) -> StepRecord:
    return step(number, "read_files", {"paths": [path], **args})


def write(number: int, path: str) -> StepRecord:
    done = Observation(ok=True, entries=({"ok": True, "path": path},), effects=Effects.DONE)
    return step(number, "write_files", {"path": path, "content": "x"}, observation=done)


def refusal(steps: list[StepRecord], args: dict[str, Any], targets: list[str]) -> ErrorCode | None:
    try:
        guards.check_duplicates(steps, "read_files", args, targets)
    except CallRefused as exc:
        return exc.code
    return None


def test_check_duplicates_of_the_very_same_call_refuses() -> None:
    steps = [read(1, "/n/a")]

    assert refusal(steps, {"paths": ["/n/a"]}, ["/n/a"]) is ErrorCode.DUPLICATE_CALL


def test_check_duplicates_of_head_then_tail_allows() -> None:
    steps = [read(1, "/n/a", head_lines=3)]

    assert refusal(steps, {"paths": ["/n/a"], "tail_lines": 3}, ["/n/a"]) is None


def test_check_duplicates_of_files_read_one_by_one_refuses_reading_them_together() -> None:
    steps = [read(1, "/n/a"), read(2, "/n/b")]

    found = refusal(steps, {"paths": ["/n/a", "/n/b"]}, ["/n/a", "/n/b"])

    assert found is ErrorCode.DUPLICATE_READ


def test_check_duplicates_with_one_new_file_allows() -> None:
    steps = [read(1, "/n/a")]

    assert refusal(steps, {"paths": ["/n/a", "/n/c"]}, ["/n/a", "/n/c"]) is None


def test_check_duplicates_after_writing_the_file_allows_reading_it_again() -> None:
    steps = [read(1, "/n/a"), write(2, "/n/a")]

    assert refusal(steps, {"paths": ["/n/a"]}, ["/n/a"]) is None


def test_check_duplicates_after_writing_another_file_still_refuses() -> None:
    steps = [read(1, "/n/a"), write(2, "/n/b")]

    assert refusal(steps, {"paths": ["/n/a"]}, ["/n/a"]) is ErrorCode.DUPLICATE_CALL


def test_check_caps_after_thirty_steps_ends() -> None:
    steps = [step(n, f"tool_{n}", {}) for n in range(1, 31)]

    with pytest.raises(CallRefused) as refused:
        guards.check_steps(steps)

    assert refused.value.code is ErrorCode.CAP_STEPS


def test_check_caps_third_vector_call_in_a_row_asks_for_one_call() -> None:
    steps = [read(1, "/n/a"), read(2, "/n/b")]

    with pytest.raises(CallRefused) as refused:
        guards.check_caps(steps, "read_files", {"paths": ["/n/c"]}, manifest("read_files"))

    assert refused.value.code is ErrorCode.VECTORISE


def test_check_caps_third_vector_call_with_a_new_reference_is_allowed() -> None:
    steps = [read(1, "/n/a"), read(2, "/n/b")]

    guards.check_caps(steps, "read_files", {"from_step": 1}, manifest("read_files"))


def test_check_caps_eleventh_call_of_a_tool_ends() -> None:
    steps = []
    for n in range(10):
        steps += [step(2 * n + 1, "write_files", {"n": n}), step(2 * n + 2, "get_now", {"n": n})]

    with pytest.raises(CallRefused) as refused:
        guards.check_caps(steps[:20], "write_files", {}, manifest("write_files"))

    assert refused.value.code is ErrorCode.CAP_SAME_EXECUTOR


def test_check_caps_fourth_non_acting_call_in_a_row_ends() -> None:
    steps = [step(n, "get_now", {"n": n}) for n in range(1, 4)]

    with pytest.raises(CallRefused) as refused:
        guards.check_caps(steps, "get_now", {"n": 4}, manifest("get_now"))

    assert refused.value.code is ErrorCode.CAP_SAME_EXECUTOR


def test_check_caps_never_stops_reading_on_in_the_scratchpad() -> None:
    steps = [step(n, "scratchpad_read", {"id": "x", "start": n}) for n in range(1, 12)]

    guards.check_caps(steps, "scratchpad_read", {}, None)


def failing(number: int, tool: str, code: ErrorCode) -> StepRecord:
    return step(number, tool, {"n": number}, observation=Observation.failed(code))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([failing(1, "a", ErrorCode.NOT_FOUND), failing(2, "a", ErrorCode.NOT_FOUND)], True),
        ([failing(1, "a", ErrorCode.NOT_FOUND), failing(2, "b", ErrorCode.NOT_FOUND)], False),
        ([failing(1, "a", ErrorCode.NOT_FOUND), failing(2, "a", ErrorCode.TIMEOUT)], False),
        ([failing(1, "a", ErrorCode.NOT_FOUND)], False),
        ([], False),
    ],
)
def test_is_looping_at_the_second_equal_failure_in_a_row(
    steps: list[StepRecord], expected: bool
) -> None:
    assert guards.is_looping(steps) is expected


def refused(number: int, tool: str, code: ErrorCode = ErrorCode.VECTORISE) -> StepRecord:
    return StepRecord(number, tool, {}, {}, Observation.failed(code), {})


def vector_refusal(steps: list[StepRecord], **args: Any) -> ErrorCode | None:
    try:
        guards.check_caps(steps, "read_files", args, manifest("read_files"))
    except CallRefused as exc:
        return exc.code
    return None


def test_check_caps_keeps_refusing_a_vector_call_whose_advice_was_not_taken() -> None:
    steps = [read(1, "/n/a"), read(2, "/n/b"), refused(3, "read_files")]

    assert vector_refusal(steps, paths=["/n/c"]) is ErrorCode.VECTORISE


def test_check_caps_of_a_vector_tool_counts_anew_from_a_new_reference() -> None:
    by_reference = step(3, "read_files", {"paths": ["/n/c"]}, raw={"from_step": 1})
    steps = [read(1, "/n/a"), read(2, "/n/b"), by_reference]

    assert vector_refusal(steps, paths=["/n/d"]) is None
    assert vector_refusal([*steps, read(4, "/n/d")], paths=["/n/e"]) is ErrorCode.VECTORISE
    assert vector_refusal([*steps, read(4, "/n/d")], from_step=1) is ErrorCode.VECTORISE
    assert vector_refusal([*steps, read(4, "/n/d")], from_step=2) is None


def test_check_caps_with_another_tool_between_two_runs_allows() -> None:
    steps = [read(1, "/n/a"), read(2, "/n/b"), step(3, "get_now", {})]

    assert vector_refusal(steps, paths=["/n/c"]) is None


def test_check_steps_after_thirty_steps_of_any_kind_ends() -> None:
    steps = [refused(n, f"invented_{n}", ErrorCode.UNKNOWN_TOOL) for n in range(1, 31)]

    guards.check_steps(steps[:29])
    with pytest.raises(CallRefused) as refusal:
        guards.check_steps(steps)
    assert refusal.value.code is ErrorCode.CAP_STEPS


def change(number: int, tool: str, args: dict[str, Any], effects: Effects) -> StepRecord:
    return step(number, tool, args, observation=Observation(ok=True, effects=effects))


@pytest.mark.parametrize("effects", [Effects.DONE, Effects.UNKNOWN])
def test_check_duplicates_of_the_very_same_change_refuses(effects: Effects) -> None:
    args = {"path": "/n/a", "content": "x", "mode": "append"}
    steps = [change(1, "write_files", args, effects)]

    with pytest.raises(CallRefused) as refusal:
        guards.check_duplicates(steps, "write_files", args, ["/n/a"])

    assert refusal.value.code is ErrorCode.DUPLICATE_CALL


def test_check_duplicates_of_a_change_that_another_undid_allows() -> None:
    there = {"paths": ["/n/a"], "dst": "/n/b"}
    back = {"paths": ["/n/b"], "dst": "/n/a"}
    steps = [
        change(1, "move_files", there, Effects.DONE),
        change(2, "move_files", back, Effects.DONE),
    ]

    guards.check_duplicates(steps, "move_files", there, ["/n/a", "/n/b"])


def test_check_duplicates_of_a_failure_that_may_pass_allows_a_second_try() -> None:
    late = Observation.failed(ErrorInfo(ErrorCode.TIMEOUT, retryable=True))
    steps = [step(1, "read_files", {"paths": ["/n/a"]}, observation=late)]

    assert refusal(steps, {"paths": ["/n/a"]}, ["/n/a"]) is None
    assert guards.is_looping([*steps, replace(steps[0], number=2)])


def test_check_caps_lets_several_files_be_written_one_after_the_other() -> None:
    steps = [write(1, "/n/a"), write(2, "/n/b"), write(3, "/n/c")]

    guards.check_caps(steps, "write_files", {"path": "/n/d"}, manifest("write_files"))


def test_check_caps_lets_one_list_be_computed_in_three_ways() -> None:
    steps = [
        step(n, "compute_entries", {"op": op}, raw={"from_step": 1, "op": op})
        for n, op in ((2, "sum"), (3, "avg"))
    ]

    guards.check_caps(steps, "compute_entries", {"from_step": 1}, manifest("compute_entries"))
