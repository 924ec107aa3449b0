"""Grouping entries, comparing two lists, and lists as sets."""

from __future__ import annotations

from typing import Any

import pytest

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation
from executors._sdk.call import Call
from executors._sdk.result import Failure
from executors.compare_entries import main as compare
from executors.compute_entries import main as compute
from executors.filter_lists import main as sets
from executors.group_entries import main as group
from tests.support.run_executor import TREE

TEXTS = Texts.load(TREE.parent / "locales")
# The first at half past midnight of the day after, in Rome.
DATED = [
    {"name": "a", "modified": "2026-02-01T23:30:00+00:00"},
    {"name": "b", "modified": "2026-02-02T10:00:00+00:00"},
    {"name": "c", "modified": "2026-01-31T10:00:00+00:00"},
    {"name": "d", "modified": ""},
]
RUNS = {"group_entries": group.run, "compare_entries": compare.run, "filter_lists": sets.run}
SPENT = [
    {"ok": True, "categoria": "casa", "importo": "10,50", "voce": "luce"},
    {"ok": True, "categoria": "svago", "importo": "8,00", "voce": "cinema"},
    {"ok": True, "categoria": "Casa", "importo": "1.000,25", "voce": "affitto"},
]
OLD = [{"sku": "a1", "price": 1, "row": 2}, {"sku": "b2", "price": 2, "row": 3}]
NEW = [{"sku": "b2", "price": 2, "row": 9}, {"sku": "c3", "price": 5, "row": 3}]


def call(args: dict[str, Any], lang: str = "it") -> Call:
    return Call({"args": args, "lang": lang, "tz": "Europe/Rome"})


def said(name: str, args: dict[str, Any], lang: str) -> str:
    manifest = parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)
    seen = Observation.from_json(RUNS[name](call(args, lang)))
    blocks = Renderer(TEXTS, lang, "Europe/Rome", "/home/x").observation(seen, manifest)
    return "\n".join(block.text for block in blocks)


def test_group_counts_and_adds_up_and_keeps_the_items():
    found = group.run(call({"entries": SPENT, "by": "Categoria"}))

    groups = found["entries"]
    assert [(g["group"], g["count"], g["total"]) for g in groups] == [
        ("casa", 2, 1010.75),
        ("svago", 1, 8),
    ]
    assert [item["voce"] for item in groups[0]["items"]] == ["luce", "affitto"]


def test_groups_are_computed_over_one_by_one():
    groups = group.run(call({"entries": SPENT, "by": "categoria"}))["entries"]

    content = compute.run(call({"entries": groups, "op": "avg", "key": "importo"}))["content"]

    assert content["n"] == 3
    assert [(g["group"], g["value"]) for g in content["groups"]] == [
        ("casa", 505.375),
        ("svago", 8),
    ]


def test_group_of_nothing_is_nothing():
    assert group.run(call({"entries": [], "by": "x"}))["entries"] == []


def test_group_into_too_many_is_refused():
    with pytest.raises(Failure) as failed:
        group.run(call({"entries": [{"n": f"x{n}"} for n in range(1001)], "by": "n"}))

    assert failed.value.code == "too_large"


def test_compare_tells_each_difference_once():
    found = compare.run(call({"entries": OLD, "other_entries": NEW}))

    assert [(e["where"], e["label"]) for e in found["entries"]] == [
        ("only_first", "a1"),
        ("only_second", "c3"),
    ]
    assert found["metadata"]["equal"] == 1


def test_compare_with_itself_has_no_differences():
    found = compare.run(call({"entries": OLD, "other_entries": OLD}))

    assert found["entries"] == []
    assert found["metadata"]["equal"] == 2


def test_compare_counts_repeated_ones():
    found = compare.run(
        call({"entries": [{"name": "a"}, {"name": "A"}], "other_entries": [{"name": "a"}]})
    )

    assert [e["where"] for e in found["entries"]] == ["only_first"]


def test_compare_by_the_keys_that_are_named():
    first, second = [{"name": "x", "city": "Roma"}], [{"name": "y", "city": "ROMA"}]

    found = compare.run(call({"entries": first, "other_entries": second, "on_keys": ["city"]}))

    assert [e["changed"] for e in found["entries"]] == ["nome: x → y"]


def test_compare_with_an_empty_list():
    found = compare.run(call({"entries": OLD, "other_entries": []}))

    assert {e["where"] for e in found["entries"]} == {"only_first"}


@pytest.mark.parametrize(
    ("op", "skus"),
    [("delta", "a1"), ("common", "b2"), ("union", "a1 b2 c3"), ("unique", "a1 b2 c3")],
)
def test_lists_as_sets(op, skus):
    found = sets.run(call({"entries": OLD, "other_entries": NEW, "op": op}))

    assert " ".join(entry["sku"] for entry in found["entries"]) == skus


def test_repeated_ones_of_one_list_are_those_alike_in_everything():
    twice = [{"name": "a", "n": 1}, {"name": "A", "n": 2}, {"name": "a", "n": 1}]

    assert len(sets.run(call({"entries": twice, "op": "unique"}))["entries"]) == 2
    assert (
        len(sets.run(call({"entries": twice, "op": "unique", "on_keys": ["name"]}))["entries"])
        == 1
    )


@pytest.mark.parametrize(
    ("name", "args", "italian", "english"),
    [
        (
            "group_entries",
            {"entries": SPENT, "by": "categoria"},
            "2 gruppi:\n• casa: 2 · importo",
            "2 groups",
        ),
        (
            "group_entries",
            {"entries": DATED, "by": "mese"},
            "3 gruppi:\n• gennaio 2026: 1\n• febbraio 2026: 2\n• —: 1",
            "3 groups:\n• January 2026: 1\n• February 2026: 2\n• —: 1",
        ),
        (
            "group_entries",
            {"entries": DATED, "by": "settimana"},
            "• settimana del 26 gennaio 2026: 1\n• settimana del 2 febbraio 2026: 2",
            "• week of 26 January 2026: 1\n• week of 2 February 2026: 2",
        ),
        (
            "group_entries",
            {"entries": DATED, "by": "modified"},
            "• 31 gennaio 2026: 1\n• 2 febbraio 2026: 2",
            "• 31 January 2026: 1\n• 2 February 2026: 2",
        ),
        ("group_entries", {"entries": DATED[:3], "by": "year"}, "Un solo gruppo, 2026: 3", "2026"),
        (
            "compare_entries",
            {
                "entries": [{"name": "a", "size": 1_234_567}, {"name": "b", "size": 50}],
                "other_entries": [{"name": "a", "size": 900}, {"name": "b", "size": 50}],
            },
            "≠ a (dimensione: 1,2 MB → 900 byte)",
            "≠ a (size: 1.2 MB → 900 bytes)",
        ),
        (
            "group_entries",
            {"entries": [], "by": "x"},
            "Niente da raggruppare.",
            "Nothing to group.",
        ),
        (
            "compare_entries",
            {"entries": OLD, "other_entries": NEW},
            "Solo nel primo: 1. Solo nel secondo: 1. \n− a1\n+ c3",
            "Only in the first: 1. Only in the second: 1. \n− a1\n+ c3",
        ),
        (
            "compare_entries",
            {"entries": OLD, "other_entries": OLD},
            "Nessuna differenza (2 uguali",
            "No differences (2 alike",
        ),
        (
            "filter_lists",
            {"entries": OLD, "other_entries": NEW, "op": "delta"},
            "Uno su 4: ",
            "One of 4: ",
        ),
    ],
)
def test_answers_in_both_languages(name, args, italian, english):
    assert italian.replace(" \n", "\n") in said(name, args, "it").replace(" \n", "\n")
    assert english.replace(" \n", "\n") in said(name, args, "en").replace(" \n", "\n")


@pytest.mark.parametrize("field", ["telefono", "Numero di telefono", "id", "phone"])
def test_numbers_that_call_or_number_something_are_not_added_up(field):
    rows = [{"nome": "Anna", field: "333001"}, {"nome": "Luca", field: "333002"}]

    found = group.run(call({"entries": rows, "by": "nome"}))

    assert all("total" not in entry and "totals" not in entry for entry in found["entries"])
