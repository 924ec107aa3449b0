"""Questions over the channel: keyboards, taps, places, secrets, and what stands there then."""

from __future__ import annotations

import json

import pytest

from tests.telegram.dialogs import WORDS

ORIGIN = {"type": "user", "sender_user": {"id": 1, "is_bot": True, "first_name": "x"}, "date": 1}


def keyboard(event):
    return event["message"]["reply_markup"]["inline_keyboard"]


def token(event, at=0):
    return [b["callback_data"] for row in keyboard(event) for b in row][at]


@pytest.mark.parametrize("lang", ["it", "en"])
def test_tap_is_acknowledged_and_the_question_becomes_its_decision(world, lang):
    words = WORDS[lang]
    world.know("alice", lang=lang)
    world.start_bot()

    world.say("alice", "ask approve")
    asked = world.expect("alice", buttons=[words["yes"], words["no"]])
    world.press("alice", "^✅")
    world.expect("alice", "^$", kind="answer")
    settled = world.expect("alice", kind="edit")
    world.expect("alice", words["yes"], kind="send")

    assert len(token(asked).encode()) <= 64
    assert settled["message"]["message_id"] == asked["message"]["message_id"]
    assert settled["message"]["text"] == (
        f"{words['approve']}\n\n{words['settled'].format(said=words['yes'])}"
    )
    assert "reply_markup" not in settled["message"]
    world.assert_clean()


def test_question_is_answered_after_a_crash_between_question_and_tap(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "ask approve")
    world.expect("alice", buttons=["No"])
    world._wait(lambda: world.rows("SELECT 1 FROM outbox WHERE state = 'sent'"), 45, "sent")

    world.stop_bot(kill=True)
    world.press("alice", "^✋ No$")
    world.start_bot()

    world.expect("alice", "Deciso", kind="edit")
    world.expect("alice", "hai detto ✋ No", kind="send")
    assert len(world.texts("alice")) == 2
    world.assert_clean()


def test_taps_that_count_for_nothing_get_a_word_and_do_nothing(world):
    world.know("alice", "bob")
    world.start_bot()
    world.say("bob", "/help")
    world.expect("bob")
    world.say("alice", "ask approve")
    asked = world.expect("alice", buttons=["No"])
    message = asked["message"]
    over = "Questo bottone non vale più"

    world.tap("alice", "forged", message=message)
    world.expect("alice", over, kind="answer")
    world.tap("alice", token(asked), message={**message, "forward_origin": ORIGIN})
    world.expect("alice", over, kind="answer")
    world.tap("bob", token(asked))
    world.expect("bob", "solo chi l'ha chiesto", kind="answer")
    world.tap("bob", token(asked), chat="alice", message=message)
    world.expect("alice", over, kind="answer")
    world.tap("alice", "", message=message)
    world.expect("alice", over, kind="answer")
    world.expect_none("alice", 0.3)
    world.press("alice", "^✅")
    world.expect("alice", "hai detto", kind="send")
    world.tap("alice", token(asked), message=message)
    world.expect("alice", over, kind="answer")

    assert world.texts("bob")[1:] == []
    assert len(world.texts("alice")) == 2
    world.assert_clean()


def test_two_taps_at_once_count_once(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "ask approve")
    asked = world.expect("alice", buttons=["No"])

    world.tap("alice", token(asked), message=asked["message"])
    world.tap("alice", token(asked, 1), message=asked["message"])
    world.expect("alice", "hai detto ✅", kind="send")

    world.expect_none("alice", 0.5, kind="send")
    assert len(world.texts("alice")) == 2
    world.assert_clean()


def test_tap_while_a_turn_runs_is_acknowledged_at_once_and_worked_behind_it(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "ask approve")
    world.expect("alice", buttons=["No"])

    world.say("alice", "slow 2 tardi")
    world.press("alice", "^✅")
    acknowledged = world.expect("alice", "^$", kind="answer")
    assert acknowledged["n"] < world.expect("alice", "^tardi$")["n"]
    world.expect("alice", "Deciso", kind="edit")
    world.expect("alice", "hai detto", kind="send")

    world.assert_clean()


def test_long_question_has_its_keyboard_on_the_last_message_and_keeps_room(world):
    world.know("alice")
    world.start_bot()

    world.say("alice", "ask long")
    first = world.expect("alice", "file 0")
    last = world.expect("alice", "Elimino", buttons=["No"])
    world.press("alice", "^✋ No")
    settled = world.expect("alice", "Deciso: ✋ No", kind="edit")

    assert "reply_markup" not in first["message"]
    assert settled["message"]["text"].startswith(last["message"]["text"])
    world.assert_clean()


@pytest.mark.parametrize("lang", ["it", "en"])
def test_place_is_asked_with_the_phones_keyboard_which_goes_afterwards(world, lang):
    world.know("alice", lang=lang)
    world.start_bot()

    world.say("alice", "ask place")
    asked = world.expect("alice")
    world.press("alice", "^📍", lat=45.07, lon=7.68)
    settled = world.expect("alice", "45.07 7.68")
    world.expect("alice", "45.07 7.68 ±None live=False")

    labels = [row[0]["text"] for row in asked["markup"]["keyboard"]]
    assert labels == [WORDS[lang][name] for name in ("share", "type", "cancel")]
    assert settled["markup"] == {"remove_keyboard": True}
    assert settled["silent"]
    assert world.rows("SELECT value FROM kv WHERE key LIKE 'telegram.standing:%'") == []
    world.assert_clean()


def test_typed_label_of_the_phones_keyboard_is_its_tap_also_after_a_crash(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "ask place")
    world.expect("alice")
    world._wait(lambda: world.rows("SELECT 1 FROM outbox WHERE state = 'sent'"), 45, "sent")

    world.stop_bot(kill=True)
    world.start_bot()
    world.press("alice", "^✖️")

    world.expect("alice", "Deciso: ✖️ Lascia stare")
    world.expect("alice", "hai detto ✖️ Lascia stare")
    world.assert_clean()


def test_live_place_is_told_once_and_its_moves_are_silent(world):
    world.know("alice")
    world.start_bot()

    world.location("alice", 45.0, 7.6, accuracy=12.5, live_period=900)
    world.expect("alice", r"dove: 45.0 7.6 ±12.5 live=True")
    world.move("alice", 45.1, 7.7)
    world.move("alice", 45.2, 7.8, stop=True)
    world.expect_none("alice", 0.5, kind="send")

    world.location("alice", 45.0, 7.6, forward_origin={**ORIGIN, "sender_user": world.tg.me})
    world.expect("alice", r"^\[text\] '' «Test Bot: 📍 45\.0, 7\.6»")
    world.assert_clean()


def test_text_is_asked_with_a_forced_reply_that_names_its_question(world):
    world.know("alice")
    world.start_bot()

    world.say("alice", "ask text")
    asked = world.expect("alice", "Come lo chiamo")
    world.say("alice", "Ada")
    answer = world.expect("alice", "hai detto Ada")

    assert asked["markup"]["force_reply"]
    assert asked["markup"]["input_field_placeholder"] == "La tua risposta, oppure «annulla»"
    reply_to = f"'reply_to': '{asked['message']['message_id']}'"
    assert reply_to in answer["message"]["text"]
    world.assert_clean()


@pytest.mark.parametrize("reply_to", [None, 0], ids=["as a reply", "as plain text"])
def test_secret_is_taken_out_of_the_chat_and_out_of_the_inbox(world, reply_to):
    world.know("alice")
    world.start_bot()

    world.say("alice", "ask secret")
    asked = world.expect("alice", "parola segreta")
    world._wait(lambda: world.rows("SELECT 1 FROM outbox WHERE state = 'sent'"), 45, "sent")
    world.say("alice", "apriti sesamo", reply_to=reply_to)
    world.expect("alice", "sesamo", kind="delete")
    world.expect("alice", r"hai detto \*\*\*")
    world.say("alice", "echo dopo")
    world.expect("alice", "^dopo$")

    assert asked["markup"]["input_field_placeholder"] == "Lo tolgo subito dalla chat"
    tables = ("inbox", "outbox", "kv")
    stored = json.dumps([world.rows(f"SELECT * FROM {table}") for table in tables])
    assert "sesamo" not in stored
    world.assert_clean()


def test_secret_that_cannot_be_deleted_is_the_persons_to_delete(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "ask secret")
    world.expect("alice", "parola segreta")
    world.fault(method="deleteMessage", code=400, text="message can't be deleted")

    world.say("alice", "apriti sesamo")

    world.expect("alice", "cancellalo tu")


def test_question_that_runs_out_loses_its_keyboard_and_says_so(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "ask approve")
    asked = world.expect("alice", buttons=["No"])

    world.say("alice", "expire")
    settled = world.expect("alice", "Scaduta senza risposta", kind="edit")
    world.tap("alice", token(asked), message=asked["message"])
    world.expect("alice", "non vale più", kind="answer")

    assert "reply_markup" not in settled["message"]
    world.assert_clean()


def test_decision_whose_edit_fails_is_made_again(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "ask approve")
    world.expect("alice", buttons=["No"])
    world.fault(method="editMessageText", code=-1)

    world.press("alice", "^✅")

    world.expect("alice", "Deciso", kind="edit")
    world.expect("alice", "hai detto", kind="send")


def test_decision_on_a_question_that_was_deleted_is_said_anew(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "ask approve")
    world.expect("alice", buttons=["No"])
    world.fault(method="editMessageText", code=400, text="message to edit not found")

    world.press("alice", "^✅")

    world.expect("alice", "^✅ Deciso", kind="send")
    world.expect("alice", "hai detto", kind="send")
