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
