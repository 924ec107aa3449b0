"""Questions about places that were answered a moment ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.catalog.loaded import NO_SDK, LoadedExecutor
from core.errors import ErrorCode
from core.execution.answered import KEPT_S, MOST_KEPT, Answered
from core.observation import Observation
from tests.support.catalogue import shipped_manifests
from tests.support.clock import FrozenClock

NOW = datetime(2026, 5, 1, tzinfo=UTC)
FOUND = Observation(ok=True, entries=({"ok": True, "name": "Farmacia"},))


class Counting:
    """Answers every call with the next of what it was given, the last one again and again."""

    def __init__(self, *seen: Observation) -> None:
        self.seen, self.calls = list(seen or (FOUND,)), 0

    async def run(self, *_: Any, **__: Any) -> Observation:
        self.calls += 1
        return self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]


def call(**facts: Any) -> dict[str, Any]:
    usual = {"actor_id": "anna", "lang": "it", "args": {"queries": ["farmacia"]}}
    return {**usual, "turn_id": "t", "step": 1, "now": str(NOW), **facts}


async def ask(kept: Answered, tool: str = "find_places", **facts: Any) -> Observation:
    executor = LoadedExecutor(shipped_manifests()[tool], {})
    mode = facts.pop("mode", "run")
    return await kept.run(executor, NO_SDK, call(**facts), mode=mode)


async def test_same_question_of_the_same_person_is_asked_once() -> None:
    runner = Counting()
    kept = Answered(runner, FrozenClock(NOW))

    first = await ask(kept)
    again = await ask(kept, turn_id="u", step=3, now="later")

    assert first == again == FOUND
    assert runner.calls == 1


@pytest.mark.parametrize(
    "facts",
    [
        {"actor_id": "luca"},
        {"lang": "en"},
        {"args": {"queries": ["bar"]}},
        {"position": [44.6, 10.9]},
        {"services": {"photon": "http://127.0.0.1:9"}},
        {"tool": "get_places"},
    ],
    ids=str,
)
async def test_any_other_question_is_asked(facts: dict[str, Any]) -> None:
    runner = Counting()
    kept = Answered(runner, FrozenClock(NOW))

    await ask(kept)
    await ask(kept, **facts)

    assert runner.calls == 2


@pytest.mark.parametrize("tool", ["get_weather", "find_urls", "read_files", "delete_files"])
async def test_what_is_no_question_about_places_is_always_run(tool: str) -> None:
    runner = Counting()
    kept = Answered(runner, FrozenClock(NOW))

    await ask(kept, tool)
    await ask(kept, tool)

    assert runner.calls == 2


@pytest.mark.parametrize(
    "bad",
    [
        Observation.failed(ErrorCode.NETWORK),
        Observation(ok=True, entries=({"ok": False}, {"ok": True})),
        Observation(ok=True, entries=({"ok": True},), metadata={"unanswered": "Photon"}),
    ],
    ids=["failed", "in part", "not by everybody"],
)
async def test_what_was_not_answered_whole_is_asked_again(bad: Observation) -> None:
    runner = Counting(bad, FOUND)
    kept = Answered(runner, FrozenClock(NOW))

    await ask(kept)

    assert await ask(kept) == FOUND
    assert await ask(kept) == FOUND
    assert runner.calls == 2


async def test_answer_is_old_after_ten_minutes_and_only_the_newest_are_kept() -> None:
    runner, clock = Counting(), FrozenClock(NOW)
    kept = Answered(runner, clock)

    await ask(kept)
    clock.advance(timedelta(seconds=KEPT_S + 1))
    await ask(kept)
    assert runner.calls == 2
    for number in range(MOST_KEPT):
        await ask(kept, args={"queries": [str(number)]})
    await ask(kept)

    assert runner.calls == 2 + MOST_KEPT + 1
