"""Telegram's faults: nothing is lost or said twice without saying so, chats wait alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests.telegram.conftest import World


def test_flood_wait_is_obeyed_in_its_chat_and_others_go_on(world):
    world.know("alice", "bob")
    world.start_bot()
    alice = world.names["alice"]
    world.fault("sendMessage", code=429, chat_id=alice, retry_after=4)

    asked = time.time()
    world.say("alice", "echo uno")
    world.expect("alice", kind="error")
    world.say("alice", "echo due")
    world.say("bob", "echo tre")
    other = world.expect("bob", "^tre$")
    first = world.expect("alice", "^uno$")
    world.expect("alice", "^due$")

    assert other["t"] < first["t"]
    assert first["t"] - asked > 3.9
    assert world.texts("alice") == ["uno", "due"]
    world.assert_patient()


@pytest.mark.parametrize("code", [500, 502])
def test_server_error_is_tried_again_soon(world, code):
    world.know("alice")
    world.start_bot()
    world.fault("sendMessage", code=code)

    asked = time.time()
    world.say("alice", "echo uno")
    answer = world.expect("alice", "^uno$")

    assert answer["t"] - asked < 10
    assert world.texts("alice") == ["uno"]


def test_answer_lost_after_the_send_is_repeated_once_and_says_so(world):
    world.know("alice")
    world.start_bot()
    world.fault("sendMessage", code=-1, after=True)

    world.say("alice", "echo uno")
    world.expect("alice", "ripetuto.*uno")
    world.say("alice", "echo due")
    world.expect("alice", "^due$")

    assert world.texts("alice") == [
        "uno",
        "(ripetuto: forse lo hai già ricevuto)\n\nuno",
        "due",
    ]


def test_connection_dropped_before_the_send_loses_nothing(world):
    world.know("alice")
    world.start_bot()
    world.fault("sendMessage", code=-1)

    world.say("alice", "echo uno")
    world.expect("alice", "uno$")

    assert len(world.texts("alice")) == 1


def test_progress_that_becomes_the_answer_is_never_doubled(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "work 2")
    world.expect("alice", "Cerco")
    for _ in range(2):
        world.fault("editMessageText", code=-1, after=True)

    world.expect("alice", "^fatto$")

    world.expect_none("alice", 1.5, "ripetuto")
    assert world.texts("alice") == ["fatto"]


def test_several_parts_go_on_at_the_part_that_failed(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "slow 0.5 pronto")
    world.expect("alice", kind="action")
    world.say("alice", "long 250")
    world.expect("alice", "^pronto$")
    world.expect("alice", "^line 0 ")
    world.fault("sendMessage", code=500)

    world.expect("alice", "end\nrif. 7f3a$")

    text = "\n".join(world.texts("alice")[1:])
    numbers = [int(line.split()[1]) for line in text.split("\n") if line.startswith("line")]
    assert numbers == list(range(250))
    world._wait(
        lambda: not world.rows("SELECT 1 FROM kv WHERE key LIKE 'telegram.parts%'"), 45, "settling"
    )


def test_refused_formats_are_sent_as_plain_text(world):
    world.know("alice")
    world.start_bot()
    world.fault("sendMessage", code=400, text="can't parse entities: something")

    world.say("alice", "prose un **peso** e `codice`")
    event = world.expect("alice", "peso")

    assert event["message"]["text"] == "un peso e codice"
    assert "entities" not in event["message"]


def test_message_refused_even_as_plain_text_is_sent_as_a_file(world):
    world.know("alice")
    world.start_bot()
    world.fault("sendMessage", code=400, text="something is wrong with this text", times=2)

    world.say("alice", "prose un **peso**")
    event = world.expect("alice", has="document")

    assert world.download(event).decode() == "un **peso**"


def test_token_that_is_refused_once_while_running_is_waited_out(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "echo uno")
    world.expect("alice", "^uno$")
    world.fault("getUpdates", code=401)
    world.say("alice", "echo due")
    world.say("alice", "echo tre")

    world.expect("alice", "^tre$")


def test_blocked_bot_gives_up_one_message_and_answers_again_after(world):
    world.know("alice", "bob")
    world.start_bot()
    world.say("alice", "slow 1 mai")
    world.expect("alice", kind="action")
    world.bot_status("alice", "kicked")
    world.say("bob", "echo ciao")
    world.expect("bob", "^ciao$")
    world.expect("alice", kind="error")
    world.expect_none("alice", 1.5, kind="error")
    world.say("alice", "echo di nuovo")
    world.expect("alice", "^di nuovo$")

    assert ("dead",) in world.rows("SELECT state FROM outbox")


def test_blocking_is_told_to_the_host_once_and_nothing_more_is_tried(world):
    world.know("alice", "bob")
    world.start_bot()
    for n in range(3):
        world.say("bob", f"slow 1 mai {n}")
    world.expect("bob", kind="action")
    world.bot_status("bob", "kicked")
    world.expect("alice", "ha bloccato il bot")
    world._wait(lambda: finished(world, 3), 45, "the end of the turns")
    world._wait(lambda: len(dead(world)) == 3, 45, "giving up")
    errors = [e for e in world.tg.events if e["kind"] == "error" and e["code"] == 403]
    sends = [e for e in errors if e["method"] == "sendMessage"]

    assert len(sends) == 1
    assert world.rows("SELECT count(*) FROM unreachable WHERE lost_at IS NOT NULL") == [(1,)]
    world.say("bob", "/start")
    world.expect("bob", "Metnos")
    assert world.rows("SELECT count(*) FROM unreachable WHERE lost_at IS NOT NULL") == [(0,)]
    world.say("bob", "echo eccomi")
    world.expect("bob", "^eccomi$")
    assert len(world.texts("alice")) == 1


def finished(world, count):
    return world.rows("SELECT count(*) FROM inbox WHERE state = 'done'")[0][0] >= count


def dead(world):
    return world.rows("SELECT 1 FROM outbox WHERE state = 'dead'")


def test_second_poller_is_waited_out_the_bot_named_and_forgotten_when_it_is_over(world):
    world.know("alice")
    world.env["TEST_LONG_POLL_S"] = "3"
    world.start_bot()
    world.say("alice", "echo prima")
    world.expect("alice", "prima")
    world.fault("getUpdates", code=409, text="terminated by other getUpdates request")
    world.say("alice", "echo dopo")
    world._wait(lambda: noted(world), 45, "a note of the other program")
    polls = [call["t"] for call in world.calls("getUpdates")]

    world.say("alice", "/status")
    world.expect("alice", "^dopo$")
    world.expect("alice", "@fake_test_bot")
    assert "another program fetches" in world.tail()
    later = [call["t"] for call in world.calls("getUpdates") if call["t"] > polls[-1]]
    assert later[0] - polls[-1] >= 3  # as long as the other's poll may last
    world._wait(lambda: not noted(world), 45, "the end of the conflict")
    world.say("alice", "/status")
    assert "@fake_test_bot" not in world.expect("alice", "Attivo")["message"]["text"]


def noted(world):
    return world.rows("SELECT 1 FROM kv WHERE key = 'telegram.conflict'")


def test_webhook_left_behind_is_removed_and_its_updates_are_kept(world):
    world.know("alice")
    world._run(world.tg.m_setWebhook({"url": "http://127.0.0.1:9/hook"}))
    world.say("alice", "echo eccomi")
    world.tg.polls_seen -= 1  # a refused poll is not counted by the fake
    world.start_bot()

    world.expect("alice", "^eccomi$")


def test_network_down_at_the_start_is_waited_out(tmp_path):
    with World(tmp_path) as world:
        world.know("alice")
        world.fault("getUpdates", code=-1, times=3)
        world.fault("getMe", code=-1, times=2)
        world.say("alice", "echo eccomi")
        world.start_bot()

        world.expect("alice", "^eccomi$")


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("7000000001:another-token_that_is_not_known_here0", "non riconosce TELEGRAM_BOT_TOKEN"),
        ("no token", "non è un token di Telegram"),
    ],
    ids=["unknown", "malformed"],
)
def test_wrong_token_ends_with_a_sentence_and_no_traceback(world, token, words):
    env = {**world.env, **world.bot_env(), "TELEGRAM_BOT_TOKEN": token}
    done = subprocess.run(
        [sys.executable, "-m", "tests.telegram.bot_main"],
        env=env,
        cwd=world.cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 2
    assert words in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert token not in done.stdout + done.stderr
    assert os.environ.get("TELEGRAM_BOT_TOKEN") is None


def test_update_delivered_again_is_answered_once(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "echo uno")
    again = dict(world.tg.updates[0]) if world.tg.updates else None
    world.expect("alice", "^uno$")
    world.say("alice", "echo due")
    again = again or {
        "update_id": world.tg.next_update - 1,
        "message": world.last("alice", bot=False),
    }
    world.expect("alice", "^due$")

    world.tg.redeliver(again)
    world.say("alice", "echo tre")
    world.expect("alice", "^tre$")

    world.expect_none("alice", 0.3)
    assert world.texts("alice") == ["uno", "due", "tre"]


def test_updates_that_come_in_the_wrong_order_or_twice_are_worked_once_and_in_order(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "echo prima")
    world.expect("alice", "^prima$")

    async def say():
        before = len(world.tg.updates)
        for n in range(6):
            await world.tg.user_send(world.names["alice"], world.names["alice"], f"echo {n}")
        world.tg.updates[before:] = [u for u in world.tg.updates[before:][::-1] for _ in range(2)]

    world._run(say())
    world.expect("alice", "^5$")
    world.say("alice", "echo fine")
    world.expect("alice", "^fine$")

    assert world.texts("alice") == ["prima", *"012345", "fine"]
