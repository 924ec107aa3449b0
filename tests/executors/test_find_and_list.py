"""Finding and listing: what is meant by a pattern, what is hidden, what is counted."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from executors._sdk.globs import Patterns
from tests.executors.file_cases import run, run_caged

NOW = "2026-03-18T09:00:00+00:00"


@pytest.fixture
def house(tmp_path):
    for name, size in {
        "Bolletta.PDF": 10,
        "diario.md": 20,
        "foto/mare.jpg": 3000,
        "foto/monte.JPEG": 4000,
        "foto/2025/neve.png": 5000,
        "lavoro/conto.pdf": 70,
        "lavoro/vuoto.txt": 0,
        "perché no.txt": 5,
        ".nascosto": 1,
        ".git/config.pdf": 9,
        ".metnos-trash/t1/lavoro/via.pdf": 9,
        "lavoro/.metnos-trash/t1/via.pdf": 9,
        ".metnos-tmp-0123456789abcdef": 9,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    (tmp_path / "fuori").symlink_to("/etc")
    (tmp_path / "giro").symlink_to(tmp_path)
    (tmp_path / "finto.pdf").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "tubo.pdf")
    return tmp_path


def found(house, **args):
    seen = run("find_files", args, house, now=NOW)
    assert seen["ok"], seen
    return [os.path.relpath(entry["path"], house) for entry in seen["entries"]]


PDFS = ["Bolletta.PDF", "lavoro/conto.pdf"]
IMAGES = ["foto/mare.jpg", "foto/monte.JPEG", "foto/2025/neve.png"]


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["*.pdf"], PDFS),
        (["pdf"], PDFS),
        ([".pdf"], PDFS),
        (["PDF"], PDFS),
        (["**/*.pdf"], PDFS),
        (["*.{jpg,jpeg,png}"], IMAGES),
        (["jpg", "jpeg", "png"], IMAGES),
        (["foto/*"], IMAGES[:2]),
        (["foto/**"], IMAGES),
        (["foto/**/*.png"], IMAGES[2:]),
        (["DIARIO"], ["diario.md"]),
        (["diario.md"], ["diario.md"]),
        (["mare*"], ["foto/mare.jpg"]),
        (["[mn]*.*g"], IMAGES),
        (["perche\u0301 no.txt"], ["perché no.txt"]),
        ([".nascosto"], [".nascosto"]),
        (["nulla*"], []),
        (["", "  "], ["Bolletta.PDF", "diario.md", "perché no.txt", *IMAGES, *PDFS[1:]]),
    ],
    ids=str,
)
def test_find_files_pattern_means_what_people_mean(house, patterns, expected):
    names = found(house, patterns=patterns)

    assert [name for name in names if name != "lavoro/vuoto.txt"] == expected


def test_find_files_never_leaves_the_roots_nor_shows_the_trash(house):
    names = found(house)

    assert set(names) == {*PDFS, *IMAGES, "diario.md", "lavoro/vuoto.txt", "perché no.txt"}


def test_find_files_hidden_folder_is_searched_when_it_is_asked_for(house):
    assert found(house, base_path=str(house / ".git")) == [".git/config.pdf"]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"size_max": 0}, ["lavoro/vuoto.txt"]),
        ({"size_min": 4000}, ["foto/monte.JPEG", "foto/2025/neve.png"]),
        ({"size_min": 70, "size_max": 3000}, ["foto/mare.jpg", "lavoro/conto.pdf"]),
        ({"recursive": False, "patterns": ["pdf"]}, ["Bolletta.PDF"]),
    ],
    ids=str,
)
def test_find_files_size_and_depth_limit(house, args, expected):
    assert found(house, **args) == expected


@pytest.mark.parametrize(
    ("days", "expected"),
    [(1, ["diario.md"]), (3, ["diario.md", "lavoro/conto.pdf"]), (0, []), (0.5, ["diario.md"])],
    ids=str,
)
def test_find_files_age_counts_from_the_call(house, days, expected):
    now = datetime.fromisoformat(NOW).timestamp()
    for path in house.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (now - 86400 * 40,) * 2)
    os.utime(house / "diario.md", (now - 3600,) * 2)
    os.utime(house / "lavoro/conto.pdf", (now - 86400 * 2,) * 2)

    assert found(house, modified_within_days=days) == expected


def test_find_files_truncation_shows(house):
    seen = run_caged("find_files", {"max_results": 3}, house)

    assert len(seen["entries"]) == 3
    assert seen["metadata"]["truncated"] is True
    assert (seen["metadata"]["used"], seen["metadata"]["available"]) == (3, 8)


def test_find_files_entry_says_size_time_and_extension(house):
    moment = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    os.utime(house / "diario.md", (moment.timestamp(),) * 2)

    entry = run("find_files", {"patterns": ["diario*"]}, house)["entries"][0]

    assert entry == {
        "ok": True,
        "path": str(house / "diario.md"),
        "name": "diario.md",
        "size": 20,
        "modified": "2026-03-01T12:30:00+00:00",
        "kind": "file",
        "ext": "md",
    }


def test_find_files_without_folder_searches_every_root_once(house):
    seen = run("find_files", {"patterns": ["pdf"]}, house / "lavoro", house, house / "none")

    assert [entry["name"] for entry in seen["entries"]] == ["Bolletta.PDF", "conto.pdf"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("none", "not_found"),
        ("diario.md", "not_directory"),
        ("fuori", "out_of_scope"),
        ("fuori/ssl", "out_of_scope"),
        ("tubo.pdf", "not_directory"),
        (".metnos-trash", "not_found"),
        ("lavoro/.metnos-trash/t1", "not_found"),
    ],
)
@pytest.mark.parametrize(("name", "key"), [("find_files", "base_path"), ("list_dirs", "path")])
def test_folder_that_is_none_is_said(house, name, key, path, code):
    seen = run(name, {key: str(house / path)}, house)

    assert seen["ok"] is False
    assert seen["error"]["code"] == code


def test_find_files_name_that_is_no_text_is_left_out_not_fatal(house):
    fd = os.open(os.fsencode(house) + b"/caff\xe8.pdf", os.O_CREAT)
    os.close(fd)

    seen = run_caged("find_files", {"patterns": ["pdf"]}, house)
    listed = run_caged("list_dirs", {"path": str(house)}, house)

    assert [entry["name"] for entry in seen["entries"]] == ["Bolletta.PDF", "conto.pdf"]
    assert listed["metadata"]["unreadable_names"] == 1


def test_find_files_very_deep_tree_ends(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(260):
        os.mkdir("d", dir_fd=fd)
        deeper = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = deeper
    os.close(fd)

    seen = run("find_files", {}, tmp_path)

    assert seen["metadata"]["unreadable_folders"] == 1


def test_pattern_of_many_stars_is_answered_at_once():
    patterns = Patterns(["*a" * 40 + "b", "**/" * 40 + "x", "{a,b}" * 30])

    assert patterns.match(["a"] * 100 + ["a" * 250]) is False


def test_list_dirs_shows_files_then_folders_links_unfollowed(house):
    seen = run("list_dirs", {"path": str(house)}, house)

    kinds = {entry["name"]: entry["kind"] for entry in seen["entries"]}
    assert kinds["fuori"] == "link"
    assert kinds["tubo.pdf"] == "other"
    assert kinds["foto"] == "dir"
    assert ".nascosto" in kinds
    assert ".metnos-trash" not in kinds
    assert not any(name.startswith(".metnos-tmp-") for name in kinds)
    assert [entry["name"] for entry in seen["entries"]][-3:] == [".git", "foto", "lavoro"]
    assert seen["metadata"]["base_path"] == str(house)


def test_list_dirs_recursive_goes_into_visible_folders(house):
    seen = run("list_dirs", {"path": str(house), "recursive": True}, house)

    names = {os.path.relpath(entry["path"], house) for entry in seen["entries"]}
    assert "foto/2025/neve.png" in names
    assert ".git/config.pdf" not in names
    assert not any("trash" in name for name in names)


def test_list_dirs_without_path_lists_every_root(house, tmp_path_factory):
    other = tmp_path_factory.mktemp("altra")
    (other / "a.txt").touch()

    seen = run("list_dirs", {}, house / "lavoro", other)

    assert [entry["name"] for entry in seen["entries"]] == ["conto.pdf", "vuoto.txt", "a.txt"]
    assert "base_path" not in seen["metadata"]
    assert seen["metadata"]["files"] == 3


def test_list_dirs_truncation_shows(house):
    seen = run_caged("list_dirs", {"path": str(house), "max_results": 2}, house)

    assert seen["metadata"]["truncated"] is True
    assert (seen["metadata"]["used"], len(seen["entries"])) == (2, 2)
