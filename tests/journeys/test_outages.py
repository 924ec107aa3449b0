"""Flow 24: what breaks while a question is open. Always an answer, always a log line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.messages import Role
from tests.acceptance.test_full_disk import fill, small_disk
from tests.acceptance.town import LONG, open_town
from tests.journeys.stage import HOST, Stage, open_stage, ways
from tests.support.scripted_model import Rule

REQUEST = {"it": "elimina ~/notes/{}", "en": "delete ~/notes/{}"}
FORM = {"it": "compila il modulo {}", "en": "fill in the form {}"}
NO_MODEL = {"it": "Il modello", "en": "The model"}
NOTHING = {"it": "Non ho cambiato nulla", "en": "I changed nothing"}
FULL = {"it": "disco è pieno", "en": "disk is full"}
RULES = [
    Rule(
        user="^(elimina|delete) ",
        after=0,
        calls=lambda ask: [("delete_files", {"paths": [ask.user.split()[-1]]})],
    ),
    Rule(user="^(elimina|delete) ", after=1, text="Ok."),
    Rule(user="(modulo|form) ", after=0, calls=[("get_now", {})]),
    Rule(
        user="(modulo|form) ",
        after=1,
        calls=[("get_inputs", {"fields": [{"var": "n", "prompt": "Nome?", "kind": "text"}]})],
    ),
    Rule(user="^(eco|echo) ", text=lambda ask: str(ask.user.split()[-1])),
]
DOWN = Rule(status=503)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("flow24"), RULES) as stage:
        yield stage


@pytest.fixture(autouse=True)
def model_up(stage: Stage) -> Iterator[None]:
    yield
    if DOWN in stage.model.rules:
        stage.model.rules.remove(DOWN)


def _asked(stage: Stage, lang: str, name: str) -> tuple[Path, str, str]:
    """Up to the card: the file, the request, the turn."""
    stage.speak(lang)
    path = stage.notes / f"{name}-{lang}.md"
    path.write_text("x", encoding="utf-8")
    request = REQUEST[lang].format(path.name)
    stage.ask(HOST, request, path.name, buttons=["^✅", "^✋"])
    return path, request, str(stage.ended(request, 1)[0]["turn_id"])


@ways("it quiet", "en killed")
def test_model_that_is_down_when_the_answer_comes_does_not_hide_what_was_done(
    stage: Stage, lang: str, killed: bool
) -> None:
    path, request, turn = _asked(stage, lang, f"down{killed}")
    stage.model.rules.insert(0, DOWN)
    if killed:
        stage.crash()

    stage.telegram.press(HOST, "^✅")

    stage.hear(HOST, path.name, kind="send")
    lines = stage.ended(request, 2)
    assert not path.exists()
    assert stage.effects_of(turn) == [("delete_files", "done")]
    assert lines[1]["final_kind"] == "error"
    assert NOTHING[lang] not in lines[1]["final_message"]
    assert stage.ask(HOST, f"echo {turn[:5]}", NO_MODEL[lang])
    stage.ended(f"echo {turn[:5]}", 1)


@pytest.mark.parametrize("column", ["state_json", "data_json"])
@ways("it quiet", "en killed")
def test_damaged_question_is_answered_with_a_word_and_stops_nobody(
    stage: Stage, lang: str, killed: bool, column: str
) -> None:
    path, request, turn = _asked(stage, lang, f"{column}{killed}")
    if killed:
        stage.telegram.stop_bot(kill=True)
    stage.execute(f"UPDATE suspensions SET {column} = '{{\"torn' WHERE turn_id = '{turn}'")
    if killed:
        stage.telegram.start_bot()
    said = len(stage.texts(HOST))

    stage.telegram.press(HOST, "^✅")
    stage.wait_for(lambda: len(stage.texts(HOST)) > said, timeout=LONG, what="a word")
    stage.ask(HOST, f"echo {column}{killed}{lang}", f"^{column}{killed}{lang}$")

    stage.ended(request, 2)
    assert path.exists()
    assert stage.effects_of(turn) == []
    assert "open" not in stage.state_of_questions(turn)


@ways("it killed")
def test_damaged_form_ends_the_turn_instead_of_asking_for_ever(
    stage: Stage, lang: str, killed: bool
) -> None:
    stage.speak(lang)
    request = FORM[lang].format(killed)
    stage.ask(HOST, request, "Nome")
    [line] = stage.ended(request, 1)
    if killed:
        stage.telegram.stop_bot(kill=True)
    stage.execute(
        f"UPDATE suspensions SET fields_json = '[{{\"torn' WHERE turn_id = '{line['turn_id']}'"
    )
    if killed:
        stage.telegram.start_bot()

    stage.ask(HOST, "Marta", ".", kind="send")

    lines = stage.ended(request, 2)
    assert [line["error_class"] for line in lines] == [None, "interrupted"]
    assert stage.state_of_questions(lines[0]["turn_id"]) != ["open"]


@pytest.mark.needs_root
@pytest.mark.skipif(os.getuid() != 0, reason="needs root to mount a small disk")
@ways("it killed")
def test_answer_on_a_full_disk_is_told_and_done_once_when_there_is_room(
    tmp_path: Path, lang: str, killed: bool
) -> None:
    with small_disk(tmp_path / "home", 12), open_town(tmp_path, RULES, METNOS_LANG=lang) as town:
        path = town.notes / "a.md"
        path.write_text("x", encoding="utf-8")
        town.telegram.start_bot()
        town.pair_all([HOST], Role.HOST, lang=lang)
        town.telegram.say(HOST, REQUEST[lang].format("a.md"))
        town.telegram.expect(HOST, "a.md", buttons=["^✅"], timeout=LONG)
        town.wait_for(
            lambda: not town.rows("SELECT 1 FROM outbox WHERE state <> 'sent'"), what="sending"
        )
        if killed:
            town.telegram.stop_bot(kill=True)
        filler = fill(town.home)
        town.telegram.press(HOST, "^✅")
        if killed:
            filler.unlink()
            town.telegram.start_bot()
        else:
            town.telegram.expect(HOST, FULL[lang], timeout=LONG)
            filler.unlink()

        town.wait_for(lambda: not path.exists(), timeout=LONG, what="the deletion")
        town.settle()
        assert len(list(town.notes.rglob("a.md"))) == 1
        assert town.rows("SELECT tool, state FROM effects") == [("delete_files", "done")]
        assert [line["final_kind"] for line in town.log_lines()] == ["awaiting", "answer"]
        assert town.is_sound()
