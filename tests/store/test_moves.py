"""A group that has another id: nothing that was kept under the old one is left behind."""

from __future__ import annotations

import re
import sqlite3
from datetime import timedelta

from core.dialogs import Suspension, SuspensionKind
from core.messages import Block, ChatAddress, Reply, Role
from core.store import actions, actors, chats, inbox, kv, outbox, reach, suspensions, turns
from core.store.actions import Action
from core.store.chats import ChatState
from core.store.migrations import MAIN
from core.store.moves import move_chat

OLD, NEW = ChatAddress("telegram", "-5", "12"), ChatAddress("telegram", "-1005", "12")

# Every table of metnos.db, and where in it a chat or conversation stands. A table that is missing
# here fails the test below: say whether it follows a group, and let `core.store.moves` move it.
FOLLOWS = {
    "actions": {"conversation"},
    "chats": {"chat_id", "moved_to"},
    "inbox": {"chat_key"},
    "kv": {"key"},
    "outbox": {"chat_key"},
    "suspensions": {"conversation"},
    "turns": {"conversation"},
    "unreachable": {"chat_id"},
}
NO_CHAT = {
    "actors",
    "accounts",
    "agreed",
    "console_links",
    "console_sessions",
    "credentials",
    "effects",
    "forgetting",
    "grants",
    "identities",
    "inbox_offsets",
    "mandates",
    "mcp_servers",
    "mcp_tools",
    "pairing_attempts",
    "pairing_codes",
    "positions",
    "recipients",
    "scratchpad",
    "secret_answers",
    "stranger_notices",
    "suspension_tokens",
    "usage",
    "visitors",
    "votes",
}
# How a column is named that holds one.
CHATTY = re.compile(r"chat|conversation|address|topic|thread|moved_to")
OTHERS = {("recipients", "address"), ("turns", "message_ref")}


def schema() -> dict[str, set[str]]:
    database = sqlite3.connect(":memory:")
    try:
        for migration in MAIN:
            database.executescript(migration.script)
        tables = [
            name
            for (name,) in database.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        ]
        return {
            table: {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
            for table in tables
        }
    finally:
        database.close()


def test_every_table_says_whether_it_follows_a_group() -> None:
    tables = schema()

    assert set(tables) == set(FOLLOWS) | NO_CHAT
    named = {
        (table, column)
        for table, columns in tables.items()
        for column in columns
        if CHATTY.search(column)
    }
    told = {(table, column) for table, columns in FOLLOWS.items() for column in columns}
    assert named - OTHERS == told - {("kv", "key")}


async def fill(tx, clock) -> None:
    """Something of the old chat in every table that follows."""
    now = clock.now()
    actor = await actors.add(tx, Role.HOST, "Anna", clock)
    await chats.meet(tx, "telegram", "-5", title="Casa", is_forum=True, now=now)
    await chats.set_state(tx, "telegram", "-5", ChatState.ON, now)
    await inbox.add_batch(
        tx,
        [inbox.InboxRow(1, OLD.key, {})],
        channel="telegram",
        bot_id="9",
        next_offset=2,
        now=now,
    )
    await outbox.enqueue(tx, "t:final", OLD, Reply((Block("text", "x"),), "it").to_json(), now)
    assert await outbox.claim_next(tx, "telegram", now=now) is not None
    await outbox.mark_sent(tx, "t:final", "77", now)
    await turns.open_turn(
        tx,
        turn_id="t",
        inbound_id="i",
        actor_id=actor.id,
        conversation=OLD.key,
        lang="it",
        request="x",
        now=now,
    )
    suspension = Suspension(
        "q", SuspensionKind.APPROVAL, "t", actor.id, OLD.key, now, now + timedelta(minutes=10)
    )
    await suspensions.open(tx, suspension, {}, {"token": "yes"})
    action = Action("t", actor.id, OLD.key, "t:final", "undo", now, now)
    await actions.offer(tx, "other", action)
    await kv.put(tx, f"telegram.standing:{OLD.key}", "{}")
    await reach.lose(tx, "telegram", "-5", None, "403", now)


async def everything(stores) -> dict[str, list[tuple]]:
    async with stores.main.read() as tx:
        return {
            table: [
                tuple(row[column] for column in sorted(columns))
                for row in await tx.fetch_all(f"SELECT * FROM {table}")
            ]
            for table, columns in FOLLOWS.items()
        }


async def test_group_that_moves_takes_everything_along_in_one_transaction(stores, clock):
    async with stores.main.write() as tx:
        await fill(tx, clock)
    before = await everything(stores)
    assert all(before.values()), "something of the old chat in every table"

    async with stores.main.write() as tx:
        assert await move_chat(tx, "telegram", "-5", "-1005", clock.now())
    after = await everything(stores)

    assert after.pop("unreachable") == []
    assert sorted(after.pop("chats")) == [("-1005", None), ("-5", "-1005")]
    for table, rows in after.items():
        assert rows
        assert all(NEW.key in str(row) and OLD.key not in str(row) for row in rows), table
    async with stores.main.read() as tx:
        chat = await chats.find(tx, "telegram", "-1005")
        sent = await outbox.find(tx, "t:final")
    assert chat is not None
    assert chat.is_on
    assert sent is not None
    assert (sent.state, sent.message_id) == ("sent", None), "ids of messages begin anew there"


async def test_move_that_fails_in_the_middle_moves_nothing(stores, clock):
    async with stores.main.write() as tx:
        await fill(tx, clock)
    before = await everything(stores)

    class Crash(Exception):
        pass

    try:
        async with stores.main.write() as tx:
            await move_chat(tx, "telegram", "-5", "-1005", clock.now())
            raise Crash
    except Crash:
        pass

    assert await everything(stores) == before


async def test_move_done_again_takes_what_came_meanwhile_and_touches_no_other_chat(stores, clock):
    late, other = ChatAddress("telegram", "-5"), ChatAddress("telegram", "-55", "12")
    body = Reply((Block("text", "x"),), "it").to_json()
    async with stores.main.write() as tx:
        await fill(tx, clock)
        await outbox.enqueue(tx, "other", other, body, clock.now())
        first = await move_chat(tx, "telegram", "-5", "-1005", clock.now())
        again = await move_chat(tx, "telegram", "-5", "-1005", clock.now())
        await outbox.enqueue(tx, "late", late, body, clock.now())
        third = await move_chat(tx, "telegram", "-5", "-1005", clock.now())
        found = [await outbox.find(tx, key) for key in ("late", "other")]
        same = await move_chat(tx, "telegram", "-1005", "-1005", clock.now())

    assert (first, again, third, same) == (True, False, True, False)
    assert [item.address.key for item in found if item is not None] == [
        "telegram:-1005:",
        other.key,
    ]
