"""A shopping list over a turn: made, read, taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.messages import FinalKind, TurnSuspended
from tests.core.test_questions import press as press_label
from tests.core.test_questions import said
from tests.core.test_votes import GUEST, button, chat, press, say
from tests.support.house import ask, open_scripted
from tests.support.mail import add_mail, fill_mailbox
from tests.support.scripted_model import Rule


@pytest.mark.parametrize(
    ("lang", "words", "name", "items", "folder"),
    [
        (
            "it",
            "aggiungi latte e pane alla lista della spesa",
            "spesa",
            ["latte", "pane"],
            "Liste",
        ),
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


OUT = {"name": "spesa", "items": ["latte"]}
WHOLE = {"name": "spesa", "whole": True}


@pytest.mark.parametrize(
    ("lang", "words", "args", "card", "yes", "effect"),
    [
        (
            "it",
            "togli latte dalla spesa",
            OUT,
            "✋ Tolgo latte da {home}.md?",
            "Sì",
            "Modificato: ",
        ),
        (
            "en",
            "take latte off spesa",
            OUT,
            "✋ Take latte out of {home}.md?",
            "Yes",
            "Changed: ",
        ),
        (
            "it",
            "cancella la lista spesa",
            WHOLE,
            "✋ Elimino {folder}?",
            "Sì",
            "Nel cestino: ",
        ),
        (
            "en",
            "delete the spesa list",
            WHOLE,
            "✋ Delete {folder}?",
            "Yes",
            "In the trash: ",
        ),
    ],
)
async def test_card_says_what_goes_and_the_answer_what_went(
    tmp_path: Path, lang: str, words: str, args: dict[str, Any], card: str, yes: str, effect: str
) -> None:
    """Taking an item out is not told as throwing the list away, and the list comes back whole."""
    folder = tmp_path / "notes/Liste/spesa"
    folder.mkdir(parents=True)
    path = folder / "spesa.md"
    path.write_text("- latte\n- pane\n", encoding="utf-8")
    named = {"folder": folder, "home": folder / "spesa"}
    rules = [
        Rule(user=words, after=0, calls=[("delete_lists", args)]),
        Rule(user="annulla|undo", after=0, calls=[("undo_last_turn", {})]),
        Rule(text="Ok."),
    ]
    async with open_scripted(tmp_path, rules, metnos_lang=lang, metnos_memory=False) as (house, _):
        question = (await said(house, words))[-1]
        assert isinstance(question, TurnSuspended)
        there = path.exists()
        closed = (await press_label(house, question, yes))[-1]
        left = path.read_text(encoding="utf-8") if path.exists() else None
        await ask(house, "annulla" if lang == "it" else "undo that")

    assert there
    assert question.reply.blocks[0].text == card.format(**named)
    assert f"\n{effect}" in closed.reply.plain
    assert left == (None if args is WHOLE else "- pane\n")
    assert path.read_text(encoding="utf-8") == "- latte\n- pane\n"


WROTE = [
    Rule(
        user="aggiungi|add",
        after=0,
        calls=[("write_lists", {"name": "spesa", "items": ["latte"]})],
    ),
    Rule(user="leggi|read", after=0, calls=[("read_lists", {"name": "spesa"})]),
    Rule(user="regali", after=0, calls=[("read_lists", {"name": "regali"})]),
    Rule(text="Ok."),
]


@pytest.mark.parametrize(
    ("lang", "label", "told"),
    [
        ("it", "Condividi con Luca", "Ora Luca può leggere e cambiare la lista spesa."),
        ("en", "Share with Luca", "Luca can now read and change the list spesa."),
    ],
)
async def test_host_opens_one_list_to_a_guest(
    tmp_path: Path, lang: str, label: str, told: str
) -> None:
    (tmp_path / "notes/Liste/regali").mkdir(parents=True)
    (tmp_path / "notes/Liste/regali/regali.md").write_text("- libro\n", encoding="utf-8")
    settings = {"metnos_engine": "simple", "metnos_memory": False, "metnos_lang": lang}
    asks = "aggiungi latte alla spesa" if lang == "it" else "add latte to the spesa list"
    async with chat(tmp_path, *WROTE, **settings) as (house, _):
        # The guest has a list of nobody's before.
        before = await say(house, "leggi la lista spesa", GUEST)
        told_host = await say(house, asks)
        said, _ = await press(house, button(told_host.reply, label).token, lang=lang)
        again = await say(house, "leggi la lista spesa")
        read = await say(house, "leggi la lista spesa", GUEST)
        other = await say(house, "dimmi i regali in lista", GUEST)

    assert before.error is not None
    assert told in said.reply.plain
    assert not any(label in b.label for row in again.reply.buttons for b in row)
    assert read.error is None
    assert not any("👥" in b.label for row in read.reply.buttons for b in row)
    assert other.error is not None  # the other lists stay the host's


async def test_guest_presses_nothing_open(tmp_path: Path) -> None:
    settings = {"metnos_engine": "simple", "metnos_memory": False}
    async with chat(tmp_path, *WROTE, **settings) as (house, _):
        told = await say(house, "aggiungi latte alla spesa")
        await press(house, button(told.reply, "Condividi").token, GUEST)
        read = await say(house, "leggi la lista spesa", GUEST)

    assert read.error is not None


@pytest.mark.parametrize("name", ["spesa", "segreti"])
async def test_list_that_was_called_by_its_name_is_not_asked_about_after_mail_was_read(
    tmp_path: Path, name: str
) -> None:
    rules = [
        Rule(after=0, calls=[("read_messages", {"mailbox": "box"})]),
        Rule(after=1, calls=[("write_lists", {"name": name, "items": ["latte"]})]),
        Rule(text="Ok."),
    ]
    async with open_scripted(tmp_path, rules, metnos_memory=False) as (house, _):
        add_mail(house.settings)
        letter = {"sender": "ordini@ferramenta.example", "subject": "Ciao", "text": "segreti"}
        fill_mailbox(tmp_path / "notes/box", {"m1": letter})
        last = (await said(house, "leggi la posta in box e metti latte nella lista spesa"))[-1]

    assert not isinstance(last, TurnSuspended)
    written = (tmp_path / f"notes/Liste/{name}/{name}.md").exists()
    assert written is (name == "spesa"), "a list that only the letter names is nobody's wish"
