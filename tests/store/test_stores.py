"""A home is private, opens again, and refuses damage by name instead of crashing."""

from __future__ import annotations

import os
import random
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from core.config import Settings
from core.errors import StoreCorrupt, StoreError
from core.messages import ChatAddress, FinalKind, Role
from core.store import (
    actors,
    effects,
    inbox,
    kv,
    outbox,
    pairing,
    scratchpad,
    turn_log,
    turns,
    usage,
)
from core.store.database import Database
from core.store.stores import MAIN_FILE, MEMORY_FILE, Stores, open_stores
from tests.support.clock import FrozenClock

# 1 is the bar of R6 (300 files); `make test` uses less.
DAMAGES = int(300 * float(os.environ.get("METNOS_TEST_SCALE") or 0.2))
ADDRESS = ChatAddress("telegram", "77")


async def live_a_little(db: Database, clock: FrozenClock, mark: str) -> None:
    """Use every owner once, reads and writes."""
    now = clock.now()
    async with db.write() as tx:
        host = await actors.ensure_local_host(tx, clock)
        code = await pairing.create_code(tx, Role.GUEST, clock)
        await pairing.redeem_code(tx, code, "telegram", mark, "Ada", clock)
        await pairing.redeem_code(tx, "wrong", "telegram", f"{mark}x", "Bob", clock)
        await pairing.stranger_notice_due(tx, "telegram", mark, now)
        rows = [inbox.InboxRow(hash(mark) % 10**6 + n, ADDRESS.key, {"n": n}) for n in range(20)]
        await inbox.add_batch(tx, rows, channel="telegram", bot_id="1", next_offset=9, now=now)
        opened = await inbox.open_rows(tx, "telegram", "1")
        await inbox.mark_running(tx, opened[0].id)
        await inbox.mark_done(tx, opened[0].id)
        turn_id = clock.new_id()
        await turns.open_turn(
            tx,
            turn_id=turn_id,
            inbound_id=f"in {mark}",
            actor_id=host.id,
            conversation=ADDRESS.key,
            lang="it",
            request="che ore sono? " * 20,
            now=now,
        )
        key = effects.effect_key(turn_id, 1)
        await effects.start(
            tx,
            key=key,
            turn_id=turn_id,
            step=1,
            tool="write_files",
            before={"path": "a"},
            expected=[1],
            now=now,
        )
        await scratchpad.put(
            tx,
            entry_id=clock.new_id()[:16],
            actor_id=host.id,
            turn_id=turn_id,
            step=1,
            tool="read_files",
            kind="text",
            content="abc" * 3000,
            now=now,
        )
    async with db.write() as tx:
        await effects.open_effects(tx)
        await effects.finish(tx, key, "done", now)
        await turns.close_turn(
            tx, turn_id, FinalKind.ANSWER, {"turn_id": turn_id}, now, answer="le nove"
        )
        await outbox.enqueue(tx, f"{turn_id}:final", ADDRESS, {"text": "le nove"}, now)
        item = await outbox.claim_next(tx, "telegram", now=now)
        if item is not None:
            await outbox.mark_sent(tx, item.key, "5", now)
        await outbox.recover(tx, "telegram", now)
        await usage.add(tx, host.id, now.date(), tokens_in=5)
        await kv.put(tx, "mark", mark)
    async with db.read() as tx:
        await kv.get(tx, "mark")
        await turns.recent(tx, ADDRESS.key, host.id, 5)
        await turns.list_turns(tx)
        await turns.running(tx)
        await turns.unlogged(tx)
        await effects.of_turn(tx, turn_id)
        await actors.list_actors(tx)
        await usage.of_day(tx, host.id, now.date())
    async with db.write() as tx:
        await scratchpad.close_turn(tx, turn_id, now)
        await scratchpad.purge(tx, now)
        await inbox.prune(tx, now + timedelta(days=8))
        await outbox.prune(tx, now + timedelta(days=8))
        await pairing.prune(tx, now + timedelta(days=8))


async def test_open_stores_makes_a_private_home_and_opens_it_again(
    settings: Settings, clock: FrozenClock
):
    for _ in range(2):
        stores = await open_stores(settings, clock)
        await live_a_little(stores.main, clock, clock.new_id())
        await stores.close()

    home = settings.metnos_home
    for folder in (home, home / "private", home / "turns", home / "policy", home / "files"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    names = sorted(p.name for p in (home / "private").iterdir())
    assert names == [MEMORY_FILE, MAIN_FILE]


async def test_open_stores_when_memory_is_damaged_begins_it_anew(
    settings: Settings, clock: FrozenClock
):
    await (await open_stores(settings, clock)).close()
    memory = settings.private_dir / MEMORY_FILE
    memory.write_bytes(b"damage" * 1000)

    stores = await open_stores(settings, clock)
    await stores.close()

    assert memory.with_name("memory.db.damaged").read_bytes().startswith(b"damage")


async def test_open_stores_when_main_is_damaged_refuses(settings: Settings, clock: FrozenClock):
    await (await open_stores(settings, clock)).close()
    (settings.private_dir / MAIN_FILE).write_bytes(b"damage" * 1000)

    with pytest.raises(StoreCorrupt):
        await open_stores(settings, clock)


async def test_open_stores_where_no_folder_can_be_made_is_a_store_error(
    settings: Settings, clock: FrozenClock
):
    settings.metnos_home.parent.mkdir(parents=True, exist_ok=True)
    settings.metnos_home.write_text("a file in the way", encoding="utf-8")

    with pytest.raises(StoreError):
        await open_stores(settings, clock)


def damage(data: bytearray, chance: random.Random) -> None:
    """One of the ways in which a file goes bad, in place."""
    page = 4096
    match chance.randrange(8):
        case 0:  # cut anywhere
            del data[chance.randrange(len(data)) :]
        case 1:  # a page of zeros
            at = chance.randrange(len(data) // page) * page
            data[at : at + page] = bytes(page)
        case 2:  # a page of noise
            at = chance.randrange(len(data) // page) * page
            data[at : at + page] = chance.randbytes(page)
        case 3:  # flipped bits here and there
            for _ in range(60):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        case 4:  # the header
            data[chance.randrange(100)] = chance.randrange(256)
        case 5:  # the schema page
            for _ in range(8):
                data[100 + chance.randrange(page - 100)] = chance.randrange(256)
        case 6:  # two pages swapped
            pages = len(data) // page
            a, b = (chance.randrange(pages) * page for _ in range(2))
            data[a : a + page], data[b : b + page] = data[b : b + page], data[a : a + page]
        case _:  # page headers: kinds, cell counts
            for _ in range(3):
                at = chance.randrange(1, len(data) // page) * page
                data[at + chance.randrange(8)] = chance.randrange(256)


async def test_damaged_database_is_refused_or_works_and_never_crashes_otherwise(
    settings: Settings, clock: FrozenClock, tmp_path: Path
):
    stores = await open_stores(settings, clock)
    for n in range(4):
        await live_a_little(stores.main, clock, f"sound {n}")
    await stores.close()
    main = settings.private_dir / MAIN_FILE
    sound = main.read_bytes()

    outcomes = {"refused": 0, "failed later": 0, "worked": 0}
    for seed in range(DAMAGES):
        for name in (MAIN_FILE + "-wal", MAIN_FILE + "-shm"):
            main.with_name(name).unlink(missing_ok=True)
        chance = random.Random(seed)
        data = bytearray(sound)
        damage(data, chance)
        main.write_bytes(data)
        if seed % 10 == 9:
            main.with_name(MAIN_FILE + "-wal").write_bytes(chance.randbytes(9000))
        outcome = await _try(settings, clock, seed)
        outcomes[outcome] += 1

    print(f"damaged databases: {outcomes}")
    assert outcomes["refused"] >= DAMAGES // 2


async def _try(settings: Settings, clock: FrozenClock, seed: int) -> str:
    """Only `StoreError` and its kinds may come out; anything else fails the test."""
    opened: Stores | None = None
    try:
        opened = await open_stores(settings, clock)
        await live_a_little(opened.main, clock, f"damaged {seed}")
        log = turn_log.TurnLog(settings.metnos_home / "turns")
        await turn_log.append_missing(opened.main, log)
    except StoreError:
        return "failed later" if opened is not None else "refused"
    else:
        return "worked"
    finally:
        if opened is not None:
            await opened.close()
