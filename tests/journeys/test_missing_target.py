"""Flow 12: "delete the file" names no file. It is asked which, and nothing is done before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.stage import HOST, Stage, open_stage, ways
from tests.support.scripted_model import Ask, Rule

REQUEST = {"it": "elimina il file, caso {}", "en": "delete the file, case {}"}
PROMPT = {"it": "Quale file elimino?", "en": "Which file shall I delete?"}
CANCEL = {"it": "lascia stare", "en": "never mind"}
DROPPED = {"it": "lascio stare", "en": "leave it"}
TOO_LATE = {"it": "in tempo", "en": "in time"}


def _lang(ask: Ask) -> str:
    return "it" if "elimina" in ask.user else "en"


def _which(ask: Ask) -> list[tuple[str, dict[str, Any]]]:
    field = {"var": "file", "prompt": PROMPT[_lang(ask)], "kind": "file_path"}
    return [("get_inputs", {"fields": [field]})]


def _told(ask: Ask) -> list[tuple[str, dict[str, Any]]]:
    return [("delete_files", {"paths": [json.loads(ask.last_result)["content"]["file"]]})]


RULES = [
    Rule(user="(elimina|delete) ", after=0, calls=[("delete_files", {})]),
    Rule(user="(elimina|delete) ", after=1, calls=_which),
    Rule(user="(elimina|delete) ", after=2, calls=_told),
    Rule(user="(elimina|delete) ", after=3, text="Ok."),
]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("flow12"), RULES) as stage:
        yield stage


def _asked(stage: Stage, lang: str, name: str) -> tuple[Path, str]:
    """The request without a target, up to its question; a file that could be meant, and the words
    of the request."""
    stage.speak(lang)
    path = stage.notes / f"{name.replace(' ', '-')}-{lang}.md"
    path.write_text("x", encoding="utf-8")
    request = REQUEST[lang].format(name)
    stage.ask(HOST, request, PROMPT[lang])
    return path, request


@ways("it quiet", "en quiet", "it killed")
def test_missing_target_is_asked_and_the_answer_goes_on_to_consent(
    stage: Stage, lang: str, killed: bool
) -> None:
    path, request = _asked(stage, lang, f"answered {killed}")
    if killed:
        stage.crash()

    card = stage.ask(HOST, f"~/notes/{path.name}", path.name, buttons=["^✅", "^✋"])
    assert path.exists()
    stage.telegram.press(HOST, "^✅", message_id=card["message"]["message_id"])

    lines = stage.ended(request, 3)
    turn = lines[0]["turn_id"]
    assert [line["final_kind"] for line in lines] == ["needs_inputs", "awaiting", "answer"]
    assert not path.exists()
    assert [p.read_text("utf-8") for p in stage.notes.rglob(path.name)] == ["x"]
    assert stage.effects_of(turn) == [("delete_files", "done")]
    assert stage.state_of_questions(turn) == ["done", "done"]


@ways("en quiet", "it killed")
def test_missing_target_cancelled_does_nothing(stage: Stage, lang: str, killed: bool) -> None:
    path, request = _asked(stage, lang, f"cancelled {killed}")
    if killed:
        stage.crash()

    stage.ask(HOST, CANCEL[lang], DROPPED[lang], kind="send")

    lines = stage.ended(request, 2)
    assert [line["final_kind"] for line in lines] == ["needs_inputs", "error"]
    assert path.exists()
    assert stage.effects_of(lines[0]["turn_id"]) == []
    assert stage.state_of_questions(lines[0]["turn_id"]) == ["cancelled"]


@ways("it killed", "en killed")
def test_missing_target_that_nobody_names_in_time_does_nothing_and_is_told(
    stage: Stage, lang: str, killed: bool
) -> None:
    path, request = _asked(stage, lang, f"expired {killed}")
    if killed:
        stage.telegram.stop_bot(kill=True)
    stage.let_expire()
    if killed:
        stage.telegram.start_bot()

    stage.hear(HOST, TOO_LATE[lang], kind="send")

    lines = stage.ended(request, 2)
    assert [line["final_kind"] for line in lines] == ["needs_inputs", "error"]
    assert path.exists()
    assert stage.effects_of(lines[0]["turn_id"]) == []
    assert stage.state_of_questions(lines[0]["turn_id"]) == ["expired"]
