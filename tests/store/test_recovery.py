"""After a crash the world tells what was done: the journal only says what was to be."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.execution.preimages import drop_second_names
from core.execution.recovery import settle_effects
from core.store import effects
from core.store.effects import EffectState
from core.store.stores import Stores
from tests.support.clock import FrozenClock


async def began(
    stores: Stores, clock: FrozenClock, found: Any, wanted: Any, undo: Any = ()
) -> None:
    async with stores.main.write() as tx:
        await effects.start(
            tx,
            key="t:1",
            turn_id="t",
            step=1,
            tool="write_files",
            before={"found": found},
            expected={"wanted": wanted, "undo": list(undo)},
            summary={"targets": [state["path"] for state in wanted or ()]},
            now=clock.now(),
        )


async def settled(stores: Stores) -> effects.StoredEffect:
    async with stores.main.read() as tx:
        [effect] = await effects.of_turn(tx, "t")
    return effect


def write_both(a: Path, b: Path) -> None:
    a.write_text("nuovo", encoding="utf-8")
    b.write_text("nuovo", encoding="utf-8")


def write_one(a: Path, b: Path) -> None:
    a.write_text("nuovo", encoding="utf-8")


def write_other(a: Path, b: Path) -> None:
    a.write_text("di un altro", encoding="utf-8")


@pytest.mark.parametrize(
    ("done", "state", "items"),
    [
        pytest.param(write_both, EffectState.DONE, None, id="all as promised"),
        pytest.param(lambda a, b: None, EffectState.FAILED, None, id="all as found"),
        pytest.param(write_one, EffectState.DONE, [True, False], id="some and some"),
        pytest.param(write_other, EffectState.UNKNOWN, None, id="neither"),
    ],
)
async def test_settle_effects_tells_the_truth_from_the_world(
    stores: Stores,
    clock: FrozenClock,
    tmp_path: Path,
    done: Callable[[Path, Path], None],
    state: EffectState,
    items: list[bool] | None,
) -> None:
    a, b = tmp_path / "a.md", tmp_path / "b.md"
    sha = hashlib.sha256(b"nuovo").hexdigest()
    found = [{"path": str(p), "exists": False} for p in (a, b)]
    wanted = [{"path": str(p), "exists": True, "size": 5, "sha256": sha} for p in (a, b)]
    await began(stores, clock, found, wanted)
    done(a, b)

    assert await settle_effects(stores, clock) == 1
    assert await settle_effects(stores, clock) == 0

    effect = await settled(stores)
    assert effect.state is state
    told = effect.summary.get("entries")
    assert (told and [entry["ok"] for entry in told]) == items


async def test_settle_effects_without_a_preview_is_unknown(
    stores: Stores,
    clock: FrozenClock,
) -> None:
    await began(stores, clock, None, None)

    await settle_effects(stores, clock)

    assert (await settled(stores)).state is EffectState.UNKNOWN


@pytest.mark.parametrize("replaced", [False, True], ids=["not replaced", "replaced"])
async def test_settle_effects_leaves_no_file_with_a_second_name(
    stores: Stores, clock: FrozenClock, tmp_path: Path, replaced: bool
) -> None:
    """A kill between keeping the old file and renaming the new one over it: else nobody could
    read it any more, since a file with two names is no file of ours."""
    a, kept = tmp_path / "a.md", tmp_path / ".metnos-trash/t/a.md"
    a.write_text("vecchio", encoding="utf-8")
    kept.parent.mkdir(parents=True)
    kept.hardlink_to(a)
    if replaced:
        a.unlink()
        a.write_text("nuovo", encoding="utf-8")
    sha = [hashlib.sha256(text).hexdigest() for text in (b"vecchio", b"nuovo")]
    found = [{"path": str(a), "exists": True, "sha256": sha[0]}]
    wanted = [{"path": str(a), "exists": True, "sha256": sha[1]}]
    undo = [{"do": "restore", "from": str(kept), "to": str(a)}]
    await began(stores, clock, found, wanted, undo)

    await settle_effects(stores, clock)

    assert (await settled(stores)).state is (EffectState.DONE if replaced else EffectState.FAILED)
    assert a.read_text(encoding="utf-8") == ("nuovo" if replaced else "vecchio")
    assert a.stat().st_nlink == 1
    assert kept.exists() is replaced
    assert (tmp_path / ".metnos-trash/t").exists() is replaced


@pytest.mark.parametrize("where", ["no trash", "a link on the way", "another file"])
def test_second_names_are_taken_away_in_the_trash_only(tmp_path: Path, where: str) -> None:
    path = tmp_path / "a.md"
    path.write_text("mio", encoding="utf-8")
    trash = tmp_path / ".metnos-trash"
    kept = (tmp_path / "t" if where == "no trash" else trash / "t") / "a.md"
    kept.parent.mkdir(parents=True)
    if where == "another file":
        kept.write_text("mio", encoding="utf-8")
    else:
        kept.hardlink_to(path)
    if where == "a link on the way":
        trash.rename(tmp_path / "elsewhere")
        trash.symlink_to(tmp_path / "elsewhere")

    assert drop_second_names([{"do": "restore", "from": str(kept), "to": str(path)}, 7]) == 0

    assert kept.exists()
    assert drop_second_names(None) == 0
