"""The shape of plans: every sequence of the three kinds of steps, and what is refused in it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CallRefused, ErrorCode
from core.levels.shape import Call, Stage, call_of, compute_state, next_state
from core.plan import Step
from core.vocabulary import META_TOOLS, Category, category_of
from tests.execution.test_arguments import manifest

FIND, SORT = Call("find_files"), Call("sort_entries", draws=True)
BARE_SORT, BARE_TELL = (
    Call("sort_entries", targeted=False),
    Call("describe_entries", targeted=False),
)
MOVE, BARE_MOVE = Call("move_files", draws=True), Call("move_files", targeted=False)
WRITE = Call("write_files")
ANSWER = Call("final_answer", targeted=False)


@pytest.mark.parametrize(
    ("calls", "stage"),
    [
        ([], Stage.START),
        ([FIND], Stage.FED),
        ([FIND, SORT, MOVE], Stage.CLOSED),
        ([WRITE], Stage.CLOSED),
        ([WRITE, WRITE], Stage.CLOSED),
        ([FIND, MOVE, FIND], Stage.FED),
        ([FIND, MOVE, MOVE], Stage.CLOSED),
        ([FIND, ANSWER], Stage.FED),
        ([ANSWER], Stage.START),
    ],
)
def test_stage_after_a_legal_history(calls: list[Call], stage: Stage):
    assert compute_state(calls) is stage


@pytest.mark.parametrize(
    ("calls", "code"),
    [
        ([BARE_SORT], ErrorCode.NEEDS_DATA_SOURCE),
        ([BARE_TELL], ErrorCode.NEEDS_DATA_SOURCE),
        ([BARE_MOVE], ErrorCode.NEEDS_ACTION_TARGET),
        ([FIND, BARE_MOVE], ErrorCode.NEEDS_ACTION_TARGET),
        ([FIND, MOVE, BARE_MOVE], ErrorCode.PIPELINE_CLOSED),
        ([WRITE, BARE_TELL], ErrorCode.PIPELINE_CLOSED),
    ],
)
def test_what_has_nothing_to_work_on_is_refused(calls: list[Call], code: ErrorCode):
    *before, last = calls
    state = compute_state(before)

    with pytest.raises(CallRefused) as refused:
        next_state(state, last)
    assert refused.value.code is code


@pytest.mark.parametrize(("stage", "tool"), list(itertools.product(Stage, sorted(META_TOOLS))))
def test_meta_tools_move_nothing(stage: Stage, tool: str):
    assert next_state(stage, Call(tool, targeted=False)) is stage


@given(st.lists(st.sampled_from([FIND, SORT, MOVE, WRITE, ANSWER])))
def test_grounded_calls_are_always_legal_and_the_last_decides(calls: list[Call]):
    counting = [call for call in calls if category_of(call.tool) is not Category.META]
    last = category_of(counting[-1].tool) if counting else None

    stage = compute_state(calls)

    produced = last is Category.PRODUCES
    assert stage is (Stage.START if last is None else Stage.FED if produced else Stage.CLOSED)


@pytest.mark.parametrize(
    ("tool", "args", "draws", "targeted"),
    [
        ("get_now", {}, False, True),
        ("read_files", {"paths": ["a.md"]}, False, True),
        ("read_files", {"paths": []}, False, False),
        ("read_files", {"from_step": 1}, True, False),
        ("write_files", {"path": "{{step1.path}}", "content": "x"}, True, False),
        ("write_files", {"path": "a.md", "content": "{{step1.text}}"}, True, True),
    ],
)
def test_call_tells_what_it_takes_and_where_it_acts(
    tool: str, args: dict[str, object], draws: bool, targeted: bool
):
    assert call_of(Step(tool, args), manifest(tool)) == Call(tool, draws, targeted)


def test_unknown_program_is_left_to_others():
    assert call_of(Step("make_coffee", {}), None) == Call("make_coffee")
