"""Votes about turns: one each, the last one counting, and only once taken back it is none."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.messages import Role
from core.store import actors, feedback, turns
from core.store.feedback import Vote


@pytest.fixture
async def turn(stores, clock):
    async with stores.main.write() as tx:
        anna = (await actors.add(tx, Role.GUEST, "Anna", clock)).id
        bea = (await actors.add(tx, Role.GUEST, "Bea", clock)).id
        await turns.open_turn(
            tx,
            turn_id="t1",
            inbound_id="i1",
            actor_id=anna,
            conversation="telegram:1:",
            lang="it",
            request="che ore sono?",
            now=clock.now(),
        )
    return "t1", anna, bea


async def test_last_vote_counts_and_an_older_one_does_not_come_back(stores, clock, turn):
    id, anna, bea = turn
    now, later = clock.now(), clock.now() + timedelta(seconds=5)

    async with stores.main.write() as tx:
        assert await feedback.give(tx, id, anna, Vote.UP, at=now)
        assert await feedback.give(tx, id, anna, Vote.DOWN, at=later)
        assert await feedback.give(tx, id, anna, Vote.DOWN, at=later)
        assert not await feedback.give(tx, id, anna, Vote.UP, at=now)
        assert await feedback.find(tx, id, anna) is Vote.DOWN
        assert await feedback.find(tx, id, bea) is None


async def test_vote_that_was_taken_back_is_none_and_stays_so(stores, clock, turn):
    id, anna, _ = turn
    now, later = clock.now(), clock.now() + timedelta(seconds=5)

    async with stores.main.write() as tx:
        await feedback.give(tx, id, anna, Vote.UP, at=now)
        assert await feedback.give(tx, id, anna, None, at=later)
        assert not await feedback.give(tx, id, anna, Vote.UP, at=now)
        assert await feedback.find(tx, id, anna) is None
