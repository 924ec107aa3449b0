"""A list of more than eight: the first items, and a button for the others."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.messages import InboundKind, TurnClosed, TurnEvent
from tests.support.house import ask, events_of, inbound, open_scripted
from tests.support.scripted_model import Rule
from tests.support.world import open_world

FILES = 31


def plan(*steps: tuple[str, Any]) -> str:
    return json.dumps({"steps": [{"tool": tool, "args": args} for tool, args in steps]})


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    find = ("find_files", {"base_path": str(tmp_path / "notes"), "patterns": ["*.txt"]})
    rules = [Rule(user="txt", text=plan(find))]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, _):
        for n in range(FILES):
            (tmp_path / "notes" / f"{n:02}.txt").write_text("x" * n)
        yield house


async def press(house: House, token: str) -> list[TurnEvent]:
    said = inbound("", kind=InboundKind.CHOICE, data={"lang": "it", "token": token})
    return await events_of(house, said)


def end_of(events: list[TurnEvent]) -> TurnClosed:
    assert isinstance(events[-1], TurnClosed)
    return events[-1]


@pytest.mark.parametrize(
    ("request_text", "shown", "label"),
    [
        ("trova i txt", "e altri 23", "📄 Mostra gli altri 23"),
        ("find the txt files", "and 23 more", "📄 Show the other 23"),
    ],
)
async def test_rest_of_a_long_list_is_shown_by_its_button_once(
    house: House, request_text: str, shown: str, label: str
) -> None:
    answer = (await ask(house, request_text)).reply
    ((button,),) = answer.buttons
    first = [line for line in answer.plain.splitlines() if ".txt" in line]

    rest = end_of(await press(house, button.token)).reply
    again = end_of(await press(house, button.token)).reply

    assert (len(first), button.label) == (8, label)
    assert shown in answer.plain
    lines = rest.plain.splitlines()
    assert len(lines) == FILES - 8
    assert all(line.startswith("• ") and ".txt" in line for line in lines)
    assert not set(first) & set(lines)
    assert ".txt" not in again.plain


async def test_list_of_eight_has_no_button(house: House, tmp_path: Path) -> None:
    for path in sorted((tmp_path / "notes").iterdir())[8:]:
        path.unlink()

    answer = (await ask(house, "trova i txt")).reply

    assert answer.plain.count(".txt") == 8
    assert answer.buttons == ()


def test_rest_is_a_message_of_its_own_in_the_chat_and_its_button_goes(tmp_path: Path) -> None:
    find = ("find_files", {"base_path": str(tmp_path / "notes"), "patterns": ["*.txt"]})
    rules = [Rule(user="txt", text=plan(find))]
    with open_world(tmp_path, rules, METNOS_ENGINE="metis") as world:
        for n in range(FILES):
            (world.notes / f"{n:02}.txt").write_text("x" * n)
        world.telegram.start_bot()
        anna = world.host()
        world.telegram.say(anna, "trova i txt")
        answer = world.telegram.expect(anna, "e altri 23", buttons=["Mostra gli altri 23"])

        world.telegram.press(anna, "Mostra gli altri 23")
        world.telegram.expect(anna, kind="edit", no_buttons=["Mostra"])
        rest = world.telegram.expect(anna, r"\.txt")

        assert rest["message"]["text"].count(".txt") == FILES - 8
        assert rest["message"]["message_id"] > answer["message"]["message_id"]
