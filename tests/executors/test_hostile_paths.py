"""Paths that want out: no spelling leads outside the roots, and none brings an executor down.

The engine refuses most of them before; here each executor is asked directly, as if it had not.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import threading
import zipfile
from typing import Any

import pytest

from executors._sdk import beneath, files
from tests.executors.file_cases import CHANGING, NAMES, run, run_caged, snapshot

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


_TAILS = (
    "",
    "/",
    "/.",
    "/..",
    f"/{SECRET}.txt",
    f"/outside/{SECRET}.txt",
    f"/../outside/{SECRET}.txt",
    f"/../../outside/{SECRET}.txt",
    f"/./../outside//{SECRET}.txt",
    f"\x00/{SECRET}.txt",
    f"\\..\\outside\\{SECRET}.txt",
    f"%2f..%2foutside%2f{SECRET}.txt",
)
_STEPS = (
    "",
    "/dir",
    "/dir/..",
    "/link",
    "/up",
    "/here",
    "/here/up",
    "/loop",
    "/deep",
    "/hard.txt",
)


def _spellings(root, outside):
    """A few hundred ways to write a path that should not be reached; 25 families."""
    made = [text for text in _ABSOLUTE if text not in ("*", "{a,b}")]
    made += [f"{root}/{up}/{outside.name}/{SECRET}.txt" for up in _UPS]
    made += [f"{root}/{up}" for up in _UPS]
    made += [f"{root}{tail}" for tail in ("-evil/x", "/", "//", "/.", "/./x", "/dir//x", "evil")]
    made += [f"{outside}/{SECRET}.txt", str(outside), f"{root}/hard.txt", str(root.parent)]
    made += [text.encode().hex() for text in ("..", "/etc/passwd")]
    made += [f"{root}/{text}" for text in _ABSOLUTE[:30]]
    return list(dict.fromkeys(made))


def _corpus(root, outside):
    """S1: at least 950 of them, each step that leads astray with each ending; made without chance,
    so there is no seed to print."""
    made = _spellings(root, outside)
    made += [f"{root}{step}{tail}" for step in _STEPS for tail in _TAILS]
    made += [f"{root}/{up}{tail}" for up in _UPS for tail in _TAILS]
    made += [
        f"{root}/{step}/{up}{tail}" for step in ("dir", "here") for up in _UPS for tail in _TAILS
    ]
    fine = {str(root), f"{root}/a.txt", f"{root}/dir", f"{root}/dir/x"}
    return [path for path in dict.fromkeys(made) if path not in fine]


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
    with zipfile.ZipFile(root / "z.zip", "w") as archive:
        archive.writestr("x.txt", "dentro")
    (root / "link").symlink_to(outside)
    (root / "up").symlink_to("..")
    (root / "here").symlink_to(".")
    (root / "loop").symlink_to("loop")
    (root / "deep").symlink_to("dir/../link")
    (outside / "other.txt").write_text(f"{SECRET}!", encoding="utf-8")
    (root / "hard.txt").hardlink_to(outside / "other.txt")
    (root / "key.txt").symlink_to(outside / f"{SECRET}.txt")
    return tmp_path


def _calls(name, path, root):
    """Every place of an executor's arguments where a path can stand."""
    inside = str(root / "a.txt")
    match name:
        case "find_files":
            return [{"base_path": path}, {"patterns": [path]}]
        case "list_dirs":
            return [{"path": path}, {"path": path, "recursive": True}]
        case "find_files_hash":
            return [{"base_path": path}, {"base_path": str(root / "dir"), "other_paths": [path]}]
        case "find_dirs":
            return [{"base_path": path}]
        case "compress_files":
            return [{"paths": [path]}, {"paths": [inside], "dest": path}]
        case "extract_files":
            return [{"paths": [path]}, {"paths": [str(root / "z.zip")], "dest": path}]
        case "create_files_doc":
            return [{"path": path, "content": "x"}]
        case "change_files_format":
            return [
                {"paths": [path], "to_format": "md"},
                {"paths": [inside], "to_format": "html", "dest": path},
            ]
        case "create_files_spreadsheet" | "write_files_spreadsheet":
            return [{"path": path, "rows": [["x"]]}]
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


def _try_all(name, paths, root):
    """Every path at every place of the arguments; what was said that must not be."""
    bad = []
    for path in paths:
        for args in _calls(name, path, root):
            for mode in ("preview", "run") if name in CHANGING else ("run",):
                seen = run(name, args, root, mode=mode)
                said = json.dumps(seen, allow_nan=False, ensure_ascii=False).encode("utf-8")
                if any(word in said for word in (f"{SECRET}!".encode(), b'"internal"')):
                    bad.append((path, mode))
                if b"write_failed" in said:
                    bad.append((path, mode))
    return bad


@pytest.mark.parametrize("way", ["openat2", "step by step"])
@pytest.mark.parametrize("name", NAMES)
def test_hostile_paths_reach_nothing_outside_and_raise_nothing(world, name, way, monkeypatch):
    """S1. All of the corpus with the kernel's own check, a part of it without."""
    root, outside = world / "root", world / "outside"
    # What is in a document is not at issue, and making a thousand takes a while.
    monkeypatch.setattr("executors._sdk.documents._as_docx", lambda *given: b"docx")
    paths = _corpus(root, outside)
    assert len(paths) >= 950
    if way == "step by step":
        monkeypatch.setattr(beneath, "_openat2", beneath._absent)
        paths = paths[::4]
    before = _outside_of(world)

    bad = _try_all(name, paths, root)

    print(f"S1: {name}, {way}: {len(paths)} paths, {len(bad)} escapes or exceptions")
    assert bad == []
    assert _outside_of(world) == before


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("links are followed", {"beneath": ("open_folder", "open_root")}),
        ("second names are read", {"files": ("check_single",)}),
        ("dots climb", {"files": ("_components",)}),
    ],
)
def test_hostile_paths_escape_without_one_of_the_checks(world, name, mutant, monkeypatch):
    """The corpus can tell: each check taken away lets something out."""
    root, outside = world / "root", world / "outside"
    followed = os.O_PATH | os.O_DIRECTORY
    without = {
        "open_folder": lambda fd, parts: os.open("/".join(parts) or ".", followed, dir_fd=fd),
        "open_root": lambda path: os.open(path, followed),
        "check_single": lambda info, **_: None,
        "_components": lambda path: tuple(path.strip("/").split("/")),
    }
    for module, names in mutant.items():
        for one in names:
            monkeypatch.setattr({"files": files, "beneath": beneath}[module], one, without[one])
    if name == "dots climb":
        for one in ("open_folder", "open_root"):
            monkeypatch.setattr(beneath, one, without[one])

    assert _try_all("read_files", _corpus(root, outside), root)


@pytest.mark.parametrize("way", ["openat2", "step by step"])
def test_legitimate_paths_work(world, way, monkeypatch):
    root = world / "root"
    if way == "step by step":
        monkeypatch.setattr(beneath, "_openat2", beneath._absent)
    deep = "/".join("abcdefgh")
    kept = str(root / "dir/trash me.txt")

    seen = [
        run("read_files", {"paths": [f"{root}/a.txt", f"{root}/dir/x"]}, root),
        run("write_files", {"path": f"{root}/{deep}/è · ünï.txt", "content": "x"}, root),
        run("read_files", {"paths": [f"{root}/{deep}/è · ünï.txt"]}, root),
        run("write_files", {"path": f"{root}/a.txt", "content": "y", "mode": "append"}, root),
        run("write_files", {"path": kept, "content": "z"}, root),
        run("list_dirs", {"path": str(root), "recursive": True}, root),
        run("find_files", {"base_path": str(root), "patterns": ["*.txt"]}, root),
        run("find_files", {}, root),
        run("move_files", {"paths": [f"{root}/{deep}"], "dst": f"{root}/dir"}, root),
        run("delete_files", {"paths": [kept, f"{root}/link", f"{root}/hard.txt"]}, root),
    ]

    assert [one["ok"] for one in seen] == [True] * 10
    assert all(entry["ok"] for one in seen for entry in one["entries"])
    assert (root / "a.txt").read_text(encoding="utf-8") == "dentro\ny"
    assert (world / f"outside/{SECRET}.txt").exists()


def test_second_name_is_not_read_nor_written_nor_copied(world):
    root = world / "root"
    path = str(root / "hard.txt")

    codes = {
        run(name, args, root)["entries"][0]["error"]["code"]
        for name, args in (
            ("read_files", {"paths": [path]}),
            ("write_files", {"path": path, "content": "x"}),
            ("write_files", {"path": path, "content": "x", "mode": "append"}),
        )
    }

    assert codes == {"many_names"}


CLOSED = {
    "names": [".gnupg", ".ssh"],
    "files": [[".aws", "credentials"], [".config", "credentials.env"]],
}


@pytest.fixture
def house(tmp_path):
    """A person's whole home as a root, with keys, and the product's home and a workspace in it."""
    home = tmp_path / "person"
    for name in (
        ".ssh/id_rsa",
        "old/.SSH/id_rsa",
        ".gnupg/ring",
        ".aws/credentials",
        ".config/shop/credentials.env",
        "metnos/private/metnos.db",
        "metnos/files/me/note.txt",
        "open/note.txt",
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"{SECRET}!" if "note" not in name else "words", encoding="utf-8")
    return home


def test_closed_places_are_passed_over_and_refused_even_inside_a_root(house):
    closed = {**CLOSED, "trees": [str(house / "metnos")]}
    roots = (house, house / "metnos/files/me")
    shut = [p for p in map(str, house.rglob("*")) if os.path.isfile(p) and "note" not in p]  # noqa: PTH113

    found = run("find_files", {"patterns": ["*", ".*"]}, *roots, closed=closed)
    listed = run("list_dirs", {"path": str(house), "recursive": True}, house, closed=closed)
    read = run("read_files", {"paths": shut}, *roots, closed=closed)
    wrote = run("write_files", {"path": f"{house}/x/.ssh/k", "content": "x"}, house, closed=closed)

    assert sorted(entry["name"] for entry in found["entries"]) == ["note.txt", "note.txt"]
    assert not {".ssh", ".gnupg", "metnos"} & {entry["name"] for entry in listed["entries"]}
    assert len(shut) == 6
    assert {entry["error"]["code"] for entry in read["entries"]} == {"forbidden_path"}
    assert wrote["error"]["code"] == "forbidden_path"
    assert run(
        "read_files", {"paths": [f"{house}/metnos/files/me/note.txt"]}, *roots, closed=closed
    )["ok"]


@pytest.mark.parametrize("way", ["openat2", "step by step"])
def test_folder_beneath_another_is_opened_by_either_way_alike(world, way, monkeypatch):
    if way == "step by step":
        monkeypatch.setattr(beneath, "_openat2", beneath._absent)
    root = beneath.open_root(str(world / "root"))
    try:
        for parts, number in (
            (("link",), errno.ELOOP),
            (("here", "dir"), errno.ELOOP),
            (("up",), errno.ELOOP),
            (("loop",), errno.ELOOP),
            (("a.txt",), errno.ENOTDIR),
            (("a.txt", "x"), errno.ENOTDIR),
            (("nothing",), errno.ENOENT),
            (("..", "outside"), errno.EXDEV),
            (("dir", "..", "..", "outside"), errno.EXDEV),
        ):
            with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is looked at
                os.close(beneath.open_folder(root, parts))
            assert caught.value.errno == number, parts
        with pytest.raises(OSError):  # noqa: PT011
            beneath.open_folder(root, ("dir\0x",))
        with pytest.raises(OSError):  # noqa: PT011
            beneath.open_root(str(world / "root/link"))
        os.close(beneath.open_folder(root, ("dir",)))
        os.close(beneath.open_folder(root, ()))
    finally:
        os.close(root)


def test_kernel_is_asked_where_it_can_be():
    """Elsewhere the other way is taken; here it is known to be there since Linux 5.6."""
    os.close(beneath.open_root("/"))
    if tuple(map(int, os.uname().release.split(".")[:2])) >= (5, 6):
        assert beneath._openat2 is not beneath._absent


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
    assert sorted(os.listdir(outside)) == ["other.txt", f"{SECRET}.txt"]  # noqa: PTH208
    assert (outside / f"{SECRET}.txt").read_text(encoding="utf-8") == f"{SECRET}!"
