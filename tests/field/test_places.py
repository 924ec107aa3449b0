"""Kind 3.24: places and media: asked for with a way out, accepted from the one asked, and moves of
a live place are no requests."""

from __future__ import annotations

from core.messages import Role
from tests.field.field import Field, both

PROMPT = {"it": "Mi serve dove sei.", "en": "I need to know where you are."}


def asks_place(field: Field, lang: str, what: str) -> str:
    request = {"it": f"cerca {what} vicino a me", "en": f"look for {what} near me"}[lang]
    field.teach(
        request,
        ("request_location_from_user", {"prompt": PROMPT[lang]}),
        answer=lambda ask: f"visto {ask.last_result}",
    )
    return request


def labels(event) -> list[str]:
    return [b["text"] for row in (event["markup"] or {}).get("keyboard", ()) for b in row]


@both
def test_3_24_place_is_asked_with_typing_and_leaving_beside_it(field: Field, lang: str):
    request = asks_place(field, lang, "pizza")
    name = field.person(lang, Role.GUEST)

    asked = field.ask(name, request, where=lambda e: labels(e) != [])
    field.telegram.press(name, "^✖️")
    left = field.hear(name, where=lambda e: (e["markup"] or {}).get("remove_keyboard"))

    assert [label[0] for label in labels(asked)] == ["📍", "✏", "✖"]
    assert left


@both
def test_3_24_place_of_somebody_else_does_not_answer_the_question(field: Field, lang: str):
    request = asks_place(field, lang, "pane")
    name, other = field.person(lang, Role.GUEST), field.person(lang, Role.GUEST)
    field.ask(name, request, where=lambda e: labels(e) != [])

    field.telegram.location(other, 45.0, 7.0)
    field.hear(other, "📍")
    field.telegram.expect_none(name, 0.3)
    field.telegram.press(name, "^📍", lat=44.5, lon=11.3)
    field.hear(name, "44.5")

    assert not any("45.0" in text for text in field.texts(name))


@both
def test_3_24_moves_of_a_live_place_are_silent_and_cost_nothing(field: Field, lang: str):
    name = field.person(lang, Role.GUEST)
    field.telegram.location(name, 45.0, 7.6, live_period=900)
    field.hear(name, "📍")
    asked, shown = len(field.model.asked), len(field.texts(name))

    for step in range(10):
        field.telegram.move(name, 45.0 + step / 1000, 7.6)
    field.telegram.move(name, 45.2, 7.8, stop=True)
    field.ask(name, "/stop")

    assert len(field.model.asked) == asked
    assert len(field.texts(name)) == shown + 1


@both
def test_3_24_voice_that_cannot_be_heard_gets_a_helpful_word(field: Field, lang: str):
    word = {"it": "Scrivi", "en": "(?i)write|type"}[lang]
    name = field.person(lang)

    field.telegram.file(name, b"OggS", name="v.ogg", kind="voice")
    field.hear(name, word)

    assert not field.telegram.calls("getFile")


def test_3_24_question_that_ran_out_takes_no_place_any_more(field: Field):
    request = asks_place(field, "it", "benzina")
    name = field.person(role=Role.GUEST)
    field.ask(name, request, where=lambda e: labels(e) != [])
    field.let_expire(name)
    field.hear(name, buttons=["^🔁"])

    field.telegram.location(name, 44.1, 8.2)
    field.hear(name, "Che cosa vuoi fare")

    assert not any(text.startswith("visto") for text in field.texts(name))
