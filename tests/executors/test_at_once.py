"""Two who write the same file at the same time: nobody's part is lost, and no half of a file is
ever seen; and files of old machines, whose letters stay when one line is added."""

from __future__ import annotations

import binascii
import multiprocessing
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from executors._sdk import writing
from executors._sdk.call import Call
from executors._sdk.files import TEMPORARY, locate
from executors._sdk.result import Failure
from tests.executors.file_cases import run
from tests.support.run_executor import call_document

ROUNDS = 6


def _adds(tool, args, root, gate):
    """One process that adds its parts, one call after the other."""
    gate.wait()
    for number in range(ROUNDS):
        said = args(number)
        seen = run(tool, said, Path(root))
        assert seen["ok"], seen


def _list(who):
    return lambda number: {"name": "spesa", "items": [f"{who} {number}"]}


def _lines(who):
    return lambda number: {
        "path": "DIR/note.txt",
        "content": f"{who} {number}\n",
        "mode": "append",
    }


def _rows(who):
    return lambda number: {"path": "DIR/conti.csv", "entries": [{"chi": f"{who} {number}"}]}


def _events(who):
    return lambda number: {"summary": f"{who} {number}", "start": f"2026-04-0{number + 1}T10:00"}


@pytest.mark.parametrize(
    ("tool", "wants", "file"),
    [
        ("write_lists", _list, "Liste/spesa/spesa.md"),
        ("write_files", _lines, "note.txt"),
        ("write_files_spreadsheet", _rows, "conti.csv"),
        ("create_events", _events, "Calendario.ics"),
    ],
)
def test_two_who_add_at_once_lose_nothing(tmp_path, tool, wants, file):
    def args(who):
        def said(number):
            given = wants(who)(number)
            return {k: v.replace("DIR", str(tmp_path)) if k == "path" else v
                    for k, v in given.items()}  # fmt: skip

        return said

    context = multiprocessing.get_context("fork")
    gate = context.Barrier(2)
    both = [context.Process(target=_adds, args=(tool, args(who), tmp_path, gate))
            for who in ("anna", "bruno")]  # fmt: skip
    for one in both:
        one.start()
    for one in both:
        one.join(60)

    assert [one.exitcode for one in both] == [0, 0]
    text = (tmp_path / file).read_text(encoding="utf-8-sig")
    missing = [f"{who} {n}" for who in ("anna", "bruno") for n in range(ROUNDS)
               if text.count(f"{who} {n}") != 1]  # fmt: skip
    assert missing == []
    assert not list(tmp_path.rglob(".metnos-tmp-*")), "nothing is left behind"


def _place(tmp_path):
    call = Call(call_document("write_files", {}, roots=[os.path.realpath(tmp_path)]))
    return locate(call, f"{os.path.realpath(tmp_path)}/a.txt")


def test_slow_write_and_quick_one_leave_a_whole_file(tmp_path):
    place = _place(tmp_path)
    begun, go_on = threading.Event(), threading.Event()

    def slowly():
        yield b"slow " * 10
        begun.set()
        go_on.wait(30)
        yield b"slow " * 10

    with ThreadPoolExecutor() as pool:
        slow = pool.submit(writing.write_file, place, slowly(), mode=0o644, replace=True)
        begun.wait(30)
        writing.write_file(place, [b"quick"], mode=0o644, replace=True)
        assert (tmp_path / "a.txt").read_bytes() == b"quick"
        go_on.set()
        assert slow.result(30) == 100

    assert (tmp_path / "a.txt").read_bytes() == b"slow " * 20
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_what_was_left_behind_is_taken_over(tmp_path):
    place = _place(tmp_path)

    def fails():
        yield b"half"
        raise OSError(28, "full")

    with pytest.raises(OSError, match="full"):
        writing.write_file(place, fails(), mode=0o644, replace=True)
    name = f"{TEMPORARY}{binascii.crc32(b'a.txt'):08x}"
    (tmp_path / name).write_bytes(b"of one that was killed")
    writing.write_file(place, [b"whole"], mode=0o644, replace=True)

    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_bytes_made_from_an_older_file_replace_no_newer_one(tmp_path):
    place, file = _place(tmp_path), tmp_path / "a.txt"
    file.write_text("one", encoding="utf-8")
    seen = writing.Seen(file.stat())
    time.sleep(0.01)
    file.write_text("two", encoding="utf-8")

    with pytest.raises(Failure) as caught:
        writing.write_file(place, [b"from one"], mode=0o644, replace=True, since=seen)

    assert caught.value.code == "changed_since"
    assert file.read_text(encoding="utf-8") == "two"
    with pytest.raises(Failure):
        writing.write_file(place, [b"x"], mode=0o644, replace=True, since=writing.Seen(None))
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


OLD_CALENDAR = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:e1\r\nDTSTART:20260320T100000Z\r\n"
    "SUMMARY:Caffè in città\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)


@pytest.mark.parametrize("codec", ["latin-1", "cp1252", "utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    ("file", "text", "tool", "args", "kept"),
    [
        ("Calendario.ics", OLD_CALENDAR, "create_events",
         {"summary": "Nuovo", "start": "2026-04-01T10:00"}, "SUMMARY:Caffè in città"),
        ("Calendario.ics", OLD_CALENDAR, "change_events",
         {"event_ids": ["|e1|"], "location": "Perù"}, "SUMMARY:Caffè in città"),
        ("Liste/spesa/spesa.md", "# Cose così\n\n- caffè\n- [x] tè\n", "write_lists",
         {"name": "spesa", "items": ["pane"]}, "# Cose così\n\n- caffè\n- [x] tè\n- pane"),
        ("Liste/spesa/spesa.md", "# Cose così\n\n- caffè\n- pane\n", "delete_lists",
         {"name": "spesa", "items": ["pane"]}, "# Cose così\n\n- caffè"),
    ],
    ids=["new event", "changed event", "added item", "removed item"],
)  # fmt: skip
def test_letters_of_old_machines_stay(tmp_path, codec, file, text, tool, args, kept):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(codec))

    seen = run(tool, args, tmp_path)

    assert seen["ok"], seen
    now = path.read_bytes().decode()
    assert kept in now
    assert "\ufffd" not in now


def test_contacts_of_old_machines_are_found(tmp_path):
    card = "BEGIN:VCARD\nVERSION:2.1\nFN:Niccolò Però\nTEL;CELL:333 1234567\nEND:VCARD\n"
    (tmp_path / "Contatti.vcf").write_bytes(card.encode("latin-1"))
    seen = run("find_contacts", {"query": "niccolò"}, tmp_path)
    assert [entry["name"] for entry in seen["entries"]] == ["Niccolò Però"]


@pytest.mark.parametrize("said", ["[x] latte", "- latte", "- [ ] latte", "* [X] - latte"])
def test_marks_of_a_list_before_an_item_are_no_part_of_it(tmp_path, said):
    for _ in range(2):
        run("write_lists", {"name": "spesa", "items": [said, "**pane** `x` # y"]}, tmp_path)

    text = (tmp_path / "Liste" / "spesa" / "spesa.md").read_text(encoding="utf-8")
    assert text == "- latte\n- **pane** `x` # y\n"
