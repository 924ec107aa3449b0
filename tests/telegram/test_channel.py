"""The channel as a process over the fake Bot API: what people see of it."""

from __future__ import annotations

import time

from core.messages import Role

NASTY = "*_[ ... <nobody@example.com> and <b>x"


def typing_before(world, event):
    chat = event["chat_id"]
    return [
        e for e in world.tg.events[: event["n"]] if e["kind"] == "action" and e["chat_id"] == chat
    ]


def test_pairing_makes_the_host_and_a_guest_and_strangers_stay_out(world):
    world.user("alice", language_code="it")
    world.user("bob", language_code="it")
    world.user("carl", language_code="en")
    world.start_bot()

    world.say("alice", "segreto di alice")
    world.expect("alice", "assistente privato")
    world.say("alice", "ancora io")
    world.say("alice", f"/start {world.code().lower()}")
    world.expect("alice", "questa è casa tua")
    world.say("alice", "echo eccomi")
    world.expect("alice", "^eccomi$")
    guest_code = world.code(Role.GUEST)
    world.say("bob", f"/pair {guest_code}")
    world.expect("bob", "Da ora puoi scrivermi")
    world.say("carl", f"/pair {guest_code}")
    world.expect("carl", "not valid")
    world.say("carl", "echo hello")
    world.expect("carl", "private assistant")
    world.say("carl", "echo hello again")
    world.say("carl", "ancora")
    world.expect_none("carl", 0.5)

    world.assert_clean()
    assert [role for (role,) in world.rows("SELECT role FROM actors ORDER BY role")] == [
        "guest",
        "host",
    ]
    stored = " ".join(body for (body,) in world.rows("SELECT body FROM inbox"))
    assert "segreto" not in stored
    assert "hello" not in stored


def test_pairing_code_and_message_behind_it_in_one_batch_asks_to_write_again(world):
    world.user("alice", language_code="it")
    world.start_bot()
    code = world.code()
    world.stop_bot()
    world.say("alice", f"/start {code}")
    world.say("alice", "echo prima")
    world.start_bot()

    world.expect("alice", "casa tua")
    world.expect("alice", "scrivilo di nuovo|assistente privato")
    world.say("alice", "echo seconda")
    world.expect("alice", "^seconda$")


def test_sender_after_five_wrong_codes_is_locked_also_with_the_right_one(world):
    world.user("mallory", language_code="en")
    world.start_bot()
    code = world.code()
    for n in range(5):
        world.say("mallory", f"/pair WRONG{n:03}")
        world.expect("mallory", "not valid")
    world.say("mallory", f"/pair {code}")
    world.expect("mallory", "Too many")
    world.say("mallory", f"/pair {code}")
    world.expect_none("mallory", 1.0)

    assert world.rows("SELECT count(*) FROM actors") == [(0,)]


def test_commands_answer_in_the_persons_language_and_lang_changes_it(world):
    world.know("alice")
    world.start_bot()

    world.say("alice", "/help")
    world.expect("alice", "Scrivimi che cosa ti serve")
    world.say("alice", "/lang fr")
    world.expect("alice", "Non parlo «fr»")
    world.say("alice", "/lang en")
    world.expect("alice", "From now on I answer in English")
    world.say("alice", "/help@fake_test_bot")
    world.expect("alice", "Write what you need")
    world.say("alice", "/nope")
    world.expect("alice", "I do not know /nope")
    world._wait(lambda: world.commands("alice", lang="it"), 45, "menu")

    assert world.commands("alice", lang="it") == [
        "help",
        "undo",
        "stop",
        "status",
        "lang",
        "tz",
        "forget",
        "start",
        "pair",
        "praxis",
        "console",
    ]
    world.assert_clean()


def test_answer_with_signs_like_markup_is_shown_exactly_and_without_preview(world):
    world.know("alice")
    world.start_bot()

    world.say("alice", f"prose {NASTY}")
    event = world.expect("alice", "nobody")
    world.say("alice", "prose **qui** https://a.example/p")
    linked = world.expect("alice", "qui")

    assert event["message"]["text"] == NASTY
    assert linked["message"]["entities"][0]["type"] == "bold"
    assert not linked["preview"]
    world.assert_clean()


def test_long_answer_comes_in_parts_and_a_longer_one_as_a_file(world):
    world.know("alice")
    world.start_bot()

    world.say("alice", "long 150")
    world._wait(lambda: len(world.texts("alice")) == 2, 45, "two parts")
    first, second = world.texts("alice")
    world.say("alice", "long 1500")
    file = world.expect("alice", has="document")

    assert first.startswith("line 0 ")
    assert second.endswith("end\nrif. 7f3a")
    lines = [line.split()[1] for line in (first + "\n" + second).split("\n") if "line" in line]
    assert lines == [str(n) for n in range(150)]
    whole = world.download(file).decode()
    assert whole.count("line ") == 1500
    assert file["message"]["document"]["file_name"] == "risposta.txt"
    world.assert_clean()


def test_progress_is_shown_after_a_while_edited_once_a_second_and_becomes_the_answer(world):
    world.know("alice")
    world.start_bot()

    asked = time.time()
    world.say("alice", "work 4")
    typing = world.expect("alice", kind="action")
    progress = world.expect("alice", "Cerco i PDF", kind="send")
    answer = world.expect("alice", "^fatto$")
    edits = [e["t"] for e in world.tg.events if e["kind"] == "edit"]

    assert typing["t"] < progress["t"]
    assert progress["t"] - asked > 1.4
    assert progress["silent"]
    assert answer["kind"] == "edit"
    assert world.texts("alice") == ["fatto"]
    # How far apart two arrive is the machine's; how many there are is ours.
    assert len(edits) - 1 <= (edits[-1] - progress["t"]) / 0.9 + 1
    assert len(typing_before(world, answer)) >= 2
    world.assert_clean()


def test_fast_answer_has_no_progress_message(world):
    world.know("alice")
    world.start_bot()

    world.say("alice", "slow 0.3 fatto")
    typing = world.expect("alice", kind="action")
    answer = world.expect("alice", "^fatto$")

    assert answer["kind"] == "send"
    assert typing["t"] < answer["t"]
    assert world.texts("alice") == ["fatto"]


def test_status_and_stop_answer_while_a_turn_runs_and_messages_wait(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "slow 30 mai")
    world.say("alice", "echo dopo")
    world.expect("alice", kind="action")

    asked = time.time()
    world.say("alice", "/status")
    status = world.expect("alice", "in coda 1 · sto lavorando a: «slow 30 mai»")
    world.say("alice", "/stop")
    stopped = world.expect("alice", "^fermato$")
    world.expect("alice", "^dopo$")
    world.say("alice", "/stop")
    world.expect("alice", "niente da fermare")

    assert status["t"] - asked < 10
    assert stopped["t"] - status["t"] < 10
    world.assert_clean()


def test_engine_fault_is_told_and_the_next_message_answered(world):
    world.know("alice")
    world.start_bot()

    world.say("alice", "boom")
    world.say("alice", "echo vivo")
    first = world.expect("alice")
    world.expect("alice", "^vivo$")

    assert "RuntimeError" not in first["message"]["text"]
    assert world.rows("SELECT state, note FROM inbox WHERE state = 'dead'") == [("dead", "failed")]


def test_content_that_is_not_understood_gets_a_helpful_word(world):
    world.know("alice")
    world.start_bot()

    world.file("alice", b"OggS", name="v.ogg", kind="voice")
    world.expect("alice", "Non so ancora ascoltare")
    world.say("alice", None, game={"title": "g", "description": "d", "photo": []})
    world.expect("alice", "Questo non lo so leggere")

    world.assert_clean()


def test_talk_of_groups_and_unreadable_updates_are_left_alone(world):
    world.know("alice")
    world.group("team", ["alice"])
    world.tg.me_full["can_read_all_group_messages"] = True
    world.start_bot()

    world.say("alice", "echo ciao", chat="team")
    world.say("alice", "/help@another_bot", chat="team")
    world.raw("message", {"message_id": 5, "chat": "nonsense", "from": {"id": "x"}})
    world.raw("message", {"message_id": 6, "date": 1, "chat": {"id": 1000, "type": "private"}})
    world.raw("inline_query", {"id": "1"})
    world.say("alice", "echo eccomi")
    world.expect("alice", "^eccomi$")

    world.expect_none("team", 0.3)
    assert world.rows("SELECT count(*) FROM inbox WHERE state IN ('new', 'running')") == [(0,)]


def test_known_persons_unreadable_update_is_dead_and_stops_nothing(world):
    world.know("alice")
    world.start_bot()
    alice = {"id": world.names["alice"], "is_bot": False, "first_name": "A"}
    chat = {"id": world.names["alice"], "type": "private"}

    world.raw("message", {"message_id": 9, "date": "no date", "chat": chat, "from": alice})
    world.say("alice", "echo vivo")
    world.expect("alice", "^vivo$")

    assert world.rows("SELECT count(*) FROM inbox WHERE state = 'dead'") == [(1,)]


def test_edit_of_a_waiting_message_replaces_it_and_of_a_finished_one_does_nothing(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "slow 1.5 primo")
    waiting = world.say("alice", "echo sbagliato")
    world.expect("alice", kind="action")

    world.edit("alice", "echo giusto", message_id=waiting["message_id"])
    world.expect("alice", "^primo$")
    world.expect("alice", "^giusto$")
    world.edit("alice", "echo tardi", message_id=waiting["message_id"])

    world.expect_none("alice", 0.5)
    assert world.texts("alice") == ["primo", "giusto"]


def test_tap_on_an_old_button_is_answered_at_once(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "echo ciao")
    world.expect("alice", "ciao")

    world.tap("alice", "old:1", message=world.last("alice", bot=True))
    world.expect("alice", "non vale più", kind="answer")

    world.assert_clean()


def test_turn_without_an_answer_leaves_no_progress_and_stops_nothing(world):
    world.know("alice")
    world.start_bot()

    world.say("alice", "hush")
    world.say("alice", "echo dopo")
    world.expect("alice", "^dopo$")

    assert world.texts("alice") == ["dopo"]


def test_stop_signal_lets_a_running_turn_answer(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "slow 1 fatto")
    world.expect("alice", kind="action")

    status, seconds = world.stop_bot()

    assert status == 0
    assert seconds < 20
    assert world.texts("alice") == ["fatto"]


def test_reply_of_a_turn_that_could_not_be_kept_is_still_said(world):
    world.know("alice")
    world.start_bot()

    world.say("alice", "unkept il disco non risponde")
    world.expect("alice", "^il disco non risponde$")
    world.say("alice", "echo dopo")
    world.expect("alice", "^dopo$")

    assert world.texts("alice") == ["il disco non risponde", "dopo"]


def test_answer_of_a_long_turn_is_sent_anew_and_its_progress_deleted(world):
    world.know("alice")
    world.env["TEST_BECOMES_ANSWER_S"] = "1"
    world.start_bot()

    world.say("alice", "work 3")
    world.expect("alice", "Cerco", kind="send")
    world.expect("alice", kind="delete")
    answer = world.expect("alice", "^fatto$")

    assert answer["kind"] == "send"
    assert not answer["silent"]
    assert world.texts("alice") == ["fatto"]


def test_text_with_lone_surrogates_and_controls_is_answered(world):
    world.know("alice")
    world.start_bot()

    world.say("alice", "echo a\ud800b\u202ec\x00d")
    event = world.expect("alice", "^a")

    assert event["message"]["text"].replace("\ufffd", "") == "abcd"


def test_reply_reaches_the_engine_with_what_it_quotes(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "echo originale")
    world.expect("alice", "^originale$")

    world.say("alice", "quoted", reply_to="bot")
    world.expect("alice", "^originale$")


def test_right_that_is_withdrawn_counts_from_the_next_message(world):
    world.know("alice", "luca")
    world.start_bot()
    world.say("luca", "echo prima")
    world.expect("luca", "^prima$")

    world.revoke("luca")
    world.say("luca", "echo dopo")
    world.say("luca", "/status")
    world.say("alice", "echo ancora io")
    world.expect("alice", "^ancora io$")

    world.expect_none("luca", 1.0, text="dopo|Attivo")
    assert "dopo" not in str(world.rows("SELECT body FROM inbox"))
