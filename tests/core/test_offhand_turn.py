"""A note without a verb becomes an event, over a whole turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.messages import FinalKind
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Rule


@pytest.mark.parametrize(
    ("lang", "words", "summary", "start", "file"),
    [
        ("it", "dentista giovedì alle 16", "Dentista", "giovedì alle 16", "Calendario.ics"),
        ("en", "dentist Thursday at 4 pm", "Dentist", "Thursday at 4 pm", "Calendar.ics"),
    ],
)
async def test_note_of_an_event_is_put_into_the_calendar(
    tmp_path: Path, lang: str, words: str, summary: str, start: str, file: str
) -> None:
    made = ("create_events", {"summary": summary, "start": start})
    rules = [Rule(after=0, calls=[made]), Rule(text="Ok.")]
    async with open_scripted(
        tmp_path, rules, metnos_lang=lang, metnos_memory=False, metnos_most_tools=12
    ) as (house, model):
        closed = await ask(house, words)

    kept = (tmp_path / "notes" / file).read_text(encoding="utf-8")
    offered = [tool["function"]["name"] for tool in model.asked[0].body["tools"]]
    assert closed.final_kind is FinalKind.ANSWER
    assert f"SUMMARY:{summary}" in kept
    assert "T160000" in kept
    assert kept.count("BEGIN:VEVENT") == 1
    assert "create_events" in offered
    assert len(offered) < 30, "a list that is cut"
