"""Turns, effects and scratchpad: what a turn needs to go on, to end, and to be told."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from core.messages import FinalKind
from core.store import effects, kv, scratchpad, turns, usage
from core.store.database import Database
from core.store.effects import EffectState
from tests.support.clock import FrozenClock

CHAT = "telegram:77:"


async def begin(
    db: Database, clock: FrozenClock, turn_id: str, *, inbound: str = "", actor: str = "ada"
) -> turns.StoredTurn | None:
    async with db.write() as tx:
        return await turns.open_turn(
            tx,
            turn_id=turn_id,
            inbound_id=inbound or f"in {turn_id}",
            actor_id=actor,
            conversation=CHAT,
            lang="it",
            request=f"request {turn_id}",
            now=clock.now(),
            state={"version": 1},
        )


async def end(db: Database, clock: FrozenClock, turn_id: str, answer: str = "") -> bool:
    async with db.write() as tx:
        return await turns.close_turn(
            tx,
            turn_id,
            FinalKind.ANSWER,
            {"turn_id": turn_id, "segment": 1},
            clock.now(),
            answer=answer or f"answer {turn_id}",
            reply={"blocks": [["text", answer]]},
            log_day=date(2026, 1, 16),
        )


async def find(db: Database, turn_id: str) -> turns.StoredTurn:
    async with db.read() as tx:
        found = await turns.get(tx, turn_id)
    assert found is not None
    return found


async def test_open_turn_twice_gives_the_first(db: Database, clock: FrozenClock):
    first = await begin(db, clock, "aaaa1", inbound="in")
    second = await begin(db, clock, "aaaa2", inbound="in")

    assert first is None
    assert second is not None
    assert (second.id, second.state, second.state_data) == ("aaaa1", "running", {"version": 1})


async def test_close_turn_ends_once(db: Database, clock: FrozenClock):
    await begin(db, clock, "aaaa1")
    first = await end(db, clock, "aaaa1", "le nove")
    second = await end(db, clock, "aaaa1", "le dieci")

    turn = await find(db, "aaaa1")
    assert (first, second) == (True, False)
    assert (turn.state, turn.answer, turn.final_kind) == ("closed", "le nove", FinalKind.ANSWER)
    assert turn.reply == {"blocks": [["text", "le nove"]]}
    assert turn.state_data == {}
    assert turn.ended_at == clock.now()
    assert turn.log_day == date(2026, 1, 16)


async def test_save_state_of_a_closed_turn_does_nothing(db: Database, clock: FrozenClock):
    await begin(db, clock, "aaaa1")
    await begin(db, clock, "aaaa2")
    await end(db, clock, "aaaa1")
    async with db.write() as tx:
        await turns.save_state(tx, "aaaa1", {"step": 2})
        await turns.save_state(tx, "aaaa2", {"step": 2, "text": "\ud800"})
        running = await turns.running(tx)

    assert [turn.state_data for turn in running] == [{"step": 2, "text": "\ufffd"}]
    assert (await find(db, "aaaa1")).state_data == {}


async def test_unlogged_holds_a_turn_until_it_is_marked(db: Database, clock: FrozenClock):
    await begin(db, clock, "aaaa1")
    await begin(db, clock, "aaaa2")
    await end(db, clock, "aaaa1")
    async with db.write() as tx:
        before = await turns.unlogged(tx)
        await turns.mark_logged(tx, "aaaa1")
        after = await turns.unlogged(tx)

    assert [turn.log_line for turn in before] == [{"turn_id": "aaaa1", "segment": 1}]
    assert after == []
    assert (await find(db, "aaaa1")).logged


async def test_recent_is_the_last_of_this_person_here_in_order(db: Database, clock: FrozenClock):
    for n in range(4):
        await begin(db, clock, f"aaaa{n}")
        await end(db, clock, f"aaaa{n}")
        clock.advance(1)
    await begin(db, clock, "bbbb1", actor="bob")
    await end(db, clock, "bbbb1")
    await begin(db, clock, "aaaa9")

    async with db.read() as tx:
        found = await turns.recent(tx, CHAT, "ada", 2)
        elsewhere = await turns.recent(tx, "telegram:78:", "ada", 2)

    assert [(e.request, e.answer) for e in found] == [
        ("request aaaa2", "answer aaaa2"),
        ("request aaaa3", "answer aaaa3"),
    ]
    assert elsewhere == []


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("abcd", None),
        ("abcd1", "abcd1111"),
        ("abc", None),
        ("abcd2222", "abcd2222"),
        ("ffff", None),
        ("abc%", None),
    ],
    ids=["two", "one", "short", "whole", "none", "wildcard"],
)
async def test_get_takes_an_id_or_the_only_beginning(
    db: Database, clock: FrozenClock, prefix: str, found: str | None
):
    for turn_id in ("abcd1111", "abcd2222", "abcd22223"):
        await begin(db, clock, turn_id)
    async with db.read() as tx:
        turn = await turns.get(tx, prefix)

    assert (None if turn is None else turn.id) == found


async def test_list_turns_newest_first_of_one_or_all(db: Database, clock: FrozenClock):
    for turn_id, actor in (("aaaa1", "ada"), ("bbbb1", "bob"), ("aaaa2", "ada")):
        await begin(db, clock, turn_id, actor=actor)
        clock.advance(1)
    async with db.read() as tx:
        everything = await turns.list_turns(tx, 2)
        of_ada = await turns.list_turns(tx, actor_id="ada")

    assert [t.id for t in everything] == ["aaaa2", "bbbb1"]
    assert [t.id for t in of_ada] == ["aaaa2", "aaaa1"]


async def start(db: Database, clock: FrozenClock, step: int) -> str:
    key = effects.effect_key("aaaa1", step)
    async with db.write() as tx:
        await effects.start(
            tx,
            key=key,
            turn_id="aaaa1",
            step=step,
            tool="write_files",
            before=[{"path": "/a", "exists": False}],
            expected={"sha256": "00"},
            now=clock.now(),
        )
    return key


async def test_effect_is_open_until_it_is_settled_once(db: Database, clock: FrozenClock):
    second = await start(db, clock, 2)
    first = await start(db, clock, 1)
    async with db.write() as tx:
        opened = await effects.open_effects(tx)
        done = await effects.finish(tx, first, EffectState.DONE, clock.now(), summary={"n": 1})
        again = await effects.finish(tx, first, "unknown", clock.now())
        left = await effects.open_effects(tx)
        all_of_it = await effects.of_turn(tx, "aaaa1")

    assert len(opened) == 2
    assert (done, again) == (True, False)
    assert [effect.key for effect in left] == [second]
    assert [(e.step, e.state, e.summary) for e in all_of_it] == [
        (1, EffectState.DONE, {"n": 1}),
        (2, EffectState.STARTED, None),
    ]
    assert all_of_it[0].before == [{"path": "/a", "exists": False}]


async def test_scratchpad_entry_exists_only_for_its_actor_and_turn(
    db: Database, clock: FrozenClock
):
    async with db.write() as tx:
        for entry_id, content in (("0" * 16, "testo\ud800\0"), ("1" * 16, b"\x00\xff")):
            await scratchpad.put(
                tx,
                entry_id=entry_id,
                actor_id="ada",
                turn_id="aaaa1",
                step=1,
                tool="read_files",
                kind="text",
                content=content,
                now=clock.now(),
            )
        assert await scratchpad.get(tx, "ada", "aaaa1", "0" * 16) == "testo\ufffd\ufffd".encode()
        assert await scratchpad.get(tx, "ada", "aaaa1", "1" * 16) == b"\x00\xff"
        assert await scratchpad.get(tx, "bob", "aaaa1", "0" * 16) is None
        assert await scratchpad.get(tx, "ada", "aaaa2", "0" * 16) is None
        assert await scratchpad.get(tx, "ada", "aaaa1", "2" * 16) is None
        assert await scratchpad.has_entries(tx, "ada", "aaaa1")
        assert not await scratchpad.has_entries(tx, "bob", "aaaa1")


async def test_scratchpad_goes_an_hour_after_the_turn(db: Database, clock: FrozenClock):
    async with db.write() as tx:
        for turn_id in ("open", "over"):
            await scratchpad.put(
                tx,
                entry_id=turn_id,
                actor_id="ada",
                turn_id=turn_id,
                step=1,
                tool="read_files",
                kind="list",
                content="[]",
                now=clock.now(),
            )
        await scratchpad.close_turn(tx, "over", clock.now() + timedelta(hours=1))
        too_early = await scratchpad.purge(tx, clock.now())
        clock.advance(timedelta(hours=1))
        in_time = await scratchpad.purge(tx, clock.now())
        left = await scratchpad.has_entries(tx, "ada", "open")

    assert (too_early, in_time, left) == (0, 1, True)


async def test_usage_adds_up_by_day_and_actor(db: Database):
    day = date(2026, 1, 15)
    async with db.write() as tx:
        await usage.add(tx, "ada", day, tokens_in=100, cached=90, money=0.5, turns=1)
        await usage.add(tx, "ada", day, tokens_in=10, tokens_out=3, turns=1, from_memory=1)
        total = await usage.of_day(tx, "ada", day)
        nothing = await usage.of_day(tx, "ada", date(2026, 1, 16))

    assert total == usage.DayUsage(110, 3, 90, 0.5, 2, 1)
    assert nothing == usage.DayUsage()


async def test_kv_keeps_the_last_value(db: Database):
    async with db.write() as tx:
        missing = await kv.get(tx, "k")
        await kv.put(tx, "k", "one")
        await kv.put(tx, "k", "two")
        last = await kv.get(tx, "k")
        await kv.delete(tx, "k")
        gone = await kv.get(tx, "k")

    assert (missing, last, gone) == (None, "two", None)
