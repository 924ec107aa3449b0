"""Flows 20 and 21: what worked serves other values without a model, and thumbs decide over it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_model import Ask, Rule
from tests.support.world import World, open_world

WORDS: dict[str, dict[str, str]] = {
    "it": {
        "delete": "cancella {name}",
        "asks": "(?i)elimin",
        "done": "(?i)cestino",
        "undo": "annulla",
        "undone": "Annullato",
        "today": "trova i file modificati oggi",
        "yesterday": "trova i file modificati ieri",
        "clock": "che ore sono?",
        "clock_too": "mi dici l'ora?",
        "merit": "Per merito",
        "flush": "Dimentica tutto",
        "sure": "Sì, tutto",
        "noted": "dimenticato",
    },
    "en": {
        "delete": "delete {name}",
        "asks": "(?i)delete",
        "done": "(?i)trash",
        "undo": "undo",
        "undone": "Undone",
        "today": "find the files changed today",
        "yesterday": "find the files changed yesterday",
        "clock": "what time is it?",
        "clock_too": "tell me the time",
        "merit": "By merit",
        "flush": "Forget all",
        "sure": "Yes, all",
        "noted": "forgotten",
    },
}


def deleting(ask: Ask) -> dict[str, Any]:
    found = re.search(r"\S+\.txt", ask.user)
    assert found is not None
    return {"steps": [{"tool": "delete_files", "args": {"paths": [found[0]]}}]}


RULES = [
    Rule(user=r"\.txt", plan=deleting),
    Rule(
        user="oggi|ieri|today|yesterday",
        plan={"steps": [{"tool": "find_files", "args": {"patterns": ["*.md"]}}]},
    ),
    Rule(user="or[ae]|time", plan={"steps": [{"tool": "get_now", "args": {}}]}),
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path, RULES, METNOS_ENGINE="metis", METNOS_MEMORY="1") as world:
        for number in (1, 2, 3):
            (world.notes / f"bozza{number}.txt").write_text("x", encoding="utf-8")
        world.telegram.start_bot()
        yield world


def plans(world: World) -> list[tuple[str, int, int]]:
    path = world.home / "private/memory.db"
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(
            "SELECT text, approved, uses FROM plan_cache ORDER BY id"
        ).fetchall()
    finally:
        connection.close()


def until_plans(world: World, most: int) -> None:
    world.wait_for(lambda: len(plans(world)) == most, what=f"{most} plans")


@pytest.mark.parametrize("lang", ["it", "en"])
def test_template_serves_another_file_asks_again_and_undo_is_never_replayed(
    world: World, lang: str
) -> None:
    words, model = WORDS[lang], world.model
    anna = world.host(lang=lang)

    for number, asked in ((1, 1), (2, 1)):
        world.telegram.say(anna, words["delete"].format(name=f"bozza{number}.txt"))
        world.telegram.expect(anna, words["asks"], buttons=["✅"])
        assert (world.notes / f"bozza{number}.txt").exists(), "before the yes"
        world.telegram.press(anna, "^✅")
        world.telegram.expect(anna, words["done"], buttons=["^👍$", "^👎$", "^⚡$", "^⋯$"])
        assert not (world.notes / f"bozza{number}.txt").exists()
        assert len(model.asked) == asked
        if number == 1:
            until_plans(world, 1)
    assert (world.notes / "bozza3.txt").exists()
    for _ in range(2):
        world.telegram.say(anna, words["undo"])
        world.telegram.expect(anna, ".")
    assert len(model.asked) == 1
    assert (world.notes / "bozza2.txt").exists()
    assert not any(words["undo"] in text for text, *_ in plans(world))
    log = world.log_lines()
    assert [line["match_source"] for line in log if line["segment"] == 1][:2] == [
        "engine",
        "fastpath",
    ]


@pytest.mark.parametrize("lang", ["it", "en"])
def test_yesterday_is_never_served_by_today(world: World, lang: str) -> None:
    words = WORDS[lang]
    anna = world.host(lang=lang)
    for number, name in enumerate(("today", "yesterday"), start=1):
        world.telegram.say(anna, words[name])
        world.telegram.expect(anna, ".", timeout=60)
        world.wait_for(lambda: len(world.log_lines()) == number, what="the end")  # noqa: B023
    assert [line["match_source"] for line in world.log_lines()] == ["engine", "engine"]
    assert len(world.model.asked) == 2


@pytest.mark.parametrize("lang", ["it", "en"])
def test_thumbs_and_fast_path_over_the_chat(world: World, lang: str) -> None:
    words, model = WORDS[lang], world.model
    anna = world.host(lang=lang)

    world.telegram.say(anna, words["clock"])
    world.telegram.expect(anna, ".", buttons=["^👍$", "^👎$", "^⚡$", "^⋯$"])
    until_plans(world, 1)
    world.telegram.press(anna, "^⚡$")
    world.telegram.expect(anna, kind="edit", buttons=["^⚡✓$"])
    assert [one[1] for one in plans(world)] == [1]

    world.telegram.say(anna, words["clock"])
    world.telegram.expect(anna, "⚡$", buttons=["^⚡✓$"])
    assert len(model.asked) == 1

    world.telegram.press(anna, "^👎$")
    world.telegram.expect(anna, kind="edit", buttons=["^👎✓$"])
    until_plans(world, 0)
    world.telegram.say(anna, words["clock"])
    world.telegram.expect(anna, ".", buttons=["^👍$"])
    assert len(model.asked) == 2
    world.telegram.press(anna, "^👍$")
    world.telegram.expect(anna, kind="edit", buttons=["^👍✓$"])
    world.telegram.say(anna, words["clock"])
    world.telegram.expect(anna, "⚡$", buttons=["^👍$"])
    assert plans(world) == [], "one yes lets the plan serve by merit"
    assert len(model.asked) == 2

    assert "1" in world.cli("plans", "flush", "--yes").stdout
    world.telegram.say(anna, words["clock"])
    world.telegram.expect(anna, ".", buttons=["^👍$"])
    assert len(model.asked) == 3


def merit(world: World) -> list[tuple[str, int, int]]:
    """Status of each plan by merit, its 👍 and its 👎."""
    path = world.home / "private/memory.db"
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT status, up, down FROM champions ORDER BY id").fetchall()
    finally:
        connection.close()


def seen(world: World, most: int) -> None:
    """Wait until memory has taken in so many turns, which it does after their end."""

    def are() -> bool:
        path = world.home / "private/memory.db"
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            [(found,)] = connection.execute("SELECT COUNT(*) FROM observations").fetchall()
            return bool(found >= most)
        finally:
            connection.close()

    world.wait_for(are, what=f"{most} observations")


@pytest.mark.parametrize("lang", ["it", "en"])
def test_yes_promotes_three_noes_exclude_a_later_yes_lifts_and_praxis_flushes(
    world: World, lang: str
) -> None:
    """Flow 21. Its second run, from memory, asks the model nothing."""
    words, model = WORDS[lang], world.model
    anna = world.host(lang=lang)

    def say(name: str, text: str = ".") -> None:
        world.telegram.say(anna, words[name])
        world.telegram.expect(anna, text, buttons=["^👍$", "^👎$"])

    def vote(sign: str) -> None:
        world.telegram.press(anna, f"^{sign}$")
        world.telegram.expect(anna, kind="edit", buttons=[f"^{sign}✓$"])

    # Promoted: it serves the same said otherwise, and whoever asks it.
    say("clock")
    seen(world, 1)
    vote("👍")
    assert merit(world) == [("active", 1, 0)]
    say("clock_too", "⚡$")
    say("clock", "⚡$")
    assert len(model.asked) == 1
    assert [line["match_source"] for line in world.log_lines()] == [
        "engine",
        "autopath",
        "fastpath",
    ]
    # Demoted and kept away, from the model's proposals too.
    vote("👎")
    for turn in (4, 5):
        say("clock")
        seen(world, turn)
        vote("👎")
    assert merit(world) == [("demoted", 1, 3)]
    asked = len(model.asked)
    world.telegram.say(anna, words["clock_too"])
    world.telegram.expect(anna, "[^⚡]$", buttons=["^👍$"])
    assert len(model.asked) == asked + 2, "asked once more for another way"
    assert '"anti"' in world.cli("plans", "list", "--json").stdout
    # Lifted by a later yes.
    seen(world, 6)
    vote("👍")
    assert merit(world) == [("active", 2, 3)]
    asked = len(model.asked)
    say("clock_too", "⚡$")
    assert len(model.asked) == asked
    # All of it goes.
    world.telegram.say(anna, "/praxis")
    world.telegram.expect(anna, words["merit"])
    world.telegram.press(anna, words["flush"])
    world.telegram.expect(anna, kind="edit", buttons=[words["sure"]])
    world.telegram.press(anna, words["sure"])
    world.wait_for(lambda: merit(world) == [], what="the flush")
    say("clock_too")
    assert len(model.asked) == asked + 1
