"""What L1 keeps is bounded, and goes with its time and its tools."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from core.levels.champions import Status, Tally, Verdict
from core.plan import Plan, Step
from core.store import antis, autopath, observations
from core.store.observations import Observed
from core.store.stores import Stores
from tests.support.clock import FrozenClock

TOOLS = ["get_now", "list_dirs"]


def seen(clock: FrozenClock, turn: str, **fields: Any) -> Observed:
    values: dict[str, Any] = {
        "turn_id": turn,
        "actor_id": "anna",
        "lang": "it",
        "intent": "i",
        "said": "time",
        "cluster": "c",
        "plan": Plan((Step("get_now", {}),)),
        "way": "get_now",
        "fingerprint": "f",
        "tools": "t",
        "families": "s",
        "level": "metis",
        "latency_ms": 5,
        "at": clock.now(),
    }
    return Observed(**{**values, **fields})


async def test_observations_are_bounded_and_one_request_leaves_room_for_others(
    stores: Stores, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observations, "MAX_ROWS", 20)
    monkeypatch.setattr(observations, "MAX_ALIKE", 5)
    async with stores.memory.write() as tx:
        await observations.record(tx, seen(clock, "other", fingerprint="g"))
        await observations.record(tx, seen(clock, "voted"))
        voted = await observations.of_turn(tx, "voted")
        assert voted is not None
        await observations.judge(tx, voted, Verdict.UP, clock.now())
        for number in range(15):
            await observations.record(tx, seen(clock, f"t{number}"))
        kept = [one.turn_id for one in await observations.listed(tx)]
        assert kept == ["t14", "t13", "t12", "t11", "t10", "voted", "other"]
        for number in range(30):
            await observations.record(tx, seen(clock, f"u{number}", fingerprint=f"h{number}"))
        assert await observations.count(tx) == 20


async def test_ageing_takes_what_was_unused_demoted_expired_or_cannot_run(
    stores: Stores, clock: FrozenClock
) -> None:
    async with stores.memory.write() as tx:
        rows = {"unused": "a", "demoted": "b", "gone": "c", "fresh": "d"}
        for name, cluster in rows.items():
            gone = {"way": "gone_now", "plan": Plan((Step("gone_now", {}),))}
            status = Status.DEMOTED if name == "demoted" else Status.ACTIVE
            one = seen(clock, name, cluster=cluster, **(gone if name == "gone" else {}))
            await observations.record(tx, one)
            await autopath.teach(tx, one, Tally(up=1), status)
        await antis.strike(
            tx,
            "anna",
            "i",
            "f",
            said="time",
            way="get_now",
            fails=3,
            until=clock.now() + timedelta(days=30),
            now=clock.now(),
        )

        async def left(days: int) -> list[str]:
            clock.advance(timedelta(days=days))
            await autopath.prune(tx, clock.now(), TOOLS)
            return sorted(one.cluster for one in await autopath.listed(tx))

        assert await left(29) == ["a", "b", "d"]
        assert await antis.count(tx, clock.now()) == 1
        assert await left(2) == ["a", "d"]
        assert await antis.find(tx, "anna", "i", "f", clock.now()) is None
        fresh = next(one for one in await autopath.listed(tx) if one.cluster == "d")
        await autopath.note(tx, fresh.id, "exact", used_at=clock.now())
        assert await left(60) == ["d"]
        assert [one.turn_id for one in await observations.listed(tx)] == [
            "fresh",
            "demoted",
            "unused",
        ]


async def test_deleting_the_champion_crowns_the_next(stores: Stores, clock: FrozenClock) -> None:
    async with stores.memory.write() as tx:
        for number, up in enumerate((5, 2, 9)):
            one = seen(clock, f"t{number}", fingerprint=f"f{number}")
            await autopath.teach(tx, one, Tally(up=up), Status.ACTIVE)
        first = await autopath.crown(tx, "i", "c")
        assert first is not None
        row = await autopath.get(tx, first)
        assert row is not None
        assert row.tally.up == 9
        assert await autopath.delete(tx, first)
        assert not await autopath.delete(tx, first)
        serving = await autopath.serving(tx, "i", "c")
        assert [(one.tally.up, one.is_champion) for one in serving] == [(5, True), (2, False)]
