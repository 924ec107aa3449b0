"""What a cut list of tools holds, and what the prompts of simple turns cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.catalog.foreign import Approval, executor_of, seen_tool, with_foreign
from core.catalog.loader import Catalog, CatalogLoader
from core.catalog.manifest import Effect
from core.levels.candidates import EVERYDAY, Candidates, stable_choice
from core.levels.proposers.metis import abilities, tool_lines
from core.vocabulary import is_executor_name
from tests.bench import tokens
from tests.support.executors import signed_home
from tests.support.models import ScriptedModel
from tests.support.planning import Planner

HOUSE = sorted(
    {
        *EVERYDAY,
        *"""create_files_spreadsheet read_files_spreadsheet write_files_spreadsheet read_files_pdf
        read_messages send_messages move_messages set_messages read_events create_events
        delete_events find_events_empty compute_signatures get_weather find_contacts""".split(),
    }
)
MOST_HEAD = 64


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return CatalogLoader.of(signed_home(tmp_path_factory.mktemp("home"))).current()


def test_everyday_tools_are_names_that_may_be():
    assert all(is_executor_name(name) for name in EVERYDAY)


@pytest.mark.parametrize("needed", [[], ["get_now"], ["get_urls", "find_files", "unknown"]])
def test_stable_choice_for_everyday_needs_is_one_list(needed):
    assert stable_choice(HOUSE, needed, most=12) == EVERYDAY


def test_stable_choice_puts_the_family_of_what_is_needed_behind_the_everyday_tools():
    chosen = stable_choice(HOUSE, ["write_files_spreadsheet"], most=12)

    assert chosen[:9] == EVERYDAY[:9]
    assert chosen[9:] == (
        "create_files_spreadsheet",
        "read_files_spreadsheet",
        "write_files_spreadsheet",
    )
    for other in ("create_files_spreadsheet", "read_files_spreadsheet"):
        assert stable_choice(HOUSE, [other, "find_files"], most=12) == chosen


def test_stable_choice_keeps_needed_everyday_tools_before_those_that_are_not():
    chosen = stable_choice(HOUSE, ["get_urls", "send_messages", "delete_files"], most=12)

    assert {"get_urls", "delete_files", "send_messages"} <= set(chosen)
    assert chosen[:6] == EVERYDAY[:6]
    assert len(chosen) == 12


def test_stable_choice_where_blocks_do_not_fit_takes_the_needed_ones():
    needed = ["read_messages", "create_events", "get_weather", "find_contacts", "read_files_pdf"]

    chosen = stable_choice(HOUSE, needed, most=12)

    assert set(needed) <= set(chosen)
    assert len(chosen) == 12


def test_stable_choice_with_room_for_all_gives_all():
    assert set(stable_choice(HOUSE, ["send_messages"], most=len(HOUSE))) == set(HOUSE)


def test_stable_choice_without_everyday_tools_fills_up():
    names = [name for name in HOUSE if name not in EVERYDAY]

    assert len(stable_choice(names, [], most=5)) == 5
    assert "send_messages" in stable_choice(names, ["send_messages"], most=5)


def test_prompts_of_simple_turns_stay_within_the_budget():
    figures = tokens.run()

    for engine in ("simple", "metis"):
        for lang in ("it", "en"):
            found = figures[engine][lang]
            assert found["tokens"] <= 2000, (engine, lang)
            assert found["tokens_of_a_request"] <= 2000, (engine, lang)
            assert found["shared_prefix"] >= 0.999, (engine, lang)
            assert found["shared_prefix_with_others"] >= 0.4, (engine, lang)


@pytest.mark.parametrize("lang", ["it", "en"])
def test_heads_of_descriptions_are_lines(catalog, lang):
    heads = {name: e.manifest.head(lang) for name, e in catalog.offered.items()}

    too_long = {name: head for name, head in heads.items() if not 8 <= len(head) <= MOST_HEAD}
    assert too_long == {}


@pytest.mark.parametrize("lang", ["it", "en"])
def test_a_line_about_a_tool_costs_some_25_tokens(catalog, lang):
    lines = tool_lines(catalog, sorted(catalog.offered), lang)

    assert sum(map(len, lines)) / 4 / len(lines) <= 27
    assert max(map(len, lines)) <= 200
    assert all(line in "\n".join(heads(catalog, lang)) for line in abilities(catalog, lang))


def heads(catalog: Catalog, lang: str) -> list[str]:
    return [executor.manifest.head(lang) for executor in catalog.offered.values()]


async def test_what_is_chosen_for_a_request_holds_what_it_names(catalog):
    planner = Planner(ScriptedModel(), catalog)
    context = planner.context("leggi diario.md e scarica https://a.example/x", "it")

    for chosen in (
        Candidates().choose(context, k_max=12),
        Candidates().best(context, k_max=5),
    ):
        assert {"read_files", "get_urls"} <= set(chosen)


@pytest.mark.parametrize(
    ("text", "lang", "shown"),
    [
        ("ciao", "it", 12),
        ("che ore sono?", "it", 12),
        ("read todo.md", "en", 12),
        ("ho posta nuova?", "it", 16),
        ("boh fai un po' tu con quella roba", "it", 20),
        ("find the scans, sort them by date and email the list to ada@example.org", "en", 20),
    ],
)
def test_a_list_grows_behind_what_it_held_where_a_request_is_not_plain(catalog, text, lang, shown):
    context = Planner(ScriptedModel(), catalog).context(text, lang)

    chosen = Candidates().choose(context, k_max=12)
    exact = Candidates().choose(context, k_max=12, spare=0)

    assert len(chosen) == len(set(chosen)) == shown
    assert chosen[:12] == exact
    assert Candidates().choose(context, k_max=12) == chosen


def test_every_part_of_a_request_has_its_tool_before_families_fill_the_list(catalog):
    text = "trova i file md nella cartella notes, ordinali per nome e dimmi che ore sono"
    context = Planner(ScriptedModel(), catalog).context(text, "it")

    chosen = Candidates().choose(context, k_max=12, spare=0)

    assert {"find_files", "sort_entries", "get_now"} <= set(chosen)


@pytest.mark.parametrize("text", ["mah", "find the scans, sort them and email the list to Ada"])
def test_what_is_not_there_fills_no_list(catalog, text):
    gone = {"send_messages", "read_messages", "create_events", "describe_entries", "sort_entries"}
    less = replace(
        catalog,
        executors={n: e for n, e in catalog.executors.items() if n not in gone},
        signature="less",
    )
    context = Planner(ScriptedModel(), less).context(text, "en")

    chosen = Candidates().choose(context, k_max=12)
    best = Candidates().best(context, k_max=24)

    assert set(chosen) | set(best) <= set(less.offered)
    assert len(best) == len(set(best)) == 24
    assert len(chosen) == len(set(chosen))


@pytest.mark.parametrize(
    ("text", "is_called"),
    [
        ("cerca fra gli appunti la parola casa", True),
        ("che dice la mia Agenda Rossa?", True),
        ("what does notebook say of the house", True),
        ("find the files of yesterday", False),
        ("what time is it in Tokyo?", False),
    ],
)
async def test_a_tool_that_somebody_connected_comes_when_called_by_its_words(
    catalog, text, is_called
):
    seen = seen_tool("find_notes", "Find by a word.", {"type": "object", "properties": {}})
    words = Approval(Effect.PURE, words=("appunti", "agenda rossa"))
    tool = executor_of("notebook", seen, words)
    planner = Planner(ScriptedModel(), with_foreign(catalog, [tool]))
    context = planner.context(text, "it")

    shown = Candidates().choose(context, k_max=12, spare=0)
    best = Candidates().best(context, k_max=12)

    assert len(shown) == 12 >= len(best)
    assert (tool.name in shown, tool.name in best) == (is_called, is_called)
