"""Kinds 3.6 to 3.9: a press is acknowledged at once, means what was shown, counts once, survives a
crash, and belongs to who was asked."""

from __future__ import annotations

import itertools

import pytest

from core.messages import Role
from tests.field.field import NOW, Field, both, buttons, token

OVER = {"it": "non vale più", "en": "no longer valid"}
FOREIGN = {"it": "a cui l'ho chiesto", "en": "the person I asked"}
APPROVED = {"it": "Approvato da te alle", "en": "Approved by you at"}
DECLINED = {"it": "Hai detto di no alle", "en": "You said no at"}

_numbers = itertools.count(1)


def asks_to_delete(field: Field, lang: str, *, delay: float = 0.0) -> tuple[str, str]:
    """A request that deletes a file of its own after a yes: the words, and the file's name."""
    file = f"carta{next(_numbers)}.md"
    (field.notes / file).write_text("x")
    request = {"it": f"elimina ~/notes/{file}", "en": f"delete ~/notes/{file}"}[lang]
    field.teach(
        request, ("delete_files", {"paths": [f"~/notes/{file}"]}), answer="Ok.", delay=delay
    )
    return request, file


@both
def test_3_06_tap_is_acknowledged_before_the_work_it_sets_going(field: Field, lang: str):
    request, file = asks_to_delete(field, lang, delay=2.0)
    name = field.person(lang)
    field.ask(name, request, buttons=["^✅"])
    at_press = field.asked(request)

    field.telegram.press(name, "^✅")
    ack = field.hear(name, kind="answer")
    end = field.hear(name, r"Ok\.")

    assert ack["n"] < end["n"]
    assert end["t"] - ack["t"] > 1.0
    assert field.asked(request) > at_press
    assert not (field.notes / file).exists()


def test_3_06_acknowledgement_that_fails_never_stops_the_work(field: Field):
    request, file = asks_to_delete(field, "it")
    name = field.person()
    field.ask(name, request, buttons=["^✅"])
    field.telegram.fault("answerCallbackQuery", code=400, text="query is too old")

    field.telegram.press(name, "^✅")
    field.hear(name, APPROVED["it"], kind="edit")

    field.wait_for(lambda: not (field.notes / file).exists(), what="the deletion")


@both
def test_3_06_double_tap_counts_once(field: Field, lang: str):
    request, _ = asks_to_delete(field, lang)
    name = field.person(lang)
    card = field.ask(name, request, buttons=["^✅"])

    for _ in range(3):
        field.telegram.tap(name, token(card, "^✅"), message=card["message"])
    field.hear(name, APPROVED[lang], kind="edit")
    field.hear(name, OVER[lang], kind="answer")

    assert field.effects_of(request) == ["done"]


LABELS = [
    f"La relazione annuale del condominio di via Garibaldi, è la n. {n}" for n in range(1, 5)
]


@both
def test_3_07_long_labels_with_one_beginning_stay_apart(field: Field, lang: str):
    request = {"it": "quale relazione apro?", "en": "which report shall I open?"}[lang]
    prompt = {"it": "Quale?", "en": "Which one?"}[lang]
    wanted = {"fields": [{"var": "x", "prompt": prompt, "kind": "choice", "options": LABELS}]}
    field.teach(request, NOW, ("get_inputs", wanted), answer=lambda ask: ask.last_result)
    name = field.person(lang)

    asked = field.ask(name, request, prompt)
    offered = {b["text"] for b in buttons(asked) if "La relazione" in b["text"]}
    carried = {b["callback_data"] for b in buttons(asked)}
    field.telegram.press(name, r"^3\.")
    field.hear(name, r"n\. 3", kind="send")

    assert len(offered) == 4
    assert all(label in asked["message"]["text"] for label in LABELS)
    assert len(carried) == len(buttons(asked))
    assert all(len(data.encode()) <= 64 for data in carried)
    assert not any("relazione" in data for data in carried)


@both
def test_3_07_button_of_an_earlier_list_selects_nothing_of_a_later_one(field: Field, lang: str):
    request = {"it": "che formato uso?", "en": "which format shall I use?"}[lang]

    def offers(*options: str) -> None:
        wanted = {"var": "x", "prompt": "?", "kind": "choice", "options": list(options)}
        field.teach(request, NOW, ("get_inputs", {"fields": [wanted]}), answer="Ok.")

    name = field.person(lang)
    offers("PDF", "HTML")
    first = field.ask(name, request, buttons=["PDF"])
    field.telegram.press(name, "HTML")
    field.hear(name, "Ok", kind="send")
    offers("Word", "Testo")
    second = field.ask(name, request, buttons=["Word"])

    field.telegram.tap(name, token(first, "PDF"), message=second["message"])
    field.hear(name, OVER[lang], kind="answer")
    field.telegram.expect_none(name, 0.3, kind="send")
    field.telegram.press(name, "Word")
    field.hear(name, "Ok", kind="send")


@both
def test_3_08_question_answered_after_a_crash_resumes_its_step_once(field: Field, lang: str):
    request, file = asks_to_delete(field, lang)
    name = field.person(lang)
    card = field.ask(name, request, buttons=["^✅"])
    thought = field.asked(request)

    field.crash()
    field.telegram.press(name, "^✅")
    decided = field.hear(name, APPROVED[lang], kind="edit")

    assert field.effects_of(request) == ["done"]
    assert not (field.notes / file).exists()
    assert decided["message"]["message_id"] == card["message"]["message_id"]
    assert "reply_markup" not in decided["message"]
    assert field.asked(request) == thought + 1  # the words of the end; nothing was planned anew


@both
def test_3_08_tap_on_what_ran_out_is_never_called_approved(field: Field, lang: str):
    request, file = asks_to_delete(field, lang)
    name = field.person(lang)
    card = field.ask(name, request, buttons=["^✅"])

    field.let_expire(name)
    field.telegram.tap(name, token(card, "^✅"), message=card["message"])
    ended = field.hear(name, kind="edit")
    again = field.hear(name, buttons=["^🔁"], kind="send")

    assert "reply_markup" not in ended["message"]
    assert not any(APPROVED[lang] in text for text in field.texts(name))
    assert (field.notes / file).exists()
    assert len(buttons(again)) == 1


@both
def test_3_08_declined_is_shown_and_stays_declined(field: Field, lang: str):
    request, file = asks_to_delete(field, lang)
    name = field.person(lang)
    card = field.ask(name, request, buttons=["^✋"])

    field.telegram.press(name, "^✋")
    field.hear(name, DECLINED[lang], kind="edit")
    field.telegram.tap(name, token(card, "^✅"), message=card["message"])
    field.hear(name, OVER[lang], kind="answer")

    assert (field.notes / file).exists()


@both
def test_3_08_question_given_up_by_stop_is_not_left_standing(field: Field, lang: str):
    request, file = asks_to_delete(field, lang)
    name = field.person(lang)
    card = field.ask(name, request, buttons=["^✅"])

    field.telegram.say(name, "/stop")
    ended = field.hear(name, kind="edit")
    field.telegram.tap(name, token(card, "^✅"), message=card["message"])
    field.hear(name, OVER[lang], kind="answer")

    assert ended["message"]["message_id"] == card["message"]["message_id"]
    assert "reply_markup" not in ended["message"]
    assert (field.notes / file).exists()


@both
@pytest.mark.parametrize("role", [Role.GUEST, None], ids=["guest", "stranger"])
def test_3_09_somebody_elses_press_decides_nothing(field: Field, lang: str, role: Role | None):
    request, file = asks_to_delete(field, lang)
    name = field.person(lang)
    other = field.stranger(lang) if role is None else field.person(lang, role)
    card = field.ask(name, request, buttons=["^✅"])

    field.telegram.tap(other, token(card, "^✅"))
    if role is not None:
        field.hear(other, FOREIGN[lang], kind="answer")
    field.telegram.tap(other, token(card, "^✅"), chat=name, message=card["message"])
    field.telegram.press(name, "^✋")
    field.hear(name, DECLINED[lang], kind="edit")

    assert (field.notes / file).exists()


def test_3_09_press_by_nobody_and_on_a_forwarded_keyboard_counts_for_nothing(field: Field):
    request, file = asks_to_delete(field, "it")
    name = field.person()
    card = field.ask(name, request, buttons=["^✅"])
    message, data = card["message"], token(card, "^✅")
    origin = {"type": "user", "sender_user": field.telegram.tg.me, "date": 1}

    query = {"id": "1", "chat_instance": "1", "message": message, "data": data}
    field.telegram.raw("callback_query", query)
    field.telegram.tap(name, data, message={**message, "forward_origin": origin})
    field.hear(name, OVER["it"], kind="answer")
    field.telegram.press(name, "^✋")
    field.hear(name, DECLINED["it"], kind="edit")

    assert (field.notes / file).exists()
