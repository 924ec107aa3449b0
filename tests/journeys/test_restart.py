"""After a restart: what was done, what not, what nobody knows, told at once, with the choice left
to the person. A real process, killed between a change and its commit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.executors import home_settings, manifest_toml, signed_executor
from tests.support.scripted_model import Rule
from tests.support.world import World, open_world

TOLD_WITHIN_S = 10

# Stops where `AT` says, once: the second run goes through.
CODE = """
import hashlib
import os
import time

PATH, MARK, AT = {path!r}, {mark!r}, {at!r}


def pause(where):
    if AT == where and not os.path.exists(MARK):
        with open(MARK, "w") as file:
            file.write(where)
        time.sleep(60)


def run(call):
    pause("before")
    with open(PATH, "w") as file:
        file.write("met")
        file.flush()
        pause("half")
        file.write("nos")
    pause("after")
    return {{"ok": True, "entries": [{{"ok": True, "path": PATH}}]}}


def preview(call):
    digest = hashlib.sha256(b"metnos").hexdigest()
    after = {{"path": PATH, "exists": True, "kind": "file", "size": 6, "sha256": digest}}
    return {{
        "targets": [PATH],
        "count": 1,
        "before": [{{"path": PATH, "exists": False}}],
        "after": [after],
        "undo": [{{"do": "remove", "path": PATH}}],
    }}
"""
TOP = 'reversible = true\nundo = "delete_created"\n'
WORDS = {
    "it": {
        "ask": "prova a scrivere la nota segnata",
        "cut": "interrotto a metà",
        "done": "Scritto",
        "undo": "↩️ Annulla",
        "unknown": "Non so se",
        "not_done": "Non scritto",
        "check": "🔍 Controlla",
        "repeat": "🔁 Ripeti",
        "leave": "✖️ Lascia così",
        "unclear": "né com'era né come doveva",
        "worked": "È riuscito",
        "left": "Lasciato così",
    },
    "en": {
        "ask": "make a trial and write the marked note",
        "cut": "interrupted half way",
        "done": "Written",
        "undo": "↩️ Undo",
        "unknown": "I do not know whether",
        "not_done": "Not written",
        "check": "🔍 Check",
        "repeat": "🔁 Repeat",
        "leave": "✖️ Leave it so",
        "unclear": "neither as it was nor",
        "worked": "It worked",
        "left": "Left so at",
    },
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    rules = [
        Rule(user="nota segnata|marked note", after=0, calls=[("write_texts", {})]),
        Rule(user="nota segnata|marked note", after=1, text="Ok."),
    ]
    with open_world(tmp_path, rules) as world:
        yield world


def cut(world: World, lang: str, at: str) -> tuple[str, Path, list[str], str]:
    """Begin a change, kill the bot at that moment, start it anew; who, what, buttons, text."""
    target, mark = world.notes / "nota.txt", world.notes / "mark"
    world.telegram.start_bot()
    anna = world.host(lang=lang)
    manifest = manifest_toml("write_texts", effect="checkable", top=TOP, right="fs:write")
    code = CODE.format(path=str(target), mark=str(mark), at=at)
    signed_executor(home_settings(world.tmp), manifest, code)
    world.telegram.say(anna, WORDS[lang]["ask"])
    world.wait_for(mark.exists, timeout=40, what="the change")
    assert world.rows("SELECT state FROM effects") == [("started",)]
    world.telegram.stop_bot(kill=True)

    began = time.monotonic()
    world.telegram.start_bot()
    told = world.telegram.expect(anna, WORDS[lang]["cut"], timeout=40)
    took = time.monotonic() - began
    print(f"\nrestart ({at}, {lang}): told {took:.1f} s after the start of the process")
    assert took < TOLD_WITHIN_S
    keyboard = told["message"].get("reply_markup", {}).get("inline_keyboard", [])
    labels = [button["text"] for row in keyboard for button in row]
    return anna, target, labels, told["message"]["text"]


@pytest.mark.parametrize("lang", ["it", "en"])
def test_half_done_is_told_as_unknown_looked_at_again_and_left(world: World, lang: str) -> None:
    words = WORDS[lang]
    anna, target, labels, text = cut(world, lang, "half")
    assert labels == [words["check"], words["repeat"], words["leave"]]
    assert words["unknown"] in text
    before = target.read_bytes()

    world.telegram.press(anna, f"^{words['check']}")
    world.telegram.expect(anna, words["unclear"], timeout=20)
    target.write_bytes(b"metnos")  # the person finishes it themself
    world.telegram.press(anna, f"^{words['check']}")
    world.telegram.expect(anna, words["worked"], timeout=20)
    world.telegram.press(anna, f"^{words['leave']}")

    settled = world.telegram.expect(anna, words["left"], kind="edit", timeout=20)
    assert "reply_markup" not in settled["message"]
    assert before == b"met"
    assert world.rows("SELECT state FROM effects") == [("done",)]
    assert world.rows("SELECT COUNT(*) FROM turns") == [(1,)]


@pytest.mark.parametrize("lang", ["it", "en"])
def test_not_done_is_told_and_done_by_a_press_in_a_turn_of_its_own(
    world: World, lang: str
) -> None:
    words = WORDS[lang]
    anna, target, labels, text = cut(world, lang, "before")
    assert labels == [words["repeat"], words["leave"]]
    assert words["unknown"] not in text
    time.sleep(1)
    assert not target.exists()  # nothing is done again by itself

    world.telegram.press(anna, f"^{words['repeat']}")

    world.telegram.expect(anna, words["done"], timeout=30)
    assert target.read_bytes() == b"metnos"
    assert world.rows("SELECT state FROM effects ORDER BY started_at") == [("failed",), ("done",)]
    assert world.rows("SELECT COUNT(*) FROM turns") == [(2,)]
    # And of its own: what it did is taken back like anything else.
    world.telegram.press(anna, f"^{words['undo']}")
    world.wait_for(lambda: not target.exists(), what="the undo")


def test_done_is_told_as_done_and_can_be_taken_back(world: World) -> None:
    words = WORDS["it"]
    anna, target, labels, text = cut(world, "it", "after")
    assert labels == [words["undo"]]
    assert words["done"] in text
    assert "annullabile" in text
    assert target.read_bytes() == b"metnos"

    world.telegram.press(anna, f"^{words['undo']}")

    world.telegram.expect(anna, "Annullato", timeout=20)
    assert not target.exists()
