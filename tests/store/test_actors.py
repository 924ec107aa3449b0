"""Who is known, by which identity, and how a right is withdrawn."""

from __future__ import annotations

import sqlite3

import pytest

from core.errors import StoreError
from core.messages import Role
from core.store import actors
from core.store.database import Database
from tests.support.clock import FrozenClock


async def test_find_actor_of_a_stranger_is_none(db: Database):
    async with db.read() as tx:
        assert await actors.find_actor(tx, "telegram", "1") is None
        assert await actors.get_actor(tx, "nobody") is None
        assert await actors.find_host(tx) is None


async def test_ensure_local_host_makes_one_host_and_returns_it_again(
    db: Database, clock: FrozenClock
):
    async with db.write() as tx:
        first = await actors.ensure_local_host(tx, clock)
        second = await actors.ensure_local_host(tx, clock)
        everybody = await actors.list_actors(tx)

    assert first == second
    assert first.role is Role.HOST
    assert everybody == [first]


async def test_ensure_local_host_links_to_the_host_of_telegram(db: Database, clock: FrozenClock):
    async with db.write() as tx:
        host = await actors.add(tx, Role.HOST, "Ada", clock)
        await actors.link(tx, "telegram", "5", host.id)
        local = await actors.ensure_local_host(tx, clock)
        identities = await actors.identities_of(tx, host.id)

    assert local == host
    assert identities == [("telegram", "5"), ("terminal", "local")]


async def test_second_host_is_impossible(db: Database, clock: FrozenClock):
    async def add_two() -> None:
        async with db.write() as tx:
            await actors.add(tx, Role.HOST, "one", clock)
            await actors.add(tx, Role.HOST, "two", clock)

    with pytest.raises(StoreError) as caught:
        await add_two()
    assert isinstance(caught.value.__cause__, sqlite3.IntegrityError)


async def test_revoked_actor_is_a_stranger(db: Database, clock: FrozenClock):
    async with db.write() as tx:
        guest = await actors.add(tx, Role.GUEST, "", clock)
        await actors.link(tx, "telegram", "5", guest.id)
        first = await actors.revoke(tx, guest.id, clock.now())
        second = await actors.revoke(tx, guest.id, clock.now())

        assert (first, second) == (True, False)
        assert await actors.find_actor(tx, "telegram", "5") is None
        assert await actors.get_actor(tx, guest.id) is None
        assert await actors.list_actors(tx) == []


async def test_list_actors_puts_the_host_first(db: Database, clock: FrozenClock):
    async with db.write() as tx:
        one = await actors.add(tx, Role.GUEST, "", clock)
        clock.advance(1)
        two = await actors.add(tx, Role.GUEST, "", clock)
        clock.advance(1)
        host = await actors.add(tx, Role.HOST, "Ada", clock)
        everybody = await actors.list_actors(tx)

    assert everybody == [host, one, two]
    assert one.display_name == f"guest_{one.id[-6:]}"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("Ada", "Ada"),
        ("  Ada \n Bianchi\t", "Ada Bianchi"),
        ("Ada\u202etxt.exe\0", "Ada txt.exe\ufffd"),
        ("x" * 200, "x" * 64),
        ("\n\t ", None),
        ("\ud800", "\ufffd"),
    ],
    ids=["plain", "spaces", "bidi", "long", "empty", "surrogate"],
)
async def test_display_name_is_one_printable_line(
    db: Database, clock: FrozenClock, given: str, shown: str | None
):
    async with db.write() as tx:
        actor = await actors.add(tx, Role.GUEST, given, clock)
        stored = await actors.get_actor(tx, actor.id)

    assert stored == actor
    assert actor.display_name == (shown or f"guest_{actor.id[-6:]}")


async def test_set_lang_is_kept(db: Database, clock: FrozenClock):
    async with db.write() as tx:
        actor = await actors.add(tx, Role.GUEST, "", clock)
        await actors.set_lang(tx, actor.id, "en")
        stored = await actors.get_actor(tx, actor.id)

    assert stored is not None
    assert stored.lang == "en"
