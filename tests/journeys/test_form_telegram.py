"""A form with every kind of field, filled in a chat: typed, pressed, toggled, shared, skipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_model import Ask, Rule
from tests.support.world import World, open_world

LONG = 60
PEOPLE = ["Anna", "Bruno", "Carla"]
FIELDS: list[dict[str, Any]] = [
    {"var": "title", "prompt": "1?", "kind": "text"},
    {"var": "pin", "prompt": "2?", "kind": "secret"},
    {"var": "sure", "prompt": "3?", "kind": "yes_no"},
    {"var": "file", "prompt": "4?", "kind": "choice", "from_step": 1},
    {"var": "who", "prompt": "5?", "kind": "multi_choice", "options": PEOPLE},
    {"var": "many", "prompt": "6?", "kind": "number"},
    {"var": "note", "prompt": "7?", "kind": "text", "optional": True},
    {"var": "day", "prompt": "8?", "kind": "date"},
    {"var": "where", "prompt": "9?", "kind": "file_path"},
    {"var": "place", "prompt": "10?", "kind": "location"},
]
WORDS = {
    "it": {
        "request": "prepara il modulo con i file in ~/notes",
        "yes": "^✅ Sì$",
        "done": "^✅ Fatto$",
        "skip": "^⏭ Salta$",
        "number": "dodici e mezzo",
        "day": "3 dicembre 2031",
        "not_day": "Mi serve un giorno",
        "hint_day": "una data, per esempio 3 dicembre",
        "outside": "fuori dalle cartelle aperte",
        "secret": "resta segreto",
    },
    "en": {
        "request": "prepare the form with the files in ~/notes",
        "yes": "^✅ Yes$",
        "done": "^✅ Done$",
        "skip": "^⏭ Skip$",
        "number": "12.5",
        "day": "3 December 2031",
        "not_day": "I need a day",
        "hint_day": "a date, for example 3 December",
        "outside": "outside the open folders",
        "secret": "stays secret",
    },
}


def told(ask: Ask) -> str:
    return "Form: " + json.dumps(json.loads(ask.last_result)["content"], ensure_ascii=False)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    rules = [
        Rule(user="~/notes", after=0, calls=[("find_files", {"base_path": "~/notes"})]),
        Rule(user="~/notes", after=1, calls=[("get_inputs", {"fields": FIELDS})]),
        Rule(user="~/notes", after=2, text=told),
    ]
    with open_world(tmp_path, rules) as world:
        for name in ("a.md", "b.md"):
            (world.notes / name).write_text("x")
        world.telegram.start_bot()
        yield world


def labels(event: dict[str, Any]) -> list[str]:
    rows = event["message"]["reply_markup"]["inline_keyboard"]
    return [button["text"] for row in rows for button in row]


@pytest.mark.parametrize("lang", ["it", "en"])
def test_form_of_all_kinds_is_filled_in_a_chat(world: World, lang: str) -> None:
    words, tg = WORDS[lang], world.telegram
    anna = world.host(lang=lang)
    tg.say(anna, words["request"])

    tg.expect(anna, r"^1\?", timeout=LONG)
    tg.say(anna, "Festa di Carla")
    asked = tg.expect(anna, rf"^2\?(.|\n)*{words['secret']}", timeout=LONG)
    assert asked["markup"].get("force_reply")
    tg.say(anna, "canary-9137")
    tg.expect(anna, "canary-9137", kind="delete", timeout=LONG)
    tg.expect(anna, r"^3\?", buttons=[words["yes"]], timeout=LONG)
    tg.press(anna, words["yes"])
    tg.expect(anna, r"^4\?", buttons=["a.md", "b.md"], timeout=LONG)
    tg.press(anna, "b.md")

    tg.expect(anna, r"^5\?", buttons=["^Anna$", words["done"]], timeout=LONG)
    for label, marked in (
        ("Carla", ["Carla"]),
        ("Anna", ["Anna", "Carla"]),
        ("☑️ Carla", ["Anna"]),
        ("Bruno", ["Anna", "Bruno"]),
    ):
        tg.press(anna, f"^{label}$")
        shown = tg.expect(anna, r"^5\?", kind="edit", timeout=LONG)
        assert [one[3:] for one in labels(shown) if one.startswith("☑️ ")] == marked
    tg.press(anna, words["done"])

    tg.expect(anna, r"^6\?", timeout=LONG)
    tg.say(anna, words["number"])
    tg.expect(anna, r"^7\?", buttons=[words["skip"]], timeout=LONG)
    tg.press(anna, words["skip"])
    tg.expect(anna, rf"^8\?(.|\n)*{words['hint_day']}", timeout=LONG)
    tg.say(anna, "boh, vediamo")
    tg.expect(anna, rf"{words['not_day']}(.|\n)*8\?", timeout=LONG)
    tg.say(anna, words["day"])
    tg.expect(anna, r"^9\?", timeout=LONG)
    tg.say(anna, "/etc/hosts")
    tg.expect(anna, words["outside"], timeout=LONG)
    tg.expect(anna, r"^9\?", timeout=LONG)
    tg.say(anna, "~/notes/new.md")
    tg.expect(anna, r"^10\?", timeout=LONG)
    tg.press(anna, "^📍", lat=45.07, lon=7.68)
    end = tg.expect(anna, "^Form: ", timeout=LONG)

    said = json.loads(end["message"]["text"].removeprefix("Form: "))
    assert said.pop("pin") == "•••"
    assert Path(said.pop("file")).name == "b.md"
    assert said.pop("where") == "~/notes/new.md"
    assert said.pop("place")["lat"] == pytest.approx(45.07)
    assert said == {
        "title": "Festa di Carla",
        "sure": True,
        "who": ["Anna", "Bruno"],
        "many": 12.5,
        "note": None,
        "day": "2031-12-03",
    }
    assert "canary-9137" not in json.dumps([ask.body for ask in world.model.asked])
