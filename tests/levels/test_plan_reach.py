"""Requests of a household and a plan that is right for each: the grammar of a whole plan admits
it, or a small model could not say it."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from core.catalog.loader import Catalog, CatalogLoader
from core.levels.plan_schema import may_use_tools, plan_schema
from core.levels.wish import Wish
from tests.support.executors import signed_home
from tests.support.models import ScriptedModel
from tests.support.planning import Planner

Step = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return CatalogLoader.of(signed_home(tmp_path_factory.mktemp("home"))).current()


def wish_of(catalog: Catalog, text: str, lang: str) -> Wish:
    return Planner(ScriptedModel([]), catalog).wish(text, lang)


MAIL_OF_MARTA: Step = (
    "read_messages",
    {"time_window": "questa settimana", "from_contains": "Marta"},
)
ROWS: list[tuple[str, str, list[Step]]] = [
    ("it", "ho mail nuove?", [("read_messages", {"unseen_only": True})]),
    ("it", "mostrami le mail di Marta di questa settimana", [MAIL_OF_MARTA]),
    ("en", 'find the email about "roof repair"',
     [("read_messages", {"subject_contains": "roof repair"})]),
    ("it", "cosa ho in agenda giovedì", [("read_events", {"time_window": "giovedì"})]),
    ("en", "am I busy on friday evening?", [("read_events", {"time_window": "friday evening"})]),
    ("it", "quando ho mezz'ora libera domani?",
     [("find_events_empty", {"time_window": "domani", "duration_minutes": 30})]),
    ("en", "find me a 2 hour gap next week",
     [("find_events_empty", {"time_window": "next week", "duration_minutes": 120})]),
    ("it", "che numero ha l'idraulico?", [("find_contacts", {"query": "idraulico"})]),
    ("it", "riassumi gli impegni della settimana prossima",
     [("read_events", {"time_window": "settimana prossima"}),
      ("describe_entries", {"from_step": 1})]),
    ("en", "sort this week's emails by how urgent they are",
     [("read_messages", {"time_window": "this week"}),
      ("classify_entries", {"from_step": 1, "dimension": "urgency"})]),
    ("it", "somma la colonna importo di bollette.xlsx",
     [("read_files_spreadsheet", {"paths": ["bollette.xlsx"]}),
      ("compute_entries", {"from_step": 1, "op": "sum", "key": "importo"})]),
    ("it", "in presenze.xlsx mostrami solo i giorni di Luca",
     [("read_files_spreadsheet", {"paths": ["presenze.xlsx"]}),
      ("filter_entries", {"from_step": 1, "where": "Luca"})]),
    ("en", "average price per shop from market.xlsx",
     [("read_files_spreadsheet", {"paths": ["market.xlsx"]}),
      ("group_entries", {"from_step": 1, "by": "shop"}),
      ("compute_entries", {"from_step": 2, "op": "avg", "key": "price"})]),
    ("it", "che differenza c'è tra gennaio.xlsx e febbraio.xlsx?",
     [("read_files_spreadsheet", {"paths": ["gennaio.xlsx"]}),
      ("read_files_spreadsheet", {"paths": ["febbraio.xlsx"]}),
      ("compare_entries", {"from_step": 1, "other_step": 2})]),
    ("it", "sposta nella cartella Viaggi le mail di Trenord",
     [("read_messages", {"from_contains": "Trenord"}),
      ("move_messages", {"from_step": 1, "folder": "Viaggi"})]),
    ("it", "cancella dal calendario le lezioni di chitarra di maggio",
     [("read_events", {"time_window": "maggio"}),
      ("delete_events", {"event_ids": ["{{step1.id}}"]})]),
    ("en", "find a free hour on friday and put in yoga",
     [("find_events_empty", {"time_window": "friday", "duration_minutes": 60}),
      ("create_events", {"summary": "yoga", "start": "{{step1.start}}"})]),
    ("it", "crea la cartella Garanzie e mettici dentro forno.pdf",
     [("create_dirs", {"paths": ["Garanzie"]}),
      ("move_files", {"paths": ["forno.pdf"], "dst": "Garanzie"})]),
    ("it", "esporta gli eventi di questa settimana in impegni.xlsx",
     [("read_events", {"time_window": "questa settimana"}),
      ("create_files_spreadsheet", {"from_step": 1, "path": "impegni.xlsx"})]),
    ("it", "zippa i pdf della cartella Fatture in fatture.zip e mandalo a studio@conti.example",
     [("find_files", {"base_path": "Fatture", "patterns": ["*.pdf"]}),
      ("compress_files", {"from_step": 1, "dest": "fatture.zip"}),
      ("send_messages", {"to": "studio@conti.example", "attachments": ["{{step2.path}}"]})]),
    ("it", "quali processi usano più memoria?",
     [("get_processes", {}), ("sort_entries", {"from_step": 1, "by": "memory", "desc": True})]),
    ("en", "add a row to trips.xlsx with 14 March, 42",
     [("write_files_spreadsheet", {"path": "trips.xlsx", "rows": [["14 March", 42]],
                                  "mode": "append"})]),
]  # fmt: skip


@pytest.mark.parametrize(("lang", "text", "steps"), ROWS, ids=[text for _, text, _ in ROWS])
def test_grammar_admits_a_right_plan(
    catalog: Catalog, lang: str, text: str, steps: list[Step]
) -> None:
    schema = plan_schema(wish_of(catalog, text, lang))
    plan = {"steps": [{"tool": tool, "args": args} for tool, args in steps]}

    problems = [error.message[:300] for error in Draft202012Validator(schema).iter_errors(plan)]

    assert problems == []


@pytest.mark.parametrize(
    ("lang", "text", "never"),
    [
        ("it", "che c'è scritto in password_wifi.txt", "write_files"),
        ("en", "open budget.xlsx", "create_files_spreadsheet"),
        ("en", "open budget_2027.xlsx", "create_events"),
        ("it", "quanto ho speso in spese.xlsx?", "create_files_spreadsheet"),
        ("en", "what changed in the deleted files?", "delete_files"),
        ("it", "quali file ho cancellato ieri?", "delete_files"),
        ("en", "who moved a.txt into Archive?", "move_files"),
    ],
)
def test_question_lets_no_plan_change_anything(
    catalog: Catalog, lang: str, text: str, never: str
) -> None:
    assert never not in wish_of(catalog, text, lang).acting


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("it", "buonanotte"),
        ("it", "sei un tesoro"),
        ("en", "thanks, you saved my day"),
    ],
)
def test_talk_lets_no_plan_begin(catalog: Catalog, lang: str, text: str) -> None:
    assert not may_use_tools(wish_of(catalog, text, lang))


@pytest.mark.parametrize(
    ("lang", "text", "acting"),
    [
        ("it", "annulla la visita dall'oculista di lunedì", "delete_events"),
        ("en", "cancel Tuesday's yoga class", "delete_events"),
        ("en", "put the messages from that shop into spam", "move_messages"),
    ],
)
def test_things_are_called_by_what_they_are(
    catalog: Catalog, lang: str, text: str, acting: str
) -> None:
    found = wish_of(catalog, text, lang)

    assert acting in found.acting
    assert {"read_events", "read_messages"} & set(found.tools)
