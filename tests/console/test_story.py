"""One turn as it is told: in order, checked, and without what nobody is to read."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from bot.console.pages.effects import undo_of
from bot.console.story import Story, story_of
from core.catalog.loaded import NO_SDK, Catalog
from core.dialogs import Suspension, SuspensionKind, SuspensionState
from core.execution.preimages import KEEP
from core.store.effects import UNDO_LAST_TURN, EffectState, StoredEffect

WAY_BACK = ({"do": "remove", "path": "/a"},)
NOW = dt.datetime(2026, 1, 15, 12, tzinfo=dt.UTC)
EMPTY = Catalog({}, (), NO_SDK, "")


def told(*lines: Any, questions: Any = (), journal: Any = (), secrets: Any = ()) -> Story:
    return story_of(lines, journal, questions, catalog=EMPTY, lang="it", secrets=secrets)


def line(number: int = 1, at: float = 0.0, **fields: Any) -> dict[str, Any]:
    start = NOW.timestamp() + at
    return {"segment": number, "ts_start": start, "ts_end": start + 2, "steps": [], **fields}


def step(**fields: Any) -> dict[str, Any]:
    return {"number": 1, "tool": "read_files", "ok": True, "effects": "none", **fields}


def question(at: float) -> tuple[Suspension, SuspensionState]:
    asked = NOW + dt.timedelta(seconds=at)
    suspension = Suspension(
        f"q{at}", SuspensionKind.APPROVAL, "t", "ada", "telegram:7:", asked, asked
    )
    return suspension, SuspensionState.DONE


def test_story_puts_each_question_into_the_segment_that_asked_it():
    story = told(line(1), line(2, 100), line(3, 200), questions=[question(1.5), question(101)])

    assert [[one.kind for one in part.asked] for part in story.segments] == [
        ["approval"],
        ["approval"],
        [],
    ]
    assert story.segments[1].seconds == 2


def test_story_sums_what_its_segments_used():
    story = told(
        line(1, tokens_in=100, tokens_out=5, tokens_cached=60, cost=0.25, model_calls=2),
        line(2, 50, tokens_in=10, tokens_out=1, tokens_cached=0, cost=0.25, model="big"),
    )

    assert story.tokens == (110, 6, 60)
    assert (story.cost, story.model_calls, story.model, story.seconds) == (0.5, 2, "big", 4)


def test_checks_are_told_in_the_order_they_are_made_and_the_needless_left_out():
    checks = {
        "consent": "not_needed",
        "judge": "ok",
        "validation": "ok",
        "grounding": "without pattern",
        "guard": None,
        "scope": "denied",
    }

    (part,) = told(line(steps=[step(**checks)])).segments

    assert [(c.name, c.verdict, c.tone, c.about) for c in part.steps[0].checks] == [
        ("validation", "ok", "good", ""),
        ("grounding", "without", "warn", "pattern"),
        ("scope", "denied", "bad", ""),
        ("judge", "ok", "good", ""),
    ]


def test_arguments_and_details_are_shown_without_secrets():
    handle = "secret:" + "0" * 32
    args = {"password": "hunter2hunter2", "text": "il mio sesamo123", "key": handle}

    (part,) = told(
        line(steps=[step(resolved_args=args, ok=False, error_detail="token=abcdef123456")]),
        secrets=["sesamo123"],
    ).segments

    shown = part.steps[0].args + part.steps[0].detail
    assert not any(word in shown for word in ("hunter2", "sesamo123", handle, "abcdef123456"))
    assert '"text": "il mio •••"' in shown


@pytest.mark.parametrize(
    "foreign",
    [
        {},
        {"steps": "no list", "ts_start": "yesterday", "tokens_in": None},
        {"steps": [None, 3, {}], "segment": "one", "candidates": {"a": 1}},
        {"ts_start": 1e300, "ts_end": -1, "cost": True, "model_ms": "fast"},
        {"steps": [{"tool": 7, "ok": "yes", "latency_ms": [], "scope": {"a": 1}}]},
    ],
    ids=["empty", "types", "steps", "numbers", "step"],
)
def test_line_of_another_version_is_told_as_far_as_it_goes(foreign: dict[str, Any]):
    (part,) = told(foreign).segments

    assert part.number == 1
    assert part.seconds == 0
    assert part.cost == 0


def effect(
    state: EffectState = EffectState.DONE,
    *,
    tool: str = "write_files",
    undo: Any = WAY_BACK,
    age: dt.timedelta = dt.timedelta(hours=1),
    summary: Any = None,
) -> StoredEffect:
    return StoredEffect(
        key="t:1",
        turn_id="t",
        step=1,
        tool=tool,
        state=state,
        before={"found": []},
        expected={"wanted": [], "undo": list(undo)},
        summary=summary or {"targets": ["/a"]},
        started_at=NOW - age,
        ended_at=NOW - age,
    )


def taking(state: EffectState, **summary: Any) -> StoredEffect:
    return effect(state, tool=UNDO_LAST_TURN, summary={"undoes": "t", **summary})


@pytest.mark.parametrize(
    ("what", "takings", "is_last", "state"),
    [
        (effect(), [], True, "until"),
        (effect(EffectState.UNKNOWN), [], True, "until"),
        (effect(), [], False, "not_last"),
        (effect(age=KEEP), [], True, "too_late"),
        (effect(undo=()), [], True, "no_way"),
        (effect(EffectState.FAILED), [], True, "nothing"),
        (effect(EffectState.STARTED), [], True, "nothing"),
        (effect(tool=UNDO_LAST_TURN), [], True, "itself"),
        (effect(), [taking(EffectState.DONE)], True, "undone"),
        (effect(), [taking(EffectState.UNKNOWN), taking(EffectState.DONE)], True, "undone"),
        (effect(), [taking(EffectState.DONE, partial=True)], True, "partly"),
        (effect(), [taking(EffectState.UNKNOWN)], True, "partly"),
        (effect(), [taking(EffectState.STARTED)], True, "running"),
        (effect(), [taking(EffectState.FAILED)], True, "until"),
    ],
)
def test_undo_state_of_an_effect(
    what: StoredEffect, takings: list[StoredEffect], is_last: bool, state: str
):
    found = undo_of(what, takings, last={"t"} if is_last else set(), now=NOW)

    assert found.state == state
    if state == "until":
        assert found.at == what.started_at + KEEP
