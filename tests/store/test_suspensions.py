"""Questions are claimed once, answered by their own person only, and never after their end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from core import dialog_answers
from core.dialogs import (
    TTL,
    Field,
    FieldKind,
    Option,
    Suspension,
    SuspensionKind,
    SuspensionState,
)
from core.errors import StoreError
from core.messages import ChatAddress
from core.store import outbox, suspensions
from core.store.database import Database
from core.store.migrations import MAIN, migrate
from core.store.stores import Stores
from core.store.suspensions import Claimed, Pressed, Standing
from core.store.upkeep import tidy
from tests.support.clock import FrozenClock

CHAT = "telegram:1:"
NAME = Field("name", "Che nome?", FieldKind.TEXT)
WHO = Field("who", "Chi?", FieldKind.CHOICE, (Option("a", "Anna"), Option("b", "Bruno")))
SECRET = Field("pw", "Parola d'ordine?", FieldKind.SECRET)
STATE = {"version": 1, "turn_id": "t", "next_step": 2}


def question(
    clock: FrozenClock, name: str = "q", *fields: Field, actor: str = "ada", chat: str = CHAT
) -> Suspension:
    return Suspension(
        id=name,
        kind=SuspensionKind.INPUTS if fields else SuspensionKind.APPROVAL,
        turn_id=f"turn-{name}",
        actor_id=actor,
        conversation=chat,
        created_at=clock.now(),
        expires_at=clock.now() + TTL,
        fields=fields,
        digest="d1",
        prompt_key=f"turn-{name}:q1",
        data={"tool": "delete_files"},
    )


async def ask(db: Database, asked: Suspension, **tokens: str) -> Suspension:
    async with db.write() as tx:
        await suspensions.open(tx, asked, STATE, tokens)
    return asked


async def show(
    db: Database, clock: FrozenClock, key: str, message_id: str, *, twice: bool = False
) -> None:
    """Queue the question and send it; `twice`: the first send ends unclear."""
    async with db.write() as tx:
        await outbox.enqueue(tx, key, ChatAddress.from_key(CHAT), {}, clock.now())
        await outbox.claim_next(tx, "telegram", now=clock.now())
        if twice:
            await outbox.repeat(tx, key, clock.now())
            await outbox.claim_next(tx, "telegram", now=clock.now())
        await outbox.mark_sent(tx, f"{key}:r" if twice else key, message_id, clock.now())


async def press(
    db: Database,
    clock: FrozenClock,
    token: str,
    *,
    actor: str = "ada",
    chat: str = CHAT,
    message: str | None = None,
) -> Pressed | None:
    async with db.read() as tx:
        return await suspensions.find_by_token(
            tx, token, actor_id=actor, conversation=chat, message_id=message, now=clock.now()
        )


async def claim(db: Database, clock: FrozenClock, name: str = "q") -> Claimed | None:
    async with db.write() as tx:
        return await suspensions.claim(tx, name, clock.now())


async def settle(db: Database, clock: FrozenClock, state: str, name: str = "q") -> bool:
    async with db.write() as tx:
        return await suspensions.settle(tx, name, state, clock.now())


async def state_of(db: Database, name: str = "q") -> SuspensionState | None:
    async with db.read() as tx:
        found = await suspensions.find(tx, name)
    return None if found is None else found[1]


async def test_question_comes_back_as_it_was_asked(db: Database, clock: FrozenClock):
    asked = await ask(db, question(clock, "q", WHO, NAME), t1="a", t2="b")

    async with db.read() as tx:
        found = await suspensions.find(tx, "q")
        here = await suspensions.open_of(tx, CHAT, "ada", clock.now())
        of_turn = await suspensions.of_turn(tx, "turn-q")

    assert found == (asked, SuspensionState.OPEN)
    assert here == [asked]
    assert of_turn == [(asked, SuspensionState.OPEN)]


async def test_claim_gives_the_state_and_only_once(db: Database, clock: FrozenClock):
    asked = await ask(db, question(clock))

    assert await claim(db, clock) == Claimed(asked, STATE)
    assert await claim(db, clock) is None
    assert await claim(db, clock, "unknown") is None


async def test_claim_when_many_taps_race_lets_exactly_one_resume(
    db: Database, clock: FrozenClock, tmp_path: Path
):
    """Also against another process: a second pair of connections on the same file."""
    other = await Database.open(db.path, durable=True)
    names = [f"q{n}" for n in range(10)]
    for name in names:
        await ask(db, question(clock, name), **{f"tok-{name}": "yes"})

    async def tap(database: Database, name: str) -> str | None:
        async with database.write() as tx:
            pressed = await suspensions.find_by_token(
                tx, f"tok-{name}", actor_id="ada", conversation=CHAT, now=clock.now()
            )
            if pressed is None or pressed.standing is not Standing.OPEN:
                return None
            won = await suspensions.claim(tx, name, clock.now())
            return None if won is None else won.suspension.id

    taps = [tap(database, name) for name in names for database in (db, other, db, other)]
    won = [name for name in await asyncio.gather(*taps) if name is not None]
    await other.close()

    assert sorted(won) == sorted(names)


async def test_claim_and_expiry_and_cancel_racing_settle_it_once(db: Database, clock: FrozenClock):
    other = await Database.open(db.path, durable=True)
    for n in range(8):
        name = f"q{n}"
        await ask(db, question(clock, name))
        ends = await asyncio.gather(
            claim(db, clock, name),
            settle(other, clock, "cancelled", name),
            settle(db, clock, "expired", name),
            claim(other, clock, name),
        )
        claims = [end for end in (ends[0], ends[3]) if end is not None]
        assert len(claims) <= 1
        # What was claimed may still be cancelled, and nothing else happens to it.
        assert [bool(ends[1]), bool(ends[2])].count(True) == 1 or (claims and not ends[2])
        assert await state_of(db, name) is not SuspensionState.OPEN
    await other.close()


@pytest.mark.parametrize(("passed_s", "is_open"), [(599.999, True), (600, False), (86_400, False)])
async def test_claim_after_the_end_is_refused(
    db: Database, clock: FrozenClock, passed_s: float, is_open: bool
):
    await ask(db, question(clock), t="yes")
    clock.advance(passed_s)

    async with db.read() as tx:
        here = await suspensions.open_of(tx, CHAT, "ada", clock.now())
        due = await suspensions.due(tx, clock.now())
    pressed = await press(db, clock, "t")

    assert [len(here), len(due)] == ([1, 0] if is_open else [0, 1])
    assert pressed is not None
    assert pressed.standing is (Standing.OPEN if is_open else Standing.EXPIRED)
    assert (await claim(db, clock) is not None) is is_open


async def test_expired_question_is_told_once_and_stays_expired(db: Database, clock: FrozenClock):
    await ask(db, question(clock), t="yes")
    clock.advance(TTL)

    assert await settle(db, clock, "expired")
    assert not await settle(db, clock, "expired")
    pressed = await press(db, clock, "t")
    async with db.read() as tx:
        assert await suspensions.due(tx, clock.now()) == []
        assert await suspensions.next_expiry(tx) is None

    assert pressed is not None
    assert pressed.standing is Standing.EXPIRED
    assert await claim(db, clock) is None


@pytest.mark.parametrize(
    ("actor", "chat", "message", "standing"),
    [
        ("ada", CHAT, None, Standing.OPEN),
        ("ada", CHAT, "77", Standing.OPEN),
        ("luca", CHAT, "77", Standing.FOREIGN),
        ("ada", "telegram:2:", "77", Standing.FOREIGN),
        ("ada", "telegram:1:9", "77", Standing.FOREIGN),
        ("ada", CHAT, "78", Standing.OVER),
    ],
    ids=["own", "own message", "guest", "forwarded chat", "other topic", "copied message"],
)
async def test_button_works_only_for_its_person_in_its_place(
    db: Database,
    clock: FrozenClock,
    actor: str,
    chat: str,
    message: str | None,
    standing: Standing,
):
    await ask(db, question(clock), t="yes")
    await show(db, clock, "turn-q:q1", "77")

    pressed = await press(db, clock, "t", actor=actor, chat=chat, message=message)

    assert pressed is not None
    assert (pressed.standing, pressed.choice) == (standing, "yes")
    assert await state_of(db) is SuspensionState.OPEN


async def test_button_pressed_before_its_message_is_known_works(db: Database, clock: FrozenClock):
    """The tap may come in before the sender has noted the message's id."""
    await ask(db, question(clock), t="yes")
    async with db.write() as tx:
        await outbox.enqueue(tx, "turn-q:q1", ChatAddress.from_key(CHAT), {}, clock.now())
        await outbox.claim_next(tx, "telegram", now=clock.now())

    pressed = await press(db, clock, "t", message="77")

    assert pressed is not None
    assert pressed.standing is Standing.OPEN


@pytest.mark.parametrize("token", ["", "T", "t ", "x" * 10_000, "\ud800", "t\0"])
async def test_forged_button_is_nothing(db: Database, clock: FrozenClock, token: str):
    await ask(db, question(clock), t="yes")

    assert await press(db, clock, token) is None


async def test_tokens_are_stored_as_hashes_only(db: Database, clock: FrozenClock):
    await ask(db, question(clock), unguessable="yes")

    async with db.read() as tx:
        rows = await tx.fetch_all("SELECT * FROM suspension_tokens")
    assert "unguessable" not in str([tuple(row) for row in rows])


@pytest.mark.parametrize("end", ["done", "cancelled", "indeterminate"])
async def test_button_of_a_settled_question_is_over_and_nothing_is_kept(
    db: Database, clock: FrozenClock, end: str
):
    await ask(db, replace(question(clock, "q", NAME, WHO), values={"name": "N"}), t="a")
    await claim(db, clock)

    assert await settle(db, clock, end)
    pressed = await press(db, clock, "t")
    async with db.read() as tx:
        row = await tx.fetch_one("SELECT state_json, values_json FROM suspensions")

    assert pressed is not None
    assert pressed.standing is Standing.OVER
    assert row is not None
    assert tuple(row) == (None, None)


@pytest.mark.parametrize(
    ("claimed", "end", "may"),
    [
        (False, "done", False),
        (False, "indeterminate", False),
        (False, "cancelled", True),
        (False, "expired", True),
        (True, "done", True),
        (True, "indeterminate", True),
        (True, "cancelled", True),
        (True, "expired", False),
    ],
)
async def test_settle_only_as_the_states_allow(
    db: Database, clock: FrozenClock, claimed: bool, end: str, may: bool
):
    await ask(db, question(clock))
    if claimed:
        await claim(db, clock)

    assert await settle(db, clock, end) is may
    assert await settle(db, clock, "cancelled") is (not may)


@pytest.mark.parametrize("end", ["open", "claimed"])
async def test_settle_never_opens_or_claims(db: Database, clock: FrozenClock, end: str):
    await ask(db, question(clock))

    with pytest.raises(ValueError, match=end):
        await settle(db, clock, end)


async def test_open_of_newest_first_and_only_of_this_person_and_place(
    db: Database, clock: FrozenClock
):
    await ask(db, question(clock, "first"))
    await ask(db, question(clock, "second"))  # in the same instant
    clock.advance(1)
    await ask(db, question(clock, "third"))
    await ask(db, question(clock, "guest", actor="luca"))
    await ask(db, question(clock, "elsewhere", chat="telegram:2:"))
    await ask(db, question(clock, "taken"))
    await claim(db, clock, "taken")

    async with db.read() as tx:
        here = await suspensions.open_of(tx, CHAT, "ada", clock.now())

    assert [one.id for one in here] == ["third", "second", "first"]


async def test_form_advances_field_by_field_and_voids_earlier_buttons(
    db: Database, clock: FrozenClock
):
    asked = await ask(db, question(clock, "q", WHO, NAME), t1="a", t2="b")
    await show(db, clock, "turn-q:q1", "77")

    async with db.write() as tx:
        moved = await suspensions.advance(
            tx, asked, {"who": "a"}, now=clock.now(), prompt_key="turn-q:q2"
        )
        late = await suspensions.advance(tx, asked, {"who": "b"}, now=clock.now())
    old_tap = await press(db, clock, "t2", message="77")
    claimed = await claim(db, clock)

    assert moved is not None
    assert (moved.cursor, moved.asked, moved.is_last) == (1, NAME, True)
    assert late is None
    assert old_tap is not None
    assert old_tap.standing is Standing.OVER
    assert claimed == Claimed(moved, STATE)
    assert (moved.prompt_key, moved.message_id) == ("turn-q:q2", None)
    assert moved.expires_at == asked.expires_at


async def test_form_may_stay_at_a_field_to_gather_choices(db: Database, clock: FrozenClock):
    asked = await ask(db, question(clock, "q", WHO), t1="a")

    async with db.write() as tx:
        moved = await suspensions.advance(
            tx, asked, {"who": ["a"]}, now=clock.now(), to=0, tokens={"t3": "ready"}
        )
    first, ready = await press(db, clock, "t1"), await press(db, clock, "t3")

    assert moved is not None
    assert moved.values == {"who": ["a"]}
    assert [p.standing for p in (first, ready) if p] == [Standing.OPEN, Standing.OPEN]


async def test_form_does_not_advance_after_its_end_or_claim(db: Database, clock: FrozenClock):
    asked = await ask(db, question(clock, "q", WHO, NAME))
    taken = await ask(db, question(clock, "taken", WHO, NAME))
    await claim(db, clock, "taken")
    clock.advance(TTL)

    async with db.write() as tx:
        assert await suspensions.advance(tx, asked, {"who": "a"}, now=clock.now()) is None
        assert await suspensions.advance(tx, taken, {"who": "a"}, now=clock.now()) is None


async def test_secret_is_never_stored(db: Database, clock: FrozenClock):
    asked = await ask(db, question(clock, "q", NAME, SECRET))

    with pytest.raises(ValueError, match="pw"):
        async with db.write() as tx:
            await suspensions.advance(tx, asked, {"name": "a", "pw": "hunter2"}, now=clock.now())
    with pytest.raises(ValueError, match="pw"):
        await ask(db, replace(asked, id="r", values={"pw": "hunter2"}))

    assert await state_of(db) is SuspensionState.OPEN
    assert await state_of(db, "r") is None
    async with db.read() as tx:
        rows = await tx.fetch_all("SELECT * FROM suspensions")
    assert "hunter2" not in str([tuple(row) for row in rows])
    handle = "secret:" + "0" * 32
    async with db.write() as tx:
        moved = await suspensions.advance(tx, asked, {"pw": handle}, now=clock.now())
    assert moved is not None
    assert moved.values == {"pw": handle}


async def test_open_twice_or_with_a_known_token_keeps_nothing_of_it(
    db: Database, clock: FrozenClock
):
    await ask(db, question(clock), t="yes")

    with pytest.raises(StoreError):
        await ask(db, question(clock))
    with pytest.raises(StoreError):
        await ask(db, question(clock, "other"), t="no")

    assert await state_of(db, "other") is None
    pressed = await press(db, clock, "t")
    assert pressed is not None
    assert (pressed.choice, pressed.suspension.id) == ("yes", "q")


async def test_reply_finds_its_question_also_when_it_is_over(db: Database, clock: FrozenClock):
    await ask(db, question(clock))
    await show(db, clock, "turn-q:q1", "77")
    await settle(db, clock, "cancelled")

    async with db.read() as tx:
        by_id = await suspensions.find_by_message(tx, CHAT, "ada", "77")
        by_key = await suspensions.find_by_message(tx, CHAT, "ada", "turn-q:q1")
        of_guest = await suspensions.find_by_message(tx, CHAT, "luca", "77")

    assert by_id is not None
    assert by_id == by_key
    assert by_id[1] is SuspensionState.CANCELLED
    assert of_guest is None


async def test_question_said_twice_stands_in_its_second_message(db: Database, clock: FrozenClock):
    await ask(db, question(clock), t="yes")
    await show(db, clock, "turn-q:q1", "78", twice=True)

    async with db.read() as tx:
        here = await suspensions.open_of(tx, CHAT, "ada", clock.now())
    pressed = await press(db, clock, "t", message="78")

    assert [one.message_id for one in here] == ["78"]
    assert dialog_answers.which(here, "boh", "78", lang="it", today=clock.now().date()) == here[0]
    assert pressed is not None
    assert pressed.standing is Standing.OPEN


async def test_question_said_twice_may_be_pressed_in_its_first_message(
    db: Database, clock: FrozenClock
):
    """Which message that is nobody knows; who presses it sees nothing wrong with it."""
    await ask(db, question(clock), t="yes")
    await show(db, clock, "turn-q:q1", "78", twice=True)

    pressed = await press(db, clock, "t", message="77")
    foreign = await press(db, clock, "t", message="77", actor="luca")

    assert pressed is not None
    assert pressed.standing is Standing.OPEN
    assert foreign is not None
    assert foreign.standing is Standing.FOREIGN


async def test_question_asked_again_leaves_its_former_message(db: Database, clock: FrozenClock):
    """The wrong shape, a list to look at: the same field stands in a new message."""
    asked = await ask(db, question(clock), t1="yes")
    await show(db, clock, "turn-q:q1", "77")
    async with db.write() as tx:
        await suspensions.advance(
            tx, asked, {}, now=clock.now(), to=0, tokens={"t2": "yes"}, prompt_key="turn-q:q2"
        )
    await show(db, clock, "turn-q:q2", "78")

    old = await press(db, clock, "t1", message="77")
    new = await press(db, clock, "t2", message="78")
    async with db.read() as tx:
        reply_to_old = await suspensions.find_by_message(tx, CHAT, "ada", "77")

    assert [p.standing for p in (old, new) if p] == [Standing.OVER, Standing.OPEN]
    assert reply_to_old is None


async def test_restart_keeps_open_questions_and_shows_claimed_ones(
    db: Database, clock: FrozenClock
):
    await ask(db, question(clock), t="yes")
    taken = await ask(db, question(clock, "taken"))
    await claim(db, clock, "taken")
    again = await Database.open(db.path, durable=True)
    await migrate(again, MAIN, clock)

    async with again.read() as tx:
        left = await suspensions.claimed_unsettled(tx)
        soonest = await suspensions.next_expiry(tx)
    assert await settle(again, clock, "indeterminate", "taken")
    assert await claim(again, clock) is not None
    await again.close()

    assert left == [Claimed(taken, STATE)]
    assert soonest == clock.now() + TTL


async def test_due_oldest_first(db: Database, clock: FrozenClock):
    for name, seconds in (("late", 50), ("soon", 10), ("never", 500)):
        asked = question(clock, name)
        await ask(db, replace(asked, expires_at=clock.now() + timedelta(seconds=seconds)))
    clock.advance(60)

    async with db.read() as tx:
        assert [one.id for one in await suspensions.due(tx, clock.now())] == ["soon", "late"]
        assert await suspensions.next_expiry(tx) == clock.now() - timedelta(seconds=50)


async def test_tidy_drops_settled_questions_with_their_tokens(stores: Stores, clock: FrozenClock):
    db = stores.main
    await ask(db, question(clock, "settled"), t1="yes")
    await settle(db, clock, "cancelled", "settled")
    await ask(db, question(clock, "left"), t2="yes")
    clock.advance(timedelta(days=8))

    await tidy(stores, clock.now())
    await tidy(stores, clock.now())

    async with db.read() as tx:
        rows = await tx.fetch_all("SELECT suspension_id FROM suspension_tokens")
    assert await state_of(db, "settled") is None
    assert [row["suspension_id"] for row in rows] == ["left"]
