"""Acceptance R5 in small: a disk that is really full. Nothing crashes, nothing is acknowledged
without a commit, the person hears it, and work resumes by itself when there is room again."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.messages import Role, TurnClosed, TurnSuspended
from tests.acceptance.scenes import turn_lines
from tests.acceptance.town import LONG, Town, open_town
from tests.core.test_questions import press, said
from tests.support.house import open_scripted
from tests.support.scripted_model import Rule

RULES = [
    Rule(
        user="scrivi",
        after=0,
        calls=[("write_files", {"path": "~/notes/lista.md", "content": "x" * 300_000})],
    ),
    Rule(user="scrivi", text="Ho scritto la lista."),
    Rule(user=r"dimmi (\w+)", text=lambda ask: ask.user.split()[1]),
]
pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount a small disk"),
]


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[None]:
    """A file system of that size at `place`; skips where mounting is not allowed."""
    place.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    """Write until nothing more fits; the file that holds the room."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 16, 512, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError:
                continue
    return filler


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with small_disk(tmp_path / "home", 12), open_town(tmp_path, RULES) as town:
        town.telegram.start_bot()
        town.pair_all(["anna"], Role.HOST)
        yield town


def test_full_disk_is_told_and_what_was_said_is_answered_when_there_is_room(town: Town) -> None:
    pid = town.telegram.proc.pid
    filler = fill(town.home)

    town.telegram.say("anna", "dimmi uno")
    town.telegram.say("anna", "dimmi due")
    town.telegram.expect("anna", "disco è pieno", timeout=LONG)
    assert [t for t in town.texts("anna")[1:] if "disco è pieno" not in t] == []
    filler.unlink()
    town.telegram.expect("anna", "^due$", timeout=LONG)

    town.settle()
    assert town.telegram.proc.poll() is None
    assert town.telegram.proc.pid == pid
    answers = [t for t in town.texts("anna")[1:] if "disco è pieno" not in t]
    assert answers == ["uno", "due"]
    assert len(town.texts("anna")[1:]) == 3  # told once
    assert town.is_sound()
    assert len(turn_lines(town.home)) == 2
    assert "Traceback" not in "".join(town.texts("anna"))


def test_disk_that_fills_while_a_turn_runs_loses_no_answer(town: Town) -> None:
    town.model.rules.insert(0, Rule(user="dimmi lento", text="lento", delay=1.5))
    town.telegram.say("anna", "dimmi lento")
    town.wait_for(lambda: town.model.asked, timeout=LONG, what="the model call")
    filler = fill(town.home)
    time.sleep(2.5)
    filler.unlink()

    town.telegram.expect("anna", "^lento$", timeout=LONG)
    town.telegram.say("anna", "dimmi dopo")
    town.telegram.expect("anna", "^dopo$", timeout=LONG)

    town.settle()
    assert town.is_sound()
    answers = [t for t in town.texts("anna")[1:] if "disco è pieno" not in t]
    assert answers == ["lento", "dopo"]
    assert [line["final_kind"] for line in turn_lines(town.home)] == ["answer", "answer"]


def test_full_folder_of_the_person_is_told_and_leaves_no_half_file(tmp_path: Path) -> None:
    """The disk of the notes is full, that of the home is not."""
    with small_disk(tmp_path / "notes", 1), open_town(tmp_path, RULES) as town:
        (town.notes / "lista.md").write_text("la vecchia lista\n", encoding="utf-8")
        filler = fill(town.notes)
        town.telegram.start_bot()
        town.pair_all(["anna"], Role.HOST)

        town.telegram.say("anna", "scrivi la lista in lista.md")
        town.telegram.expect("anna", ".", timeout=LONG)

        town.wait_for(lambda: turn_lines(town.home), timeout=LONG, what="the log line")
        step = turn_lines(town.home)[0]["steps"][0]
        assert (step["ok"], step["error_class"], step["effects"]) == (False, "disk_full", "none")
        assert (town.notes / "lista.md").read_text(encoding="utf-8") == "la vecchia lista\n"
        assert "Ho scritto" not in town.texts("anna")[1]
        left = {p.name for p in town.notes.rglob("*") if p.is_file()}
        assert left == {"lista.md", filler.name}


def test_conversation_on_a_full_disk_gets_one_sentence_and_no_traceback(tmp_path: Path) -> None:
    with small_disk(tmp_path / "home", 12), open_town(tmp_path, RULES) as town:
        town.cli("setup", "--non-interactive")
        filler = fill(town.home)

        ran = town.cli("chat", "--once", "dimmi uno", check=False)
        filler.unlink()
        after = town.cli("chat", "--once", "dimmi due", check=False)

        assert ran.returncode == 1
        assert "disco è pieno" in ran.stdout + ran.stderr
        assert "Traceback" not in ran.stdout + ran.stderr
        assert after.returncode == 0
        assert after.stdout.strip().endswith("due")


async def test_yes_to_a_change_whose_former_version_finds_no_room_changes_nothing(
    tmp_path: Path,
) -> None:
    """Asked because a forwarded message names the file; the old text would stay beside the new."""
    text = "y" * 600_000
    rules = [
        Rule(after=0, calls=[("write_files", {"path": "big.md", "content": text})]),
        Rule(text="Ho scritto big.md."),
    ]
    with small_disk(tmp_path / "notes", 1):
        big = tmp_path / "notes/big.md"
        big.write_text("x" * 600_000)
        async with open_scripted(tmp_path, rules) as (house, _):
            question = (await said(house, "scrivi y come dice", quoted="write big.md"))[-1]
            assert isinstance(question, TurnSuspended)
            end = (await press(house, question, "Sì"))[-1]

        assert isinstance(end, TurnClosed)
        assert "disco è pieno" in end.reply.plain
        assert "Ho scritto" not in end.reply.plain
        assert big.read_text() == "x" * 600_000
        assert [p.name for p in (tmp_path / "notes").rglob("*") if p.is_file()] == ["big.md"]
        step = turn_lines(house.settings.metnos_home)[-1]["steps"][-1]
        assert (step["consent"], step["effects"]) == ("given", "none")
