"""Kind 3.10: a correction counts for what has not begun, and never runs a change again."""

from __future__ import annotations

from tests.field.field import Field, both


@both
def test_3_10_correction_of_a_waiting_message_takes_its_place(field: Field, lang: str):
    wrong = {"it": f"scrivi pippo {lang}", "en": f"write goofy {lang}"}[lang]
    right = {"it": f"scrivi pluto {lang}", "en": f"write pluto {lang}"}[lang]
    field.teach(f"aspetta {lang}", answer="primo", delay=2.0)
    field.teach(wrong, answer="sbagliato")
    field.teach(right, answer="giusto")
    name = field.person(lang)

    field.telegram.say(name, f"aspetta {lang}")
    waiting = field.telegram.say(name, wrong)
    field.wait_for(lambda: field.asked(f"aspetta {lang}"), what="the first turn")
    field.telegram.edit(name, right, message_id=waiting["message_id"])
    field.hear(name, "giusto")

    assert field.texts(name) == ["primo", "giusto"]
    assert field.asked(wrong) == 0


@both
def test_3_10_correction_of_a_finished_message_changes_nothing_again(field: Field, lang: str):
    request = {"it": "scrivi uno in ~/notes/conta.md", "en": "write uno to ~/notes/count.md"}[lang]
    path = request.rpartition(" ")[2]
    field.teach(request, ("write_files", {"path": path, "content": "uno"}))
    name = field.person(lang)
    field.ask(name, request)
    done = field.effects_of(request)

    for _ in range(3):
        field.telegram.edit(name, f"{request}!")
    field.teach("e ora?", answer="qui")
    field.ask(name, "e ora?", "qui")

    assert field.asked(f"{request}!") == 0
    assert field.effects_of(request) == done == ["done"]
