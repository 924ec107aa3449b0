"""Kinds 3.19, 3.20 and 3.25: who is let in, what of whom is seen by whom, in which language."""

from __future__ import annotations

import re

import pytest

from core.messages import Role
from tests.field.field import LONG, NOW, Field, both

STRANGER = {"it": "assistente privato", "en": "private assistant"}
INVALID = {"it": "Il codice non vale", "en": "not valid"}
LOCKED = {"it": "Troppi codici", "en": "Too many"}
WELCOME = {"it": "Da ora puoi scrivermi", "en": "From now on you can write"}
CANARY = "canarino-9f27b1"


@both
def test_3_19_stranger_gets_one_neutral_line_and_reaches_nothing(field: Field, lang: str):
    name = field.stranger(lang)
    asked = len(field.model.asked)

    field.ask(name, f"{CANARY} {lang}", STRANGER[lang])
    for n in range(4):
        field.telegram.say(name, f"{CANARY} {n}")
    field.telegram.expect_none(name, 0.5)

    assert len(field.model.asked) == asked
    assert CANARY not in str(field.rows("SELECT body FROM inbox"))


@both
def test_3_19_right_code_does_not_pass_while_locked(field: Field, lang: str):
    name = field.stranger(lang)
    code = field.code(Role.GUEST)

    for n in range(5):
        field.ask(name, f"/pair WRONG{n:03}", INVALID[lang])
    field.ask(name, f"/pair {code}", LOCKED[lang])
    field.telegram.say(name, f"/pair {code}")
    field.telegram.expect_none(name, 0.5)

    chat = field.telegram.names[name]
    assert not field.rows(f"SELECT 1 FROM identities WHERE sender_id = '{chat}'")


@both
def test_3_19_code_is_stored_hashed_and_works_once(field: Field, lang: str):
    name, late = field.stranger(lang), field.stranger(lang)
    code = field.code(Role.GUEST)
    kept = str(field.rows("SELECT * FROM pairing_codes"))

    field.ask(name, f"/pair {code}", WELCOME[lang])
    field.ask(late, f"/pair {code}", INVALID[lang])

    assert code not in kept
    assert code not in str(field.rows("SELECT body FROM inbox WHERE state IN ('done', 'dead')"))


def test_3_19_somebody_paired_is_not_asked_to_pair_again(field: Field):
    name = field.person(role=Role.GUEST)

    field.ask(name, f"/pair {field.code(Role.GUEST)}", "Ci conosciamo già")
    field.teach("chi sono?", answer="un ospite")
    field.ask(name, "chi sono?", "un ospite")


@both
def test_3_20_what_one_person_said_never_reaches_the_model_of_another(field: Field, lang: str):
    request = {"it": "ricordati", "en": "remember"}[lang]
    secret = f"{request} {CANARY} {lang}"
    field.teach(secret, NOW, answer=f"ok {CANARY}")
    later = {"it": f"che cosa ti ho detto? ({lang})", "en": f"what did I tell you? ({lang})"}[lang]
    field.teach(later, answer="niente")
    host, guest = field.person(lang), field.person(lang, Role.GUEST)
    field.ask(host, secret, "ok")

    field.ask(guest, later, "niente")

    seen = [ask.body for ask in field.model.asked if ask.user == later]
    assert seen
    assert CANARY not in str(seen)


@both
def test_3_20_two_guests_do_not_undo_each_others_changes(field: Field, lang: str):
    words = {"it": "Non c'è nulla da annullare", "en": "nothing to undo"}[lang]
    host, guest = field.person(lang), field.person(lang, Role.GUEST)
    file = f"mio-{lang}.md"
    request = {"it": f"scrivi x in ~/notes/{file}", "en": f"write x to ~/notes/{file}"}[lang]
    field.teach(request, ("write_files", {"path": f"~/notes/{file}", "content": "x"}))
    field.ask(host, request, file)

    field.ask(guest, "/undo", f"(?i){words}")

    assert (field.notes / file).exists()


ITALIAN = re.compile(r"\b(che|non|sono|della?|fermare|niente|puoi|qui|ora)\b")
ENGLISH = re.compile(r"\b(the|not|are|nothing|can|here|now|what|you)\b")
SCREENS = ("/help", "/status", "/stop", "/lang", "/nope", "/pair", "/undo")


@both
def test_3_25_screens_are_in_one_language_only(field: Field, lang: str):
    name = field.person(lang)
    other = ENGLISH if lang == "it" else ITALIAN

    for command in SCREENS:
        shown = field.ask(name, command)["message"]["text"]
        assert not other.search(re.sub(r"«.*?»|/\w+", "", shown)), (command, shown)


def test_3_25_choice_beats_the_phone_and_the_phone_the_default(field: Field):
    english, french = field.person("en"), field.person("fr")

    field.ask(english, "/stop", "nothing to stop")
    field.ask(french, "/stop", "niente da fermare")
    field.ask(english, "/lang it", "in italiano")
    field.ask(english, "/stop", "niente da fermare")
    field.execute("UPDATE actors SET lang = NULL")


@pytest.mark.parametrize(("lang", "word"), [("it", "Ferma"), ("en", "End")])
def test_3_25_menu_is_in_the_language_of_the_phone(field: Field, lang: str, word: str):
    name = field.person(lang)
    tg = field.telegram.tg

    def shown() -> str:
        found = tg.commands_for(field.telegram.names[name], field.telegram.names[name], lang)
        return next((c["description"] for c in found if c["command"] == "stop"), "")

    field.wait_for(shown, timeout=LONG, what="the menu")

    assert shown().startswith(word)
