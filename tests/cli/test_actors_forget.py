"""`metnos actors forget`: the words of a person go, beside an engine or without one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.cli.beside import read_store, write_store
from core.clock import SystemClock
from core.config import load_settings
from core.messages import Actor, FinalKind, Role
from core.store import actors, leaving, turns
from core.store.database import Transaction
from core.store.turn_log import TurnLog
from tests.cli.conftest import Cli

WORD = "k4narino"


def guest_with_words() -> Actor:
    """A guest whose request stands in the database and in the log."""
    settings, clock = load_settings(), SystemClock()

    async def work(tx: Transaction) -> Actor:
        luca = await actors.add(tx, Role.GUEST, "Luca", clock)
        now = datetime.now(UTC)
        await turns.open_turn(
            tx,
            turn_id="t1",
            inbound_id="in1",
            actor_id=luca.id,
            conversation="telegram:7:",
            lang="en",
            request=WORD,
            now=now,
        )
        await turns.close_turn(tx, "t1", FinalKind.ANSWER, {}, now, answer=WORD)
        return luca

    luca = write_store(settings, work)
    line = {"turn_id": "t1", "actor": luca.id, "ts_start": 1, "user_query": WORD}
    TurnLog(settings.metnos_home / "turns").append(line, day=datetime.now(UTC).date())
    return luca


def words_left() -> int:
    home = load_settings().metnos_home
    kept = read_store(load_settings(), turns.list_turns)
    logs = [path.read_text("utf-8") for path in (home / "turns").glob("*.jsonl")]
    return sum(WORD in turn.request for turn in kept) + sum(text.count(WORD) for text in logs)


@pytest.mark.parametrize("revoked", [False, True])
def test_words_of_a_person_go_with_or_without_their_right(cli: Cli, revoked: bool) -> None:
    luca = guest_with_words()
    if revoked:
        now = datetime.now(UTC)
        write_store(load_settings(), lambda tx: leaving.revoke(tx, luca.id, now))
    assert words_left() == 2

    refused = cli("actors", "forget", "Luca")
    assert (refused.status, words_left()) == (1, 2)
    assert "--yes" in refused.err
    assert cli("actors", "forget", "Nobody", "--yes").status == 1

    done = cli("actors", "forget", "Luca", "--yes")

    assert (done.status, done.out) == (0, "Forgotten what Luca said.\n")
    assert words_left() == 0
    assert "(forgotten)" in cli("turns", "list").out
    assert cli("actors", "forget", "Luca", "--yes").status == 0, "twice is once"
