"""Flows 4 and 5: the PDFs of the week with their hashes into a spreadsheet, which comes along; and
files with equal content under other names, across two folders."""

from __future__ import annotations

import hashlib
import io
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fpdf import FPDF
from python_calamine import CalamineWorkbook

from tests.support.scripted_model import Rule
from tests.support.world import World, open_world

WORDS: dict[str, dict[str, Any]] = {
    "it": {
        "week": "Trova i PDF modificati questa settimana in Progetti, calcola l'hash SHA-256 di "
        "ciascuno e crea un foglio con nome, data e hash.",
        "columns": ["nome", "data", "hash"],
        "made": r"Ho creato ~/notes/Foglio.*\.xlsx \(righe: 2, colonne: 3\)",
        "same": "Confronta i file delle cartelle Preventivi e Contratti e mostrami quelli che "
        "hanno lo stesso contenuto ma un nome diverso.",
        "pair": r"Un file ha lo stesso contenuto di un altro",
        "undo": "annulla",
        "undone": "Annullato",
        "sheet": "Foglio",
    },
    "en": {
        "week": "Find the PDFs changed this week in Progetti, compute the SHA-256 hash of each "
        "and create a spreadsheet with name, date and hash.",
        "columns": ["name", "date", "hash"],
        "made": r"I made ~/notes/Sheet.*\.xlsx \(rows: 2, columns: 3\)",
        "same": "Compare the files of the folders Preventivi and Contratti and show me those that "
        "have the same content but a different name.",
        "pair": "One file has the same content as another",
        "undo": "undo",
        "undone": "Undone",
        "sheet": "Sheet",
    },
}


THIS_WEEK = {"modified_within_days": 7}


def _week(lang: str) -> Rule:
    steps = [
        (
            "find_files",
            {"base_path": "Progetti", "patterns": ["*.pdf"], "modified_within_days": 7},
        ),
        ("compute_signatures", {"from_step": 1}),
        ("create_files_spreadsheet", {"from_step": 2, "columns": WORDS[lang]["columns"]}),
    ]
    plan = {"steps": [{"tool": tool, "args": args} for tool, args in steps]}
    return Rule(user="(?i)settimana" if lang == "it" else "(?i)week", plan=plan)


COMPARE = {
    "base_path": "Preventivi",
    "other_paths": ["Contratti"],
    "different_names": True,
}
RULES = [
    _week("it"),
    _week("en"),
    Rule(
        user="Preventivi",
        plan={"steps": [{"tool": "find_files_hash", "args": COMPARE}]},
    ),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    tmp = tmp_path_factory.mktemp("documents")
    with open_world(tmp, RULES, METNOS_ENGINE="metis", METNOS_MEMORY="1") as world:
        folder = world.notes / "Progetti"
        folder.mkdir()
        for name in ("tetto", "bagno", "vecchio"):
            _pdf(folder / f"{name}.pdf", f"Preventivo {name}")
        (folder / "nota.txt").write_text("non un PDF", encoding="utf-8")
        then = time.time() - 30 * 86_400
        os.utime(folder / "vecchio.pdf", (then, then))
        for name, text in {
            "Preventivi/tetto.txt": "uguale",
            "Contratti/firmato.txt": "uguale",
            "Preventivi/bagno.txt": "stesso nome",
            "Contratti/bagno.txt": "stesso nome",
            "Contratti/altro.txt": "altro",
        }.items():
            path = world.notes / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        world.telegram.start_bot()
        world.host("anna")
        yield world


def _speaking(world: World, lang: str) -> str:
    world.telegram.say("anna", f"/lang {lang}")
    world.telegram.expect("anna", ".")
    return "anna"


def _pdf(path: Path, text: str) -> None:
    document = FPDF()
    document.add_page()
    document.set_font("helvetica", size=12)
    document.cell(text=text)
    document.output(str(path))


def _rows(data: bytes) -> list[list[Any]]:
    """By another library than the one that wrote them."""
    book = CalamineWorkbook.from_filelike(io.BytesIO(data))
    rows: list[list[Any]] = book.get_sheet_by_index(0).to_python()
    return rows


def _kept(world: World) -> list[tuple[str, str]]:
    connection = sqlite3.connect(f"file:{world.home}/private/memory.db?mode=ro", uri=True)
    try:
        return connection.execute("SELECT text, why FROM plan_cache ORDER BY id").fetchall()
    finally:
        connection.close()


def _asks(world: World, name: str, text: str, answer: str, *, sources: list[str]) -> bytes:
    """Say it, and the file that comes with the answer; the turns of these words and where their
    plans came from."""
    world.telegram.say(name, text)
    world.telegram.expect(name, answer)
    file = world.telegram.expect(name, has="document")
    world.wait_for(lambda: len(_sources(world, text)) == len(sources), what="the log line")
    assert _sources(world, text) == sources
    data: bytes = world.telegram.download(file)
    return data


def _sources(world: World, text: str) -> list[str]:
    return [one["match_source"] for one in world.log_lines() if one["user_query"] == text]


@pytest.mark.parametrize("lang", ["it", "en"])
def test_pdfs_of_the_week_become_a_spreadsheet_and_then_again_without_a_model(
    world: World, lang: str
) -> None:
    words, name, model = WORDS[lang], _speaking(world, lang), world.model
    folder = world.notes / "Progetti"
    asked, kept = len(model.asked), len(_kept(world))

    data = _asks(world, name, words["week"], words["made"], sources=["engine"])

    assert len(model.asked) == asked + 1
    header, *rows = _rows(data)
    assert header == words["columns"]
    assert [row[0] for row in rows] == ["bagno.pdf", "tetto.pdf"]
    for file, moment, digest in rows:
        content = (folder / file).read_bytes()
        assert digest == hashlib.sha256(content).hexdigest()
        assert abs(moment.timestamp() - (folder / file).stat().st_mtime) < 86_400
    first = world.notes / f"{words['sheet']}.xlsx"
    assert first.read_bytes() == data
    world.wait_for(lambda: len(_kept(world)) > kept, what="the plan")

    again = _asks(world, name, words["week"], words["made"], sources=["engine", "fastpath"])

    assert len(model.asked) == asked + 1
    assert _rows(again) == _rows(data)
    second = world.notes / f"{words['sheet']} 2.xlsx"
    assert second.read_bytes() == again
    assert first.read_bytes() == data

    world.telegram.say(name, words["undo"])
    world.telegram.expect(name, words["undone"])
    assert not second.exists()
    assert first.exists()

    _signed_anew(world, "compute_signatures", f"1.0.{1 + list(WORDS).index(lang)}")
    _asks(world, name, words["week"], words["made"], sources=["engine", "fastpath", "engine"])

    assert len(model.asked) == asked + 2


def _signed_anew(world: World, name: str, version: str) -> None:
    manifest = world.home / "executors" / name / "manifest.toml"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(
        re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', text, count=1), encoding="utf-8"
    )
    world.cli("executors", "sign", name)


@pytest.mark.parametrize("lang", ["it", "en"])
def test_equal_files_of_two_folders_under_other_names_are_shown(world: World, lang: str) -> None:
    words, name, model = WORDS[lang], _speaking(world, lang), world.model
    asked = len(model.asked)

    for source in ("engine", "fastpath"):
        world.telegram.say(name, words["same"])
        answer = world.telegram.expect(name, words["pair"])["message"]["text"]
        assert "~/notes/Contratti/firmato.txt = ~/notes/Preventivi/tetto.txt" in answer
        assert "bagno" not in answer
        assert answer.endswith("⚡") == (source == "fastpath")

    assert len(model.asked) == asked + 1
