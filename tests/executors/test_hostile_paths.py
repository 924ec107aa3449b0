"""Paths that want out: no spelling leads outside the roots, and none brings an executor down.

The engine refuses most of them before; here each executor is asked directly, as if it had not.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
from typing import Any

import pytest

from tests.executors.file_cases import NAMES, run, run_caged, snapshot

SECRET = "segretissimo"

_UPS = (
    "..",
    "../..",
    "./..",
    ".../..",
    "..%2f",
    "%2e%2e",
    "%2e%2e%2f",
    "..%5c",
    "..\\",
    "%252e%252e",
    "%c0%ae%c0%ae",
    "．．",
    "․․",
    "..\u200b",
    "..;",
    ".. ",
    " ..",
    "..\t",
    "..\n",
    "..\r",
    "..\x00",
    "~",
    "~root",
    "$HOME",
    "${HOME}",
    "`id`",
    "$(id)",
    "dir/..",
    "dir/../..",
    "dir/./..",
    "link",
    "link/..",
    "loop",
    "here",
    "up",
)
_ABSOLUTE = (
    "/",
    "//",
    "///",
    "/.",
    "/..",
    "/etc/passwd",
    "//etc/passwd",
    "/etc//passwd",
    "/./etc/passwd",
    "/../etc/passwd",
    "/etc/passwd/",
    "/etc/passwd\x00.txt",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/etc/passwd",
    "/proc/self/environ",
    "/proc/self/fd/0",
    "/proc/thread-self/root/etc/passwd",
    "/dev/fd/0",
    "/dev/stdin",
    "/dev/zero",
    "/dev/null",
    "/dev/tty",
    "/sys/kernel",
    "/root/.ssh/id_rsa",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "FILE:/etc/passwd",
    "http://a.example/x",
    "C:\\Windows\\win.ini",
    "\\\\server\\share",
    "~/.ssh/id_rsa",
    "~root/.ssh/id_rsa",
    "etc/passwd",
    "./etc/passwd",
    "",
    " ",
    ".",
    "..",
    "\x00",
    "\n",
    "\ud800",
    "\udcff",
    "/\ud800/x",
    "/\udcff",
    "\u202e/etc/passwd",
    "/" + "a" * 300,
    "/" + "a/" * 3000,
    "../" * 3000 + "etc/passwd",
    "-rf",
    "--help",
    "*",
    "{a,b}",
    "|id",
    ";id",
    "a\x1b[2Jb",
)


def _spellings(root, outside):
    """At least 150 ways to write a path that should not be reached."""
    made = [text for text in _ABSOLUTE if text not in ("*", "{a,b}")]
    made += [f"{root}/{up}/{outside.name}/{SECRET}.txt" for up in _UPS]
    made += [f"{root}/{up}" for up in _UPS]
    made += [f"{root}{tail}" for tail in ("-evil/x", "/", "//", "/.", "/./x", "/dir//x", "evil")]
    made += [f"{outside}/{SECRET}.txt", str(outside), f"{root}/hard.txt", str(root.parent)]
    made += [text.encode().hex() for text in ("..", "/etc/passwd")]
    made += [f"{root}/{text}" for text in _ABSOLUTE[:30]]
    return list(dict.fromkeys(made))


@pytest.fixture
def world(tmp_path):
    """A root with traps in it, beside a folder that must not change nor be read."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / f"{SECRET}.txt").write_text(f"{SECRET}!", encoding="utf-8")
    (tmp_path / "root-evil").mkdir()
    (tmp_path / "root-evil/x").write_text(f"{SECRET}!", encoding="utf-8")
    (root / "dir").mkdir(parents=True)
    (root / "dir/x").write_text("dentro", encoding="utf-8")
    (root / "a.txt").write_text("dentro", encoding="utf-8")
    (root / "link").symlink_to(outside)
    (root / "up").symlink_to("..")
    (root / "here").symlink_to(".")
    (root / "loop").symlink_to("loop")
    return tmp_path


def _calls(name, path, root):
    """Every place of an executor's arguments where a path can stand."""
    inside = str(root / "a.txt")
    match name:
        case "find_files":
            return [{"base_path": path}, {"patterns": [path]}]
        case "list_dirs":
            return [{"path": path}, {"path": path, "recursive": True}]
        case "read_files":
            return [{"paths": [path]}, {"entries": [{"path": path}], "tail_lines": 1}]
        case "write_files":
            return [
                {"path": path, "content": "x"},
                {"entries": [{"path": path, "content": "x"}], "mode": "append"},
            ]
        case "move_files":
            return [
                {"paths": [path], "dst": str(root / "dir")},
                {"paths": [inside], "dst": path, "overwrite": True},
            ]
        case _:
            return [{"paths": [path]}, {"entries": [{"path": path}]}]


def _outside_of(world):
    return {key: value for key, value in snapshot(world).items() if not key.startswith("root/")}


@pytest.mark.parametrize("name", NAMES)
def test_hostile_paths_reach_nothing_outside_and_raise_nothing(world, name):
    root, outside = world / "root", world / "outside"
    paths = _spellings(root, outside)
    assert len(paths) >= 150
    before = _outside_of(world)

    for path in paths:
        for args in _calls(name, path, root):
            for mode in ("preview", "run") if name not in NAMES[:2] + NAMES[3:4] else ("run",):
                seen = run(name, args, root, mode=mode)

                said = json.dumps(seen, allow_nan=False, ensure_ascii=False).encode("utf-8")
                assert f"{SECRET}!".encode() not in said, (path, mode)
                assert b'"internal"' not in said, (path, seen)
                assert b"write_failed" not in said, (path, seen)
    assert _outside_of(world) == before


@pytest.mark.parametrize("name", NAMES)
def test_hostile_paths_through_the_cage(world, name):
    """The many at once, where the call takes many; a few one by one where it takes one."""
    root, outside = world / "root", world / "outside"
    # Half a character cannot even be sent to the child: the engine refuses it before.
    paths = [p for p in _spellings(root, outside) if p.isprintable() or "\n" in p]
    before = _outside_of(world)
    whole: dict[str, list[dict[str, Any]]] = {
        "read_files": [{"paths": paths}],
        "delete_files": [{"paths": paths}],
        "move_files": [{"paths": paths, "dst": str(root / "dir")}],
        "write_files": [{"entries": [{"path": path, "content": "x"} for path in paths]}],
    }
    few = [args for path in paths[:12] for args in _calls(name, path, root)[:1]]

    for args in whole.get(name, few):
        seen = run_caged(name, args, root)

        assert f"{SECRET}!" not in json.dumps(seen)
        assert seen.get("error", {}).get("code") not in (
            "executor_crashed",
            "bad_output",
            "timeout",
        )
    assert _outside_of(world) == before


@pytest.mark.parametrize("path", [None, 7, 1.5, True, [], {}, ["x"]], ids=str)
@pytest.mark.parametrize("name", ["read_files", "delete_files", "move_files", "write_files"])
def test_entries_whose_path_is_no_text_are_refused_one_by_one(world, name, path):
    root = world / "root"
    entries = [{"path": path}, {}, {"ok": False}]

    seen = run(name, {"entries": entries, "dst": str(root / "dir")}, root)

    assert {entry["error"]["code"] for entry in seen["entries"]} == {"missing_input"}


def test_swapping_a_folder_for_a_link_while_reading_and_writing_leaks_nothing(world):
    """The race of check and use: a folder and a link to the secret change places all the time."""
    root, outside = world / "root", world / "outside"
    (root / "swap").mkdir()
    (root / f"swap/{SECRET}.txt").write_text("dentro", encoding="utf-8")
    (root / "other").symlink_to(outside)
    stop = threading.Event()

    libc = ctypes.CDLL(None, use_errno=True)
    pair = [os.fsencode(root / "swap"), os.fsencode(root / "other")]

    def swap():
        while not stop.is_set():
            # -100: AT_FDCWD, 2: RENAME_EXCHANGE, both at once.
            libc.renameat2(-100, pair[0], -100, pair[1], 2)

    thread = threading.Thread(target=swap)
    thread.start()
    path = str(root / f"swap/{SECRET}.txt")
    try:
        texts = set()
        for _ in range(300):
            read = run("read_files", {"paths": [path]}, root)["entries"][0]
            texts.add(read.get("text"))
            run("write_files", {"path": path, "content": "dentro", "mode": "overwrite"}, root)
    finally:
        stop.set()
        thread.join()

    assert texts <= {"dentro", None}
    assert os.listdir(outside) == [f"{SECRET}.txt"]  # noqa: PTH208
    assert (outside / f"{SECRET}.txt").read_text(encoding="utf-8") == f"{SECRET}!"
