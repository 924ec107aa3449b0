"""What bad input gets: files that cannot be read as asked, and calls that cannot be made.

Each: a clear message in the person's language, a structured observation for the model, one line in
the turn log, nothing changed, nothing internal shown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.i18n import Texts
from core.levels.renderer import Renderer
from tests.acceptance.scenes import home_of, turn_lines
from tests.support.executors import REPO
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Rule

LANGS = ("it", "en")
SPOKEN = {"it": "leggi quel file", "en": "please read that file"}
INTERNAL = ("Traceback", "Error", "executor", "errno", "error_class", "{", "None")


@pytest.fixture(scope="module")
def texts() -> Texts:
    return Texts.load(REPO / "locales", strict=True)


def opening(text: str) -> str:
    """What stands before the first value of a message."""
    return text.split("{")[0].rstrip(" (")


def make_fifo(notes: Path) -> None:
    os.mkfifo(notes / "x")


def make_folder(notes: Path) -> None:
    (notes / "x").mkdir()


def make_huge(notes: Path) -> None:
    with (notes / "x").open("wb") as file:
        file.truncate(64 << 30)


def make_binary(notes: Path) -> None:
    (notes / "x").write_bytes(bytes(range(256)) * 64)


def make_image(notes: Path) -> None:
    (notes / "x").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(4096))


def make_link_out(notes: Path) -> None:
    outside = notes.parent / "outside.md"
    outside.write_text("fuori", encoding="utf-8")
    (notes / "x").symlink_to(outside)


def make_link_loop(notes: Path) -> None:
    (notes / "x").symlink_to("y")
    (notes / "y").symlink_to("x")


def make_device_link(notes: Path) -> None:
    (notes / "x").symlink_to("/dev/zero")


def make_nothing(notes: Path) -> None:
    pass


# What stands at ~/notes/x, and the code that reading it gives.
UNREADABLE: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "fifo": (make_fifo, {"not_regular"}),
    "folder": (make_folder, {"is_directory"}),
    "huge and empty": (make_huge, {"not_text", "too_large"}),
    "binary": (make_binary, {"not_text"}),
    "image": (make_image, {"not_text"}),
    "missing": (make_nothing, {"not_found"}),
    "link to the outside": (make_link_out, {"out_of_scope"}),
    "links in a circle": (make_link_loop, {"out_of_scope", "not_found"}),
    "link to a device": (make_device_link, {"out_of_scope"}),
}


@pytest.mark.parametrize("lang", LANGS)
async def test_file_that_cannot_be_read_is_told_in_the_persons_language(
    tmp_path: Path, texts: Texts, lang: str
) -> None:
    """Through the planning engine, whose failed step is the answer, word for word."""
    plan = {"steps": [{"tool": "read_files", "args": {"paths": ["x"]}}]}
    rules = [Rule(plan=plan)]
    options: dict[str, Any] = {"metnos_engine": "metis", "metnos_lang": lang}
    notes = tmp_path / "notes"
    async with open_scripted(tmp_path, rules, **options) as (house, _):
        for number, (name, (make, codes)) in enumerate(UNREADABLE.items(), 1):
            make(notes)

            closed = await ask(house, SPOKEN[lang], lang=lang, data={"lang": lang})

            shown = closed.reply.plain
            assert closed.error is not None, name
            assert closed.error.code.value in codes, (name, closed.error)
            said = Renderer(texts, lang, "Europe/Rome", str(Path.home())).error(closed.error)
            assert shown.startswith(opening(said)), (name, shown)
            assert texts.say("outcome.nothing_done", lang) in shown
            assert not [word for word in INTERNAL if word in shown], (name, shown)
            lines = turn_lines(home_of(house))
            assert len(lines) == number
            assert lines[-1]["error_class"] == closed.error.code.value
            assert lines[-1]["steps"][0]["effects"] == "none"
            for left in ("x", "y"):
                path = notes / left
                if path.is_symlink() or path.exists():
                    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    print(f"\nunreadable files, {lang}: {len(UNREADABLE)} told, logged, nothing changed")


@pytest.mark.parametrize(
    ("content", "args", "expected"),
    [
        ("perché no, Niccolò\n".encode("latin-1"), {}, "perché no, Niccolò"),
        ("perché no €\n".encode("cp1252"), {}, "perché no €"),
        ("perché no\n".encode("utf-16"), {}, "perché no"),
        (b"\xef\xbb\xbfciao\n", {}, "ciao"),
        (b"uno\r\ndue\r\ntre", {"tail_lines": 1}, "tre"),
        (b"", {}, ""),
    ],
    ids=["latin-1", "windows-1252", "utf-16", "byte order mark", "dos line ends", "empty"],
)
async def test_file_of_another_encoding_is_read(
    tmp_path: Path, content: bytes, args: dict[str, Any], expected: str
) -> None:
    rules = [
        Rule(after=0, calls=[("read_files", {"paths": ["x"], **args})]),
        Rule(text="Ecco."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        (tmp_path / "notes/x").write_bytes(content)

        closed = await ask(house, "leggi l'ultima riga di x" if args else "leggi x")

        assert closed.reply.plain == "Ecco."
        seen = json.loads(model.asked[1].last_result)
        assert seen["entries"][0]["text"].strip() == expected


async def test_tail_of_a_huge_file_is_read_without_reading_it(tmp_path: Path) -> None:
    rules = [
        Rule(after=0, calls=[("read_files", {"paths": ["x"], "tail_lines": 2})]),
        Rule(text="Ecco."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        with (tmp_path / "notes/x").open("wb") as file:
            file.write(b"prima riga\n" * 10_000)
            file.seek(8 << 30)
            file.write(b"\n" + b"una riga come tante\n" * 100_000 + b"penultima\nultima\n")

        await ask(house, "leggi le ultime 2 righe di x")

        seen = json.loads(model.asked[1].last_result)
        assert seen["entries"][0]["text"] == "penultima\nultima\n"


BAD_CALLS: dict[str, tuple[tuple[str, Any], str]] = {
    "a word for a list": (("read_files", {"paths": {"a": 1}}), "invalid_args"),
    "a list of numbers": (("read_files", {"paths": [1, 2]}), "invalid_args"),
    "a word for a number": (("read_files", {"paths": ["x"], "tail_lines": "tre"}), "invalid_args"),
    "less than none": (("read_files", {"paths": ["x"], "tail_lines": -3}), "invalid_args"),
    "an unknown key": (("read_files", {"paths": ["x"], "colour": "red"}), "invalid_args"),
    "nothing at all": (("read_files", {}), "missing_input"),
    "a reference to a later step": (
        ("read_files", {"paths": ["{{step7.entries}}"]}), "bad_reference",
    ),
    "a reference to itself": (("read_files", {"from_step": 1}), "bad_reference"),
    "a reference to no number": (("read_files", {"from_step": "last"}), "bad_reference"),
    "a reference to nowhere": (("write_files", {"path": "y", "content": "${RUNTIME:secret}"}),
                               "bad_reference"),
    "NUL in a path": (("read_files", {"paths": ["a\x00b"]}), "bad_text"),
    "bidi in a path": (("read_files", {"paths": ["a\u202eb"]}), "bad_text"),
    "an invented tool": (("launch_rocket", {"to": "moon"}), "unknown_tool"),
    "an invented tool with an odd name": (("../read_files", {}), "unknown_tool"),
    "another case": (("Read_Files", {"paths": ["x"]}), "unknown_tool"),
    "a path as long as a book": (("read_files", {"paths": ["a/" * 50_000]}), "bad_text"),
    "nested too deep": (
        ("read_files", {"paths": json.loads("[" * 40 + "1" + "]" * 40)}), "invalid_args",
    ),
}  # fmt: skip


async def test_bad_call_is_a_structured_error_that_the_model_can_mend(tmp_path: Path) -> None:
    """Step by step: the model sees code and detail, tries again, and the person gets an answer."""
    async with open_scripted(tmp_path, []) as (house, model):
        (tmp_path / "notes/x").write_text("ciao", encoding="utf-8")
        for number, (name, (call, code)) in enumerate(BAD_CALLS.items(), 1):
            model.rules = [
                Rule(after=0, calls=[call]),
                Rule(after=1, calls=[("read_files", {"paths": ["x"]})]),
                Rule(text="Ecco: ciao."),
            ]

            closed = await ask(house, "apri la nota in quel file")

            seen = json.loads(model.asked[-1].results[0])["error"]
            assert seen["code"] == code, (name, seen)
            assert seen["detail"], name
            assert closed.reply.plain.startswith("Ecco: ciao."), name
            lines = turn_lines(home_of(house))
            assert len(lines) == number
            assert [s["error_class"] for s in lines[-1]["steps"]] == [code, None], name
        assert sorted(p.name for p in (tmp_path / "notes").iterdir()) == ["x"]
    print(f"\nbad calls: {len(BAD_CALLS)} structured, mended, logged")


@pytest.mark.parametrize("lang", LANGS)
async def test_bad_plan_is_proposed_once_more_and_then_told(
    tmp_path: Path, texts: Texts, lang: str
) -> None:
    """The planning engine: one re-proposal, then the person hears it; nothing ran."""
    options: dict[str, Any] = {"metnos_engine": "metis", "metnos_lang": lang}
    async with open_scripted(tmp_path, [], **options) as (house, model):
        (tmp_path / "notes/x").write_text("ciao", encoding="utf-8")
        for name, ((tool, args), code) in BAD_CALLS.items():
            model.rules = [Rule(plan={"steps": [{"tool": tool, "args": args}]})]
            asked = len(model.asked)

            closed = await ask(house, SPOKEN[lang], lang=lang, data={"lang": lang})

            assert closed.error is not None, name
            shown = closed.reply.plain
            said = Renderer(texts, lang, "Europe/Rome", str(Path.home())).error(closed.error)
            assert shown.startswith(opening(said)), (name, shown)
            assert not [word for word in INTERNAL if word in shown], (name, shown)
            assert len(model.asked) - asked <= 2, name
            line = turn_lines(home_of(house))[-1]
            assert line["final_kind"] == "error", name
            assert not [s for s in line["steps"] if s["ok"]], (name, code)
        assert sorted(p.name for p in (tmp_path / "notes").iterdir()) == ["x"]
