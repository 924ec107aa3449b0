"""What ours wrote, opened by an office suite: another program than any that wrote or tests it."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.executors.file_cases import run

pytestmark = [
    pytest.mark.system,
    pytest.mark.needs_libreoffice,
    pytest.mark.skipif(shutil.which("soffice") is None, reason="needs_libreoffice"),
]

ENTRIES = [
    {"ok": True, "name": "città.pdf", "size": 1234.5, "modified": "2026-03-17T22:30:00+00:00"},
    {"ok": True, "name": '=HYPERLINK("http://x.example")', "size": -7, "modified": "2026-03-01"},
    {"ok": True, "name": "a;b, «c»\nd", "size": 0, "modified": ""},
]
# Field separator, quote, UTF-8, first line, cell formats, language, quote texts, raw numbers.
_CSV = "csv:Text - txt - csv (StarCalc):44,34,76,1,,1033,false,false"


def converted(path: Path, how: str, ending: str) -> Path:
    """The file as the office suite says it, beside it."""
    program = shutil.which("soffice")
    assert program is not None
    home = path.parent / "suite"
    words = [program, f"-env:UserInstallation={home.as_uri()}", "--headless", "--convert-to", how]
    out = path.parent / "out"
    done = subprocess.run(
        [*words, "--outdir", str(out), str(path)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    made = out / f"{path.stem}.{ending}"
    assert made.exists(), (done.stdout, done.stderr)
    return made


def rows_of(path: Path) -> list[list[str]]:
    text = converted(path, _CSV, "csv").read_text(encoding="utf-8")
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize("kind", ["xlsx", "ods"])
def test_spreadsheet_reads_the_same_and_holds_no_formula(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"foglio.{kind}"
    columns = ["name", "size", "modified"]
    args: dict[str, Any] = {"path": str(path), "entries": ENTRIES, "columns": columns}
    assert run("create_files_spreadsheet", args, tmp_path)["ok"]
    more = [["in più", 3, "2026-04-02"]]
    assert run("write_files_spreadsheet", {"path": str(path), "rows": more}, tmp_path)["ok"]

    header, *rows = rows_of(path)

    assert header == columns
    assert [row[0] for row in rows] == [str(one["name"]) for one in ENTRIES] + ["in più"]
    assert [float(row[1]) for row in rows] == [1234.5, -7, 0, 3]
    # In the person's zone, and the row that was added as those above it.
    assert [row[2] for row in rows] == ["2026-03-17 23:30:00", "2026-03-01", "", "2026-04-02"]


def test_document_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "verbale.docx"
    content = (
        "# Verbale\n\nPresenti: **Anna**, Luca & Zoë\n\n- primo\n- secondo\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    assert run("create_files_doc", {"path": str(path), "content": content}, tmp_path)["ok"]

    text = converted(path, "txt:Text (encoded):UTF8", "txt").read_text(encoding="utf-8-sig")

    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert lines[:2] == ["Verbale", "Presenti: Anna, Luca & Zoë"]
    assert [line.lstrip("•- \t") for line in lines[2:4]] == ["primo", "secondo"]
    assert lines[4:] == ["a", "b", "1", "2"]
