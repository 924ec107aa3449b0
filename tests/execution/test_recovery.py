"""What a crash left of each class of effect (S2), at each moment: one table."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.clock import SystemClock
from core.execution.recovery import may_begin_again, settle_effects
from core.store import effects
from core.store.effects import EffectState, StoredEffect
from core.store.stores import Stores, open_stores
from tests.support.executors import home_settings

OLD, NEW, HALF = b"vecchio", b"nuovo", b"nu"
BEFORE_RUN, AFTER_RUN, HALF_DONE, SOME_ITEMS = "before run", "after run", "half done", "some items"
DONE, FAILED, UNKNOWN = EffectState.DONE, EffectState.FAILED, EffectState.UNKNOWN

# Class, moment → what the journal says then, and whether the turn may be walked again by itself.
TABLE = [
    ("idempotent", BEFORE_RUN, FAILED, True),
    ("idempotent", AFTER_RUN, DONE, False),
    ("idempotent", HALF_DONE, UNKNOWN, False),
    ("idempotent", SOME_ITEMS, DONE, False),
    ("checkable", BEFORE_RUN, FAILED, False),
    ("checkable", AFTER_RUN, DONE, False),
    ("checkable", HALF_DONE, UNKNOWN, False),
    ("checkable", SOME_ITEMS, DONE, False),
    # What happens out of sight is never told from the files that happen to be named beside it.
    ("keyed", BEFORE_RUN, UNKNOWN, False),
    ("keyed", AFTER_RUN, UNKNOWN, False),
    ("keyed", HALF_DONE, UNKNOWN, False),
    ("blind", BEFORE_RUN, UNKNOWN, False),
    ("blind", AFTER_RUN, UNKNOWN, False),
    ("blind", HALF_DONE, UNKNOWN, False),
]


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    stores = await open_stores(home_settings(tmp_path), SystemClock())
    yield stores
    await stores.close()


def state_of(path: Path, content: bytes | None) -> dict[str, Any]:
    if content is None:
        return {"path": str(path), "exists": False}
    digest = hashlib.sha256(content).hexdigest()
    return {"path": str(path), "exists": True, "kind": "file", "sha256": digest}


def leave(moment: str, one: Path, two: Path) -> None:
    """The world as a crash leaves it: `one` was overwritten, `two` made new."""
    one.write_bytes({BEFORE_RUN: OLD, HALF_DONE: HALF}.get(moment, NEW))
    if moment == AFTER_RUN:
        two.write_bytes(NEW)


async def begun(stores: Stores, cls: str, one: Path, two: Path) -> None:
    async with stores.main.write() as tx:
        await effects.start(
            tx,
            key="t:1",
            turn_id="t",
            step=1,
            tool="write_texts",
            before={"found": [state_of(one, OLD), state_of(two, None)]},
            expected={"wanted": [state_of(one, NEW), state_of(two, NEW)], "undo": None},
            summary={"targets": [str(one), str(two)], "count": 2, "class": cls},
            now=SystemClock().now(),
        )


async def journal(stores: Stores) -> list[StoredEffect]:
    async with stores.main.read() as tx:
        return await effects.of_turn(tx, "t")


@pytest.mark.parametrize(("cls", "moment", "state", "again"), TABLE)
async def test_what_a_crash_left_is_settled_by_class_and_moment(
    stores: Stores, tmp_path: Path, cls: str, moment: str, state: EffectState, again: bool
) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    await begun(stores, cls, one, two)
    leave(moment, one, two)

    settled = await settle_effects(stores, SystemClock())

    [row] = await journal(stores)
    assert (settled, row.state) == (1, state)
    assert may_begin_again([row]) is again
    partial = row.summary.get("entries", [])
    assert [entry["ok"] for entry in partial] == ([True, False] if moment == SOME_ITEMS else [])


@pytest.mark.parametrize("cls", ["idempotent", "checkable", "keyed", "blind"])
async def test_settling_again_changes_nothing_even_if_the_world_did(
    stores: Stores, tmp_path: Path, cls: str
) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    await begun(stores, cls, one, two)
    leave(BEFORE_RUN, one, two)
    await settle_effects(stores, SystemClock())
    first = await journal(stores)
    leave(AFTER_RUN, one, two)

    assert await settle_effects(stores, SystemClock()) == 0
    assert await journal(stores) == first


async def test_a_turn_that_only_looked_begins_again() -> None:
    """`pure`: nothing is journalled, so nothing stands in the way."""
    assert may_begin_again([])


async def test_an_effect_of_unknown_class_with_nothing_recorded_is_unknown(
    stores: Stores,
) -> None:
    async with stores.main.write() as tx:
        await effects.start(
            tx,
            key="t:1",
            turn_id="t",
            step=1,
            tool="old_tool",
            before=None,
            expected=None,
            now=SystemClock().now(),
        )

    await settle_effects(stores, SystemClock())

    [row] = await journal(stores)
    assert row.state is UNKNOWN


@pytest.mark.parametrize(
    ("state", "new", "works"),
    [
        (UNKNOWN, DONE, True),
        (UNKNOWN, FAILED, True),
        (DONE, FAILED, False),
        (FAILED, DONE, False),
        (EffectState.STARTED, DONE, False),
    ],
)
async def test_only_what_is_unknown_is_resolved_later(
    stores: Stores, tmp_path: Path, state: EffectState, new: EffectState, works: bool
) -> None:
    await begun(stores, "checkable", tmp_path / "a", tmp_path / "b")
    now = SystemClock().now()
    async with stores.main.write() as tx:
        if state is not EffectState.STARTED:
            await effects.finish(tx, "t:1", state, now)
        assert await effects.resolve(tx, "t:1", new, now) is works
    [row] = await journal(stores)
    assert row.state is (new if works else state)
