"""A person asks for a file, and gets the file: in the chat, and as a place in the terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.scripted_model import Rule
from tests.support.world import World, open_world

FIND = ("find_files", {"base_path": "~/notes", "patterns": ["*.pdf"]})
RULES = [
    Rule(user="mandami", after=0, calls=[FIND]),
    Rule(user="mandami", after=1, text="Ti ho inviato la relazione."),
    Rule(user="send me", after=0, calls=[FIND]),
    Rule(user="send me", after=1, text="I have sent you both."),
    Rule(user="trova", after=0, calls=[FIND]),
    Rule(user="trova", after=1, text="Sono due PDF."),
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path, RULES) as world:
        (world.notes / "relazione.pdf").write_bytes(b"%PDF relazione")
        (world.notes / "bolletta.pdf").write_bytes(b"%PDF bolletta")
        yield world


def test_file_asked_for_by_name_comes_into_the_chat(world: World) -> None:
    world.telegram.start_bot()
    anna = world.host()

    world.telegram.say(anna, "mandami relazione.pdf")
    world.telegram.expect(anna, "Ti ho inviato la relazione")
    file = world.telegram.expect(anna, has="document")

    assert world.telegram.download(file) == b"%PDF relazione"
    assert world.log_lines()[-1]["unbacked_claims"] == 0
    told = world.model.asked[-1].body["messages"]
    assert any("allegati da soli" in str(message["content"]) for message in told)


def test_files_asked_for_in_english_come_as_one_album(world: World) -> None:
    world.telegram.start_bot()
    anna = world.host(lang="en")

    world.telegram.say(anna, "send me all the pdfs please")
    first = world.telegram.expect(anna, has="document")
    second = world.telegram.expect(anna, has="document")

    groups = {e["message"]["media_group_id"] for e in (first, second)}
    assert len(groups) == 1


def test_files_that_were_only_looked_for_stay_where_they_are(world: World) -> None:
    world.telegram.start_bot()
    anna = world.host()

    world.telegram.say(anna, "trova i pdf")
    world.telegram.expect(anna, "due PDF")
    world.telegram.say(anna, "/status")
    world.telegram.expect(anna, "Attivo")

    assert not world.telegram.calls("sendDocument")
    assert not world.telegram.calls("sendMediaGroup")


def test_terminal_shows_where_the_file_is(world: World) -> None:
    world.telegram.start_bot()
    world.telegram.stop_bot()

    shown = world.cli("chat", "--once", "mandami relazione.pdf").stdout
    data = json.loads(world.cli("chat", "--once", "mandami relazione.pdf", "--json").stdout)

    assert f"📎 ~{os.sep}notes{os.sep}relazione.pdf" in shown
    assert data["files"] == [str(world.notes / "relazione.pdf")]
