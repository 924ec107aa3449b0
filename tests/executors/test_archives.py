"""Packing and unpacking: nothing lands outside the new folder, no more than may, all or none."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from executors._sdk import archives
from tests.executors.file_cases import run, run_caged, snapshot, undo_of


def pack(root, how="run", **args):
    args["paths"] = [str(root / name) for name in args["paths"]]
    if "dest" in args:
        args["dest"] = str(root / args["dest"])
    return run("compress_files", args, root, mode=how)


def unpack(root, how="run", **args):
    args["paths"] = [str(root / name) for name in args["paths"]]
    if "dest" in args:
        args["dest"] = str(root / args["dest"])
    return run("extract_files", args, root, mode=how)


@pytest.fixture
def house(tmp_path):
    for name, text in {
        "box/città.txt": "uno",
        "box/sub/b.txt": "due" * 1000,
        "box/.metnos-trash/t/via.txt": "via",
        "altro/città.txt": "tre",
        "a.pdf": "quattro",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "box/link").symlink_to("/etc/passwd")
    (tmp_path / "box/vuota").mkdir()
    return tmp_path


# -- packing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar"])
def test_pack_holds_the_files_and_leaves_links_and_trash_out(house, kind):
    seen = pack(house, paths=["box", "a.pdf"], dest=f"tutto.{kind}")

    entry = seen["entries"][0]
    assert (entry["items"], entry["original_bytes"]) == (3, 3010)
    assert seen["metadata"]["left_out"] == 1
    path = house / f"tutto.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            names = archive.namelist()
            assert archive.read("box/città.txt") == b"uno"
    else:
        with tarfile.open(path) as archive:
            names = [one.name + ("/" if one.isdir() else "") for one in archive]
            assert {(one.uid, one.uname) for one in archive} == {(0, "")}
    assert sorted(names) == [
        "a.pdf", "box/", "box/città.txt", "box/sub/", "box/sub/b.txt", "box/vuota/",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_pack_does_what_its_preview_promised(house, kind):
    before = snapshot(house)

    promised = pack(house, "preview", paths=["box"], dest=f"neu/x.{kind}")
    assert snapshot(house) == before
    seen = pack(house, paths=["box"], dest=f"neu/x.{kind}")

    data = (house / f"neu/x.{kind}").read_bytes()
    assert promised["after"][0]["sha256"] == hashlib.sha256(data).hexdigest()
    assert promised["undo"] == undo_of(seen)
    assert promised["count"] == 1


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"paths": ["box"]}, "box.zip"),
        ({"paths": ["a.pdf"]}, "a.zip"),
        ({"paths": ["a.pdf", "box"]}, "Archivio.zip"),
        ({"paths": ["box"], "format": "tar.gz"}, "box.tar.gz"),
        ({"paths": ["box"], "dest": "altro"}, "altro/Archivio.zip"),
        ({"paths": ["box"], "dest": "pacco"}, "pacco.zip"),
        ({"paths": ["box"], "dest": "v1.2"}, "v1.2.zip"),
        ({"paths": ["box"], "dest": "a.pdf"}, "a 2.pdf"),
        ({"paths": ["box"], "dest": "x.tgz"}, "x.tgz"),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", None),
)
def test_pack_finds_a_name(house, args, expected):
    seen = pack(house, **args)

    assert os.path.relpath(seen["entries"][0]["path"], house) == expected


def test_pack_gives_two_things_of_one_name_two_names(house):
    pack(house, paths=["box/città.txt", "altro/città.txt"], dest="c.zip")

    with zipfile.ZipFile(house / "c.zip") as archive:
        assert archive.namelist() == ["città.txt", "città 2.txt"]


def test_pack_names_what_is_not_there_and_packs_the_rest(house):
    seen = pack(house, paths=["a.pdf", "via.txt"], dest="c.zip")

    assert [entry["ok"] for entry in seen["entries"]] == [True, False]
    assert pack(house, "preview", paths=["via.txt"])["error"]["code"] == "not_found"
    assert run("compress_files", {"entries": []}, house)["entries"] == []


def test_pack_and_unpack_in_the_cage(house):
    seen = run_caged("compress_files", {"paths": [str(house / "box")]}, house)
    assert seen["ok"], seen
    again = run_caged(
        "extract_files", {"paths": [str(house / "box.zip")], "dest": str(house / "neu")}, house
    )

    assert again["ok"], again
    assert (house / "neu/box/sub/b.txt").read_text(encoding="utf-8") == "due" * 1000
    assert not list(house.glob(".metnos-tmp*"))


# -- unpacking ------------------------------------------------------------------------------------


def _zip(path, members, **kinds):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            about = zipfile.ZipInfo(name)
            about.compress_type = zipfile.ZIP_DEFLATED
            about.external_attr = kinds.get(name, 0o100644) << 16
            archive.writestr(about, data)


def _tar(path, *members, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for about, data in members:
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))


def _member(name, **facts):
    about = tarfile.TarInfo(name)
    for key, value in facts.items():
        setattr(about, key, value)
    return about


SLIPS = (
    "../fuori.txt",
    "a/../../fuori.txt",
    "/etc/fuori.txt",
    "..\\fuori.txt",
    "C:\\fuori.txt",
    "C:fuori.txt",
    "\\\\server\\fuori.txt",
    "..",
    "x" * 300,
)


def test_unpack_zip_lets_nothing_out(tmp_path):
    house = tmp_path / "above" / "house"
    house.mkdir(parents=True)
    _zip(house / "a.zip", {**dict.fromkeys(SLIPS, b"evil"), "dentro/b.txt": b"ok"})
    before = snapshot(tmp_path)

    seen = unpack(house, paths=["a.zip"])

    entry = seen["entries"][0]
    assert (entry["items"], entry["left_out"]) == (1, len(SLIPS))
    new = {key for key in snapshot(tmp_path) if key not in before}
    inside = "above/house/a"
    assert new == {inside, f"{inside}/dentro", f"{inside}/dentro/b.txt"}
    assert not Path("/etc/fuori.txt").exists()


def test_unpack_tar_lets_no_link_and_no_device_in(tmp_path):
    _tar(
        tmp_path / "a.tar.gz",
        (_member("link", type=tarfile.SYMTYPE, linkname="/etc"), b""),
        (_member("link/passwd"), b"evil"),
        (_member("hart", type=tarfile.LNKTYPE, linkname="/etc/passwd"), b""),
        (_member("tubo", type=tarfile.FIFOTYPE), b""),
        (_member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3), b""),
        (_member("../fuori"), b"evil"),
        (_member("b.txt", mode=0o4777, uid=0), b"ok"),
    )

    seen = unpack(tmp_path, paths=["a.tar.gz"])

    assert (seen["entries"][0]["items"], seen["entries"][0]["left_out"]) == (2, 5)
    assert (tmp_path / "a/link/passwd").read_bytes() == b"evil"  # a folder of its own name
    assert not (tmp_path / "a/link").is_symlink()
    assert not (tmp_path / "fuori").exists()
    assert (tmp_path / "a/b.txt").stat().st_mode & 0o7777 & ~0o666 == 0


def test_unpack_zip_lets_no_link_in(tmp_path):
    _zip(tmp_path / "a.zip", {"link": b"/etc/passwd", "b.txt": b"ok"}, link=0o120777)

    entry = unpack(tmp_path, paths=["a.zip"])["entries"][0]

    assert (entry["items"], entry["left_out"], entry["first_left_out"]) == (1, 1, "link")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
def test_unpack_refuses_a_bomb_before_anything_is_written(tmp_path, name):
    zeros = bytes(80 << 20)
    if name == "a.zip":
        _zip(tmp_path / name, {"z": zeros})
    else:
        _tar(tmp_path / name, (_member("z"), zeros))
    before = set(snapshot(tmp_path))

    for how in ("preview", "run"):
        assert unpack(tmp_path, how, paths=[name])["error"]["code"] == "too_large"
    assert set(snapshot(tmp_path)) == before


def test_unpack_refuses_more_files_than_may(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MOST_MEMBERS", 3)
    _zip(tmp_path / "a.zip", {f"{n}.txt": b"x" for n in range(4)})

    assert unpack(tmp_path, paths=["a.zip"])["error"]["code"] == "too_many"


def test_unpack_a_member_that_lies_about_its_size_leaves_nothing(tmp_path):
    _zip(tmp_path / "a.zip", {"b.txt": b"x" * 10_000})
    data = bytearray((tmp_path / "a.zip").read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (5).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(data)

    seen = unpack(tmp_path, paths=["a.zip"])

    assert seen["error"]["code"] in {"damaged", "too_large"}
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize(
    ("raw", "flags", "shown"),
    [
        ("città.txt".encode(), 0x800, "città.txt"),
        ("città.txt".encode(), 0, "città.txt"),
        ("città.txt".encode("cp850"), 0, "città.txt"),
    ],
)
def test_unpack_zip_reads_names_of_old_machines(tmp_path, raw, flags, shown):
    name = "x" * len(raw)
    _zip(tmp_path / "a.zip", {name: b"ok"})
    data = (tmp_path / "a.zip").read_bytes().replace(name.encode(), raw)
    if flags:
        for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            at = data.index(magic) + offset
            data = data[:at] + flags.to_bytes(2, "little") + data[at + 2 :]
    (tmp_path / "a.zip").write_bytes(data)

    unpack(tmp_path, paths=["a.zip"])

    assert [path.name for path in (tmp_path / "a").iterdir()] == [shown]


def test_unpack_tar_reads_names_that_are_no_utf8(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w", encoding="latin-1") as archive:
        about = _member("perché.txt")
        archive.addfile(about, io.BytesIO())

    unpack(tmp_path, paths=["a.tar"])

    assert [path.name for path in (tmp_path / "a").iterdir()] == ["perché.txt"]


def _locked(path):
    _zip(path, {"b.txt": b"x"})
    data = bytearray(path.read_bytes())
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(magic) + offset] |= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "make", "code"),
    [
        ("a.zip", _locked, "password_needed"),
        ("a.zip", lambda path: path.write_bytes(b"PK\x03\x04 no"), "damaged"),
        ("a.rar", lambda path: path.write_bytes(b"Rar!\x1a\x07\x00"), "unsupported"),
        ("a.7z", lambda path: path.write_bytes(b"7z\xbc\xaf\x27\x1c"), "unsupported"),
        ("a.txt", lambda path: path.write_bytes(b"ciao"), "unsupported"),
        ("a.tar.gz", lambda path: path.write_bytes(b"\x1f\x8b\x08\x00rotto"), "damaged"),
        ("a.zip", lambda path: path.write_bytes(b""), "unsupported"),
        ("a.zip", lambda path: path.mkdir(), "is_directory"),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", None),
)
def test_unpack_bad_files_get_a_clear_word_and_leave_nothing(tmp_path, name, make, code):
    make(tmp_path / name)
    before = set(snapshot(tmp_path))

    for how in ("preview", "run"):
        assert unpack(tmp_path, how, paths=[name])["error"]["code"] == code
    assert set(snapshot(tmp_path)) == before


def test_unpack_goes_into_a_new_folder_whatever_is_there(tmp_path):
    _zip(tmp_path / "a.zip", {"b.txt": b"neu"})
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.txt").write_text("alt", encoding="utf-8")

    promised = unpack(tmp_path, "preview", paths=["a.zip"])
    seen = unpack(tmp_path, paths=["a.zip"])
    into = unpack(tmp_path, paths=["a.zip"], dest="a")
    fresh = unpack(tmp_path, paths=["a.zip"], dest="neu/da")

    paths = [os.path.relpath(one["entries"][0]["path"], tmp_path) for one in (seen, into, fresh)]
    assert paths == ["a 2", "a/a", "neu/da"]
    assert promised["targets"] == [str(tmp_path / "a 2")]
    assert promised["undo"] == [{"do": "remove", "path": str(tmp_path / "a 2")}]
    assert (tmp_path / "a/b.txt").read_text(encoding="utf-8") == "alt"


def test_unpack_repeated_and_clashing_members_keep_the_first(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("b.txt", "primo")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("b.txt", "secondo")
        archive.writestr("b.txt/c.txt", "sotto un file")

    entry = unpack(tmp_path, paths=["a.zip"])["entries"][0]

    assert (entry["items"], entry["left_out"]) == (1, 2)
    assert (tmp_path / "a/b.txt").read_text(encoding="utf-8") == "primo"


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_unpacked_files_are_open_to_nobody_that_new_ones_are_not(tmp_path, umask):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("b/c.txt", "x")
    before = os.umask(umask)
    try:
        assert run("extract_files", {"paths": [f"{tmp_path}/a.zip"]}, tmp_path)["ok"]
    finally:
        os.umask(before)

    assert (tmp_path / "a" / "b" / "c.txt").stat().st_mode & 0o777 == 0o666 & ~umask
