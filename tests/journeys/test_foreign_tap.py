"""Flow 19: the buttons of the host in the hands of others; only the host's taps count."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.stage import GUEST, HOST, Stage, open_stage, token_of, ways
from tests.support.scripted_model import Rule

REQUEST = {"it": "elimina ~/notes/{}", "en": "delete ~/notes/{}"}
STRANGER = "zoe"
ONLY = {"it": "solo la persona a cui l'ho chiesto", "en": "Only the person I asked"}
APPROVED = {"it": "Approvato da te alle", "en": "Approved by you at"}
RULES = [
    Rule(
        user="(elimina|delete) ",
        after=0,
        calls=lambda ask: [("delete_files", {"paths": [ask.user.split()[-1]]})],
    ),
    Rule(user="(elimina|delete) ", after=1, text="Ok."),
]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("flow19"), RULES) as stage:
        stage.telegram.user(STRANGER)
        yield stage


@ways("it quiet", "en quiet", "it killed")
def test_tap_of_others_is_told_and_does_nothing(stage: Stage, lang: str, killed: bool) -> None:
    stage.speak(lang, HOST, GUEST)
    path = stage.notes / f"g{killed}-{lang}.md"
    path.write_text("x", encoding="utf-8")
    request = REQUEST[lang].format(path.name)
    card = stage.ask(HOST, request, path.name, buttons=["^✅", "^✋"])
    asked, turn = len(stage.model.asked), stage.ended(request, 1)[0]["turn_id"]
    sent = len(stage.texts(GUEST)), len(stage.texts(HOST))
    if killed:
        stage.crash()

    for label in ("^✅", "^✋"):
        token = token_of(card, label)
        stage.telegram.tap(GUEST, token)
        stage.hear(GUEST, ONLY[lang], kind="answer")
        stage.telegram.tap(GUEST, token, chat=HOST, message=card["message"])
        stage.hear(HOST, ".", kind="answer")
        stage.telegram.tap(STRANGER, token)
        stage.telegram.tap(STRANGER, token, chat=HOST, message=card["message"])
    stage.telegram.expect_none(STRANGER, 0.5)

    assert path.exists()
    assert stage.state_of_questions(turn) == ["open"]
    assert stage.effects_of(turn) == []
    assert len(stage.model.asked) == asked
    assert (len(stage.texts(GUEST)), len(stage.texts(HOST))) == sent
    stage.telegram.press(HOST, "^✅", message_id=card["message"]["message_id"])
    stage.hear(HOST, APPROVED[lang], kind="edit")
    stage.ended(request, 2)
    assert not path.exists()
    assert stage.effects_of(turn) == [("delete_files", "done")]
