"""A store that takes nothing: no acknowledgement, an honest word, and everything resumes."""

from __future__ import annotations

import sqlite3
import time


def test_store_locked_for_long_acknowledges_nothing_and_resumes_by_itself(world):
    world.know("alice")
    world.start_bot()
    world.say("alice", "echo uno")
    world.expect("alice", "^uno$")
    blocker = sqlite3.connect(world.home / "private" / "metnos.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")

    world.say("alice", "echo due")
    # The busy timeout of the store is ten seconds.
    world.expect("alice")
    told = world.texts("alice")
    assert world.tg.updates, "the update must not be acknowledged"
    blocker.execute("ROLLBACK")
    blocker.close()
    world.expect("alice", "^due$")

    assert told[0] == "uno"
    assert len(told) == 2
    assert world.texts("alice")[-1] == "due"
    time.sleep(0.1)
    assert world.rows("SELECT count(*) FROM inbox WHERE state <> 'done'") == [(0,)]


def test_control_lane_answers_while_the_store_takes_nothing(world):
    """/status and /stop do not wait for a commit, and are not said a second time after it."""
    world.know("alice")
    world.start_bot()
    world.say("alice", "slow 600 mai")
    world.expect("alice", kind="action")
    blocker = sqlite3.connect(world.home / "private" / "metnos.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    asked = time.time()
    world.tap("alice", "a-button-of-long-ago")
    waits = [world.expect("alice", kind="answer")["t"] - asked]
    for words, answer in (("/status", "slow 600 mai"), ("/stop", "Mi fermo")):
        asked = time.time()
        world.say("alice", words)
        waits.append(world.expect("alice", answer)["t"] - asked)
        assert world.tg.updates, "the update must not be acknowledged"
    blocker.execute("ROLLBACK")
    blocker.close()
    world.expect("alice", "^fermato$")
    world.say("alice", "echo fine")
    world.expect("alice", "^fine$")

    texts = world.texts("alice")
    assert len([text for text in texts if "Attivo da" in text]) == 1
    assert len([text for text in texts if "fermo" in text.lower()]) == 1
    world.assert_clean()
    print(
        f"\nwhile the store was locked: tap {waits[0]:.2f} s, /status {waits[1]:.2f} s, "
        f"/stop {waits[2]:.2f} s"
    )
