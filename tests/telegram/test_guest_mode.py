"""Guest mode: named where it is no member, the bot answers once and keeps nothing."""

from __future__ import annotations

import pytest

from bot.telegram.guest_mode import PER_HOUSE, PER_PERSON, Quota
from tests.support.clock import FrozenClock


def test_quota_answers_some_tells_once_and_is_then_silent_for_the_hour():
    clock = FrozenClock()
    quota = Quota(clock)

    first = [quota.take("1") for _ in range(PER_PERSON + 3)]
    other = quota.take("2")
    clock.advance(3601)
    later = quota.take("1")

    assert first == [True] * PER_PERSON + [False, None, None]
    assert (other, later) == (True, True)


def test_quota_of_all_together_ends_before_a_crowd_does():
    quota = Quota(FrozenClock())

    answered = [quota.take(str(n)) for n in range(PER_HOUSE + 5)]

    assert answered == [True] * PER_HOUSE + [False] * 5


def test_guest_mode_is_off_by_default_and_nothing_of_it_is_asked_for(world):
    world.know("anna")
    world.start_bot()
    assert world.guest("anna", "@fake_test_bot che ore sono")
    world.say("anna", "echo sveglia")
    world.expect("anna", "^sveglia$")

    assert "guest_message" not in world.tg.allowed
    assert [e for e in world.tg.events if e["kind"] == "guest"] == []


@pytest.fixture
def open_to_guests(world):
    world.env["METNOS_GUEST_MODE"] = "1"
    world.know("anna")
    world.user("carla", language_code="it")
    world.user("dan", language_code="en")
    world.start_bot()
    return world


def test_stranger_and_host_are_answered_once_each_with_what_is_public(open_to_guests):
    world = open_to_guests
    asked = []
    for name, text in (
        ("carla", "@fake_test_bot che ore sono a Tokyo canarino"),
        ("anna", "che ore sono @fake_test_bot?"),
        ("dan", "@fake_test_bot what time is it"),
    ):
        asked.append(world.guest(name, text))
        world.expect(None, "^pubblico: (che ore sono|what time is it)", kind="guest")
    update = {"update_id": world.tg.next_update, "guest_message": {}}
    world.raw("guest_message", update["guest_message"])
    world.say("anna", "echo viva")
    world.expect("anna", "^viva$")

    answers = [e["message"]["text"] for e in world.tg.events if e["kind"] == "guest"]
    assert answers == [
        "pubblico: che ore sono a Tokyo canarino",
        "pubblico: che ore sono?",
        "pubblico: what time is it",
    ]
    assert "canarino" not in str(world.rows("SELECT * FROM inbox, outbox, turns"))
    assert world.rows("SELECT count(*) FROM inbox") == [(1,)]
    world.assert_clean()


def test_stranger_who_asks_too_often_is_told_once(open_to_guests):
    world = open_to_guests
    for n in range(PER_PERSON + 3):
        world.guest("dan", f"@fake_test_bot question {n}")
    world.expect(None, "I answer again in an hour", kind="guest")
    world.guest("carla", "@fake_test_bot e io")
    world.expect(None, "^pubblico: e io$", kind="guest")

    assert len([e for e in world.tg.events if e["kind"] == "guest"]) == PER_PERSON + 2
