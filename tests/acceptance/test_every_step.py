"""Bar R2: a failure at every step of a turn that changes something, and of its recovery.

One after the other each statement, commit, log line, call of the cage and request to Telegram is
the one at which the engine dies, or at which the disk is full or broken; then what R1 asks for
must hold. `METNOS_TEST_SCALE` below 1 takes every n-th of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.lives import Lives, open_lives
from tests.acceptance.mortal import BROKEN, DISK, FULL, KILL
from tests.acceptance.scenes import repetitions

FAILURES = {"kill": KILL, "no space": FULL, "input/output error": BROKEN}
# A step that fails this often in a row belongs to another turn.
QUIET_S = 0.3


def every(steps: int) -> Iterator[int]:
    """The steps to try: all of them at scale 1, far fewer below, since each costs a second."""
    taken = steps if repetitions(steps) >= steps else repetitions(steps // 10, least=2)
    return iter(sorted({1 + at * steps // taken for at in range(taken)}))


def one_mission(lives: Lives, kind: str, *, dies: Callable[[], None] | None = None) -> None:
    """Have one thing done; `dies` is called after each death."""
    begun = len(lives.people[0].missions)
    lives.go(
        lambda: kind,
        until=lambda: len(lives.people[0].missions) > begun,
        rearm=dies or lives.plan.disarm,
        disarms=False,
    )


def once(lives: Lives, step: int, action: int, groups: tuple[str, ...]) -> Callable[[], None]:
    """What is to happen after the first death, and nothing after a second."""
    steps = iter([step])

    def dies() -> None:
        lives.plan.arm(next(steps, 0), action, *groups)

    return dies


def quiet(lives: Lives) -> None:
    """Wait until nothing is done any more but waiting for updates."""
    steps, since = lives.plan.steps, time.monotonic()
    while time.monotonic() - since < QUIET_S:
        if lives.plan.steps != steps:
            steps, since = lives.plan.steps, time.monotonic()
        time.sleep(0.01)


def steps_of(lives: Lives, kind: str) -> int:
    quiet(lives)
    before = lives.plan.steps
    one_mission(lives, kind)
    quiet(lives)
    return lives.plan.steps - before


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["write", pytest.param("yes", marks=pytest.mark.soak)])
def test_failure_at_any_step_of_a_change_is_survived_and_told(tmp_path: Path, kind: str) -> None:
    tried: Counter[str] = Counter()
    with open_lives(tmp_path, "anna") as lives:
        total = steps_of(lives, kind)
        for name, action in FAILURES.items():
            groups = () if action == KILL else DISK
            for step in every(total):
                lives.plan.arm(step, action, *groups)
                one_mission(lives, kind)
                if lives.plan.is_armed:  # fewer steps of this group than that
                    break
                tried[name] += 1
        lives.plan.disarm()

        figures = lives.check()

    print(f"\nR2, {kind}: {total} steps; failed at {dict(tried)}; {dict(figures)}")
    assert tried["kill"] >= 2
    assert tried["no space"] >= 1


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "group",
    ["caged", *(pytest.param(name, marks=pytest.mark.soak) for name in ("sent", "committed"))],
)
def test_failure_at_any_step_of_a_recovery_is_survived_and_told(
    tmp_path: Path, group: str
) -> None:
    """The first death comes when a change was made, when the answer is out, when it is kept."""
    tried: Counter[str] = Counter()
    with open_lives(tmp_path, "anna") as lives:
        assert lives.engine is not None
        quiet(lives)
        before = lives.plan.steps
        lives.engine.kill()
        lives.start()
        quiet(lives)
        total = lives.plan.steps - before
        for name, action in FAILURES.items():
            groups = () if action == KILL else DISK
            for step in every(total):
                lives.plan.arm(2, KILL, group)
                one_mission(lives, "write", dies=once(lives, step, action, groups))
                tried[name] += not lives.plan.is_armed
                lives.plan.disarm()

        figures = lives.check()

    print(f"\nR2, recovery, {group}: {total} steps; failed at {dict(tried)}; {dict(figures)}")
    assert tried["kill"] >= 2
