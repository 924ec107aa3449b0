"""Reading text: every odd file gets an answer at once, and only the asked part is loaded."""

from __future__ import annotations

import os
import resource
import socket
import time
from pathlib import Path

import pytest

from tests.executors.file_cases import run, run_caged

DIARY = "".join(f"riga {number}: è andata così\n" for number in range(1, 11))


def read_one(path: Path, root: Path, **args):
    return run("read_files", {"paths": [str(path)], **args}, root)["entries"][0]


def bytes_read() -> int:
    """How much this process has read so far, from wherever."""
    return int(Path("/proc/self/io").read_text(encoding="ascii").split()[1])


def write(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, DIARY),
        ({"tail_lines": 3}, "".join(DIARY.splitlines(True)[-3:])),
        ({"tail_lines": 1}, "riga 10: è andata così\n"),
        ({"tail_lines": 10}, DIARY),
        ({"tail_lines": 999}, DIARY),
        ({"head_lines": 2}, "".join(DIARY.splitlines(True)[:2])),
        ({"head_lines": 999}, DIARY),
        ({"start_line": 9}, "".join(DIARY.splitlines(True)[8:])),
        ({"end_line": 1}, "riga 1: è andata così\n"),
        ({"start_line": 4, "end_line": 5}, "".join(DIARY.splitlines(True)[3:5])),
        ({"start_line": 10, "end_line": 99}, "riga 10: è andata così\n"),
        ({"start_line": 11}, ""),
        ({"start_line": 500, "end_line": 600}, ""),
    ],
    ids=str,
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_read_files_lines_are_the_same_in_every_encoding(tmp_path, args, expected, ending, codec):
    data = DIARY.replace("\n", ending).encode(codec)
    entry = read_one(write(tmp_path / "diario.md", data), tmp_path, **args)

    assert entry["text"] == expected.replace("\n", ending)
    assert entry["bytes"] == len(data)
    assert entry["lines"] == 10
    assert entry["truncated"] is False
    assert entry["media_type"] == "text/markdown"


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_read_files_without_final_line_end_counts_the_last_line(tmp_path, count):
    path = write(tmp_path / "a.txt", "uno\ndue\ntre")

    entry = read_one(path, tmp_path, tail_lines=count)

    assert entry["text"] == "\n".join(["uno", "due", "tre"][-count:])
    assert entry["lines"] == 3


def test_read_files_blank_lines_at_the_end_are_lines(tmp_path):
    path = write(tmp_path / "a.txt", "uno\n\n\n")

    assert read_one(path, tmp_path, tail_lines=2)["text"] == "\n\n"


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"", "utf-8", ""),
        (b"\xef\xbb\xbf", "utf-8", ""),
        ("più caffè".encode("latin-1"), "iso-8859-1", "più caffè"),
        ("costa 5 € – “poco”".encode("cp1252"), "windows-1252", "costa 5 € – “poco”"),
        ("ciao 👋".encode("utf-16-be"), None, None),
        (b"\xfe\xff" + "ciao 👋".encode("utf-16-be"), "utf-16-be", "ciao 👋"),
        ("emoji 👩‍👩‍👧 e accenti à".encode(), "utf-8", "emoji 👩‍👩‍👧 e accenti à"),
    ],
    ids=["empty", "only_mark", "latin1", "cp1252", "utf16_unmarked", "utf16_marked", "emoji"],
)
def test_read_files_small_texts_are_read_in_their_encoding(tmp_path, data, encoding, text):
    entry = read_one(write(tmp_path / "a.txt", data), tmp_path)

    if encoding is None:
        assert entry["error"]["code"] == "not_text"
    else:
        assert (entry["encoding"], entry["text"]) == (encoding, text)


def test_read_files_cyrillic_of_old_systems_is_recognised(tmp_path):
    text = "Сегодня хорошая погода, и мы идём гулять в парк с собакой. " * 20
    entry = read_one(write(tmp_path / "a.txt", text.encode("cp1251")), tmp_path)

    assert entry["text"] == text


def test_read_files_broken_piece_in_the_middle_of_utf8_still_reads(tmp_path):
    data = "è così\n".encode() * 20_000 + b"\xe0 la vie\n" + "è così\n".encode() * 20_000
    entry = read_one(write(tmp_path / "a.txt", data), tmp_path)

    assert entry["ok"]
    assert "la vie" in entry["text"]


@pytest.mark.parametrize(
    "data",
    [
        b"%PDF-1.7\n1 0 obj\n",
        b"PK\x03\x04aaaa",
        b"\x89PNG\r\n",
        b"\xff\xd8\xff\xe0JFIF",
        b"\x7fELF\x02",
        b"testo e poi \x00 no",
        bytes(range(256)) * 4,
        b"x" * 100_000 + b"\x00" * 10,
        b"\x01\x02\x03\x04\x05",
    ],
    ids=["pdf", "zip", "png", "jpeg", "elf", "nul", "all_bytes", "nul_at_end", "controls"],
)
def test_read_files_binary_is_refused_with_a_clear_code(tmp_path, data):
    entry = read_one(write(tmp_path / "a.txt", data), tmp_path)

    assert entry["ok"] is False
    assert entry["error"]["code"] == "not_text"


def test_read_files_fifo_socket_device_folder_and_link_never_hang(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "socket"))
    (tmp_path / "dir").mkdir()
    outside = tmp_path.parent / f"{tmp_path.name}-outside.txt"
    outside.write_text("segreto", encoding="utf-8")
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "into").symlink_to("/etc")
    names = ["fifo", "socket", "dir", "link", "into/hostname", "none", "dir/none", "fifo/x"]

    began = time.monotonic()
    seen = run_caged("read_files", {"paths": [str(tmp_path / n) for n in names]}, tmp_path)
    server.close()

    codes = [entry["error"]["code"] for entry in seen["entries"]]
    assert codes == [
        "not_regular",
        "not_regular",
        "is_directory",
        "out_of_scope",
        "out_of_scope",
        "not_found",
        "not_found",
        "not_directory",
    ]
    assert time.monotonic() - began < 60
    assert "segreto" not in str(seen)


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make devices")
def test_read_files_device_is_refused_without_being_opened(tmp_path):
    os.mknod(tmp_path / "zero", 0o600 | 0o020000, os.makedev(1, 5))

    assert read_one(tmp_path / "zero", tmp_path)["error"]["code"] == "not_regular"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_read_files_without_permission_says_so(tmp_path):
    path = write(tmp_path / "a.txt", "x")
    path.chmod(0)

    assert read_one(path, tmp_path)["error"]["code"] == "permission_denied"


def test_read_files_huge_sparse_file_is_refused_at_once(tmp_path):
    path = tmp_path / "huge.bin"
    with path.open("wb") as file:
        file.truncate(1 << 30)

    before = bytes_read()
    entry = read_one(path, tmp_path, tail_lines=3)

    assert entry["error"]["code"] == "not_text"
    assert bytes_read() - before < 10_000_000


def test_read_files_tail_of_a_gigabyte_reads_only_its_end(tmp_path):
    """Text at both ends of a sparse gigabyte: neither the hole nor much memory is read."""
    path = tmp_path / "huge.log"
    with path.open("wb") as file:
        file.write(b"prima riga\n" * 10_000)
        file.seek(1 << 30)
        file.write(b"riga\n" * 100_000 + b"penultima\nultima\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    read_before = bytes_read()
    tail = read_one(path, tmp_path, tail_lines=2)
    head = read_one(path, tmp_path, head_lines=1)

    assert tail["text"] == "penultima\nultima\n"
    assert head["text"] == "prima riga\n"
    assert "lines" not in tail
    assert bytes_read() - read_before < 50_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_read_files_one_line_of_fifty_megabytes_is_cut_and_says_so(tmp_path):
    path = tmp_path / "line.txt"
    path.write_bytes(b"a" * (50 << 20) + b"fine")

    tail = read_one(path, tmp_path, tail_lines=1, max_bytes=1000)
    head = read_one(path, tmp_path, head_lines=1, max_bytes=1000)
    caged = run_caged("read_files", {"paths": [str(path)], "tail_lines": 1}, tmp_path)

    assert tail["text"] == "a" * 996 + "fine"
    assert head["text"] == "a" * 1000
    for entry in (tail, head):
        assert entry["truncated"] is True
        assert (entry["used"], entry["available"]) == (1000, (50 << 20) + 4)
    assert caged["entries"][0]["used"] == 1 << 20
    assert caged["metadata"] == {
        "count": 1,
        "ok_count": 1,
        "failed_count": 0,
        "truncated": True,
        "used": 1 << 20,
        "available": (50 << 20) + 4,
    }


@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
@pytest.mark.parametrize("which", ["head_lines", "tail_lines"])
def test_read_files_cut_never_halves_a_character(tmp_path, codec, which):
    text = "è👋" * 1000
    path = write(tmp_path / "a.txt", text.encode(codec))
    for budget in range(20, 32):
        entry = read_one(path, tmp_path, max_bytes=budget, **{which: 1})

        assert entry["truncated"] is True
        assert entry["used"] <= budget
        assert set(entry["text"]) <= {"è", "👋"}
        assert (text.startswith if which == "head_lines" else text.endswith)(entry["text"])


def test_read_files_many_large_files_share_one_budget(tmp_path):
    paths = [write(tmp_path / f"{n}.txt", b"a" * (1 << 20)) for n in range(6)]

    seen = run_caged("read_files", {"paths": [str(path) for path in paths]}, tmp_path)

    codes = [entry.get("error", {}).get("code") for entry in seen["entries"]]
    assert codes == [None] * 4 + ["too_large"] * 2


def test_read_files_entries_zero_one_and_many_go_the_same_way(tmp_path):
    path = write(tmp_path / "a.txt", "uno")

    zero = run("read_files", {"paths": []}, tmp_path)
    one = run("read_files", {"entries": [{"path": str(path), "size": 3}]}, tmp_path)
    many = run("read_files", {"entries": [{"path": str(path)}, {}, {"path": 7}]}, tmp_path)

    assert zero == {
        "ok": True,
        "entries": [],
        "metadata": {"count": 0, "ok_count": 0, "failed_count": 0, "truncated": False},
    }
    assert one["entries"][0]["text"] == "uno"
    assert [entry["ok"] for entry in many["entries"]] == [True, False, False]
    assert many["ok"] is True
    assert many["entries"][1]["error"]["code"] == "missing_input"


@pytest.mark.parametrize(
    "args",
    [
        {"head_lines": 1, "tail_lines": 1},
        {"tail_lines": 1, "start_line": 2},
        {"start_line": 3, "end_line": 2},
    ],
    ids=str,
)
def test_read_files_contradictory_lines_are_refused(tmp_path, args):
    path = write(tmp_path / "a.txt", "uno\ndue\n")

    seen = run("read_files", {"paths": [str(path)], **args}, tmp_path)

    assert seen["error"]["code"] == "invalid_args"


def test_read_files_zero_lines_mean_not_said(tmp_path):
    path = write(tmp_path / "a.txt", "uno\ndue\n")

    entry = read_one(path, tmp_path, head_lines=0, tail_lines=1, start_line=0)

    assert entry["text"] == "due\n"


def test_read_files_what_is_in_the_trash_is_not_shown(tmp_path):
    trash = tmp_path / ".metnos-trash" / "t"
    trash.mkdir(parents=True)
    path = write(trash / "a.txt", "via")

    assert read_one(path, tmp_path)["error"]["code"] == "not_found"


def test_read_files_latin1_in_the_cage_may_import_what_it_declares(tmp_path):
    text = "Сегодня хорошая погода, и мы идём гулять в парк с собакой. " * 20
    path = write(tmp_path / "a.txt", text.encode("cp1251"))

    seen = run_caged("read_files", {"paths": [str(path)]}, tmp_path)

    assert seen["ok"], seen
    assert seen["entries"][0]["text"] == text
