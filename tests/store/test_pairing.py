"""One code, one person, ten minutes; guessing is slow and stays refused."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from core.messages import Role
from core.store import actors, pairing
from core.store.database import Database
from core.store.pairing import PairingOutcome, PairingResult
from tests.support.clock import FrozenClock


async def make(db: Database, clock: FrozenClock, role: Role = Role.HOST) -> str:
    async with db.write() as tx:
        return await pairing.create_code(tx, role, clock)


async def redeem(
    db: Database, clock: FrozenClock, code: str, sender: str = "5", name: str = "Ada"
) -> PairingResult:
    async with db.write() as tx:
        return await pairing.redeem_code(tx, code, "telegram", sender, name, clock)


async def who(db: Database, sender: str) -> Role | None:
    async with db.read() as tx:
        actor = await actors.find_actor(tx, "telegram", sender)
    return None if actor is None else actor.role


async def test_code_is_eight_signs_and_stored_as_a_hash_only(db: Database, clock: FrozenClock):
    codes = {await make(db, clock) for _ in range(50)}
    async with db.read() as tx:
        rows = await tx.fetch_all("SELECT * FROM pairing_codes")

    assert len(codes) == 50
    assert all(len(code) == 8 and code.isalnum() and code.isascii() for code in codes)
    assert len(rows) == 1  # the earlier ones are void
    assert not any(code in str(tuple(rows[0])) for code in codes)


async def test_host_code_makes_the_host_once(db: Database, clock: FrozenClock):
    code = await make(db, clock)

    first = await redeem(db, clock, code)
    again = await redeem(db, clock, code)
    other = await redeem(db, clock, code, sender="6")

    assert (first.outcome, again.outcome, other.outcome) == ("paired", "already_paired", "invalid")
    assert first.actor is not None
    assert (first.actor.role, first.actor.display_name) == (Role.HOST, "Ada")
    assert other.actor is None
    assert await who(db, "6") is None


@pytest.mark.parametrize("way", ["lower", "hyphen", "spaces", "alike"])
async def test_code_typed_by_hand_is_recognised(db: Database, clock: FrozenClock, way: str):
    code = await make(db, clock)
    typed = {
        "lower": code.lower(),
        "hyphen": f"{code[:4]}-{code[4:]}",
        "spaces": f"  {code[:4]} {code[4:]} ",
        "alike": code.replace("0", "O").replace("1", "l"),
    }[way]

    assert (await redeem(db, clock, typed)).outcome is PairingOutcome.PAIRED


async def test_host_of_the_terminal_gets_the_telegram_identity(db: Database, clock: FrozenClock):
    async with db.write() as tx:
        local = await actors.ensure_local_host(tx, clock)
    code = await make(db, clock)

    result = await redeem(db, clock, code)

    assert result.actor is not None
    assert result.actor.id == local.id
    assert result.actor.display_name == "Ada"


async def test_host_code_in_other_hands_moves_the_host(db: Database, clock: FrozenClock):
    first = await redeem(db, clock, await make(db, clock), sender="5")
    second = await redeem(db, clock, await make(db, clock), sender="6", name="Bea")

    assert first.actor is not None
    assert second.actor is not None
    assert first.actor.id == second.actor.id
    assert await who(db, "5") is None
    assert await who(db, "6") is Role.HOST


async def test_guest_code_makes_guests_and_a_host_code_raises_one(
    db: Database, clock: FrozenClock
):
    code = await make(db, clock, Role.GUEST)
    guest = await redeem(db, clock, code, sender="7")
    unused = await make(db, clock, Role.GUEST)
    known = await redeem(db, clock, unused, sender="7")
    still_good = await redeem(db, clock, unused, sender="8")
    raised = await redeem(db, clock, await make(db, clock), sender="7")

    assert guest.actor is not None
    assert guest.actor.display_name == f"guest_{guest.actor.id[-6:]}"
    assert known.outcome is PairingOutcome.ALREADY_PAIRED
    assert still_good.outcome is PairingOutcome.PAIRED
    assert raised.actor is not None
    assert raised.actor.role is Role.HOST
    assert await who(db, "7") is Role.HOST


@pytest.mark.parametrize(("minutes", "outcome"), [(9, "paired"), (10, "invalid")])
async def test_code_lives_ten_minutes(
    db: Database, clock: FrozenClock, minutes: int, outcome: str
):
    code = await make(db, clock)
    clock.advance(timedelta(minutes=minutes))

    assert (await redeem(db, clock, code)).outcome == outcome


async def test_new_code_voids_the_earlier_of_its_role_only(db: Database, clock: FrozenClock):
    old_host = await make(db, clock)
    guest = await make(db, clock, Role.GUEST)
    await make(db, clock)

    assert (await redeem(db, clock, old_host)).outcome is PairingOutcome.INVALID
    assert (await redeem(db, clock, guest)).outcome is PairingOutcome.PAIRED


async def test_brute_force_evaluates_five_and_lockout_covers_the_right_code(
    db: Database, clock: FrozenClock
):
    """S9: 1000 tries of one sender, the last one right."""
    code = await make(db, clock)

    outcomes = [(await redeem(db, clock, f"WRONG{n:03}")).outcome for n in range(999)]
    right = await redeem(db, clock, code)

    assert outcomes.count(PairingOutcome.INVALID) == 5
    assert outcomes.count(PairingOutcome.LOCKED) == 994
    assert right.outcome is PairingOutcome.LOCKED
    assert await who(db, "5") is None


async def test_brute_force_by_many_senders_stops_at_twenty(db: Database, clock: FrozenClock):
    code = await make(db, clock)

    outcomes = [
        (await redeem(db, clock, f"WRONG{n:03}", sender=str(n))).outcome for n in range(1000)
    ]
    right = await redeem(db, clock, code, sender="honest")

    assert outcomes.count(PairingOutcome.INVALID) == 20
    assert right.outcome is PairingOutcome.LOCKED


async def test_lockout_ends_after_an_hour(db: Database, clock: FrozenClock):
    for n in range(6):
        await redeem(db, clock, f"WRONG{n}")
    clock.advance(timedelta(minutes=59))
    before = await redeem(db, clock, await make(db, clock))
    clock.advance(timedelta(minutes=1))
    after = await redeem(db, clock, await make(db, clock))

    assert before.outcome is PairingOutcome.LOCKED
    assert after.outcome is PairingOutcome.PAIRED


async def test_lockout_when_the_clock_was_set_back_lasts_an_hour_at_most(
    db: Database, clock: FrozenClock
):
    start = clock.now()
    clock.jump(start + timedelta(days=400))
    for n in range(6):
        await redeem(db, clock, f"WRONG{n}")
    clock.jump(start)
    during = await redeem(db, clock, await make(db, clock))
    clock.advance(timedelta(hours=1))
    after = await redeem(db, clock, await make(db, clock))

    assert during.outcome is PairingOutcome.LOCKED
    assert after.outcome is PairingOutcome.PAIRED


async def test_two_at_once_with_one_code_make_one(db: Database, clock: FrozenClock):
    code = await make(db, clock, Role.GUEST)

    results = await asyncio.gather(*(redeem(db, clock, code, sender=str(n)) for n in range(4)))

    assert [r.outcome for r in results].count(PairingOutcome.PAIRED) == 1


@pytest.mark.parametrize("code", ["", "\ud800", "\0", "x" * 100_000, "🦊"], ids=range(5))
async def test_odd_codes_are_invalid_and_nothing_else(db: Database, clock: FrozenClock, code: str):
    await make(db, clock)

    assert (await redeem(db, clock, code)).outcome is PairingOutcome.INVALID


async def test_stranger_gets_one_notice_a_day(db: Database, clock: FrozenClock):
    async def due(sender: str) -> bool:
        async with db.write() as tx:
            return await pairing.stranger_notice_due(tx, "telegram", sender, clock.now())

    first = [await due("1"), await due("1"), await due("2")]
    clock.advance(timedelta(hours=23, minutes=59))
    still = await due("1")
    clock.advance(timedelta(minutes=1))
    next_day = await due("1")

    assert first == [True, False, True]
    assert (still, next_day) == (False, True)


async def test_prune_forgets_what_no_longer_decides(db: Database, clock: FrozenClock):
    await make(db, clock)
    await redeem(db, clock, "WRONG")
    async with db.write() as tx:
        await pairing.stranger_notice_due(tx, "telegram", "1", clock.now())
        clock.advance(timedelta(days=2))
        await pairing.prune(tx, clock.now())
        left = [
            (await tx.fetch_all(f"SELECT COUNT(*) FROM {table}"))[0][0]
            for table in ("pairing_codes", "pairing_attempts", "stranger_notices")
        ]

    assert left == [0, 0, 0]
