"""Literals of plans and the requests they came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from core.catalog.manifest import Manifest
from core.levels.meaning import meaning_of
from core.levels.reuse import keys_of
from core.levels.tracing import NotKept, fill, shape_of, stands_for, trace, types_of
from core.plan import Plan
from tests.support.catalogue import shipped_manifests


@pytest.fixture(scope="module")
def manifests() -> Mapping[str, Manifest]:
    return shipped_manifests()


def plan(*steps: tuple[str, dict[str, Any]]) -> Plan:
    return Plan.from_json({"steps": [{"tool": tool, "args": args} for tool, args in steps]})


SERVED = [
    (
        "leggi ~/notes/diario.md e dimmi le ultime tre righe",
        ("read_files", {"paths": ["~/notes/diario.md"], "tail_lines": 3}),
        "leggi ~/notes/spesa.md e dimmi le ultime 10 righe",
        {"paths": ["~/notes/spesa.md"], "tail_lines": 10},
    ),
    (
        "what time is it in Tokyo?",
        ("get_now", {"timezone": "Tokyo"}),
        "che ore sono a New York?",
        {"timezone": "New York"},
    ),
    (
        "cancella bozza1.docx",
        ("delete_files", {"paths": ["bozza1.docx"]}),
        "delete bozza22.docx, please",
        {"paths": ["bozza22.docx"]},
    ),
    (
        "trova i file oltre 10 MB in Documenti",
        ("find_files", {"base_path": "~/Documenti", "size_min": 10_000_000}),
        "trova i file oltre 3 km in Foto",
        None,
    ),
    (
        "trova i file oltre 10 MB in Documenti",
        ("find_files", {"base_path": "~/Documenti", "size_min": 10_000_000}),
        "trova i file oltre 2 GB in Foto",
        {"base_path": "~/Foto", "size_min": 2_000_000_000},
    ),
    (
        'scrivi "ciao a tutti" in note/a.md',
        ("write_files", {"path": "note/a.md", "content": "ciao a tutti"}),
        'scrivi "arrivo" in note/b.md',
        {"path": "note/b.md", "content": "arrivo"},
    ),
    # A folder is a folder, however it is spelt; a whole path stands behind no other.
    (
        "trova i pdf in Documenti",
        ("find_files", {"base_path": "Documenti", "patterns": ["*.pdf"]}),
        "trova i pdf in viaggi/lisbona",
        {"base_path": "viaggi/lisbona", "patterns": ["*.pdf"]},
    ),
    (
        "trova i pdf in Documenti",
        ("find_files", {"base_path": "~/Documenti", "patterns": ["*.pdf"]}),
        "trova i pdf in /srv/viaggi",
        None,
    ),
    (
        "che ore sono a Tokyo?",
        ("get_now", {"timezone": "Tokyo"}),
        "che ore sono a viaggi/lisbona?",
        None,
    ),
    # Another ending may need another tool.
    (
        "leggi spesa.md",
        ("read_files", {"paths": ["spesa.md"]}),
        "leggi spesa.pdf",
        None,
    ),
    ("leggi spesa.md", ("read_files", {"paths": ["spesa.md"]}), "leggi a.md e b.md", None),
]


@pytest.mark.parametrize(("request_", "step", "other", "args"), SERVED)
def test_plan_serves_the_same_request_with_other_values(
    manifests: Mapping[str, Manifest],
    request_: str,
    step: tuple[str, dict[str, Any]],
    other: str,
    args: dict[str, Any] | None,
):
    first, second = meaning_of(request_), meaning_of(other)
    traced = trace(plan(step), first, manifests)

    same_shape = keys_of(first)[0] == keys_of(second)[0] != ""
    kinds = types_of(first, traced.places)
    fits = same_shape and all(map(stands_for, kinds, second.values))
    made = fill(plan(step), traced.bindings, second.values) if fits else None
    assert not traced.exact
    assert (None if made is None else made.steps[0].args) == args


def test_what_follows_from_the_words_serves_other_values_in_the_same_words(
    manifests: Mapping[str, Manifest],
):
    for request, step in (
        ("leggi l'ultima riga di a.md", ("read_files", {"paths": ["a.md"], "tail_lines": 1})),
        (
            "sposta a.md nella cartella lavoro",
            ("move_files", {"paths": ["a.md"], "dst": "lavoro"}),
        ),
    ):
        traced = trace(plan(step), meaning_of(request), manifests)
        assert (traced.exact, traced.worded) == (False, True)
    # A number may have been reckoned from one that was said, or from the time.
    for request in ("leggi le 3 ultime righe di a.md", "leggi la riga di oggi di a.md"):
        step = ("read_files", {"paths": ["a.md"], "tail_lines": 1})
        assert trace(plan(step), meaning_of(request), manifests).exact


@pytest.mark.parametrize(
    ("request_", "step", "reason"),
    [
        ("cancella quel file", ("delete_files", {"paths": ["~/a.md"]}), "untraced_target"),
        ("apri la pagina", ("get_urls", {"urls": ["https://a.example"]}), "untraced_target"),
        ("scrivi una poesia in a.md", ("write_files", {"path": "a.md", "content": "Rose"}),
         "untraced_content"),
        ("file del 2026-03-01", ("find_files", {"patterns": ["*2026-03-01*"]}), "absolute_date"),
        ("leggi a.md", ("read_files", {"paths": ["{{step1.path}} x"]}), "mixed_text"),
    ],
)  # fmt: skip
def test_what_nobody_said_is_not_kept(
    manifests: Mapping[str, Manifest],
    request_: str,
    step: tuple[str, dict[str, Any]],
    reason: str,
):
    with pytest.raises(NotKept) as refused:
        trace(plan(step), meaning_of(request_), manifests)
    assert refused.value.reason == reason


def test_number_that_was_reckoned_makes_the_plan_exact(manifests: Mapping[str, Manifest]):
    step = ("find_files", {"modified_within_days": 14})

    traced = trace(plan(step), meaning_of("file cambiati nelle ultime 2 settimane"), manifests)

    assert traced.exact


def test_choices_of_a_closed_list_are_no_literals(manifests: Mapping[str, Manifest]):
    step = ("write_files", {"path": "a.md", "content": "latte", "mode": "append"})

    traced = trace(plan(step), meaning_of("aggiungi latte a a.md"), manifests)

    assert {binding.path for binding in traced.bindings} == {("path",), ("content",)}


def test_value_that_is_not_bound_must_be_equal():
    one, other = meaning_of("foto di Anna in Estate"), meaning_of("foto di Marta in Estate")

    assert shape_of(one, {1}) != shape_of(other, {1})
    assert shape_of(one, {0}) == shape_of(other, {0})
