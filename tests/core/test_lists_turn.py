"""A shopping list over a turn: made, read, taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.messages import FinalKind
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Rule


@pytest.mark.parametrize(
    ("lang", "words", "name", "items", "folder"),
    [
        ("it", "aggiungi latte e pane alla lista della spesa", "spesa", ["latte", "pane"], "Liste"),
        ("en", "add milk and bread to my shopping list", "shopping", ["milk", "bread"], "Lists"),
    ],
)
async def test_list_is_written_and_taken_back(
    tmp_path: Path, lang: str, words: str, name: str, items: list[str], folder: str
) -> None:
    rules = [
        Rule(user=name, after=0, calls=[("write_lists", {"name": name, "items": items})]),
        Rule(user=name, after=1, text="Ok."),
        Rule(user="annulla|undo", after=0, calls=[("undo_last_turn", {})]),
        Rule(text="Ok."),
    ]
    path = tmp_path / f"notes/{folder}/{name}/{name}.md"
    async with open_scripted(tmp_path, rules, metnos_lang=lang, metnos_memory=False) as (house, _):
        closed = await ask(house, words)
        written = path.read_text(encoding="utf-8")
        await ask(house, "annulla" if lang == "it" else "undo that")

    assert closed.final_kind is FinalKind.ANSWER
    assert written == "".join(f"- {item}\n" for item in items)
    assert not path.exists()
