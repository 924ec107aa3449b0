"""A thumb under an answer becomes the vote of who asked; nothing is said of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.messages import Role
from tests.field.field import LONG, NOW, Field, open_field


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with open_field(tmp_path_factory.mktemp("reactions")) as field:
        yield field


def votes(field: Field, request: str) -> list[str | None]:
    turn = field.turn(request)["turn_id"]
    return [vote for vote, of in field.rows("SELECT vote, turn_id FROM votes") if of == turn]


def settled(field: Field) -> None:
    done = "SELECT 1 FROM inbox WHERE state IN ('new', 'running')"
    field.wait_for(
        lambda: not field.telegram.tg.updates and not field.rows(done), timeout=LONG, what="it"
    )


def test_last_thumb_counts_and_may_be_taken_back(field: Field) -> None:
    field.teach("che ore sono?", NOW, answer="le tre")
    name = field.person()
    answer = field.ask(name, "che ore sono?", "le tre")
    shown = len(field.texts(name))

    found = []
    for signs in ("👍", ["👎", "❤"], "🔥", ["👍", "👎"], "👍"):
        field.telegram.react(name, signs, message_id=answer["message"]["message_id"])
        settled(field)
        found.append(votes(field, "che ore sono?"))

    assert found == [["up"], ["down"], [None], [None], ["up"]]
    assert len(field.texts(name)) == shown
    assert field.asked("che ore sono?") == 2


def test_thumb_under_what_is_no_answer_or_of_somebody_else_counts_for_nothing(
    field: Field,
) -> None:
    field.teach("come va?", answer="bene")
    name, other = field.person(role=Role.GUEST), field.person(role=Role.GUEST)
    stranger = field.stranger()
    answer = field.ask(name, "come va?", "bene")
    told = field.ask(name, "/help")
    mine = field.telegram.last(name, bot=False)

    number = answer["message"]["message_id"]
    field.telegram.react(other, "👎", chat=name, message_id=number)
    field.telegram.react(stranger, "👎", chat=name, message_id=number)
    for message in (told["message"], mine):
        field.telegram.react(name, "👍", message_id=message["message_id"])
    field.telegram.react(name, "👍", message_id=99_999)
    settled(field)

    assert votes(field, "come va?") == []


def test_thumb_in_a_topic_finds_its_answer(field: Field) -> None:
    host = field.person()
    field.telegram.group("casa", [host], admins=[host], forum=True, bot=False)
    field.telegram.bot_status(host, "administrator", chat="casa")
    field.hear("casa", buttons=["."])
    field.telegram.press(host, "(?i)attiva|accendi|sì|✅", chat="casa")
    field.hear("casa", kind=("edit", "send"))
    topic = field.telegram.topic(host, "casa", "Spesa")
    request = "@fake_test_bot cosa compro?"
    field.teach("cosa compro?", answer="pane")
    field.telegram.say(host, request, chat="casa", thread=topic)
    answer = field.hear("casa", "pane")

    field.telegram.react(host, "👍", chat="casa", message_id=answer["message"]["message_id"])
    settled(field)

    assert votes(field, "cosa compro?") == ["up"]
