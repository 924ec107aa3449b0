"""Flow 24 and its neighbours: consent asked in the chat, answered there, and by nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.scripted_model import Rule
from tests.support.world import World, open_world

RULES = [
    Rule(user="a.md", after=0, calls=[("delete_files", {"paths": ["~/notes/a.md"]})]),
    Rule(user="a.md", after=1, text="Ok."),
]
WORDS = {
    "it": (
        "elimina ~/notes/a.md",
        "Approvato da te alle",
        "Hai detto di no alle",
        "a cui l'ho chiesto",
    ),
    "en": ("delete ~/notes/a.md", "Approved by you at", "You said no at", "the person I asked"),
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path, RULES) as world:
        (world.notes / "a.md").write_text("x")
        world.telegram.start_bot()
        yield world


@pytest.mark.parametrize("killed", [False, True], ids=["quiet", "killed between"])
@pytest.mark.parametrize("lang", ["it", "en"])
def test_consent_is_pressed_and_the_card_becomes_the_decision(
    world: World, lang: str, killed: bool
) -> None:
    request, approved, _, _ = WORDS[lang]
    anna = world.host(lang=lang)
    world.telegram.say(anna, request)
    asked = world.telegram.expect(anna, buttons=["^✅", "^✋"])
    assert (world.notes / "a.md").exists()
    if killed:
        world.wait_for(
            lambda: not world.rows("SELECT 1 FROM outbox WHERE state = 'sending'"), what="sent"
        )
        world.telegram.stop_bot(kill=True)
        world.telegram.start_bot()

    world.telegram.press(anna, "^✅")

    settled = world.telegram.expect(anna, approved, kind="edit")
    world.wait_for(lambda: not (world.notes / "a.md").exists(), what="the deletion")
    assert settled["message"]["message_id"] == asked["message"]["message_id"]
    assert "reply_markup" not in settled["message"]
    assert len(list((world.notes / ".metnos-trash").rglob("a.md"))) == 1


@pytest.mark.parametrize("lang", ["it", "en"])
def test_tap_of_a_guest_on_the_hosts_button_does_nothing_and_a_no_is_kept(
    world: World, lang: str
) -> None:
    request, _, declined, foreign = WORDS[lang]
    anna, bob = world.host(lang=lang), world.guest("bob", lang=lang)
    world.telegram.say(anna, request)
    asked = world.telegram.expect(anna, buttons=["^✅"])
    token = asked["message"]["reply_markup"]["inline_keyboard"][0][0]["callback_data"]

    world.telegram.tap(bob, token)

    world.telegram.expect(bob, foreign, kind="answer")
    world.telegram.press(anna, "^✋")
    world.telegram.expect(anna, declined, kind="edit")
    world.telegram.tap(anna, token, message=asked["message"])
    world.telegram.expect(anna, ".", kind="answer")
    assert (world.notes / "a.md").exists()
