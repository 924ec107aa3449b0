"""Flow 16: many deletions are asked for, and taken back from the chat, also after a kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_model import Rule
from tests.support.world import World, open_world

FILES = 24


def planned(user: str, steps: list[tuple[str, dict[str, Any]]]) -> list[Rule]:
    rules = [Rule(user=user, after=n, calls=[step]) for n, step in enumerate(steps)]
    return [*rules, Rule(user=user, after=len(steps), text="Fatto.")]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    rules = planned(
        "elimina",
        [
            ("find_files", {"base_path": "~/notes", "patterns": ["*.txt"]}),
            ("delete_files", {"from_step": 1}),
        ],
    )
    rules += planned("scrivi", [("write_files", {"path": "~/notes/a.md", "content": "ciao"})])
    with open_world(tmp_path, rules) as world:
        for number in range(FILES):
            (world.notes / f"{number:02}.txt").write_bytes(bytes([number]) * 100)
        world.telegram.start_bot()
        yield world


def remaining(world: World) -> list[str]:
    return sorted(path.name for path in world.notes.glob("*.txt"))


def test_undo_by_command_takes_a_new_file_away_and_a_second_one_says_so(world: World) -> None:
    anna = world.host()
    world.telegram.say(anna, "scrivi ciao in ~/notes/a.md")
    world.telegram.expect(anna, "Scritto")

    world.telegram.say(anna, "/undo")
    world.telegram.expect(anna, "Annullato")
    assert not (world.notes / "a.md").exists()
    world.telegram.say(anna, "annulla")
    world.telegram.expect(anna, "già annullata")

    assert [line["match_source"] for line in world.log_lines()][-2:] == ["undo", "undo"]


@pytest.mark.parametrize("killed", [False, True], ids=["quiet", "killed between"])
def test_undo_of_a_mass_deletion_brings_back_every_byte(world: World, killed: bool) -> None:
    anna = world.host()
    world.telegram.say(anna, "elimina i file txt in ~/notes")
    world.telegram.expect(anna, str(FILES))
    assert len(remaining(world)) == FILES
    if killed:
        world.telegram.stop_bot(kill=True)
        world.telegram.start_bot()
    world.telegram.press(anna, "^✅")
    world.wait_for(lambda: not remaining(world), what="the deletion")
    world.wait_for(
        lambda: world.rows("SELECT 1 FROM turns WHERE state = 'closed'"),
        what="the end of the turn",
    )
    if killed:
        world.telegram.stop_bot(kill=True)
        world.telegram.start_bot()

    world.telegram.say(anna, "annulla l'ultima operazione")
    world.telegram.expect(anna, "Annullato")

    assert len(remaining(world)) == FILES
    for number in range(FILES):
        assert (world.notes / f"{number:02}.txt").read_bytes() == bytes([number]) * 100


def test_undo_that_is_killed_half_way_is_told_and_brought_to_its_end(world: World) -> None:
    """Whatever the kill cuts, the person hears of it, and a second wish puts back the rest."""
    anna = world.host()
    world.telegram.say(anna, "elimina i file txt in ~/notes")
    world.telegram.expect(anna, str(FILES))
    world.telegram.press(anna, "^✅")
    world.wait_for(lambda: not remaining(world), what="the deletion")
    world.wait_for(
        lambda: world.rows("SELECT 1 FROM turns WHERE state = 'closed'"),
        what="the end of the turn",
    )

    world.telegram.say(anna, "annulla")
    world.wait_for(lambda: len(remaining(world)) >= 3, what="the first items")
    world.telegram.stop_bot(kill=True)
    before = len(remaining(world))
    world.telegram.start_bot()
    world.telegram.expect(anna, "interrotto a metà")
    world.telegram.say(anna, "annulla")
    world.telegram.expect(anna, "Annullato")

    assert 3 <= before < FILES
    assert len(remaining(world)) == FILES


@pytest.mark.parametrize("lang", ["it", "en"])
def test_undo_button_in_the_chat_is_pressed_once_and_only_by_its_owner(
    world: World, lang: str
) -> None:
    label, pressed, foreign, done = {
        "it": ("↩️ Annulla", "chiesto alle", "non è per te", "Annullato"),
        "en": ("↩️ Undo", "asked at", "not for you", "Undone"),
    }[lang]
    anna, bob = world.host(lang=lang), world.guest("bob", lang=lang)
    world.telegram.say(anna, "scrivi ciao in ~/notes/a.md")
    shown = world.telegram.expect(anna, "↩️", buttons=[f"^{label}$"], timeout=20)
    [[button]] = shown["message"]["reply_markup"]["inline_keyboard"]

    world.telegram.tap(bob, button["callback_data"])
    world.telegram.expect(bob, foreign, kind="answer", timeout=20)
    assert (world.notes / "a.md").exists()
    world.telegram.press(anna, f"^{label}$")

    settled = world.telegram.expect(anna, pressed, kind="edit", timeout=20)
    assert settled["message"]["message_id"] == shown["message"]["message_id"]
    assert "reply_markup" not in settled["message"]
    world.telegram.expect(anna, done, timeout=20)
    assert not (world.notes / "a.md").exists()
    world.telegram.tap(anna, button["callback_data"], message=shown["message"])
    world.telegram.expect(anna, ".", kind="answer", timeout=20)
    assert world.rows("SELECT COUNT(*) FROM effects WHERE tool = 'undo_last_turn'") == [(1,)]
