"""SIGKILL at bad moments: every message is answered, in order, once, or says that it repeats."""

from __future__ import annotations

import time

import pytest

from bot.telegram.handlers import MAX_ATTEMPTS


@pytest.mark.parametrize("delay_s", [0.05, 0.3, 1.0])
def test_kill_while_a_turn_runs_and_three_wait_answers_all_four_once(world, delay_s):
    world.know("alice")
    world.start_bot()
    world.say("alice", "slow 2 uno")
    for word in ("due", "tre", "quattro"):
        world.say("alice", f"echo {word}")
    time.sleep(delay_s)

    world.stop_bot(kill=True)
    world.start_bot()
    world.expect("alice", "^quattro$")

    world.expect_none("alice", 0.5)
    assert world.texts("alice") == ["uno", "due", "tre", "quattro"]
    assert world.rows("SELECT count(*) FROM inbox WHERE state <> 'done'") == [(0,)]
    assert world.rows("SELECT count(*) FROM outbox WHERE state <> 'sent'") == [(0,)]


def test_kills_in_a_row_do_not_lose_or_double(world):
    world.know("alice")
    words = [f"m{n}" for n in range(6)]
    for n in range(3):
        world.start_bot()
        world.say("alice", f"slow 0.4 m{2 * n}")
        world.say("alice", f"echo m{2 * n + 1}")
        time.sleep(0.25)
        world.stop_bot(kill=True)
    world.start_bot()
    world.expect("alice", "m5$")

    texts = world.texts("alice")
    assert [t for t in texts if "ripetuto" not in t] == words or sorted(set(texts)) == words


def test_kill_during_a_send_repeats_it_marked(world):
    world.know("alice")
    world.start_bot()
    world.fault("sendMessage", code=0, delay=3, times=1)
    world.say("alice", "echo uno")
    world.say("alice", "echo due")
    world._wait(lambda: world.calls("sendMessage"), 45, "send")

    world.stop_bot(kill=True)
    world.start_bot()
    world.expect("alice", "^due$")

    assert world.texts("alice")[-2:] == [
        "(ripetuto: forse lo hai già ricevuto)\n\nuno",
        "due",
    ]


def test_progress_message_of_a_killed_run_is_taken_away(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "work 3")
    world.expect("alice", "Cerco")
    time.sleep(0.2)

    world.stop_bot(kill=True)
    world.start_bot()
    world.expect("alice", kind="delete")
    world.expect("alice", "^fatto$")

    assert world.texts("alice") == ["fatto"]


def test_message_that_ends_the_process_again_and_again_is_given_up(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "slow 60 mai")
    world.say("alice", "echo dopo")
    world.expect("alice", kind="action")
    for _ in range(MAX_ATTEMPTS):
        world.stop_bot(kill=True)
        world.start_bot()
        world.expect("alice", kind="action")
    world.stop_bot(kill=True)
    world.start_bot()

    world.expect("alice", "^dopo$")

    assert len(world.texts("alice")) == 2
    assert world.rows("SELECT state FROM inbox WHERE state = 'dead'") == [("dead",)]


def test_messages_written_while_the_bot_is_down_are_answered(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "echo uno")
    world.expect("alice", "^uno$")
    world.stop_bot()
    world.say("alice", "echo due")
    world.say("alice", "echo tre")
    world.start_bot()

    world.expect("alice", "^tre$")

    assert world.texts("alice") == ["uno", "due", "tre"]
