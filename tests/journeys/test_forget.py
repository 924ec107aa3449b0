"""`/forget` over the fake Bot API: what goes is said, and goes, also when the engine dies amidst.

Everything the home holds, the log at its most talkative, is searched for what was said.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.scripted_model import Rule
from tests.support.world import World, open_world

MINE, THEIRS = "k4narino", "v0lpino"
WORDS = {
    "it": {
        "sure": "Dimentico quello che ci siamo detti",
        "yes": "^🗑 Sì",
        "done": "Dimenticato alle",
        "stays": "i tuoi file",
    },
    "en": {
        "sure": "Forget what we said",
        "yes": "^🗑 Yes",
        "done": "Forgotten at",
        "stays": "your files",
    },
}
RULES = [
    Rule(user="diario", plan={"steps": [
        {"tool": "write_files", "args": {"path": "diario.md", "content": f"caro {MINE}"}}]}),
    Rule(user="ore", plan={"steps": [{"tool": "get_now", "args": {}}]}),
    Rule(text="Detto."),
]  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    options = {
        "METNOS_ENGINE": "metis",
        "METNOS_MEMORY": "1",
        "METNOS_LOG_LEVEL": "DEBUG",
        "METNOS_LOG_FILE": str(tmp_path / "home/metnos.log"),
    }
    with open_world(tmp_path, RULES, **options) as world:
        world.telegram.start_bot()
        yield world


def holding(world: World, word: str) -> list[str]:
    """What of the home holds the word, but for people's own files."""
    return [
        str(path.relative_to(world.home))
        for path in sorted(world.home.rglob("*"))
        if path.is_file()
        and "files" not in path.relative_to(world.home).parts
        and word.encode() in path.read_bytes()
    ]


@contextmanager
def memory_held(world: World) -> Iterator[None]:
    """Somebody else writes in `memory.db`: whoever wants to has to wait."""
    connection = sqlite3.connect(world.home / "private/memory.db", isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
    finally:
        connection.close()


@pytest.mark.parametrize(("lang", "dies"), [("it", True), ("en", False)])
def test_what_was_said_is_forgotten_even_across_a_kill(
    world: World, lang: str, dies: bool
) -> None:
    words, tg = WORDS[lang], world.telegram
    anna, luca = world.host(lang=lang), world.guest("luca", lang=lang)
    tg.say(anna, f"scrivi nel diario {MINE}")
    tg.expect(anna, "diario")
    tg.say(luca, f"che ore sono, {THEIRS}?")
    tg.expect(luca, ".")
    tg.say(anna, f"che ore sono, {MINE}?")
    tg.expect(anna, ".")
    world.wait_for(lambda: len(world.log_lines()) == 3, what="three lines")
    assert any(name.startswith("turns/") for name in holding(world, MINE))
    theirs = [line for line in world.log_lines() if THEIRS in line["user_query"]]

    tg.say(anna, "/forget")
    tg.expect(anna, f"(?s){words['sure']}.*{words['stays']}", buttons=[words["yes"], "No$"])
    if dies:
        with memory_held(world):
            tg.press(anna, words["yes"])
            world.wait_for(
                lambda: not world.rows(f"SELECT 1 FROM turns WHERE request LIKE '%{MINE}%'"),
                what="the first words to go",
            )
            tg.stop_bot(kill=True)
        assert "private/memory.db" in "".join(holding(world, MINE))
        assert world.rows("SELECT count(*) FROM forgetting") == [(1,)]
        tg.start_bot()
    else:
        tg.press(anna, words["yes"])
    tg.expect(anna, words["done"], kind="edit", no_buttons=["."], timeout=60)

    world.wait_for(lambda: world.rows("SELECT count(*) FROM forgetting") == [(0,)], what="the end")
    assert holding(world, MINE) == []
    assert [line for line in world.log_lines() if THEIRS in line["user_query"]] == theirs
    assert MINE in (world.notes / "diario.md").read_text(encoding="utf-8")
    if not dies:
        done = world.cli("actors", "forget", "guest", "--yes")
        assert "Dimenticato quello che ha detto" in done.stdout
        assert holding(world, THEIRS) == []
    asked = len(world.model.asked)
    tg.say(anna, f"che ore sono, {MINE}?")
    tg.expect(anna, ".")
    assert len(world.model.asked) == asked + 1, "nothing is served from memory"
