"""Long walks: what is closed on the way, how far they are, and what they keep in memory."""

from __future__ import annotations

import itertools
import os
import tracemalloc
from pathlib import Path

import pytest

from executors._sdk.call import Call
from executors._sdk.files import Place, closed_in, is_closed
from executors._sdk.walking import Pace
from executors.find_dirs import main as find_dirs
from executors.find_files import main as find_files
from executors.find_files_hash import main as find_files_hash
from executors.get_files import main as get_files
from executors.list_dirs import main as list_dirs

CLOSED = {
    "trees": ["/home/anna/.metnos", "/root", "/home/anna/a/private/"],
    "names": [".ssh", ".gnupg"],
    "files": [[".config", "token"], ["token", "token"], ["a", "key"]],
}
WORDS = ("a", "A", ".ssh", ".SSH", ".config", "token", "Token", "key", ".metnos", "private", "b")


def told_call(folder, **args):
    told = []
    call = Call(
        {"args": args, "roots": [str(folder)]}, progress=lambda done, total: told.append(done)
    )
    return call, told


@pytest.mark.parametrize("root", ["/home/anna", "/", "/root", "/root/x", "/home/anna/a/private"])
def test_what_is_closed_in_a_folder_is_what_is_closed_one_by_one(root):
    call = Call({"roots": [root], "closed": CLOSED})
    folders = [
        parts
        for depth in range(3)
        for parts in itertools.product(("home", "anna", "root", *WORDS), repeat=depth)
    ]

    for parts in folders:
        here = Place(root, parts)
        is_shut = closed_in(call, here)
        for name in (*WORDS, "root", "anna"):
            assert is_shut(name) == is_closed(call, here.child(name)), (parts, name)


def test_pace_tells_each_five_hundredth_step_and_ends_with_its_time():
    call, told = told_call("/")
    in_time, late = Pace(call), Pace(call, budget_s=-1)

    assert all(in_time.step(number) for number in range(1, 1001))
    assert told == [500, 1000]
    assert [late.step(number) for number in range(1, 501)] == [True] * 499 + [False]
    assert (in_time.over, late.over) == (False, True)


@pytest.mark.parametrize(
    ("program", "args"),
    [
        (find_files, {}),
        (find_dirs, {}),
        (find_files_hash, {}),
        (list_dirs, {"recursive": True}),
        (get_files, {}),
    ],
    ids=lambda value: getattr(value, "__name__", "").split(".")[-2:-1] or None,
)
def test_walk_through_much_tells_how_far_it_is(tmp_path, program, args):
    for number in range(1100):
        os.close(os.open(tmp_path / f"{number}.txt", os.O_CREAT))
    where = {get_files: "paths", list_dirs: "path"}.get(program, "base_path")
    target = [str(tmp_path)] if program is get_files else str(tmp_path)
    call, told = told_call(tmp_path, **{where: target}, **args)

    assert program.run(call)["ok"]
    assert len(told) >= 2


@pytest.mark.parametrize("program", [find_files, find_dirs, list_dirs])
def test_walk_that_takes_too_long_says_that_it_is_not_all(tmp_path, monkeypatch, program):
    for number in range(600):
        os.close(os.open(tmp_path / f"{number}.txt", os.O_CREAT))
    where = "path" if program is list_dirs else "base_path"
    call, _ = told_call(tmp_path, **{where: str(tmp_path)}, max_results=1000)
    monkeypatch.setattr(program, "Pace", lambda call: Pace(call, budget_s=-1))

    metadata = program.run(call)["metadata"]

    assert (metadata["incomplete"], metadata["truncated"]) == (True, True)
    assert metadata["available"] < 600


def test_copies_among_many_files_of_one_size_take_little_memory(tmp_path):
    size, count = (1 << 16) + 1, 200
    for number in range(count):
        with (tmp_path / f"{number:03}.bin").open("wb") as file:
            file.write(b"%d" % (number // 2 if number < 4 else number))
            file.truncate(size)
    call, _ = told_call(tmp_path, base_path=str(tmp_path))

    tracemalloc.start()
    try:
        found = find_files_hash.run(call)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    names = [(entry["name"], Path(entry["same_as"]).name) for entry in found["entries"]]
    assert sorted(sorted(pair) for pair in names) == [
        ["000.bin", "001.bin"],
        ["002.bin", "003.bin"],
    ]
    assert peak < count * size / 4


def test_copies_beyond_what_is_shown_are_counted(tmp_path):
    for number in range(40):
        (tmp_path / f"{number:02}.txt").write_text("uguale")
    os.link(tmp_path / "00.txt", tmp_path / "other name.txt")
    call, _ = told_call(tmp_path, base_path=str(tmp_path), max_results=5)

    found = find_files_hash.run(call)

    assert [entry["name"] for entry in found["entries"]] == [f"{n:02}.txt" for n in range(2, 7)]
    assert found["metadata"] == {
        "count": 5,
        "ok_count": 5,
        "failed_count": 0,
        "used": 5,
        "available": 38,
        "truncated": True,
        "groups": 1,
        "total_bytes": 6 * 38,
        "compared": 40,
        "unreadable": 1,  # a file with two names is never opened
    }
