"""Grants: per actor and target, ending by themselves, seen by the gate at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.messages import Actor, Role
from core.store import actors, grants, upkeep
from core.store.database import Database
from core.store.grants import Granted, GrantKind
from core.store.stores import Stores
from tests.support.clock import FrozenClock


@pytest.fixture
async def host(db: Database, clock: FrozenClock) -> Actor:
    async with db.write() as tx:
        return await actors.ensure_local_host(tx, clock)


async def test_grants_of_one_actor_are_not_those_of_another(
    db: Database, clock: FrozenClock, host: Actor
):
    async with db.write() as tx:
        guest = await actors.add(tx, Role.GUEST, "Anna", clock)
        await grants.add(tx, host.id, GrantKind.HOST, "nas.example:80", now=clock.now())
        await grants.add(tx, guest.id, GrantKind.READ, "/srv/photos", now=clock.now())
        await grants.add(tx, guest.id, GrantKind.WRITE, "/srv/inbox", now=clock.now())

    async with db.read() as tx:
        assert await grants.granted_to(tx, host.id, clock.now()) == Granted(("nas.example:80",))
        of_guest = await grants.granted_to(tx, guest.id, clock.now())
    assert of_guest == Granted((), ("/srv/photos",), ("/srv/inbox",))


async def test_grant_ends_at_its_moment_and_is_thrown_away(
    stores: Stores, db: Database, clock: FrozenClock, host: Actor
):
    end = clock.now() + timedelta(hours=1)
    async with db.write() as tx:
        await grants.add(tx, host.id, GrantKind.HOST, "a.example", now=clock.now(), expires_at=end)

    async with db.read() as tx:
        before = await grants.granted_to(tx, host.id, end - timedelta(seconds=1))
        after = await grants.granted_to(tx, host.id, end)
        listed = await grants.list_grants(tx, end)
    await upkeep.tidy(stores, end)

    assert (before.hosts, after.hosts, listed) == (("a.example",), (), [])
    async with db.read() as tx:
        assert await grants.list_grants(tx, clock.now()) == []


async def test_grant_given_again_keeps_its_number_and_takes_the_new_terms(
    db: Database, clock: FrozenClock, host: Actor
):
    async with db.write() as tx:
        first = await grants.add(tx, host.id, GrantKind.READ, "/srv", now=clock.now())
        again = await grants.add(
            tx,
            host.id,
            GrantKind.WRITE,
            "/srv",
            now=clock.now(),
            expires_at=clock.now() + timedelta(days=1),
        )
        assert again.id == first.id
        assert (await grants.granted_to(tx, host.id, clock.now())).write_folders == ("/srv",)
        assert (await grants.granted_to(tx, host.id, clock.now())).read_folders == ()


async def test_grant_revoked_twice_is_gone_once(db: Database, clock: FrozenClock, host: Actor):
    async with db.write() as tx:
        made = await grants.add(tx, host.id, GrantKind.HOST, "a.example", now=clock.now())
        assert await grants.revoke(tx, made.id) == made
        assert await grants.revoke(tx, made.id) is None
        assert await grants.granted_to(tx, host.id, clock.now()) == Granted()
