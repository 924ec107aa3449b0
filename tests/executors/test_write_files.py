"""Writing: whole or not at all, byte for byte, and always with a way back."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

import pytest

from tests.executors.file_cases import run, run_caged, snapshot, undo_of


def write(root, **args):
    if "path" in args:
        args["path"] = str(root / args["path"])
    return run("write_files", args, root)


def preview(root, **args):
    if "path" in args:
        args["path"] = str(root / args["path"])
    return run("write_files", args, root, mode="preview")


@pytest.mark.parametrize(
    ("old", "mode", "content", "expected"),
    [
        (None, "overwrite", "ciao\n", b"ciao\n"),
        (None, "append", "ciao", b"ciao"),
        (None, "create", "perché\r\n", "perché\r\n".encode()),
        (b"vecchio", "overwrite", "nuovo", b"nuovo"),
        (b"uno\n", "append", "due\n", b"uno\ndue\n"),
        (b"uno", "append", "due", b"uno\ndue"),
        (b"uno", "append", "\ndue", b"uno\ndue"),
        (b"", "append", "due", b"due"),
        (b"x", "overwrite", {"blob": base64.b64encode(bytes(range(256))).decode()}, None),
        (b"x", "append", {"blob": "AAE="}, b"x\x00\x01"),
        (None, "overwrite", 3.5, b"3.5"),
        ("è\r\n".encode("utf-16"), "append", "à", "è\r\nà".encode("utf-16")),
        ("perché\n".encode("latin-1"), "append", "è", "perché\nè".encode("latin-1")),
        ("perché\n".encode("cp1252"), "append", "5 €", "perché\n5 €".encode("cp1252")),
    ],
    ids=str,
)
def test_write_files_leaves_exactly_what_the_preview_promised(
    tmp_path, old, mode, content, expected
):
    path = tmp_path / "a.txt"
    if old is not None:
        path.write_bytes(old)
    expected = bytes(range(256)) if expected is None else expected

    before = snapshot(tmp_path)
    promised = preview(tmp_path, path="a.txt", content=content, mode=mode)
    assert snapshot(tmp_path) == before
    seen = write(tmp_path, path="a.txt", content=content, mode=mode)

    assert path.read_bytes() == expected
    entry = seen["entries"][0]
    assert (entry["bytes"], entry["created"]) == (len(expected), old is None)
    assert promised["targets"] == [str(path)]
    assert promised["count"] == 1
    assert promised["after"][0]["sha256"] == hashlib.sha256(expected).hexdigest()
    assert promised["after"][0]["size"] == len(expected)
    assert promised["before"][0]["exists"] is (old is not None)
    assert promised["undo"] == undo_of(seen)
    if old is not None:
        assert promised["before"][0]["sha256"] == hashlib.sha256(old).hexdigest()
        assert Path(entry["kept"]).read_bytes() == old
        assert path.stat().st_nlink == 1
    assert not list(tmp_path.glob(".metnos-tmp*"))


@pytest.mark.parametrize(
    ("path", "mode", "code"),
    [
        ("here.txt", "create", "already_exists"),
        ("dir", "overwrite", "is_directory"),
        ("here.txt/a.txt", "overwrite", "not_directory"),
        ("fifo", "overwrite", "not_regular"),
        ("link.txt", "overwrite", "out_of_scope"),
        ("dangling", "create", "already_exists"),
        ("out/a.txt", "overwrite", "out_of_scope"),
        ("hard.txt", "append", "many_names"),
        ("x" * 300, "overwrite", "name_too_long"),
        (".metnos-trash/a", "overwrite", "not_found"),
        ("", "overwrite", "is_directory"),
    ],
)
def test_write_files_refusal_changes_nothing(tmp_path, path, mode, code):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.txt").write_text("fuori", encoding="utf-8")
    (root / "here.txt").write_text("qui", encoding="utf-8")
    (root / "dir").mkdir()
    os.mkfifo(root / "fifo")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    (root / "dangling").symlink_to(tmp_path / "none.txt")
    (root / "out").symlink_to(tmp_path)
    os.link(tmp_path / "outside.txt", root / "hard.txt")
    before = snapshot(tmp_path)

    promised = preview(root, path=path, content="x", mode=mode)
    seen = write(root, path=path, content="x", mode=mode)

    assert promised["error"]["code"] == seen["error"]["code"] == code
    assert snapshot(tmp_path) == before


def test_write_files_makes_missing_folders_beneath_the_root(tmp_path):
    write(tmp_path, path="a/b/c/d.txt", content="x")

    assert (tmp_path / "a/b/c/d.txt").read_text(encoding="utf-8") == "x"


def test_write_files_keeps_the_permissions_of_what_it_replaces(tmp_path):
    (tmp_path / "a.sh").write_text("x", encoding="utf-8")
    (tmp_path / "a.sh").chmod(0o750)

    write(tmp_path, path="a.sh", content="y")

    assert (tmp_path / "a.sh").stat().st_mode & 0o777 == 0o750


def test_write_files_full_disk_leaves_the_old_and_no_trace(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("vecchio", encoding="utf-8")

    def full(_fd, _data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    seen = write(tmp_path, path="a.txt", content="nuovo")

    assert seen["error"]["code"] == "disk_full"
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "vecchio"
    assert not list(tmp_path.glob(".metnos-tmp*"))


def test_write_files_after_a_crash_before_the_rename_goes_on(tmp_path, monkeypatch):
    """The old file has its second name in the trash, the new one is unfinished beside it."""
    path = tmp_path / "a.txt"
    path.write_text("vecchio", encoding="utf-8")

    def killed(*_args, **_kwargs):
        raise KeyboardInterrupt

    unlink, calls = os.unlink, []

    def unlink_once(name, **where):
        calls.append(name)
        if len(calls) > 1:
            raise OSError(5, "dead processes do not tidy up")
        unlink(name, **where)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", killed)
        patch.setattr(os, "unlink", unlink_once)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path, path="a.txt", content="nuovo")
    assert path.stat().st_nlink == 2
    assert len(list(tmp_path.glob(".metnos-tmp*"))) == 1
    seen = write(tmp_path, path="a.txt", content="nuovo")

    assert seen["ok"], seen
    assert path.read_text(encoding="utf-8") == "nuovo"
    assert not list(tmp_path.glob(".metnos-tmp*"))
    assert Path(seen["entries"][0]["kept"]).read_text(encoding="utf-8") == "vecchio"


def test_write_files_twice_in_a_turn_keeps_both_old_versions(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("uno", encoding="utf-8")
    kept = [write(tmp_path, path="a.txt", content=t)["entries"][0]["kept"] for t in ("due", "tre")]

    assert [Path(name).read_text(encoding="utf-8") for name in kept] == ["uno", "due"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("a\ud800b", "bad_text"),
        ({"blob": "non base64!"}, "invalid_args"),
        ({"testo": "x"}, "invalid_args"),
        ({"blob": "eA==", "truncated": True}, "too_large"),
    ],
    ids=["surrogate", "not_base64", "no_blob", "partial_blob"],
)
def test_write_files_content_that_is_none_is_refused(tmp_path, content, code):
    seen = write(tmp_path, path="n/a.txt", content=content)

    assert seen["error"]["code"] == code
    assert snapshot(tmp_path) == {}


def test_write_files_without_content_makes_an_empty_file_but_empties_none(tmp_path):
    (tmp_path / "a.txt").write_text("caro", encoding="utf-8")

    seen = write(tmp_path, path="a.txt")
    new = write(tmp_path, path="b.txt")

    assert seen["error"]["code"] == "missing_input"
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "caro"
    assert new["entries"][0]["bytes"] == 0


def entries_at(root, *entries):
    return [{**entry, "path": str(root / entry["path"])} for entry in entries]


def test_write_files_entries_each_go_to_their_path(tmp_path):
    given = entries_at(
        tmp_path,
        {"path": "a.txt", "content": "uno"},
        {"path": "b.bin", "body": {"blob": "AAE="}},
        {"path": "c.txt", "text": "tre"},
        {"path": "a.txt", "content": "ancora"},
        {"path": "../d.txt", "content": "no"},
    )

    seen = write(tmp_path, entries=given)
    promised = preview(tmp_path, entries=given)

    assert [entry["ok"] for entry in seen["entries"]] == [True, True, True, False, False]
    assert seen["entries"][3]["error"]["code"] == "already_exists"
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "uno"
    assert (tmp_path / "b.bin").read_bytes() == b"\x00\x01"
    assert promised["count"] == 3
    assert write(tmp_path, entries=[])["entries"] == []


def test_write_files_entries_into_one_file(tmp_path):
    page = {"url": "https://a.example", "text": "una pagina"}
    one = write(tmp_path, path="a.txt", entries=[page])
    listing = write(
        tmp_path, path="b.txt", entries=[{"path": "/x/1"}, {"path": "/x/2", "size": 1}]
    )
    both = write(tmp_path, path="c.txt", entries=[page, page], mode="append")

    assert [one["ok"], listing["ok"], both["ok"]] == [True] * 3
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "una pagina"
    assert (tmp_path / "b.txt").read_text(encoding="utf-8") == "/x/1\n/x/2\n"
    assert (tmp_path / "c.txt").read_text(encoding="utf-8") == "una pagina\n" * 2


def test_write_files_part_of_a_text_is_named_and_replaces_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("intero", encoding="utf-8")
    part = [{"text": "int", "truncated": True}]

    over = write(tmp_path, path="a.txt", entries=part)
    new = write(tmp_path, path="b.txt", entries=part)

    assert over["error"]["code"] == "too_large"
    assert new["entries"][0]["partial"] == 3


def test_write_files_in_the_cage_with_megabytes(tmp_path):
    data = os.urandom(3 << 20)
    content = {"blob": base64.b64encode(data).decode(), "media_type": "image/png"}

    seen = run_caged(
        "write_files", {"path": str(tmp_path / "a.png"), "content": content}, tmp_path
    )

    assert seen["effects"] == "done"
    assert (tmp_path / "a.png").read_bytes() == data


def test_append_of_what_the_files_encoding_cannot_hold_leaves_the_file(tmp_path):
    """Another encoding in its second half would spoil the first for whoever reads it."""
    path = tmp_path / "a.txt"
    path.write_bytes("perché\n".encode("latin-1"))

    seen = preview(tmp_path, path="a.txt", content="日本", mode="append")
    tried = write(tmp_path, path="a.txt", content="日本", mode="append")

    assert seen["error"]["code"] == tried["error"]["code"] == "other_encoding"
    assert path.read_bytes() == "perché\n".encode("latin-1")
