"""Kinds 3.9, 3.12, 3.13, 3.15 and 3.24 in groups: topics, what the bot sees, who presses, where a
place is asked for, and a group that gets a new id."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from core.messages import Role
from tests.field.field import LONG, NOW, Field, both, token

ME = "@fake_test_bot"
ON = {"it": "Accendi qui", "en": "Turn on here"}
_numbers = itertools.count(1)


def room(field: Field, lang: str, *members: str, **kind: Any) -> tuple[str, str]:
    """A group that the host has turned on: its name, and the host's."""
    host, name = field.person(lang), f"stanza{next(_numbers)}"
    field.telegram.group(name, [host, *members], title=name, **kind)
    field.ask(host, f"{ME} /start", chat=name, buttons=[ON[lang]])
    field.telegram.press(host, ON[lang], chat=name)
    field.hear(name, kind="edit")
    field.hear(name, ME)
    return name, host


def thread_of(event: dict[str, Any]) -> int | None:
    thread: int | None = event["message"].get("message_thread_id")
    return thread


def threads_of_calls(field: Field, method: str, chat: str) -> list[str | None]:
    chat_id = str(field.telegram.names[chat])
    return [
        call["params"].get("message_thread_id")
        for call in field.telegram.calls(method)
        if str(call["params"].get("chat_id")) == chat_id
    ]


@both
def test_3_12_answer_and_typing_stay_in_the_topic(field: Field, lang: str):
    group, host = room(field, lang, forum=True)
    topic = field.telegram.topic(host, group, "Spesa")
    request = {"it": "che cosa manca?", "en": "what is missing?"}[lang]
    field.teach(request, NOW, answer="il pane", delay=1.0)

    field.telegram.say(host, f"{ME} {request}", chat=group, thread=topic)
    answer = field.hear(group, "il pane")

    assert thread_of(answer) == topic
    assert {int(t or 0) for t in threads_of_calls(field, "sendChatAction", group)} == {topic}


def test_3_12_general_is_named_by_no_id(field: Field):
    group, host = room(field, "it", forum=True)
    field.telegram.topic(host, group, "Altro")
    field.teach("che cosa c'è in generale?", answer="tutto")

    field.telegram.say(host, f"{ME} che cosa c'è in generale?", chat=group)
    answer = field.hear(group, "tutto")

    assert thread_of(answer) is None
    assert set(threads_of_calls(field, "sendMessage", group)) == {None}
    assert field.events(group, "error") == []


@both
def test_3_12_question_and_what_comes_of_it_stay_in_the_topic(field: Field, lang: str):
    group, host = room(field, lang, forum=True)
    topic = field.telegram.topic(host, group, "Carte")
    file = f"stanza-{lang}.md"
    (field.notes / file).write_text("x")
    request = {"it": f"elimina ~/notes/{file}", "en": f"delete ~/notes/{file}"}[lang]
    field.teach(request, ("delete_files", {"paths": [f"~/notes/{file}"]}))

    field.telegram.say(host, f"{ME} {request}", chat=group, thread=topic)
    card = field.hear(group, buttons=["^✅"])
    field.telegram.press(host, "^✅", chat=group)
    field.hear(group, kind="edit")
    end = field.hear(group, kind="send")

    assert [thread_of(card), thread_of(end)] == [topic, topic]
    assert not (field.notes / file).exists()


@both
def test_3_12_topic_that_is_gone_is_answered_in_general_and_says_so(field: Field, lang: str):
    group, host = room(field, lang, forum=True)
    topic = field.telegram.topic(host, group, "Breve")
    request = {"it": "ci metti molto?", "en": "does it take long?"}[lang]
    field.teach(request, answer="no, poco", delay=1.5)

    field.telegram.say(host, f"{ME} {request}", chat=group, thread=topic)
    field.wait_for(lambda: field.asked(request), timeout=LONG, what="the turn")
    chat = field.telegram.tg.chats[field.telegram.names[group]]
    del chat["topics"][topic]
    answer = field.hear(group, "no, poco")

    assert thread_of(answer) is None
    assert answer["message"]["text"] != "no, poco"


def test_3_12_topics_do_not_hear_each_other(field: Field):
    group, host = room(field, "it", forum=True)
    one, two = (field.telegram.topic(host, group, name) for name in ("Uno", "Due"))
    field.teach("tieni a mente canarino-77", answer="tengo canarino-77")
    field.teach("che cosa tieni?", answer="niente")
    field.telegram.say(host, f"{ME} tieni a mente canarino-77", chat=group, thread=one)
    field.hear(group, "tengo")

    field.telegram.say(host, f"{ME} che cosa tieni?", chat=group, thread=two)
    field.hear(group, "niente")

    seen = [ask.body for ask in field.model.asked if ask.user == "che cosa tieni?"]
    assert seen
    assert "canarino-77" not in str(seen)


def test_3_25_time_of_a_decision_is_that_of_the_house(field: Field):
    group, _ = room(field, "it")

    settled = field.events(group, "edit")[-1]["message"]
    utc = datetime.fromtimestamp(settled["edit_date"], UTC)

    shown = re.search(r"alle (\d+):(\d+)", settled["text"])
    assert shown is not None
    minutes = int(shown[1]) * 60 + int(shown[2]) - (utc.hour * 60 + utc.minute)
    away = utc.astimezone(ZoneInfo("Europe/Rome")).utcoffset()
    assert away is not None
    assert (minutes - away.seconds // 60) % (24 * 60) in {0, 1, 24 * 60 - 1}


SEES = {
    "it": ("setprivacy", "aggiungimi di nuovo"),
    "en": ("setprivacy", "add me again"),
}


@both
def test_3_13_start_says_what_the_bot_is_shown_and_the_exact_steps(field: Field, lang: str):
    group, host = room(field, lang)

    said = field.ask(host, f"/start{ME}", chat=group)["message"]["text"]

    assert all(word in said for word in SEES[lang])
    assert ME in said


@both
def test_3_13_mention_reply_and_command_are_heard_and_other_talk_is_not(field: Field, lang: str):
    group, host = room(field, lang)
    field.telegram.bot_status(host, "administrator", chat=group)  # now it is shown everything
    for n in range(4):
        field.teach(f"prova {n} {lang}", answer=f"eco {n} {lang}")

    field.telegram.say(host, f"prova 0 {lang}", chat=group)
    field.telegram.say(host, f"{ME} prova 1 {lang}", chat=group)
    first = field.hear(group, "eco")
    number = first["message"]["message_id"]
    field.telegram.say(host, f"prova 2 {lang}", chat=group, reply_to=number)
    second = field.hear(group, "eco")
    field.telegram.say(host, f"prova 3 {lang}", chat=group, reply_to=0)
    field.telegram.say(host, f"/status{ME}", chat=group)
    field.hear(group)

    assert first["message"]["text"] == f"eco 1 {lang}"
    assert second["message"]["text"] == f"eco 2 {lang}"
    assert field.asked(f"prova 0 {lang}") == field.asked(f"prova 3 {lang}") == 0
    assert f"prova 0 {lang}" not in str(field.rows("SELECT body FROM inbox"))


def test_3_13_command_for_another_bot_is_not_ours(field: Field):
    group, host = room(field, "it")

    field.telegram.say(host, "/stop@other_test_bot", chat=group)
    field.telegram.say(host, f"/stop{ME}", chat=group)
    said = field.hear(group)

    assert "fermare" in said["message"]["text"]
    field.telegram.expect_none(group, 0.3)


@both
def test_3_09_member_of_the_group_may_not_approve_and_the_asker_may(field: Field, lang: str):
    guest = field.person(lang, Role.GUEST)
    group, host = room(field, lang, guest)
    file = f"gruppo-{lang}.md"
    (field.notes / file).write_text("x")
    request = {"it": f"elimina ~/notes/{file}", "en": f"delete ~/notes/{file}"}[lang]
    field.teach(request, ("delete_files", {"paths": [f"~/notes/{file}"]}))
    field.telegram.say(host, f"{ME} {request}", chat=group)
    card = field.hear(group, buttons=["^✅"])

    field.telegram.tap(guest, token(card, "^✅"), chat=group, message=card["message"])
    refused = field.hear(group, kind="answer")
    standing = (field.notes / file).exists()
    field.telegram.press(host, "^✅", chat=group)
    field.hear(group, kind="edit")

    assert refused["text"]
    assert standing
    field.wait_for(lambda: not (field.notes / file).exists(), what="the deletion")


@both
def test_3_24_place_is_asked_in_private_where_the_button_works(field: Field, lang: str):
    guest = field.person(lang, Role.GUEST)
    group, _ = room(field, lang, guest)
    request = {"it": "dove trovo una farmacia?", "en": "where do I find a pharmacy?"}[lang]
    prompt = {"it": "Dove sei?", "en": "Where are you?"}[lang]
    field.teach(request, ("request_location_from_user", {"prompt": prompt}), answer="lì")

    field.telegram.say(guest, f"{ME} {request}", chat=group)
    asked = field.hear(guest, where=lambda e: bool((e["markup"] or {}).get("keyboard")))
    field.telegram.press(guest, "^📍", lat=44.5, lon=11.3)
    field.hear(group, "lì")

    assert prompt.rstrip("?") in asked["message"]["text"]
    assert not [e for e in field.events(group, "send") if (e["markup"] or {}).get("keyboard")]


@both
def test_3_15_group_that_gets_a_new_id_goes_on_where_it_was(field: Field, lang: str):
    group, host = room(field, lang, type="group")
    old = field.telegram.names[group]
    field.teach(f"dopo ({lang})", answer="eccomi")

    new = field.telegram.migrate(group, host)
    field.telegram.say(host, f"{ME} dopo ({lang})", chat=group)
    field.hear(group, "eccomi")

    found = field.rows("SELECT chat_id, state FROM chats")
    assert (str(new), "on") in found
    assert (str(old), "on") not in found
    assert not field.rows(f"SELECT 1 FROM outbox WHERE chat_key LIKE 'telegram:{old}:%'")


@both
def test_3_15_answer_refused_because_the_group_moved_is_sent_once_to_the_new_one(
    field: Field, lang: str
):
    group, host = room(field, lang, type="group")
    old = field.telegram.names[group]
    request = {"it": "pensa e rispondi", "en": "think and answer"}[lang]
    field.teach(request, answer="pensato", delay=2.0)

    field.telegram.say(host, f"{ME} {request}", chat=group)
    field.wait_for(lambda: field.asked(request), timeout=LONG, what="the turn")
    field.telegram.migrate(group, host)
    field.hear(group, "pensato")
    field.wait_for(field.is_all_sent, timeout=LONG, what="sending")

    assert [text for text in field.texts(group) if "pensato" in text] == ["pensato"]
    refused = [
        call
        for call in field.telegram.calls("sendMessage")
        if "error" in call and str(call["params"].get("chat_id")) == str(old)
    ]
    assert len(refused) <= 1
