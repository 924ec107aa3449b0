"""Filtering, sorting and computing over entries of any origin."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors._sdk.call import Call
from executors._sdk.result import Failure
from executors.compute_entries import main as compute
from executors.filter_entries import main as select
from executors.sort_entries import main as order
from tests.executors.test_values import JSON

FILES = [
    {
        "ok": True,
        "path": "/d/Relazione.pdf",
        "name": "Relazione.pdf",
        "size": 12_000_000,
        "modified": "2026-11-30T10:00:00+01:00",
        "meta": {"author": "Anna Bianchi"},
    },
    {
        "ok": True,
        "path": "/d/note.txt",
        "name": "note.txt",
        "size": 800,
        "modified": "2026-11-29T23:30:00+01:00",
        "tags": ["casa", "Lavoro"],
    },
    {
        "ok": True,
        "path": "/d/perché.md",
        "name": "perché.md",
        "size": 80_000,
        "modified": "2026-11-01",
    },
]


def call(args: dict[str, Any], lang: str = "it") -> Call:
    return Call({"args": args, "lang": lang, "tz": "Europe/Rome"})


def names(where: Any, **more: Any) -> list[str]:
    found = select.run(call({"entries": FILES, "where": where, **more}))
    return [entry["name"] for entry in found["entries"]]


@pytest.mark.parametrize(
    ("field", "op", "value", "expected"),
    [
        ("size", "gt", "10 MB", "Relazione.pdf"),
        ("size", "le", 800, "note.txt"),
        ("size", "eq", "800", "note.txt"),
        ("size", "ne", 800, "Relazione.pdf perché.md"),
        ("size", "in", [800, 80000], "note.txt perché.md"),
        ("name", "eq", "PERCHE.md", "perché.md"),
        ("name", "contains", "PERCHE", "perché.md"),
        ("name", "not_contains", "e", ""),
        ("name", "matches", r"\.(pdf|md)$", "Relazione.pdf perché.md"),
        ("name", "in", "note.txt, perche.md", "note.txt perché.md"),
        ("meta.author", "contains", "anna", "Relazione.pdf"),
        ("tags", "contains", "lavoro", "note.txt"),
        ("tags", "eq", "casa", "note.txt"),
        ("tags", "exists", None, "note.txt"),
        ("tags", "exists", False, "Relazione.pdf perché.md"),
        ("nothing", "exists", False, "Relazione.pdf note.txt perché.md"),
        ("tags.0", "eq", "casa", "note.txt"),
        ("modified", "ge", "2026-11-30", "Relazione.pdf"),
        ("modified", "le", "2026-11-29", "note.txt perché.md"),
        ("modified", "gt", "2026-11-29T23:00:00+01:00", "Relazione.pdf note.txt"),
        ("modified", "eq", "30/11/2026", "Relazione.pdf"),
        ("name", "gt", "p", "Relazione.pdf perché.md"),
        ("size", "gt", "molto", ""),
        ("tags", "eq", None, "Relazione.pdf perché.md"),
    ],
)
def test_filter_by_one_condition(field, op, value, expected):
    assert names([{"field": field, "op": op, "value": value}]) == expected.split()


def test_filter_by_words_looks_everywhere_without_case_and_accents():
    assert names("PERCHE") == ["perché.md"]
    assert names(["anna  bianchi"]) == ["Relazione.pdf"]
    assert names("nessuno") == []


def test_filter_joins_conditions_by_all_or_any():
    where = [
        {"field": "size", "op": "gt", "value": 1000},
        {"field": "name", "op": "contains", "value": "rel"},
    ]

    assert names(where) == ["Relazione.pdf"]
    assert names(where, any=True) == ["Relazione.pdf", "perché.md"]


def test_filter_keeps_entries_whole_and_counts_the_others():
    found = select.run(call({"entries": FILES, "where": "note"}))

    assert found["entries"] == [FILES[1]]
    assert found["metadata"]["total"] == 3
    assert found["metadata"]["label"] == "note.txt"


def test_filter_of_plain_values_makes_entries_of_them():
    found = select.run(call({"entries": ["uno", "due", 3], "where": "u"}))

    assert [entry["value"] for entry in found["entries"]] == ["uno", "due"]


@pytest.mark.parametrize("entries", [[], [{"a": 1}]], ids=["none", "one"])
def test_filter_is_the_same_path_for_none_and_one(entries):
    where = [{"field": "a", "op": "eq", "value": 1}]

    assert select.run(call({"entries": entries, "where": where}))["entries"] == [
        {**entry, "ok": True} for entry in entries
    ]


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("", "invalid_args"),
        ([], "invalid_args"),
        ([{}], "invalid_args"),
        ([{"field": "size", "op": "like", "value": 1}], "invalid_args"),
        ([{"field": "name", "op": "matches", "value": "("}], "invalid_args"),
        ([{"field": "name", "op": "matches", "value": "a" * 201}], "invalid_args"),
        ([{"field": "colour", "op": "eq", "value": 1}], "unknown_field"),
    ],
)
def test_filter_that_cannot_mean_anything_is_refused(where, code):
    with pytest.raises(Failure) as caught:
        names(where)

    assert caught.value.code == code


def test_field_by_another_usual_name_is_found():
    assert names([{"field": "dimensione", "op": "gt", "value": "1 MB"}]) == ["Relazione.pdf"]
    assert names([{"field": "Name", "op": "contains", "value": "note"}]) == ["note.txt"]
    entries = [{"ext": "pdf"}, {"ext": "txt"}]
    where = [{"field": "extension", "op": "eq", "value": ".pdf"}]
    assert len(select.run(call({"entries": entries, "where": where}))["entries"]) == 1


def test_unknown_field_lists_the_fields_there_are():
    with pytest.raises(Failure) as caught:
        order.run(call({"entries": FILES, "by": "colour"}))

    assert caught.value.params["field"] == "colour"
    assert "meta.author" in caught.value.detail


def by(field: str, entries: list[Any], **more: Any) -> list[Any]:
    found = order.run(call({"entries": entries, "by": field, **more}))
    return [entry.get("id", entry.get("value")) for entry in found["entries"]]


def test_sort_reads_numbers_dates_and_words_as_such():
    def rows(*found: Any) -> list[Any]:
        return [{"id": value, "x": value} for value in found]

    assert by("x", rows("10", 9, "1.000")) == [9, "10", "1.000"]
    assert by("x", rows("è", "f", "Da")) == ["Da", "è", "f"]
    assert by("x", rows("2026-11-30", "2026-11-29T10:00:00Z")) == [
        "2026-11-29T10:00:00Z",
        "2026-11-30",
    ]
    assert by("x", rows("b", 2, True, [1], {"a": 1})) == [True, 2, "b", [1], {"a": 1}]


@pytest.mark.parametrize("desc", [False, True])
def test_sort_keeps_equals_in_order_and_puts_what_lacks_the_field_last(desc):
    values = {"a": ..., "b": 1, "c": None, "d": 2, "e": 1}
    entries = [{"id": k} if v is ... else {"id": k, "n": v} for k, v in values.items()]

    expected = ["d", "b", "e", "a", "c"] if desc else ["b", "e", "d", "a", "c"]
    assert by("n", entries, desc=desc) == expected


def test_sort_with_limit_says_that_there_were_more():
    found = order.run(call({"entries": FILES, "by": "size", "desc": True, "limit": 1}))

    assert [entry["name"] for entry in found["entries"]] == ["Relazione.pdf"]
    assert found["metadata"]["truncated"] is True
    assert found["metadata"]["total"] == 3


def total(entries: list[Any], op: str, lang: str = "it", **more: Any) -> dict[str, Any]:
    content = compute.run(call({"entries": entries, "op": op, **more}, lang))["content"]
    return dict(content)


@pytest.mark.parametrize(
    ("op", "expected"),
    [("sum", 1236.9), ("avg", 309.225), ("min", 0), ("max", 1234.5), ("median", 1.2)],
)
def test_compute_is_exact_and_counts_what_it_skips(op, expected):
    entries = [{"x": "1.234,50 €"}, {"x": 0.1}, {"x": "2,30"}, {"x": "0"}, {"x": "?"}, {}]

    found = total(entries, op, key="x")

    assert (found["value"], found["n"], found["skipped"]) == (expected, 4, 2)


def test_compute_count_of_a_field_counts_those_that_have_it():
    entries = [{"x": 1}, {"x": None}, {"x": ""}, {"x": "?"}, {}]

    assert total(entries, "count")["value"] == 5
    assert total(entries, "count", key="x")["value"] == 2


def test_compute_sum_of_cents_has_no_dust():
    assert total([{"x": 0.1}] * 3, "sum", key="x")["value"] == 0.3
    assert total([{"x": "0,01"}] * 10_000, "sum", key="x")["value"] == 100


def test_compute_reads_one_separator_as_the_language_does():
    assert total([{"x": "1.234"}], "sum", key="x", lang="it")["value"] == 1234
    assert total([{"x": "1.234"}], "sum", key="x", lang="en")["value"] == 1.234


def test_compute_extremes_of_dates_and_words_name_their_entry():
    latest = total(FILES, "max", key="modified")

    assert (latest["value"], latest["label"]) == (FILES[0]["modified"], "Relazione.pdf")
    assert total(FILES, "min", key="name")["value"] == "note.txt"
    assert total(FILES, "max", key="size")["label"] == "Relazione.pdf"


def test_compute_by_groups_gives_each_its_value_greatest_first():
    entries = [{"k": "a", "n": 1}, {"k": "B", "n": 5}, {"k": "b", "n": 2}, {"n": 1}]

    found = total(entries, "sum", key="n", by="k")

    assert found["value"] == 9
    assert found["groups"] == [
        {"group": "B", "value": 7, "n": 2},
        {"group": "a", "value": 1, "n": 1},
        {"group": "—", "value": 1, "n": 1},
    ]


@pytest.mark.parametrize(
    ("op", "more", "code"),
    [
        ("sum", {"key": "name"}, "not_numeric"),
        ("max", {"key": "none"}, "unknown_field"),
        ("sum", {}, "invalid_args"),
        ("mode", {"key": "size"}, "invalid_args"),
        ("count", {"by": "none"}, "unknown_field"),
    ],
)
def test_compute_that_cannot_be_done_is_refused(op, more, code):
    with pytest.raises(Failure) as caught:
        total(FILES, op, **more)

    assert caught.value.code == code


def test_compute_over_nothing_is_zero_and_an_empty_list():
    found = compute.run(call({"entries": [], "op": "sum", "key": "x"}))

    assert found["ok"] is True
    assert found["entries"] == []
    assert found["content"]["value"] == 0


ENTRIES = st.lists(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3) | JSON, max_size=6)
CONDITION = st.fixed_dictionaries(
    {
        "field": st.sampled_from(["a", "b.a", "value"]),
        "op": st.sampled_from(select._OPS),
        "value": JSON,
    }
)


def attempt(run: Callable[[Call], dict[str, Any]], **args: Any) -> dict[str, Any] | str:
    """The result, or the code of the failure."""
    try:
        return run(call(args))
    except Failure as failure:
        return failure.code


@given(ENTRIES, st.lists(CONDITION, min_size=1, max_size=3), st.booleans())
def test_filter_any_entries_gives_a_part_of_them_or_a_coded_failure(entries, where, some):
    found = attempt(select.run, entries=entries, where=where, any=some)

    if isinstance(found, str):
        assert found in {"unknown_field", "invalid_args"}
    else:
        assert len(found["entries"]) <= len(entries)


@given(ENTRIES, st.booleans())
def test_sort_any_entries_loses_none(entries, desc):
    found = attempt(order.run, entries=entries, by="a", desc=desc)

    if isinstance(found, str):
        assert found == "unknown_field"
    else:
        assert len(found["entries"]) == len(entries)


@given(ENTRIES, st.sampled_from(compute._OPS), st.sampled_from(["", "b"]))
def test_compute_any_entries_accounts_for_every_one(entries, op, group):
    found = attempt(compute.run, entries=entries, op=op, key="a", by=group)

    if isinstance(found, str):
        assert found in {"unknown_field", "not_numeric"}
    else:
        content = found["content"]
        assert content["n"] + content["skipped"] == len(entries)
        json.dumps(content, allow_nan=False)
