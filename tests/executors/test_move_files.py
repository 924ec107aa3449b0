"""Moving and renaming: nothing is lost, whatever stands in the way, also across file systems."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from executors._sdk import trash, writing
from tests.executors.file_cases import run, run_caged, snapshot, undo_of


def move(root, *paths, dst, **args):
    given = {"paths": [str(root / path) for path in paths], "dst": str(root / dst), **args}
    promised = run("move_files", given, root, mode="preview")
    return promised, run("move_files", given, root)


@pytest.fixture
def house(tmp_path):
    for name in ("a.txt", "b.txt", "box/c.txt", "box/sub/d.txt", "altra/a.txt", "altra/c.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("paths", "dst", "result"),
    [
        (["a.txt"], "box", ["box/a.txt"]),
        (["a.txt"], "nuovo.txt", ["nuovo.txt"]),
        (["a.txt"], "x/y/nuovo.txt", ["x/y/nuovo.txt"]),
        (["a.txt", "b.txt"], "box", ["box/a.txt", "box/b.txt"]),
        (["a.txt", "b.txt"], "nuova/cartella", ["nuova/cartella/a.txt", "nuova/cartella/b.txt"]),
        (["box"], "altra", ["altra/box"]),
        (["box"], "scatola", ["scatola"]),
        (["a.txt", "a.txt"], "box", ["box/a.txt"]),
    ],
    ids=str,
)
def test_move_files_goes_where_people_mean(house, paths, dst, result):
    contents = sorted(value for value in snapshot(house).values() if value[0] == "file")

    promised, seen = move(house, *paths, dst=dst)

    assert [entry["path"] for entry in seen["entries"]] == [str(house / name) for name in result]
    assert [one["path"] for one in promised["after"][1::2]] == [
        entry["path"] for entry in seen["entries"]
    ]
    assert all(not (house / path).exists() for path in paths)
    assert sorted(value for value in snapshot(house).values() if value[0] == "file") == contents
    assert promised["undo"] == undo_of(seen)


def test_move_files_undo_list_swaps_everything_back(house):
    before = snapshot(house)
    given = [str(house / name) for name in ("a.txt", "altra/c.txt")]
    args = {"paths": given, "dst": str(house / "box"), "overwrite": True}

    seen = run("move_files", args, house)
    for step in undo_of(seen):
        Path(step["from"]).rename(step["to"])
    shutil.rmtree(house / ".metnos-trash")

    assert seen["ok"]
    assert snapshot(house) == before


@pytest.mark.parametrize(
    ("paths", "dst", "code"),
    [
        (["a.txt"], "b.txt", "already_exists"),
        (["a.txt"], "altra", "already_exists"),
        (["a.txt"], "a.txt", "already_exists"),
        (["a.txt", "b.txt"], "altra/c.txt", "not_directory"),
        (["box"], "box", "into_itself"),
        (["box"], "box/sub", "into_itself"),
        (["box"], "box/nuova", "into_itself"),
        (["box/sub"], "box", "already_exists"),
        (["none.txt"], "box", "not_found"),
        ([""], "box", "out_of_scope"),
        (["a.txt"], "link", "out_of_scope"),
        (["a.txt"], "link/x", "out_of_scope"),
        (["link/hostname"], "box", "out_of_scope"),
        (["a.txt"], ".metnos-trash/a.txt", "not_found"),
        (["a.txt"], "b.txt/c.txt", "not_directory"),
    ],
    ids=str,
)
def test_move_files_refusal_changes_nothing(house, paths, dst, code):
    (house / "link").symlink_to("/etc")
    before = snapshot(house)

    promised, seen = move(house, *paths, dst=dst)

    assert promised["error"]["code"] == seen["error"]["code"] == code
    assert snapshot(house) == before


def test_move_files_two_with_one_name_moves_the_first_only(house):
    promised, seen = move(house, "a.txt", "altra/a.txt", dst="box", overwrite=True)

    assert [entry["ok"] for entry in seen["entries"]] == [True, False]
    assert (house / "altra/a.txt").exists()
    assert promised["count"] == 1
    assert promised["refused"][0]["error"]["code"] == "already_exists"


def test_move_files_overwrite_keeps_the_replaced_in_the_trash(house):
    promised, seen = move(house, "a.txt", dst="b.txt", overwrite=True)

    entry = seen["entries"][0]
    assert (house / "b.txt").read_text(encoding="utf-8") == "a.txt"
    assert Path(entry["replaced"]).read_text(encoding="utf-8") == "b.txt"
    assert promised["undo"] == undo_of(seen)


@pytest.mark.parametrize(("source", "dst"), [("a.txt", "box/sub"), ("box", "b.txt")], ids=str)
def test_move_files_never_replaces_one_kind_by_another(house, source, dst):
    (house / "box/sub/a.txt").mkdir()

    _, seen = move(house, source, dst=dst, overwrite=True)

    assert seen["ok"] is False


def test_move_files_counts_what_is_in_folders(house):
    promised, _ = move(house, "box", "a.txt", dst="altra/nuova")

    assert promised["count"] == 3
    assert promised["bytes"] == len("box/c.txt") + len("box/sub/d.txt") + len("a.txt")


def test_move_files_single_result_of_a_search_goes_into_a_new_folder(house):
    args = {"entries": [{"path": str(house / "a.txt")}], "dst": str(house / "Archivio")}

    seen = run("move_files", args, house)

    assert seen["entries"][0]["path"] == str(house / "Archivio/a.txt")


def test_move_files_target_that_appears_meanwhile_is_not_lost(house, monkeypatch):
    """Somebody makes the target after it was looked at."""
    real = writing.rename

    def late(source, target):
        Path(target.path).write_text("nuovo arrivato", encoding="utf-8")
        real(source, target)

    monkeypatch.setattr(trash, "rename", late)
    _, seen = move(house, "a.txt", dst="nuovo.txt")

    assert seen["error"]["code"] == "already_exists"
    assert (house / "nuovo.txt").read_text(encoding="utf-8") == "nuovo arrivato"
    assert (house / "a.txt").exists()


@pytest.fixture
def other_disk(tmp_path):
    """A folder on another file system."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is only one file system")
    folder = Path(tempfile.mkdtemp(dir=shared))
    yield folder
    shutil.rmtree(folder)


def test_move_files_to_another_disk_copies_all_then_removes(house, other_disk):
    (house / "box/link").symlink_to("../a.txt")
    os.utime(house / "box/c.txt", (1_000_000_000, 1_000_000_000))
    (house / "box/c.txt").chmod(0o640)
    before = snapshot(house / "box")

    seen = run_caged(
        "move_files", {"paths": [str(house / "box")], "dst": str(other_disk)}, house, other_disk
    )

    assert seen["ok"], seen
    assert snapshot(other_disk / "box") == before
    assert not (house / "box").exists()
    moved = (other_disk / "box/c.txt").stat()
    assert (moved.st_mtime, moved.st_mode & 0o777) == (1_000_000_000, 0o640)


def test_move_files_to_another_disk_that_fills_up_changes_nothing(house, other_disk, monkeypatch):
    before = snapshot(house)

    def full(_fd, _data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        args = {"paths": [str(house / "box")], "dst": str(other_disk)}
        seen = run("move_files", args, house, other_disk)

    assert seen["error"]["code"] == "disk_full"
    assert snapshot(house) == before
    assert snapshot(other_disk) == {}


def test_move_files_to_another_disk_refuses_a_fifo_whole(house, other_disk):
    os.mkfifo(house / "box/sub/fifo")
    before = snapshot(house)

    args = {"paths": [str(house / "box")], "dst": str(other_disk)}
    seen = run("move_files", args, house, other_disk)

    assert seen["error"]["code"] == "not_regular"
    assert snapshot(house) == before
    assert snapshot(other_disk) == {}
