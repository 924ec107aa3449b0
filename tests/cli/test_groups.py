"""`metnos groups`: where the bot is on, and turning it off beside a running engine."""

from __future__ import annotations

import json

from bot.cli.beside import write_store
from core.clock import SystemClock
from core.config import load_settings
from core.store import chats
from core.store.chats import ChatState
from core.store.database import Transaction
from tests.cli.conftest import Cli


def test_groups_are_listed_and_one_is_turned_off_by_name_or_number(cli: Cli) -> None:
    assert cli("groups", "list").out == "I am in no group.\n"

    async def work(tx: Transaction) -> None:
        now = SystemClock().now()
        for number, title in (("-1", "Casa"), ("-2", "Club"), ("-3", "Club")):
            await chats.meet(tx, "telegram", number, title=title, is_forum=False, now=now)
            await chats.set_state(tx, "telegram", number, ChatState.ON, now)

    write_store(load_settings(), work)

    assert "Casa" in cli("groups", "list").out
    assert cli("groups", "off", "casa").out == "Turned off in the group “Casa”.\n"
    assert cli("groups", "off", "Club").status == 1
    assert cli("groups", "off", "--", "-3").status == 0
    assert cli("groups", "off", "nowhere").status == 1
    states = {one["id"]: one["state"] for one in json.loads(cli("groups", "list", "--json").out)}
    assert states == {"-1": "off", "-2": "on", "-3": "off"}
