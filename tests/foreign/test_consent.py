"""The question before a tool of a server is used: as a person reads it, in both languages, and
what comes of each answer, also of a second one and after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.catalog.foreign import Approval
from core.catalog.manifest import Effect
from core.messages import TurnClosed, TurnSuspended
from core.store import mcp
from tests.core.test_questions import press, said
from tests.foreign.test_house import ADD, approve, connect, house_calls, lists, look
from tests.support.house import open_scripted
from tests.support.scripted_model import Rule

ARGS = {"title": "spesa", "text": "latte e pane"}
RULES = [
    Rule(user="aggiungi|add", after=0, calls=[(ADD, ARGS)]),
    Rule(user="aggiungi|add", after=1, text="Ok."),
    Rule(text="Ok."),
]
WORDS = {
    "it": "aggiungi al taccuino, titolo spesa: latte e pane",
    "en": "add to the taccuino, title spesa: latte e pane",
}
CARDS = {
    "it": (
        "✋ Uso taccuino · add_note (title: spesa; text: latte e pane)?",
        "Non si potrà annullare.",
        ["✅ Sì, questa volta", "✋ No"],
    ),
    "en": (
        "✋ Use taccuino · add_note (title: spesa; text: latte e pane)?",
        "It cannot be undone.",
        ["✅ Yes, this time", "✋ No"],
    ),
}
YES, NO = {"it": "Sì", "en": "Yes"}, "No"


async def opened(house: House, folder: Path) -> None:
    """A notebook whose `add_note` the host approved as one that asks each time."""
    await connect(house, folder)
    await approve(house, "add_note", Approval(Effect.BLIND, words=("aggiungi", "add")))


async def question_in(house: House, lang: str) -> TurnSuspended:
    last = (await said(house, WORDS[lang]))[-1]
    assert isinstance(last, TurnSuspended)
    return last


def settings(lang: str) -> dict[str, Any]:
    return {"metnos_lang": lang, "metnos_memory": False}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notebook"
    made.mkdir()
    lists(made)
    return made


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_card_names_server_tool_and_arguments_and_each_answer_is_one(
    tmp_path: Path, folder: Path, lang: str
) -> None:
    async with open_scripted(tmp_path, RULES, **settings(lang)) as (house, _):
        await opened(house, folder)

        first = await question_in(house, lang)
        before = house_calls(folder)
        agreed = (await press(house, first, YES[lang]))[-1]
        twice = await press(house, first, YES[lang])
        after_yes = house_calls(folder)
        second = await question_in(house, lang)
        refused = (await press(house, second, NO))[-1]
        late = await press(house, second, YES[lang])

    asked, undo, labels = CARDS[lang]
    assert first.reply.plain.startswith(f"{asked}\n\n{undo}\n\n")
    # A yes to one is no yes to the next; nor does it shorten it.
    assert second.reply.plain.startswith(f"{asked}\n\n")
    assert undo in second.reply.plain
    for question in (first, second):
        assert [b.label for row in question.reply.buttons for b in row] == labels
    assert before == []
    assert after_yes == house_calls(folder) == [["add_note", ARGS]]
    assert isinstance(agreed, TurnClosed)
    assert isinstance(refused, TurnClosed)
    assert not any(isinstance(event, TurnSuspended) for event in [*twice, *late])


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_yes_after_a_restart_uses_the_tool_once(
    tmp_path: Path, folder: Path, lang: str
) -> None:
    async with open_scripted(tmp_path, RULES, **settings(lang)) as (house, _):
        await opened(house, folder)
        question = await question_in(house, lang)

    async with open_scripted(tmp_path, RULES, **settings(lang)) as (house, _):
        waiting = house_calls(folder)
        closed = (await press(house, question, YES[lang]))[-1]
        await press(house, question, YES[lang])

    assert waiting == []
    assert isinstance(closed, TurnClosed)
    assert house_calls(folder) == [["add_note", ARGS]]


@pytest.mark.parametrize("change", ["says something else", "revoked", "approved anew", "removed"])
async def test_yes_to_what_is_no_longer_so_uses_nothing(
    tmp_path: Path, folder: Path, change: str
) -> None:
    async with open_scripted(tmp_path, RULES, **settings("it")) as (house, _):
        await opened(house, folder)
        question = await question_in(house, "it")
        if change == "says something else":
            lists(folder, add_note="Sends it to everybody.")
            async with house.stores.main.read() as tx:
                (server,) = await mcp.servers(tx)
            await look(house, server)
        elif change == "approved anew":
            await approve(house, "add_note", Approval(Effect.BLIND, rights=("mail:send",)))
        else:
            async with house.stores.main.write() as tx:
                if change == "revoked":
                    assert await mcp.revoke(tx, "taccuino", "add_note")
                else:
                    assert await mcp.remove(tx, "taccuino")

        answer = (await press(house, question, "Sì"))[-1]

    assert house_calls(folder) == []
    assert "Lo strumento è cambiato nel frattempo" in answer.reply.plain
    assert "Non ho cambiato nulla." in answer.reply.plain


@pytest.mark.parametrize(
    ("lang", "told", "then"),
    [
        ("it", "Il server «taccuino» non risponde.", "Riprova tra poco"),
        ("en", "The server “taccuino” does not answer.", "Try again in a while"),
    ],
)
async def test_server_that_is_down_is_told_after_the_yes(
    tmp_path: Path, folder: Path, lang: str, told: str, then: str
) -> None:
    async with open_scripted(tmp_path, RULES, **settings(lang)) as (house, _):
        await opened(house, folder)
        question = await question_in(house, lang)
        (folder / "tools.json").unlink()

        closed = (await press(house, question, YES[lang]))[-1]
    assert f"{told} {then}" in closed.reply.plain
    assert house_calls(folder) == []
