"""Flow 19: a stranger asks to be let in, and the host's button decides. Over the fake Bot API."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from core.messages import Role
from core.store.visitors import MOST_ASKED
from tests.acceptance.town import LONG
from tests.journeys.stage import GUEST, HOST, LANGS, Stage, open_stage, token_of
from tests.support.scripted_model import Rule

NEUTRAL = {"it": "assistente privato", "en": "private assistant"}
ASKS = {"it": "chiede di parlare con me", "en": "asks to speak with me"}
IN = {"it": "Fatto entrare come ospite da te", "en": "Let in as a guest by you"}
NO = {"it": "Hai detto di no", "en": "You said no"}
BLOCKED = {"it": "Bloccato da te", "en": "Blocked by you"}
WELCOME = {"it": "ti ha fatto entrare", "en": "has let you in"}
ONLY = {"it": "bottone non è per te", "en": "button is not for you"}
RULES = [Rule(user="ciao", text="Ciao a te.")]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("door"), RULES) as stage:
        yield stage


@pytest.fixture(autouse=True)
def an_hour_later(stage: Stage) -> None:
    """Each test has the cards of an hour of its own."""
    stage.execute(f"UPDATE visitors SET asked_at = {time.time() - 2 * 3600}")


def knock(stage: Stage, name: str, lang: str, **who: Any) -> dict[str, Any]:
    """A stranger writes /start; the card that the host is shown."""
    stage.telegram.user(name, language_code=lang, **who)
    stage.telegram.say(name, "/start")
    stage.hear(name, NEUTRAL[lang])
    return stage.hear(HOST, ".", buttons=["^✅", "^✋", "^🚫"])


def press(stage: Stage, card: dict[str, Any], label: str) -> None:
    stage.telegram.press(HOST, label, message_id=card["message"]["message_id"])


def actor_of(stage: Stage, name: str) -> list[tuple[Any, ...]]:
    return stage.rows(
        "SELECT role, display_name FROM actors JOIN identities ON actor_id = actors.id"
        f" WHERE sender_id = '{stage.telegram.names[name]}'"
    )


def quiet(stage: Stage, name: str, *words: str) -> None:
    """These are answered by nothing; shown by what comes after them, which the host is told."""
    sent = len(stage.texts(name))
    for said in words:
        stage.telegram.say(name, said)
    stage.ask(HOST, "ciao", "Ciao a te")
    stage.settle()
    assert len(stage.texts(name)) == sent


@pytest.mark.parametrize("lang", LANGS)
def test_stranger_who_asks_is_let_in_by_the_hosts_button(stage: Stage, lang: str) -> None:
    stage.speak(lang, HOST)
    name = f"luca{lang}"
    card = knock(stage, name, lang, last_name="Rossi")
    text, number = card["message"]["text"], str(stage.telegram.names[name])
    asked = len(stage.model.asked)

    press(stage, card, "^✅")
    stage.hear(HOST, IN[lang], kind="edit")
    stage.hear(name, WELCOME[lang])
    stage.ask(name, "ciao", "Ciao a te")

    assert ASKS[lang] in text
    assert f"{name.title()} Rossi" in text
    assert number in text
    [(role, shown)] = actor_of(stage, name)
    assert role == "guest"
    assert shown.startswith("guest_")
    assert len(stage.model.asked) == asked + 1


@pytest.mark.parametrize("lang", LANGS)
def test_stranger_who_is_refused_hears_nothing_more_but_a_code_counts(
    stage: Stage, lang: str
) -> None:
    stage.speak(lang, HOST)
    name = f"dario{lang}"
    press(stage, knock(stage, name, lang), "^✋")
    stage.hear(HOST, NO[lang], kind="edit")

    quiet(stage, name, "/start", "ci sei?", "/help")
    cards = stage.rows("SELECT count(*) FROM outbox WHERE key LIKE 'door:%'")
    assert actor_of(stage, name) == []
    stage.ask(name, f"/start {stage.code(Role.GUEST)}")
    assert actor_of(stage, name)[0][0] == "guest"
    assert stage.rows("SELECT count(*) FROM outbox WHERE key LIKE 'door:%'") == cards


@pytest.mark.parametrize("lang", LANGS)
def test_stranger_who_is_blocked_gets_in_by_no_code_until_unblocked(
    stage: Stage, lang: str
) -> None:
    stage.speak(lang, HOST)
    name = f"eva{lang}"
    press(stage, knock(stage, name, lang), "^🚫")
    stage.hear(HOST, BLOCKED[lang], kind="edit")

    quiet(stage, name, "/start", f"/start {stage.code(Role.GUEST)}",
          f"/pair {stage.code(Role.HOST)}")  # fmt: skip
    assert actor_of(stage, name) == []
    assert stage.cli("actors", "unblock", str(stage.telegram.names[name])).returncode == 0
    stage.ask(name, f"/start {stage.code(Role.GUEST)}")
    assert actor_of(stage, name)[0][0] == "guest"


def test_card_answers_to_the_host_alone_and_once(stage: Stage) -> None:
    stage.speak("it", HOST)
    card = knock(stage, "furio", "it")
    stage.telegram.user("zoe")
    token = token_of(card, "^✅")
    for who in (GUEST, "furio", "zoe"):
        stage.telegram.tap(who, token)
        stage.telegram.tap(who, token, chat=HOST, message=card["message"])
    stage.hear(GUEST, ONLY["it"], kind="answer")
    stage.settle()
    assert actor_of(stage, "furio") == []

    for _ in range(3):
        stage.telegram.tap(HOST, token, message=card["message"])
    stage.hear(HOST, IN["it"], kind="edit")
    stage.hear("furio", WELCOME["it"])
    stage.telegram.tap(HOST, token_of(card, "^🚫"), message=card["message"])
    stage.ask(HOST, "ciao", "Ciao a te")
    stage.settle()

    assert len(actor_of(stage, "furio")) == 1
    assert [t for t in stage.texts("furio") if WELCOME["it"] in t] == [stage.texts("furio")[-1]]
    assert stage.ask("furio", "ciao", "Ciao a te")


def test_card_shows_the_name_as_data_and_nothing_that_the_stranger_wrote(stage: Stage) -> None:
    stage.speak("it", HOST)
    stage.telegram.user(
        "mallory",
        language_code="it",
        first_name="Banca\u202e\n✅ t.me/x @anna_test",
        last_name="*b*",
    )
    stage.telegram.say("mallory", "premi subito: parola-mia")
    stage.telegram.say("mallory", "/start")
    card = stage.hear(HOST, ".", buttons=["^✅"])

    text = card["message"]["text"]
    assert "parola-mia" not in text
    assert "Banca ✅ t.me/x @anna_test *b*" in text
    kinds = [entity["type"] for entity in card["message"].get("entities", ())]
    assert not {"url", "mention", "text_link"} & set(kinds)
    assert {"pre", "code"} & set(kinds)
    assert "parola-mia" not in str(stage.rows("SELECT * FROM inbox"))


def test_same_stranger_asks_once_a_day(stage: Stage) -> None:
    stage.speak("it", HOST)
    knock(stage, "nina", "it")
    before = stage.rows("SELECT count(*) FROM outbox WHERE key LIKE 'door:%'")

    quiet(stage, "nina", "/start", "/start", "/start@fake_test_bot")

    assert stage.rows("SELECT count(*) FROM outbox WHERE key LIKE 'door:%'") == before


def test_card_that_ran_out_lets_nobody_in(stage: Stage) -> None:
    stage.speak("it", HOST)
    card = knock(stage, "otto", "it")
    stage.execute(f"UPDATE actions SET expires_at = {time.time() - 1} WHERE name = 'admit'")

    press(stage, card, "^✅")
    stage.hear(HOST, ".", kind="answer")
    stage.settle()

    assert actor_of(stage, "otto") == []


def test_crowd_of_strangers_leaves_the_host_in_peace(stage: Stage) -> None:
    crowd = 40
    stage.speak("it", HOST)
    before = len(stage.texts(HOST))
    for number in range(crowd):
        stage.telegram.user(f"folla{number}", uid=50_000 + number, language_code="it")
        stage.telegram.say(f"folla{number}", "/start")
    for number in range(crowd):
        stage.hear(f"folla{number}", NEUTRAL["it"])
    stage.ask(HOST, "ciao", "Ciao a te")
    stage.wait_for(lambda: not stage.open_rows()["outbox"], timeout=LONG, what="sending")

    cards = len(stage.texts(HOST)) - before - 1
    print(f"\ndoor: {crowd} strangers at once, {cards} cards")
    assert cards == MOST_ASKED
