"""References in a real turn's state: steps that ran, failed or are to come, and facts (S5)."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from core.catalog.loaded import NO_SDK, Catalog
from core.errors import CallRefused, ErrorCode
from core.execution import arguments
from core.execution.context import StateLookup, TurnContext
from core.execution.paths import Scope
from core.messages import Actor, ChatAddress, Role
from core.observation import Observation
from core.turn_state import StepRecord, TurnState
from tests.execution.test_arguments import manifest

# Sunday morning, an hour after the clocks went forward in Italy at 2:00.
NOW = dt.datetime(2026, 3, 29, 2, 30, tzinfo=dt.UTC)
EMPTY = Catalog({}, (), NO_SDK, "x")


def context(tmp_path: Path, **fields: Any) -> TurnContext:
    root = str(tmp_path)
    return TurnContext(
        turn_id="t1",
        actor=Actor("a", Role.HOST, fields.pop("name", "Anna")),
        address=ChatAddress("terminal", "1"),
        lang="it",
        tz="Europe/Rome",
        now=NOW,
        request="",
        catalog=EMPTY,
        scope=Scope((root,), root, "/x", root),
        **fields,
    )


def lookup(tmp_path: Path, *observations: Observation, **fields: Any) -> StateLookup:
    steps = tuple(
        StepRecord(number, "read_files", {}, {}, observation, {})
        for number, observation in enumerate(observations, start=1)
    )
    return StateLookup(context(tmp_path, **fields), TurnState("t1", "", steps=steps))


def resolved(text: Any, found: StateLookup) -> Any:
    return arguments.resolve_references({"x": text}, None, found)["x"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("now", "2026-03-29T04:30:00+02:00"),
        ("today", "2026-03-29"),
        ("now-1d", "2026-03-28T04:30:00+01:00"),
        ("now+1d", "2026-03-30T04:30:00+02:00"),
        ("now-24h", "2026-03-28T03:30:00+01:00"),
        ("now+2h", "2026-03-29T06:30:00+02:00"),
        ("now - 7d", "2026-03-22T04:30:00+01:00"),
        ("actor", "Anna"),
        ("lang", "it"),
        ("channel", "terminal"),
        ("turn_id", "t1"),
    ],
)
def test_runtime_reference_is_a_fact_in_the_zone_of_the_actor(
    tmp_path: Path, key: str, expected: str
) -> None:
    assert resolved(f"${{RUNTIME:{key}}}", lookup(tmp_path)) == expected


@pytest.mark.parametrize(
    "text",
    ["${RUNTIME:password}", "${RUNTIME:now+1y}", "${RUNTIME:pref_city}", "${RUNTIME:__class__}",
     "${RUNTIME:}", "${FILLER:name}", "{{RUNTIME:now}}", "${runtime:token}"],
)  # fmt: skip
def test_runtime_reference_outside_the_closed_list_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(CallRefused) as refused:
        resolved(text, lookup(tmp_path))

    assert refused.value.code is ErrorCode.BAD_REFERENCE


def test_runtime_reference_without_a_value_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CallRefused):
        resolved("${RUNTIME:actor}", lookup(tmp_path, name=""))


@pytest.mark.parametrize("text", ["{{step1.text}}", "{{step2.text}}", "{{step3.text}}"])
def test_step_reference_to_a_failed_or_later_step_is_refused_and_never_empty(
    tmp_path: Path, text: str
) -> None:
    steps = (Observation.failed(ErrorCode.NOT_FOUND), Observation.failed(ErrorCode.TIMEOUT))

    with pytest.raises(CallRefused) as refused:
        resolved(text, lookup(tmp_path, *steps))

    assert refused.value.code is ErrorCode.BAD_REFERENCE


def test_from_step_of_a_failed_step_is_refused(tmp_path: Path) -> None:
    found = lookup(tmp_path, Observation.failed(ErrorCode.NOT_FOUND))

    with pytest.raises(CallRefused) as refused:
        arguments.resolve_references({"from_step": 1}, manifest("sort_entries"), found)

    assert refused.value.code is ErrorCode.BAD_REFERENCE


NESTED = Observation(
    ok=True,
    entries=({"ok": True, "città": "Roma", "content-type": "text/html", "list": [{"n": 1}]},),
    metadata={"count": 1},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{step1.list.0.n}}", 1),
        ("{{step1.list[0].n}}", 1),
        ("{{step1.entries[0].città}}", "Roma"),
        ("${step1.content-type}", "text/html"),
        ("{{Step1.città}}", "Roma"),
        ("{{step1.metadata.count}}", 1),
        ("a {{step1.list.0.n}} b", "a 1 b"),
        ("{{step1.ok}}", True),
    ],
)
def test_step_reference_reaches_into_what_is_nested(
    tmp_path: Path, text: str, expected: Any
) -> None:
    assert resolved(text, lookup(tmp_path, NESTED)) == expected


@pytest.mark.parametrize("text", ["{{step1.list.9}}", "{{step1.list[x]}}", "{{step1.list.n}}"])
def test_step_reference_into_nothing_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(CallRefused):
        resolved(text, lookup(tmp_path, NESTED))


def test_step_references_that_bring_too_much_together_are_refused(tmp_path: Path) -> None:
    big = Observation(ok=True, content="x" * 1_000_000)
    many = "{{step1.content}}" * 100

    with pytest.raises(CallRefused) as refused:
        resolved(many, lookup(tmp_path, big))
    assert refused.value.code is ErrorCode.INVALID_ARGS
    with pytest.raises(CallRefused):
        resolved(["{{step1.content}}"] * 100, lookup(tmp_path, big))


@pytest.mark.parametrize(
    ("written", "read"), [("2 GB", 2_000_000_000), ("10MB", 10_000_000), ("512", 512)]
)
def test_validate_reads_sizes_as_people_write_them(written: str, read: int) -> None:
    valid = arguments.validate({"size_min": written}, manifest("find_files"))

    assert valid == {"size_min": read}


@pytest.mark.parametrize("written", ["many", "9" * 400 + " GB", "-3 MB", "1e9"])
def test_validate_refuses_what_is_no_size(written: str) -> None:
    with pytest.raises(CallRefused) as refused:
        arguments.validate({"size_min": written}, manifest("find_files"))

    assert refused.value.code is ErrorCode.INVALID_ARGS
