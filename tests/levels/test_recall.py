"""That what a household asks for is among the tools that a model is offered."""

from __future__ import annotations

import pytest

from core.catalog.lexicon import request_tokens
from core.catalog.loader import Catalog, CatalogLoader
from core.catalog.prefilter import Item, PrefilterIndex, rank
from tests.bench.recall import figures, household, plans_here
from tests.support.executors import signed_home

LEAST = 0.97


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return CatalogLoader.of(signed_home(tmp_path_factory.mktemp("home"))).current()


def test_tools_of_what_a_household_asks_for_are_offered(catalog):
    found = figures(household(), catalog)

    assert found["rows"] >= 300
    for way in ("simple_local", "simple_strong", "plan"):
        assert found[way]["recall"] >= LEAST, (way, found[way]["rows"])


def test_a_row_counts_when_one_of_its_plans_can_be_made_here(catalog):
    steps = [{"tool": "read_files"}, {"tool": "final_answer"}]
    row = {"steps": [{"tool": "open_skills"}], "alt": [steps]}

    assert plans_here(row, catalog) == [frozenset({"read_files"})]


def test_the_best_tool_of_a_later_clause_is_not_pushed_out_by_what_goes_along():
    names = [f"read_files_{kind}" for kind in ("pdf", "doc", "csv", "xml", "json", "html")]
    catalog = [
        Item("find_files", {}, {"en": ["find"]}, companions=names),
        Item("move_files", {}, {"en": ["move"]}),
        *(Item(name) for name in names),
    ]

    found = rank("find the notes and move them", PrefilterIndex(catalog), k_max=4)

    assert {"find_files", "move_files"} <= {one.name for one in found}
    assert len(found) == 4


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("trova i pdf, mettili in Conti e dimmi che ore sono", 3),
        ("le foto di ieri spostale in Album", 2),
        ("leggi conti.md. Poi mandalo a ada@example.org", 2),
        ("find the scans, zip them and email it to Ada", 3),
        ("crea le cartelle gennaio, febbraio e marzo", 1),
        ("che cos'è scritto in conti.md", 1),
        ("dove trovo la parola aprile nelle tabelle", 1),
        ("what is the weather like in Bath and Wells", 1),
        ("", 0),
    ],
)
def test_parts_begin_where_a_further_order_does(catalog, text, parts):
    index = PrefilterIndex([executor.manifest for executor in catalog.offered.values()])

    found = index.parts(text)

    assert len(found) == parts, found
    assert len(index.parts("poi " * 50 + "leggi e manda " * 50)) <= 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("text Nora that I am late", "text to nora that i am late"),
        ("let Peter know the parcel came", "let know peter the parcel came"),
        ("tell Mark the meeting moved", "let know mark the meeting moved"),
        ("tell me more", "tell me more"),
        ("di' a Marco che arrivo", "fai sapere a marco che arrivo"),
        ("la capitale di Malta", "la capitale di malta"),
        ("let me know what Ada said", "let me know what ada said"),
        ("email her the list", "email to her the list"),
        ("ask the vet and email the bill", "ask the vet and email to the bill"),
        ("show the email the school sent", "show the email the school sent"),
        ("drop Rita a line", "send to rita"),
        ("scrivile che arrivo", "fai sapere che arrivo"),
        ("get the prices out of the menu", "xoutof the prices from the menu"),
        ("get out of bed", "get out of bed"),
        ("split them into work, home and rest", "split them xkinds work home and rest"),
        ("sono lavoro, casa o altro?", "sono lavoro casa xkinds o altro"),
        ("the photos by size", "the photos xby by size"),
        ("the report by friday", "the report by friday"),
        ("put them in Album", "put them in xinto album"),
        ("mettili in una tabella", "mettili xsheet tabella"),
        ("dimmelo in tre righe", "dimmelo xbrief"),
        ("in three days", "in three days"),
        ("the total of expenses per month", "the total of expenses xper month"),
        ("quanto ho speso per favore", "quanto ho speso per favore"),
        ("quante mail per mittente", "quante mail xper mittente"),
    ],
)
def test_turns_of_phrase_that_say_for_whom_and_for_each(text, words):
    assert request_tokens(text) == words.split()
