"""The trash is emptied of what is older than thirty days, and of nothing else."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

from core.execution.paths import TRASH
from core.execution.preimages import KEEP, purge

NOW = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC)


def thrown_away(root: Path, turn: str, *, days: float) -> Path:
    """A file in the trash of a turn that was so long ago."""
    folder = root / TRASH / turn
    folder.mkdir(parents=True)
    file = folder / "a.md"
    file.write_text("prima")
    moment = (NOW - dt.timedelta(days=days)).timestamp()
    os.utime(folder, (moment, moment))
    return file


def test_purge_deletes_what_is_older_than_thirty_days_and_keeps_the_rest(tmp_path: Path) -> None:
    old = thrown_away(tmp_path, "old", days=31)
    young = thrown_away(tmp_path, "young", days=29)

    gone = purge([tmp_path], older_than=NOW - KEEP)

    assert gone == 1
    assert not old.parent.exists()
    assert young.read_text() == "prima"


def test_purge_done_twice_deletes_once(tmp_path: Path) -> None:
    thrown_away(tmp_path, "old", days=31)

    assert purge([tmp_path], older_than=NOW - KEEP) == 1
    assert purge([tmp_path, tmp_path / "missing"], older_than=NOW - KEEP) == 0


def test_purge_follows_no_link_out_of_the_trash(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.md").write_text("mio")
    root = tmp_path / "root"
    inside = thrown_away(root, "old", days=31)
    (inside.parent / "link").symlink_to(outside)
    moment = (NOW - dt.timedelta(days=31)).timestamp()
    os.utime(inside.parent, (moment, moment))
    other = tmp_path / "other"
    other.mkdir()
    (other / TRASH).symlink_to(outside)

    assert purge([root, other], older_than=NOW - KEEP) == 1
    assert (outside / "mine.md").read_text() == "mio"
