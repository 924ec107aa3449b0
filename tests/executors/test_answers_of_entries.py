"""What a person reads after the executors of time, entries and web, without a model."""

from __future__ import annotations

from typing import Any

import pytest

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation
from executors._sdk.call import Call
from executors.compute_entries import main as compute
from executors.filter_entries import main as select
from executors.get_now import main as clock
from executors.sort_entries import main as order
from tests.support.run_executor import TREE

NOW = "2026-11-30T09:42:00+00:00"
TEXTS = Texts.load(TREE.parent / "locales")
RUNS = {
    "get_now": clock.run,
    "filter_entries": select.run,
    "sort_entries": order.run,
    "compute_entries": compute.run,
}
FILES = [
    {"ok": True, "path": "/home/x/a.pdf", "name": "a.pdf", "size": 12_000_000, "ext": "pdf"},
    {"ok": True, "path": "/home/x/b.txt", "name": "b.txt", "size": 500_000, "ext": "txt"},
    {"ok": True, "path": "/home/x/c.pdf", "name": "c.pdf", "size": 1_500_000, "ext": "pdf"},
]
EVENTS = [
    {"id": "e1", "summary": "Dentista", "begins": "2026-11-30T14:30:00+00:00"},
    {"id": "e2", "summary": "Cena con Anna", "begins": "2026-11-30T20:00:00+00:00"},
    {"id": "e3", "summary": "Anniversario", "day": "2030-12-01", "all_day": True},
]
MAILS = [
    {"id": "m1", "sender": "Anna", "subject": "Ciao", "date": "2026-11-30T08:00:00+00:00"},
    {"id": "m2", "sender": "Luca", "subject": "Chiavi", "date": "2026-12-01T08:00:00+00:00"},
]
DATES = [{"name": "a", "day": "2026-11-30"}, {"name": "b", "day": "2026-12-01"}]


def said(name: str, args: dict[str, Any], lang: str) -> str:
    manifest = parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)
    document = {"args": args, "lang": lang, "tz": "Europe/Rome", "now": NOW}
    result = RUNS[name](Call(document))
    seen = Observation.from_json(result)
    blocks = Renderer(TEXTS, lang, "Europe/Rome", "/home/x").observation(seen, manifest)
    return "\n".join(block.text for block in blocks)


@pytest.mark.parametrize(
    ("name", "args", "italian", "english"),
    [
        (
            "get_now",
            {},
            "Sono le 10:42 di lunedì 30 novembre",
            "It is 10:42 on Monday 30 November",
        ),
        ("get_now", {"timezone": "tokyo"}, " a Tokyo.", " in Tokyo."),
        ("get_now", {"timezone": "Giappone"}, " (Giappone).", " (Japan)."),
        (
            "filter_entries",
            {"entries": FILES, "where": "b.txt"},
            "Uno su 3: b.txt (500 kB)",
            "One of 3: b.txt (500 kB)",
        ),
        ("filter_entries", {"entries": FILES, "where": "zzz"}, "Nessuno su 3.", "None of 3."),
        (
            "filter_entries",
            {"entries": FILES, "where": "pdf"},
            "• ~/a.pdf (12 MB)\n• ~/c.pdf (1,5 MB)",
            "• ~/a.pdf (12 MB)\n• ~/c.pdf (1.5 MB)",
        ),
        (
            "filter_entries",
            {"entries": EVENTS, "where": "dentist"},
            "Uno su 3: lunedì 30 novembre 2026, 15:30: Dentista",
            "One of 3: Monday 30 November 2026, 15:30: Dentista",
        ),
        (
            "filter_entries",
            {"entries": EVENTS, "where": "ann"},
            "• lunedì 30 novembre 2026, 21:00: Cena con Anna\n• 1 dicembre 2030: Anniversario",
            "• Monday 30 November 2026, 21:00: Cena con Anna\n• 1 December 2030: Anniversario",
        ),
        (
            "sort_entries",
            {"entries": MAILS, "by": "date", "desc": True},
            "• Luca, martedì 1 dicembre 2026, 09:00: Chiavi\n• Anna, lunedì 30 novembre",
            "• Luca, Tuesday 1 December 2026, 09:00: Chiavi\n• Anna, Monday 30 November",
        ),
        (
            "sort_entries",
            {"entries": FILES, "by": "dimensione", "desc": True, "limit": 2},
            "• ~/a.pdf (12 MB)\n• ~/c.pdf (1,5 MB)\nSono 2 su 3.",
            "• ~/a.pdf (12 MB)\n• ~/c.pdf (1.5 MB)\nThese are 2 of 3.",
        ),
        (
            "sort_entries",
            {"entries": [{"name": "a", "when": "2026-11-30T08:00:00+00:00"}] * 2, "by": "when"},
            "• a (lunedì 30 novembre 2026, 09:00)",
            "• a (Monday 30 November 2026, 09:00)",
        ),
        (
            "compute_entries",
            {"entries": [{"n": 1}, {"n": 1}, {"n": 2}], "op": "avg", "key": "n"},
            "Media: 1,33",
            "Average: 1.33",
        ),
        (
            "sort_entries",
            {"entries": FILES, "by": "size", "limit": 1},
            "b.txt (500 kB)",
            "b.txt (500 kB)",
        ),
        ("sort_entries", {"entries": [], "by": "size"}, "Niente", "Nothing"),
        ("compute_entries", {"entries": FILES, "op": "count"}, "In tutto: 3", "In all: 3"),
        (
            "compute_entries",
            {"entries": FILES, "op": "sum", "key": "size"},
            "Totale: 14 MB",
            "Total: 14 MB",
        ),
        (
            "compute_entries",
            {"entries": FILES, "op": "max", "key": "size"},
            "Massimo: 12 MB (a.pdf)",
            "Maximum: 12 MB (a.pdf)",
        ),
        (
            "compute_entries",
            {"entries": DATES, "op": "max", "key": "day"},
            "Massimo: 1 dicembre",
            "Maximum: 1 December",
        ),
        (
            "compute_entries",
            {"entries": FILES, "op": "count", "by": "ext"},
            "In tutto: 3\n• pdf: 2\n• txt: 1",
            "In all: 3\n• pdf: 2\n• txt: 1",
        ),
        (
            "compute_entries",
            {"entries": [{"n": 1.5}, {"n": "?"}], "op": "sum", "key": "n"},
            "Totale: 1,5 (senza valore: 1)",
            "Total: 1.5 (without a value: 1)",
        ),
        ("compute_entries", {"entries": [], "op": "sum", "key": "n"}, "Zero", "Zero"),
    ],
)
def test_answer_says_it_in_both_languages(name, args, italian, english):
    assert italian in said(name, args, "it")
    assert english in said(name, args, "en")
