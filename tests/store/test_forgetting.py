"""What is not kept longer than it is needed: what was said in rows given up, notes of answers."""

from __future__ import annotations

from datetime import timedelta

from core.clock import SystemClock
from core.messages import ChatAddress, FinalKind
from core.store import inbox, kv, outbox, turns
from core.store.database import Database

HERE = ChatAddress("telegram", "1")


async def test_row_of_the_outbox_that_is_given_up_forgets_its_text(db: Database) -> None:
    now = SystemClock().now()
    async with db.write() as tx:
        await outbox.enqueue(tx, "t:final", HERE, {"blocks": [["text", "segreto"]]}, now)
        assert await outbox.claim_next(tx, "telegram", now=now) is not None
        await outbox.mark_dead(tx, "t:final", "blocked", now)

    async with db.read() as tx:
        item = await outbox.find(tx, "t:final")
        rows = await tx.fetch_all("SELECT body FROM outbox")

    assert item is not None
    assert item.state == "dead"
    assert [row["body"] for row in rows] == ["{}"]


async def test_row_of_the_outbox_that_waits_keeps_its_text_when_another_is_given_up(
    db: Database,
) -> None:
    now = SystemClock().now()
    async with db.write() as tx:
        await outbox.enqueue(tx, "t:final", HERE, {"blocks": []}, now)
        await outbox.mark_dead(tx, "t:final", "not being sent", now)
        item = await outbox.find(tx, "t:final")

    assert item is not None
    assert (item.state, item.body) == ("pending", {"blocks": []})


async def test_row_of_the_inbox_that_is_given_up_forgets_what_was_said(db: Database) -> None:
    async with db.write() as tx:
        await tx.execute(
            """INSERT INTO inbox (channel, bot_id, update_id, chat_key, body, received_at)
               VALUES ('telegram', '1', 5, 'telegram:1:', '{"update": "segreto"}', 0)"""
        )
        await inbox.mark_dead(tx, 1, "not readable")
        [row] = await tx.fetch_all("SELECT state, body, note FROM inbox")

    assert (row["state"], row["body"], row["note"]) == ("dead", "{}", "not readable")


async def test_notes_of_answers_go_when_their_turn_has_long_ended(db: Database) -> None:
    now = SystemClock().now()
    old = now - timedelta(days=8)
    async with db.write() as tx:
        for turn_id, ended in (("long-ago", old), ("just-now", now), ("waiting", None)):
            await turns.open_turn(
                tx,
                turn_id=turn_id,
                inbound_id=f"in:{turn_id}",
                actor_id="a",
                conversation=HERE.key,
                lang="it",
                request="",
                now=old,
            )
            if ended is not None:
                await turns.close_turn(tx, turn_id, FinalKind.ANSWER, {}, ended)
            await kv.put(tx, f"answer:{turn_id}", turn_id)
        await kv.put(tx, "answer:lost", "no-such-turn")
        await kv.put(tx, "telegram.progress", "long-ago")

        gone = await kv.forget_answers(tx, now - timedelta(days=7))

        left = {row["key"] for row in await tx.fetch_all("SELECT key FROM kv")}
    assert gone == 2
    assert left == {"answer:just-now", "answer:waiting", "telegram.progress"}
