"""Plans, references and the turn's state as values."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CallRefused, ErrorCode, ErrorInfo, StoreTooNew, to_error_info
from core.observation import Effects, Observation, Provenance
from core.plan import (
    FillerReference,
    Plan,
    RuntimeReference,
    Step,
    StepReference,
    parse_template,
    steps_used,
)
from core.turn_state import StepRecord, TurnState


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("{{step1.path}}", StepReference(1, ("path",))),
        ("{{ step12.metadata.path }}", StepReference(12, ("metadata", "path"))),
        ("${step2.entries.0.name}", StepReference(2, ("entries", "0", "name"))),
        ("${RUNTIME:today}", RuntimeReference("today")),
        ("${FILLER:greeting}", FillerReference("greeting")),
    ],
)
def test_parse_template_of_one_reference_keeps_it_whole(text: str, whole: object) -> None:
    template = parse_template(text)

    assert template is not None
    assert template.whole == whole


@pytest.mark.parametrize("text", ["", "plain", "{{name}}", "${HOME}", "$(x)", "{ {step1.x}}"])
def test_parse_template_of_plain_text_is_none(text: str) -> None:
    assert parse_template(text) is None


@pytest.mark.parametrize(
    "text", ["{{step1}}", "{{stepX.a}}", "${step1", "${RUNTIME:}", "{{step1.a.}}"]
)
def test_parse_template_of_a_broken_reference_refuses(text: str) -> None:
    with pytest.raises(CallRefused) as refused:
        parse_template(text)

    assert refused.value.code is ErrorCode.BAD_REFERENCE


@given(st.text(max_size=200))
def test_parse_template_of_any_text_gives_its_pieces_back_or_refuses(text: str) -> None:
    try:
        template = parse_template(text)
    except CallRefused:
        return
    if template is None:
        assert "{{step" not in text.replace(" ", "")
    else:
        literal = "".join(part for part in template.parts if isinstance(part, str))
        assert len(literal) < len(text)


def test_steps_used_finds_every_way_of_speaking_of_a_step() -> None:
    args = {"from_step": 1, "other_step": "2", "x": ["{{step3.a}}", {"y": "of ${step4.b} too"}]}

    assert steps_used(args) == {1, 2, 3, 4}


@pytest.mark.parametrize(
    "data", [None, [], {}, {"steps": "x"}, {"steps": [1]}, {"steps": [{"args": {}}]},
             {"steps": [{"tool": "a", "args": [1]}]}],
)  # fmt: skip
def test_plan_of_another_form_refuses(data: Any) -> None:
    with pytest.raises(CallRefused):
        Plan.from_json(data)


def test_plan_fingerprint_depends_on_values_and_not_on_key_order() -> None:
    one = Plan.from_json({"steps": [{"tool": "a", "args": {"x": 1, "y": 2}}]})
    same = Plan.from_json({"steps": [{"args": {"y": 2, "x": 1}, "tool": "a"}]})
    other = Plan.from_json({"steps": [{"tool": "a", "args": {"x": 1, "y": 3}}]})

    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_turn_state_comes_back_from_json_as_it_went() -> None:
    observation = Observation(
        ok=False,
        entries=({"ok": False, "path": "/a"},),
        metadata={"count": 1},
        error=ErrorInfo(ErrorCode.NOT_FOUND, {"path": "/a"}, detail="gone"),
        effects=Effects.UNKNOWN,
        provenance=Provenance.EXTERNAL,
    )
    record = StepRecord(
        1, "move_files", {"paths": ["a"]}, {"paths": ["/a"]}, observation, {"ok": False}
    )
    state = TurnState("t", "sposta a", Plan((Step("x", {}),)), 1, (record,), ("x",), "metis", 1)

    again = TurnState.from_json(json.loads(json.dumps(state.to_json())))

    assert again == state
    assert again.effects is Effects.UNKNOWN


def test_turn_state_of_a_newer_version_refuses() -> None:
    with pytest.raises(StoreTooNew):
        TurnState.from_json({"version": 99, "turn_id": "t", "request": ""})


def test_observation_of_one_item_answers_from_it_before_what_is_said_of_the_whole() -> None:
    one = Observation(
        ok=True,
        entries=({"ok": True, "path": "/a", "size": 3},),
        metadata={"size": 9, "truncated": True},
    )
    two = Observation(ok=True, entries=(*one.entries, {"ok": True}) if one.entries else ())

    assert one.read(("size",)) == 3
    assert one.read(("path",)) == "/a"
    assert one.read(("truncated",)) is True
    assert one.read(("count",)) == 1
    assert two.read(("count",)) == 2
    with pytest.raises(KeyError):
        two.read(("path",))
    assert one.read(("entries", "0", "size")) == 3
    with pytest.raises(KeyError):
        one.read(("nothing",))


def test_observation_items_leave_out_what_failed() -> None:
    two = Observation(ok=True, entries=({"ok": True, "n": 1}, {"ok": False, "n": 2}))

    assert two.items() == [{"ok": True, "n": 1}]


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (TimeoutError(), ErrorCode.TIMEOUT),
        (OSError(28, "No space left"), ErrorCode.DISK_FULL),
        (ValueError("secret inside"), ErrorCode.INTERNAL),
        (CallRefused(ErrorCode.NOT_FOUND, "gone"), ErrorCode.NOT_FOUND),
    ],
)
def test_to_error_info_never_shows_the_text_of_a_strange_exception(
    exc: Exception, code: ErrorCode
) -> None:
    info = to_error_info(exc)

    assert info.code is code
    assert "secret" not in info.detail
