"""Messages corrected while they are worked and afterwards (S16), with the real engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.stage import HOST, Stage, open_stage
from tests.support.scripted_model import Rule

LANGS = ("it", "en")
RESTART = {"it": "Ricomincia con la correzione", "en": "Start again with the correction"}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    rules = [
        Rule(user="^lento", text="Lento fatto.", delay=600),
        Rule(user="^giusto", text="Giusto fatto."),
        Rule(user="^svelto", text="Svelto fatto."),
        Rule(
            user="^scrivi",
            after=0,
            calls=[("write_files", {"path": "corretto.md", "content": "x"})],
        ),
        Rule(user="^scrivi", after=1, text="Scritto."),
    ]
    with open_stage(tmp_path_factory.mktemp("corrections"), rules) as stage:
        yield stage


@pytest.mark.parametrize("lang", LANGS)
def test_correction_of_a_running_message_starts_again_when_pressed(
    stage: Stage, lang: str
) -> None:
    stage.speak(lang)
    first = stage.telegram.say(HOST, f"lento {lang}")
    stage.wait_for(lambda: any(f"lento {lang}" in a.user for a in stage.model.asked), what="model")

    stage.telegram.edit(HOST, f"giusto {lang}", message_id=first["message_id"])
    stage.hear(HOST, "", buttons=[RESTART[lang]])
    stage.telegram.press(HOST, RESTART[lang])

    stage.hear(HOST, "Giusto fatto")
    stage.settle()
    assert "Lento fatto." not in stage.texts(HOST)


def test_correction_of_a_finished_message_runs_nothing_but_by_a_press(stage: Stage) -> None:
    stage.speak("it")
    first = stage.telegram.say(HOST, "svelto")
    stage.hear(HOST, "Svelto fatto")
    asked = len(stage.model.asked)

    stage.telegram.edit(HOST, "giusto, davvero", message_id=first["message_id"])
    stage.hear(HOST, "ho già risposto", buttons=[RESTART["it"]])
    stage.telegram.edit(HOST, "giusto, ma proprio", message_id=first["message_id"])
    stage.hear(HOST, "ho già risposto", buttons=[RESTART["it"]])
    assert len(stage.model.asked) == asked

    stage.telegram.press(HOST, RESTART["it"])
    stage.hear(HOST, "Giusto fatto")
    assert stage.model.asked[-1].user == "giusto, ma proprio"


def test_correction_of_what_changed_something_is_a_word_and_no_button(stage: Stage) -> None:
    stage.speak("it")
    first = stage.telegram.say(HOST, "scrivi x in corretto.md")
    stage.hear(HOST, "corretto.md")
    (stage.notes / "corretto.md").write_text("mio")

    stage.telegram.edit(HOST, "scrivi y in corretto.md", message_id=first["message_id"])

    stage.hear(HOST, "non lo rifaccio da solo", no_buttons=[RESTART["it"]])
    assert (stage.notes / "corretto.md").read_text() == "mio"


def test_correction_that_reads_the_same_is_silent(stage: Stage) -> None:
    stage.speak("it")
    first = stage.telegram.say(HOST, "svelto")
    stage.hear(HOST, "Svelto fatto")

    stage.telegram.edit(HOST, "svelto ", message_id=first["message_id"])

    stage.telegram.expect_none(HOST, within=1.0)
