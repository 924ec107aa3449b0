"""Where people are: one position each, the newest, for a while, and gone when they say so."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import StoreError
from core.messages import Role
from core.positions import Position, Source
from core.store import actors, positions, upkeep

MINUTES = timedelta(minutes=15)


@pytest.fixture
async def people(stores, clock):
    async with stores.main.write() as tx:
        return [(await actors.add(tx, Role.GUEST, name, clock)).id for name in ("Anna", "Bea")]


async def keep(stores, actor, position, ttl=MINUTES):
    async with stores.main.write() as tx:
        return await positions.keep(tx, actor, position, expires_at=position.at + ttl)


async def fresh(stores, actor, now):
    async with stores.main.read() as tx:
        return await positions.find_fresh(tx, actor, now)


async def test_position_is_kept_whole_for_its_person_alone(stores, clock, people):
    anna, bea = people
    here = Position(45.07, 7.69, clock.now(), 12.5, Source.VENUE, "Bar Sport")

    assert await keep(stores, anna, here)

    assert await fresh(stores, anna, clock.now()) == here
    assert await fresh(stores, bea, clock.now()) is None


async def test_position_is_not_used_any_more_when_its_time_is_over(stores, clock, people):
    here = Position(45.07, 7.69, clock.now())
    await keep(stores, people[0], here)

    last = clock.now() + MINUTES - timedelta(seconds=1)
    assert await fresh(stores, people[0], last) == here
    assert await fresh(stores, people[0], clock.now() + MINUTES) is None


async def test_older_position_never_replaces_a_newer_one(stores, clock, people):
    old = Position(1, 1, clock.now())
    new = Position(2, 2, clock.now() + timedelta(seconds=5))
    assert await keep(stores, people[0], new)

    assert not await keep(stores, people[0], old)
    assert await keep(stores, people[0], replace(new, lat=3))

    found = await fresh(stores, people[0], clock.now())
    assert found == replace(new, lat=3)


async def test_forget_deletes_all_of_one_person_and_nothing_else(stores, clock, people):
    here = Position(45.07, 7.69, clock.now())
    for actor in people:
        await keep(stores, actor, here)

    async with stores.main.write() as tx:
        assert await positions.forget(tx, people[0]) == 1
        assert await positions.forget(tx, people[0]) == 0

    assert await fresh(stores, people[0], clock.now()) is None
    assert await fresh(stores, people[1], clock.now()) == here


async def test_upkeep_deletes_what_has_had_its_time(stores, clock, people):
    await keep(stores, people[0], Position(1, 1, clock.now()))
    await keep(stores, people[1], Position(1, 1, clock.now() + MINUTES))

    await upkeep.tidy(stores, clock.now() + MINUTES)

    async with stores.main.read() as tx:
        rows = await tx.fetch_all("SELECT actor_id FROM positions")
    assert [row["actor_id"] for row in rows] == [people[1]]


async def test_what_is_no_point_of_the_earth_is_refused_by_the_table(stores, clock, people):
    with pytest.raises(StoreError):
        await keep(stores, people[0], Position(91, 0, clock.now()))
