"""Files that go along with an answer: only those that were asked for, and that may be had."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from core.execution.giving import MOST_GIVEN, given, wants_files
from core.execution.paths import Scope
from core.observation import Observation
from core.turn_state import StepRecord


@pytest.mark.parametrize(
    "request_text",
    [
        "mandami il file relazione.pdf",
        "Mandami relazione.pdf per favore",
        "mi mandi la foto del gatto?",
        "puoi inviarmi gli ultimi 3 pdf di Documenti?",
        "trova le fatture di marzo e mandamele",
        "trova la bolletta e inviamela qui",
        "allegami il documento",
        "manda il file nota.md qui",
        "mi passi l'ultimo documento?",
        "dammi il file budget.xlsx",
        "send me the file report.pdf",
        "Can you send me report.pdf?",
        "find the invoices of March and send them to me",
        "give me the last two photos",
        "attach notes.md here",
        "find it and send me it",
    ],
)
def test_request_for_a_file_itself_is_known(request_text: str) -> None:
    assert wants_files(request_text)


@pytest.mark.parametrize(
    "request_text",
    [
        "mandami un riassunto del file relazione.pdf",
        "leggi relazione.pdf",
        "mandami un promemoria domani alle 9",
        "manda una mail ad anna con relazione.pdf",
        "mandami l'elenco dei file",
        "non mandarmi il file, dimmi solo che cosa dice",
        "mandami il link di esempio.it",
        "send me the file names",
        "send me a summary of report.pdf",
        "send the report to Anna",
        "don't send me the file, just read it",
        "give me a moment",
        "send an email to bob@shop.example",
    ],
)
def test_request_for_words_about_a_file_is_none_for_the_file(request_text: str) -> None:
    assert not wants_files(request_text)


@pytest.fixture
def scope(tmp_path: Path) -> Scope:
    root = tmp_path / "notes"
    root.mkdir()
    return Scope((str(root),), str(tmp_path), str(tmp_path / "product"), str(root))


def found(*paths: Path | str, tool: str = "find_files", number: int = 1) -> StepRecord:
    entries = tuple({"ok": True, "path": str(path)} for path in paths)
    return StepRecord(number, tool, {}, {}, Observation(ok=True, entries=entries), {}, ran=True)


def names(request: str, *steps: StepRecord, scope: Scope) -> list[str]:
    return [file.name for file in given(request, steps, scope).files]


def make(scope: Scope, name: str, data: bytes = b"x") -> Path:
    path = Path(scope.roots[0]) / name
    path.write_bytes(data)
    return path


def test_file_that_was_found_goes_along_with_its_kind_and_size(scope: Scope) -> None:
    path = make(scope, "gatto.png", b"12345")

    (file,) = given("mandami la foto del gatto", [found(path)], scope).files

    assert (file.path, file.name, file.media_type, file.size) == (
        str(path), "gatto.png", "image/png", 5,
    )  # fmt: skip


def test_only_the_files_that_are_named_go_along_when_some_are(scope: Scope) -> None:
    a, b = make(scope, "a.pdf"), make(scope, "b.pdf")

    assert names("mandami b.pdf", found(a, b), scope=scope) == ["b.pdf"]
    assert names("mandami i pdf", found(a, b), scope=scope) == ["a.pdf", "b.pdf"]


def test_files_of_the_last_step_that_has_any_go_along(scope: Scope) -> None:
    paths = [make(scope, f"{n}.txt") for n in range(3)]
    steps = [found(*paths), found(paths[1], tool="filter_entries", number=2)]

    assert names("trova i file e mandameli", *steps, scope=scope) == ["1.txt"]


def test_nothing_goes_along_unasked(scope: Scope) -> None:
    assert names("trova a.pdf", found(make(scope, "a.pdf")), scope=scope) == []


def test_document_that_was_made_goes_along_unasked_but_not_what_was_only_read(
    scope: Scope,
) -> None:
    made, read = make(scope, "foglio.xlsx"), make(scope, "a.pdf")
    steps = [
        found(read),
        found(made, tool="create_files_spreadsheet", number=2),
        found(read, tool="write_files", number=3),
    ]

    assert names("crea un foglio dei pdf", *steps, scope=scope) == ["foglio.xlsx"]


def test_no_more_than_an_album_goes_along_and_the_rest_is_counted(scope: Scope) -> None:
    paths = [make(scope, f"{n:02}.txt") for n in range(MOST_GIVEN + 5)]

    whole = given("mandami i file", [found(*paths)], scope)

    assert (len(whole.files), whole.total) == (MOST_GIVEN, MOST_GIVEN + 5)


def test_what_may_not_be_had_never_goes_along(scope: Scope, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("x")
    link = Path(scope.roots[0]) / "link.txt"
    link.symlink_to(outside)
    second = Path(scope.roots[0]) / "second.txt"
    os.link(outside, second)
    folder = Path(scope.roots[0]) / "folder"
    folder.mkdir()
    key = folder / ".ssh"
    key.mkdir()
    (key / "id").write_text("k")
    product = tmp_path / "product"
    product.mkdir()
    (product / "db").write_text("d")
    step = found(
        outside, link, second, folder, key / "id", product / "db", "/etc/passwd", "no/such"
    )

    assert given("mandami i file", [step], scope).files == ()


def test_words_in_an_observation_that_are_no_paths_are_passed_over(scope: Scope) -> None:
    strange: tuple[dict[str, Any], ...] = ({"ok": True, "path": 7}, {"ok": True}, {"path": "\0"})
    record = StepRecord(1, "find_files", {}, {}, Observation(ok=True, entries=strange), {})

    assert given("mandami i file", [record], scope).files == ()


@pytest.mark.parametrize("piece", ["il ", "l", "mandami la mia ", "manda il file ", "send the "])
def test_long_request_of_small_words_is_read_at_once(piece: str) -> None:
    """A pattern that tries every way to cut such a text would not end in a lifetime."""
    assert not wants_files("mandami la mia " + piece * 4000)
