"""A long answer is seen while the model writes it, and never what the answer will not hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_model import Rule
from tests.support.world import World, open_world

STORY = "C'era una volta un gatto che dormiva sopra una vecchia stufa di ghisa. " * 6
CLAIM = "Ho eliminato il file che mi hai chiesto. "
END = "E vissero tutti contenti."
RULES = [
    Rule(user="gatto", text=STORY + END, pace=0.25),
    Rule(user="elimina", text=STORY + CLAIM + END, pace=0.25),
    Rule(user="json", text='{"tool": "x", "arguments": {"patterns": ["' + "x" * 400 + '"]}}',
         pace=0.2, times=2),
    Rule(user="json", text="Non ci riesco."),
]  # fmt: skip


def drafts(world: World) -> list[dict[str, Any]]:
    return [e for e in world.telegram.tg.events if e["kind"] == "draft"]


@pytest.mark.parametrize("engine", ["simple", "metis"])
def test_long_answer_is_seen_before_its_end(tmp_path: Path, engine: str) -> None:
    with open_world(tmp_path, RULES, METNOS_ENGINE=engine) as world:
        world.telegram.start_bot()
        anna = world.host()

        world.telegram.say(anna, "raccontami del gatto e della stufa")
        world.telegram.expect(anna, "contenti")

        seen = drafts(world)
        assert seen
        assert all(STORY.startswith(e["text"]) for e in seen)
        assert all(e["text"].endswith(".") for e in seen)
        assert world.texts(anna)[-1] == STORY + END


def test_what_the_answer_will_not_hold_is_not_seen_before_either(tmp_path: Path) -> None:
    with open_world(tmp_path, RULES) as world:
        world.telegram.start_bot()
        anna = world.host()

        world.telegram.say(anna, "elimina la nota del micio")
        world.telegram.expect(anna, "contenti")
        world.telegram.say(anna, "fai il json")
        world.telegram.expect(anna, "", kind="send")

        assert drafts(world)
        assert not any("eliminato" in e["text"] or "{" in e["text"] for e in drafts(world))
        assert not any("eliminato" in text for text in world.texts(anna))
