"""Deleting: everything goes to the trash of the turn, and can be put back where it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.executors.file_cases import run, run_caged, snapshot, undo_of

TURN = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def house(tmp_path):
    for name in ("a.txt", "b.txt", "box/c.txt", "box/sub/d.txt", "box/.nascosto"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return tmp_path


def delete(root, *paths):
    args = {"paths": [str(root / path) for path in paths]}
    before = snapshot(root)
    promised = run("delete_files", args, root, mode="preview")
    assert snapshot(root) == before
    return promised, run("delete_files", args, root)


@pytest.mark.parametrize(
    ("paths", "items"),
    [
        (["a.txt"], 1),
        (["a.txt", "b.txt"], 2),
        (["box"], 3),
        (["box/sub/d.txt", "box", "a.txt"], 4),
        (["a.txt", "a.txt"], 1),
    ],
    ids=str,
)
def test_delete_files_can_be_put_back_exactly(house, paths, items):
    before = snapshot(house)

    promised, seen = delete(house, *paths)

    assert seen["ok"], seen
    assert all(not (house / path).exists() for path in paths)
    assert all(Path(entry["trash"]).exists() for entry in seen["entries"])
    assert promised["count"] == seen["metadata"]["items"] == items
    assert promised["bytes"] == seen["metadata"]["bytes"]
    # What was in a folder that went comes back with the folder.
    assert all(step in undo_of(seen) for step in promised["undo"])
    for step in promised["undo"]:
        Path(step["from"]).rename(step["to"])
    after = {k: v for k, v in snapshot(house).items() if not k.startswith(".metnos-trash")}
    assert after == before


def test_delete_files_keeps_the_path_under_the_turn(house):
    _, seen = delete(house, "box/sub/d.txt")

    assert seen["entries"][0]["trash"] == str(house / ".metnos-trash" / TURN / "box/sub/d.txt")
    assert (house / ".metnos-trash").stat().st_mode & 0o777 == 0o700


def test_delete_files_same_name_again_in_one_turn_loses_nothing(house):
    """A file, then a file, then a folder of the same name."""
    kept = []
    for content in ("primo", "secondo"):
        (house / "a.txt").write_text(content, encoding="utf-8")
        kept.append(delete(house, "a.txt")[1]["entries"][0]["trash"])
    (house / "a.txt").mkdir()
    (house / "a.txt/x").write_text("terzo", encoding="utf-8")
    kept.append(delete(house, "a.txt/x")[1]["entries"][0]["trash"])

    texts = [Path(path).read_text(encoding="utf-8") for path in kept]
    assert texts == ["primo", "secondo", "terzo"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "out_of_scope"),
        ("none.txt", "not_found"),
        ("a.txt/x", "not_found"),
        ("link/hostname", "out_of_scope"),
        (".metnos-trash", "not_found"),
        (".metnos-trash/x", "not_found"),
        ("..", "out_of_scope"),
        ("box/../a.txt", "out_of_scope"),
    ],
)
def test_delete_files_refusal_changes_nothing(house, path, code):
    (house / "link").symlink_to("/etc")
    (house / ".metnos-trash").mkdir()
    (house / ".metnos-trash/x").touch()
    before = snapshot(house)

    promised = run(
        "delete_files",
        {"paths": [f"{house}/{path}" if path else str(house)]},
        house,
        mode="preview",
    )
    seen = run("delete_files", {"paths": [f"{house}/{path}" if path else str(house)]}, house)

    assert promised["error"]["code"] == seen["error"]["code"] == code
    assert snapshot(house) == before


def test_delete_files_never_takes_a_root_inside_another(house):
    inner = house / "box/sub"

    seen = run("delete_files", {"paths": [str(house / "box"), str(inner)]}, house, inner)
    file = run("delete_files", {"paths": [str(inner / "d.txt")]}, house, inner)

    assert [entry["error"]["code"] for entry in seen["entries"]] == ["out_of_scope"] * 2
    assert file["entries"][0]["trash"] == str(inner / ".metnos-trash" / TURN / "d.txt")


def test_delete_files_link_goes_itself_and_not_what_it_names(house, tmp_path_factory):
    outside = tmp_path_factory.mktemp("fuori")
    (outside / "x").write_text("resta", encoding="utf-8")
    (house / "link").symlink_to(outside)

    _, seen = delete(house, "link")

    assert seen["ok"]
    assert not (house / "link").is_symlink()
    assert (outside / "x").read_text(encoding="utf-8") == "resta"


def test_delete_files_trash_that_is_a_link_is_not_followed(house, tmp_path_factory):
    outside = tmp_path_factory.mktemp("fuori")
    (house / ".metnos-trash").symlink_to(outside)

    promised, seen = delete(house, "a.txt")

    assert promised["ok"] is seen["ok"] is False
    assert (house / "a.txt").exists()
    assert list(outside.iterdir()) == []


def test_delete_files_some_work_and_some_do_not(house):
    promised, seen = delete(house, "a.txt", "none.txt", "b.txt")

    assert seen["ok"] is True
    assert (seen["metadata"]["ok_count"], seen["metadata"]["failed_count"]) == (2, 1)
    assert promised["targets"] == [str(house / "a.txt"), str(house / "b.txt")]
    assert [one["path"] for one in promised["refused"]] == [str(house / "none.txt")]


def test_delete_files_odd_names_and_kinds_go_too(house):
    os.mkfifo(house / "fifo")
    (house / "box" / os.fsdecode(b"caff\xe8")).mkdir()

    promised, seen = delete(house, "fifo", "box")

    assert seen["ok"], seen
    assert promised["count"] == 4


def test_delete_files_nothing_is_an_empty_list(house):
    assert run("delete_files", {"paths": []}, house)["entries"] == []
    assert run("delete_files", {"paths": []}, house, mode="preview")["count"] == 0


def test_delete_files_in_the_cage_says_that_something_changed(house):
    args = {"entries": [{"path": str(house / "a.txt")}]}

    promised = run_caged("delete_files", args, house, mode="preview")
    seen = run_caged("delete_files", args, house)

    assert promised["content"]["count"] == 1
    assert "effects" not in promised
    assert seen["effects"] == "done"
