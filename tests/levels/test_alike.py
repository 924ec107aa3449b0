"""Tools that do nearly the same: which of them a small model may choose from for a request."""

from __future__ import annotations

import pytest

from core.catalog.loader import Catalog, CatalogLoader
from core.levels.columns import columns_in
from core.levels.wish import Wish
from tests.support.executors import signed_home
from tests.support.models import ScriptedModel
from tests.support.planning import Planner


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return CatalogLoader.of(signed_home(tmp_path_factory.mktemp("home"))).current()


def wish(catalog: Catalog, text: str) -> Wish:
    planner = Planner(ScriptedModel(), catalog)
    context = planner.context(text, "it")
    names = planner.proposer._candidates.best(context, k_max=24)
    return planner.proposer.wish(context, names)


@pytest.mark.parametrize(
    ("text", "there", "not_there"),
    [
        ("leggi fattura.pdf", "read_files_pdf", "read_files read_files_doc"),
        ("leggi diario.md", "read_files", "read_files_pdf read_files_spreadsheet"),
        ("read report.docx", "read_files_doc", "read_files read_files_pdf"),
        ("somma la colonna importo di spese.xlsx", "read_files_spreadsheet", "read_files"),
        ("show the first 5 lines of members.csv", "read_files", "read_files_spreadsheet"),
        ("trova i file pdf nella cartella notes", "find_files", "find_dirs find_files_hash"),
        ("trova le cartelle vuote", "find_dirs", ""),
        ("trova i doppioni nella cartella Foto", "find_files_hash", "find_files"),
        (
            "confronta i file delle cartelle A e B e mostrami quelli con lo stesso contenuto",
            "find_files_hash",
            "find_files",
        ),
        ("quali righe di a.log contengono errore?", "filter_entries", "filter_texts_lines"),
        ("quanto pesano in tutto i file di Foto?", "compute_entries", "describe_numbers"),
    ],
)
def test_the_tool_that_is_meant_is_there_and_its_likes_are_not(catalog, text, there, not_there):
    tools = set(wish(catalog, text).tools)

    assert set(there.split()) <= tools
    assert not set(not_there.split()) & tools


@pytest.mark.parametrize(
    ("text", "acting"),
    [
        ("crea un foglio con i pdf di Progetti", {"create_files_spreadsheet"}),
        ("crea la cartella Tasse", {"create_dirs"}),
        ("create a word document with the notes", {"create_files_doc"}),
        ("scrivi ciao in nota.txt", {"write_files"}),
        ("aggiungi pane a spesa.md", {"write_files"}),
        ("cancella tutti i .tmp dalla cartella cache", {"delete_files"}),
        ("trova i pdf modificati questa settimana", set()),
        ("converti listino.xlsx in csv", {"change_files_format"}),
        ("zip the photos of Estate into estate.zip", {"compress_files"}),
        ("estrai archivio.zip", {"extract_files"}),
    ],
)
def test_only_what_was_asked_for_may_change_something(catalog, text, acting):
    assert wish(catalog, text).acting == acting


def test_place_before_the_deed_is_where_to_look(catalog):
    found = wish(catalog, "trova i pdf in Progetti e crea un foglio con nome e hash")

    assert found.destination is None
    assert found.columns == ("nome", "hash")
    assert wish(catalog, "sposta i pdf in Archivio").destination is not None


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("crea un foglio con nome, data e hash.", ("nome", "data", "hash")),
        ("a sheet with name, the date and size", ("name", "date", "size")),
        ("colonne: Nome, Dimensione", ("Nome", "Dimensione")),
        ("crea un foglio con i pdf", ()),
        ("un foglio con nome e poesie", ()),
        ("con data", ()),
    ],
)
def test_columns_are_those_that_are_named(text, columns):
    assert columns_in(text) == columns
