"""The whole-plan proposer: what a call's schema admits, and what is made of the reply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from core.catalog.loader import Catalog, CatalogLoader
from core.errors import ErrorCode, ModelReplyInvalid
from core.execution.context import Exchange
from core.levels.mending import mended
from core.levels.plan_schema import MOST_STEPS
from core.levels.proposers.metis import manifests_of
from core.levels.validator import problem_of
from core.llm.client import ChatRequest
from core.llm.grammar import compact_grammar
from core.plan import Plan
from core.turn_state import TurnState
from tests.support.executors import signed_home
from tests.support.models import ScriptedModel, plans, says
from tests.support.planning import Planner

FETCH = "scarica la pagina http://127.0.0.1:8000/p.html, salvala in ~/notes/p.html e dimmi i byte"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return CatalogLoader.of(signed_home(tmp_path_factory.mktemp("home"))).current()


async def _asked(
    catalog: Catalog, text: str, *, earlier: tuple[Exchange, ...] = ()
) -> ChatRequest:
    """The call that is made for a request."""
    model = ScriptedModel([says('{"steps":[{"tool":"final_answer","args":{"text":"x"}}]}')])
    planner = Planner(model, catalog)
    await planner.proposer.propose(planner.context(text, "it", earlier), TurnState("t", text))
    return model.requests[0]


async def _schema(catalog: Catalog, text: str, **fields: Any) -> dict[str, Any]:
    request = await _asked(catalog, text, **fields)
    assert request.schema is not None
    return dict(request.schema)


def _plan(*steps: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"steps": [{"tool": tool, "args": args} for tool, args in steps]}


def _tools(schema: Any) -> Iterator[str]:
    """Every tool named anywhere in a schema."""
    if isinstance(schema, dict):
        if "tool" in schema.get("properties", {}):
            yield schema["properties"]["tool"]["const"]
        for value in schema.values():
            yield from _tools(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _tools(value)


ADMITTED = [
    ("leggi il file ~/notes/diario.md e dimmi le ultime tre righe",
     [("read_files", {"paths": ["~/notes/diario.md"], "tail_lines": 3})]),
    ("what time is it in Tokyo?", [("get_now", {"timezone": "Tokyo"})]),
    ("che ore sono?", [("get_now", {})]),
    ("leggi ~/a.md e dimmi che ore sono a Lima",
     [("read_files", {"paths": ["~/a.md"]}), ("get_now", {"timezone": "Lima"})]),
    ("dove sta conti.pdf in ~/x?",
     [("find_files", {"base_path": "~/x", "patterns": ["conti.pdf"]})]),
    (FETCH, [("get_urls", {"urls": ["http://127.0.0.1:8000/p.html"]}),
             ("write_files", {"path": "~/notes/p.html", "content": "{{step1.body}}"})]),
    ("mandami il file relazione.pdf", [("find_files", {"patterns": ["relazione.pdf"]})]),
    ("send me report.pdf please", [("find_files", {"patterns": ["report.pdf"]})]),
    ("inviami i pdf di ~/Documenti",
     [("find_files", {"base_path": "~/Documenti", "patterns": ["*.pdf"]})]),
    ("sposta i png da Scaricati a ~/Mare",
     [("find_files", {"base_path": "Scaricati", "patterns": ["*.png"]}),
      ("move_files", {"from_step": 1, "dst": "~/Mare"})]),
    ("get rid of a.txt", [("delete_files", {"paths": ["a.txt"]})]),
    ("elimina a.txt e b.txt", [("delete_files", {"paths": ["a.txt", "b.txt"]})]),
    ("rename a.txt to b.txt", [("move_files", {"paths": ["a.txt"], "dst": "b.txt"})]),
    ("aggiungi 'latte' a spesa.txt",
     [("write_files", {"path": "spesa.txt", "content": "latte", "mode": "append"})]),
    ("scrivimi una poesia sul mare in poesia.txt",
     [("write_files", {"path": "poesia.txt", "content": "Onde e vento"})]),
    ("i 3 csv più grandi in ~/Conti",
     [("find_files", {"base_path": "~/Conti", "patterns": ["*.csv"]}),
      ("sort_entries", {"from_step": 1, "by": "size", "desc": True, "limit": 3})]),
    ("righe di app.log con timeout",
     [("read_files", {"paths": ["app.log"]}),
      ("filter_entries", {"from_step": 1, "where": "timeout"})]),
    ("trova file più grandi di 3 MB in ~/x", [("find_files", {"base_path": "~/x",
                                                            "size_min": 3_000_000})]),
]  # fmt: skip

REFUSED = [
    # invented or translated values
    ("leggi ~/a.md", [("read_files", {"paths": ["~/b.md"]})]),
    ("leggi ~/a.md", [("read_files", {"paths": ["~/a.md"], "tail_lines": 3})]),
    ("le ultime 3 righe di ~/a.md", [("read_files", {"paths": ["~/a.md"]})]),
    ("le ultime 3 righe di ~/a.md", [("read_files", {"paths": ["~/a.md"], "head_lines": 3})]),
    ("what time is it in Tokyo?", [("get_now", {"timezone": "Asia/Osaka"})]),
    ("scarica https://a.example/x", [("get_urls", {"urls": ["https://b.example/x"]})]),
    # steps that live from what is not there yet
    ("elimina i .tmp in ~/x", [("delete_files", {"from_step": 1})]),
    ("elimina i .tmp in ~/x", [("delete_files", {"paths": ["~/x"]})]),
    (FETCH, [("write_files", {"path": "~/notes/p.html", "content": "pagina"})]),
    # a search for what is changed leaves out nothing that narrows it
    ("elimina i .tmp in ~/x", [("find_files", {"base_path": "~/x"}),
                              ("delete_files", {"from_step": 1})]),
    ("elimina i .tmp in ~/x", [("find_files", {"patterns": ["*.tmp"]}),
                              ("delete_files", {"from_step": 1})]),
    ("elimina i .tmp in ~/x", [("list_dirs", {"path": "~/x"}),
                              ("delete_files", {"from_step": 1})]),
    ("elimina i file più grandi di 3 MB in ~/x", [("find_files", {"base_path": "~/x"}),
                                                 ("delete_files", {"from_step": 1})]),
    ("elimina a.txt da ~/x", [("delete_files", {"paths": ["a.txt", "~/x"]})]),
    # adding is not replacing
    ("aggiungi 'latte' a spesa.txt", [("write_files", {"path": "spesa.txt", "content": "latte"})]),
    # a list that is to be worked on is not only found
    ("quanto pesano in tutto i csv in ~/x?",
     [("find_files", {"base_path": "~/x", "patterns": ["*.csv"]})]),
    ("righe di app.log con timeout", [("read_files", {"paths": ["app.log"]})]),
    ("righe di app.log con timeout", [("find_files", {"patterns": ["app.log"]}),
                                      ("filter_entries", {"from_step": 1, "where": "timeout"})]),
    # both things that were asked
    ("leggi ~/a.md e dimmi che ore sono a Lima", [("read_files", {"paths": ["~/a.md"]})]),
    # the answer stands alone
    ("leggi ~/a.md", [("read_files", {"paths": ["~/a.md"]}), ("final_answer", {"text": "x"})]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "steps"), ADMITTED, ids=range(len(ADMITTED)))
async def test_schema_of_a_request_admits_the_right_plan(
    catalog: Catalog, text: str, steps: list[tuple[str, dict[str, Any]]]
) -> None:
    schema = await _schema(catalog, text)

    assert Draft202012Validator(schema).is_valid(_plan(*steps))
    assert problem_of(Plan.from_json(_plan(*steps)), catalog) is None


@pytest.mark.parametrize(("text", "steps"), REFUSED, ids=range(len(REFUSED)))
async def test_schema_of_a_request_refuses_what_was_not_said(
    catalog: Catalog, text: str, steps: list[tuple[str, dict[str, Any]]]
) -> None:
    schema = await _schema(catalog, text)

    assert not Draft202012Validator(schema).is_valid(_plan(*steps))


@pytest.mark.parametrize(
    "text",
    [
        "leggi ~/a.md",
        "trova i file vuoti in ~/x",
        "move a.txt into Archive",
        "cosa contiene la cartella Dischi?",
        "il file cancellato ieri dov'è? era ~/a.md",
        "find deleted.txt in ~/x",
        "leggi elimina.txt",
        "leggi ~/cancella/a.md",
        "aggiungi 'elimina a.txt' a todo.txt",
        "scrivi cancella tutto in todo.txt",
        "leggi ~/a.md ma non cancellare niente",
        "please don't delete ~/a.md",
        "elimina i .tmp in ~/x tranne quelli di oggi",
        "elimina i .tmp più vecchi di 7 giorni in ~/x",
        "delete the 3 largest pdfs in ~/x",
        "cancella tutto in ~/x",
        "elimina la riga 3 da ~/a.md",
    ],
)
async def test_deleting_tools_are_absent_unless_verb_and_target_are_plain(
    catalog: Catalog, text: str
) -> None:
    request = await _asked(catalog, text)

    assert "delete_files" not in set(_tools(request.schema or {}))


@pytest.mark.parametrize("text", ["eliminali tutti", "spostami quei documenti", "delete it"])
async def test_change_without_a_target_asks_for_it_without_a_model(
    catalog: Catalog, text: str
) -> None:
    planner = Planner(ScriptedModel(), catalog)

    proposal = await planner.proposer.propose(planner.context(text, "it"), TurnState("t", text))

    assert proposal.plan is None
    assert proposal.answer.endswith("?")


@pytest.mark.parametrize(
    "text",
    ["ciao", "grazie mille!", "who are you?", "raccontami una fiaba", "never mind, forget it"],
)
async def test_small_talk_is_asked_in_plain_prose(catalog: Catalog, text: str) -> None:
    model = ScriptedModel([says("Eccomi.")])
    planner = Planner(model, catalog)

    proposal = await planner.proposer.propose(planner.context(text, "it"), TurnState("t", text))

    assert proposal.answer == "Eccomi."
    assert proposal.plan is None
    assert model.requests[0].schema is None
    assert model.requests[0].tools == ()
    assert model.requests[0].messages[-1].content == text


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("leggimi l'articolo https://a.example/x", "read_urls_html"),
        ("salva il testo di https://a.example/x in ~/c.txt", "read_urls_html"),
        ("what does https://a.example/x say?", "read_urls_html"),
        ("scarica https://a.example/x", "get_urls"),
        ("is https://a.example up?", "get_urls"),
        ("prendi https://a.example/x.json e mettilo in ~/x.json", "get_urls"),
    ],
)
async def test_address_is_fetched_in_the_way_that_was_meant(
    catalog: Catalog, text: str, tool: str
) -> None:
    fetching = {"get_urls", "read_urls_html"}

    assert fetching & set(_tools(await _schema(catalog, text))) == {tool}


async def test_prompt_of_two_requests_differs_only_in_the_last_message(catalog: Catalog) -> None:
    first = await _asked(catalog, "leggi ~/a.md")
    second = await _asked(catalog, "che ore sono a Lima?")

    assert first.messages[:-1] == second.messages[:-1]
    assert first.schema != second.schema
    assert first.messages[-1].content == "leggi ~/a.md"


async def test_prompt_has_one_short_line_for_each_tool(catalog: Catalog) -> None:
    request = await _asked(catalog, "leggi ~/a.md")

    lines = request.messages[0].content.splitlines()
    told = [line for line in lines if line.split("(")[0] in catalog.offered]
    assert [line.split("(")[0] for line in told] == sorted(catalog.offered)
    assert sum(map(len, told)) / len(told) < 200


async def test_warm_sends_both_prefixes_the_planning_one_last(catalog: Catalog) -> None:
    model = ScriptedModel([says("x"), says("x")])
    planner = Planner(model, catalog)

    await planner.proposer.warm(planner.context("", "it"))

    later = [await _asked(catalog, "ciao"), await _asked(catalog, "leggi ~/a.md")]
    for warmed, asked in zip(model.requests, later, strict=True):
        assert warmed.messages[:-1] == asked.messages[:-1]
        assert warmed.max_tokens == 1


@pytest.mark.parametrize(("text", "steps"), ADMITTED, ids=range(len(ADMITTED)))
async def test_schema_has_a_compact_grammar_of_bounded_size(
    catalog: Catalog, text: str, steps: list[tuple[str, dict[str, Any]]]
) -> None:
    grammar = compact_grammar(await _schema(catalog, text))

    assert grammar is not None
    assert len(grammar) < 8000


async def test_schema_of_a_very_long_request_stays_bounded(catalog: Catalog) -> None:
    names = " ".join(f"nota{n}.txt cartella Dir{n} {n} righe" for n in range(3000))

    schema = await _schema(catalog, f"leggi {names}")

    assert len(json.dumps(schema)) < 200_000


async def test_frontier_gets_every_tool_but_those_that_destroy_unasked(catalog: Catalog) -> None:
    model = ScriptedModel([says('{"steps":[{"tool":"get_now","args":{}}]}')])
    planner = Planner(model, catalog, role="plan_online")
    context = planner.context("qué hay en ~/x?", "en")

    await planner.proposer.propose(context, TurnState("t", ""))

    offered = set(_tools(model.requests[0].schema))
    assert {"find_files", "list_dirs", "sort_entries", "get_now"} <= offered
    assert "delete_files" not in offered
    assert planner.proposer.name == "frontier"


async def test_file_of_the_request_before_stands_in(catalog: Catalog) -> None:
    schema = await _schema(
        catalog, "e le prime 2 righe?", earlier=(Exchange("leggi ~/a.md", "…"),)
    )

    plan = _plan(("read_files", {"paths": ["~/a.md"], "head_lines": 2}))
    assert Draft202012Validator(schema).is_valid(plan)


async def test_plan_that_is_invalid_is_proposed_anew_once(catalog: Catalog) -> None:
    model = ScriptedModel(
        [
            plans(("filter_entries", {"from_step": 2, "where": "x"})),
            plans(("read_files", {"paths": ["~/a.md"]})),
        ]
    )

    planned = await Planner(model, catalog).plan("leggi ~/a.md", "it")

    assert [call["tool"] for call in planned.calls] == ["read_files"]
    assert model.exhausted
    advice = model.requests[1].messages[-2]
    assert advice.role == "system"
    assert "step 2" in advice.content


async def test_reply_that_is_no_plan_is_asked_again_once(catalog: Catalog) -> None:
    model = ScriptedModel([says("Certo!"), says('{"steps": []}')])
    planner = Planner(model, catalog)
    context = planner.context("leggi ~/a.md", "it")

    with pytest.raises(ModelReplyInvalid):
        await planner.proposer.propose(context, TurnState("t", ""))

    assert model.exhausted


async def test_answer_alone_is_no_plan(catalog: Catalog) -> None:
    model = ScriptedModel([plans(("final_answer", {"text": "Non posso."}))])
    planner = Planner(model, catalog)

    proposal = await planner.proposer.propose(
        planner.context("leggi ~/a.md", "it"), TurnState("t", "")
    )

    assert proposal.plan is None
    assert proposal.answer == "Non posso."


def _mended(catalog: Catalog, *steps: tuple[str, dict[str, Any]]) -> list[tuple[str, Any]]:
    plan = mended(Plan.from_json(_plan(*steps)), manifests_of(catalog))
    return [(step.tool, dict(step.args)) for step in plan.steps]


def test_mended_plan_reads_the_field_that_the_step_has(catalog: Catalog) -> None:
    steps = _mended(
        catalog,
        ("read_urls_html", {"urls": ["https://a.example"]}),
        ("write_files", {"path": "a.txt", "content": "{{step1.body}}"}),
    )

    assert steps[1][1]["content"] == "{{step1.text}}"


def test_mended_plan_has_no_repeated_readings_and_right_numbers(catalog: Catalog) -> None:
    steps = _mended(
        catalog,
        ("get_urls", {"urls": ["https://a.example"]}),
        ("read_urls_html", {"urls": ["https://a.example"]}),
        ("find_files", {"patterns": ["*.pdf"]}),
        ("sort_entries", {"from_step": 3, "by": "size"}),
        ("write_files", {"path": "a.txt", "content": "{{step2.body}}"}),
    )

    assert [tool for tool, _ in steps] == [
        "get_urls", "find_files", "sort_entries", "write_files",
    ]  # fmt: skip
    assert steps[2][1]["from_step"] == 2
    assert steps[3][1]["content"] == "{{step1.body}}"


def test_mended_plan_keeps_readings_with_a_change_between(catalog: Catalog) -> None:
    steps = _mended(
        catalog,
        ("list_dirs", {"path": "x"}),
        ("move_files", {"paths": ["x/a"], "dst": "y"}),
        ("list_dirs", {"path": "x"}),
    )

    assert len(steps) == 3


def test_mended_plan_fills_a_file_once(catalog: Catalog) -> None:
    steps = _mended(
        catalog,
        ("get_urls", {"urls": ["https://a.example"]}),
        ("write_files", {"path": "a.txt", "content": "{{step1.body}}"}),
        ("write_files", {"path": "a.txt", "content": "{{step1.text}}"}),
        ("write_files", {"path": "b.txt", "content": "{{step1.text}}"}),
    )

    assert [args.get("path") for _, args in steps] == [None, "a.txt", "b.txt"]
    assert steps[1][1]["content"] == "{{step1.body}}"


def test_mended_plan_ends_before_reading_what_no_step_brought(catalog: Catalog) -> None:
    steps = _mended(catalog, ("get_now", {}), ("read_files", {"from_step": 1}))

    assert [tool for tool, _ in steps] == ["get_now"]


def test_mended_plan_leaves_wrong_numbers_to_the_validator(catalog: Catalog) -> None:
    wrong = Plan.from_json(_plan(("sort_entries", {"from_step": 7, "by": "size"})))
    plan = mended(wrong, manifests_of(catalog))

    problem = problem_of(plan, catalog)
    assert problem is not None
    assert problem.code is ErrorCode.BAD_REFERENCE


async def test_plan_has_at_most_so_many_steps(catalog: Catalog) -> None:
    schema = await _schema(catalog, "trova i pdf in ~/x, poi ordinali, poi contali, poi leggili")

    step = ("find_files", {"base_path": "~/x", "patterns": ["*.pdf"]})
    assert not Draft202012Validator(schema).is_valid(_plan(*[step] * (MOST_STEPS + 1)))


@pytest.mark.parametrize(
    ("request_", "reader"),
    [
        ("riassumi ~/gita.md", ("read_files", {"paths": ["~/gita.md"]})),
        ("summarise https://a.example/x", ("read_urls_html", {"urls": ["https://a.example/x"]})),
    ],
)
async def test_summary_is_of_what_a_step_read(
    catalog: Catalog, request_: str, reader: tuple[str, dict[str, Any]]
) -> None:
    schema = await _schema(catalog, request_)

    summed_up = ("describe_entries", {"from_step": 1})
    valid = Draft202012Validator(schema).is_valid
    assert valid(_plan(reader, summed_up))
    assert not valid(_plan(summed_up))
    assert not valid(_plan(reader))


async def test_data_are_extracted_out_of_what_a_step_read(catalog: Catalog) -> None:
    schema = await _schema(catalog, "estrai i numeri di telefono da ~/volantino.txt")

    read = ("read_files", {"paths": ["~/volantino.txt"]})
    found = ("extract_entries", {"from_step": 1, "fields": ["telefono"]})
    assert Draft202012Validator(schema).is_valid(_plan(read, found))
