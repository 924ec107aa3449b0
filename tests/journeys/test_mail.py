"""Flow 14: mail is read, classified and moved with consent. The mailbox is a double."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.stage import GUEST, HOST, Stage, open_stage, token_of, ways
from tests.support.mail import fill_mailbox, folder_of
from tests.support.scripted_model import Ask, Rule

REQUEST = {
    "it": "classifica la posta in ~/notes/{box} e sposta le fatture in Fatture",
    "en": "classify the mail in ~/notes/{box} and move the bills to Fatture",
}
APPROVED = {"it": "Approvato da te alle", "en": "Approved by you at"}
ONLY = {"it": "solo la persona a cui l'ho chiesto", "en": "Only the person I asked"}
DECLINED = {"it": "Hai detto di no alle", "en": "You said no at"}
SENT = {
    "it": "manda a {} il testo: {}, da ~/notes/{}",
    "en": "send to {} the text: {}, from ~/notes/{}",
}
MESSAGES = {
    "m1": {"sender": "luce@energia.example", "subject": "Fattura di novembre", "text": "60 euro"},
    "m2": {"sender": "marta@posta.example", "subject": "Cena?", "text": "Venerdì?"},
    "m3": {"sender": "gas@energia.example", "subject": "Your invoice", "text": "40 euro"},
}
MOVES = "(classifica|classify)"
SENDS = "(manda|send)"


def _box(ask: Ask) -> str:
    return str(next(word for word in ask.user.replace(",", "").split() if "~/notes/" in word))


RULES = [
    Rule(user=MOVES, after=0, calls=lambda ask: [("read_messages", {"mailbox": _box(ask)})]),
    Rule(user=MOVES, after=1, calls=[("classify_messages", {"from_step": 1})]),
    Rule(
        user=MOVES,
        after=2,
        calls=[
            (
                "filter_entries",
                {"from_step": 2, "where": [{"field": "category", "op": "eq", "value": "bills"}]},
            )
        ],
    ),
    Rule(
        user=MOVES,
        after=3,
        calls=lambda ask: [
            ("move_messages", {"mailbox": _box(ask), "from_step": 3, "dst": "Fatture"})
        ],
    ),
    Rule(user=MOVES, after=4, text="Ok."),
    Rule(
        user=SENDS,
        after=0,
        calls=lambda ask: [
            (
                "send_messages",
                {"mailbox": _box(ask), "to": "marta@posta.example", "text": "vengo"},
            )
        ],
    ),
    Rule(user=SENDS, after=1, text="Ok."),
]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("flow14"), RULES) as stage:
        yield stage


def _asked(stage: Stage, lang: str, name: str) -> tuple[Path, str, dict]:
    """Up to the card: the mailbox, the request, the message that asks."""
    stage.speak(lang)
    box = stage.notes / f"{name}-{lang}"
    fill_mailbox(box, MESSAGES)
    request = REQUEST[lang].format(box=box.name)
    # A card that was agreed to a few times is one line.
    named = "Fattura di novembre.*Your invoice|2 (elementi|items)"
    card = stage.ask(HOST, request, named, buttons=["^✅", "^✋"])
    assert folder_of(box, "inbox") == ["m1", "m2", "m3"]
    return box, request, card


@ways("it quiet", "en quiet", "en killed")
def test_mail_is_moved_once_after_a_yes_pressed_twice(
    stage: Stage, lang: str, killed: bool
) -> None:
    box, request, card = _asked(stage, lang, f"agreed{killed}")
    if killed:
        stage.crash()

    yes = token_of(card, "^✅")
    stage.telegram.tap(HOST, yes, message=card["message"])
    stage.telegram.tap(HOST, yes, message=card["message"])

    stage.hear(HOST, APPROVED[lang], kind="edit")
    lines = stage.ended(request, 2)
    assert [line["final_kind"] for line in lines] == ["awaiting", "answer"]
    assert folder_of(box, "inbox") == ["m2"]
    assert folder_of(box, "Fatture") == ["m1", "m3"]
    assert stage.effects_of(lines[0]["turn_id"]) == [("move_messages", "done")]
    assert stage.state_of_questions(lines[0]["turn_id"]) == ["done"]


@ways("it quiet", "en killed")
def test_mail_stays_after_a_no(stage: Stage, lang: str, killed: bool) -> None:
    box, request, card = _asked(stage, lang, f"refused{killed}")
    if killed:
        stage.crash()

    stage.telegram.press(HOST, "^✋", message_id=card["message"]["message_id"])

    stage.hear(HOST, DECLINED[lang], kind="edit")
    lines = stage.ended(request, 2)
    assert folder_of(box, "inbox") == ["m1", "m2", "m3"]
    assert stage.effects_of(lines[0]["turn_id"]) == []
    assert [step["error_class"] for step in lines[1]["steps"]] == ["declined"]


@ways("it quiet", "en killed")
def test_mail_is_not_moved_by_the_tap_of_a_guest(stage: Stage, lang: str, killed: bool) -> None:
    stage.speak(lang, HOST, GUEST)
    box, request, card = _asked(stage, lang, f"guest{killed}")
    if killed:
        stage.crash()

    stage.telegram.tap(GUEST, token_of(card, "^✅"))
    stage.telegram.tap(GUEST, token_of(card, "^✋"))

    for _ in range(2):
        stage.hear(GUEST, ONLY[lang], kind="answer")
    assert folder_of(box, "inbox") == ["m1", "m2", "m3"]
    [line] = stage.lines_of(request)
    assert stage.state_of_questions(line["turn_id"]) == ["open"]
    stage.telegram.press(HOST, "^✋", message_id=card["message"]["message_id"])
    stage.ended(request, 2)
    assert stage.effects_of(line["turn_id"]) == []


@ways("it quiet", "en killed")
def test_mail_goes_out_once_and_only_after_a_yes(stage: Stage, lang: str, killed: bool) -> None:
    stage.speak(lang)
    box = stage.notes / f"send{killed}-{lang}"
    fill_mailbox(box, MESSAGES)
    request = SENT[lang].format("marta@posta.example", "vengo", box.name)
    card = stage.ask(HOST, request, "marta@posta.example", buttons=["^✅", "^✋"])
    assert folder_of(box, "sent") == []
    if killed:
        stage.crash()

    for _ in range(2):
        stage.telegram.tap(HOST, token_of(card, "^✅"), message=card["message"])

    lines = stage.ended(request, 2)
    assert folder_of(box, "sent") == ["1"]
    assert stage.effects_of(lines[0]["turn_id"]) == [("send_messages", "done")]
