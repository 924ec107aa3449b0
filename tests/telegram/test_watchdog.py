"""A poll that hangs while everything else works is begun anew, and at last given up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from telegram.error import NetworkError

from bot.telegram.watchdog import Watchdog
from core.errors import ChannelDeaf
from tests.support.clock import FrozenClock


@dataclass
class Ear:
    last_poll_at: float | None = None
    excuse: str = ""


@dataclass
class Bot:
    error: Exception | None = None
    asked: list[None] = field(default_factory=list)

    async def get_me(self):
        self.asked.append(None)
        if self.error is not None:
            raise self.error


@dataclass
class Scene:
    """A minute by a frozen clock for each of the dog's looks."""

    clock: FrozenClock
    ear: Ear
    bot: Bot
    restarts: int = 0
    looks: int = 0
    mends: bool = False

    async def look(self, _: float) -> None:
        self.looks += 1
        if self.looks > 20:
            raise asyncio.CancelledError
        self.clock.advance(60)

    async def restart(self) -> None:
        self.restarts += 1
        if self.mends:
            self.ear.last_poll_at = self.clock.monotonic() + 1e9

    async def run(self) -> None:
        dog = Watchdog(bot=self.bot, ear=self.ear, clock=self.clock, restart=self.restart)  # type: ignore[arg-type]
        await dog.run()


@pytest.fixture
def scene(monkeypatch):
    scene = Scene(FrozenClock(), Ear(), Bot())
    monkeypatch.setattr(asyncio, "sleep", scene.look)
    return scene


async def test_silent_poll_is_begun_anew_once_and_then_given_up(scene):
    with pytest.raises(ChannelDeaf):
        await scene.run()

    assert (scene.restarts, scene.looks) == (1, 4)


async def test_poll_that_lives_again_is_left_alone(scene):
    scene.mends = True

    with pytest.raises(asyncio.CancelledError):
        await scene.run()

    assert scene.restarts == 1


@pytest.mark.parametrize("excuse", ["store", "rival"])
async def test_known_causes_are_waited_out(scene, excuse):
    scene.ear.excuse = excuse

    with pytest.raises(asyncio.CancelledError):
        await scene.run()

    assert (scene.restarts, scene.bot.asked) == (0, [])


async def test_no_network_is_waited_out(scene):
    scene.bot.error = NetworkError("down")

    with pytest.raises(asyncio.CancelledError):
        await scene.run()

    assert scene.restarts == 0
    assert scene.bot.asked


def test_hanging_poll_is_replaced_and_the_waiting_message_answered(world):
    world.know("alice")
    world.env |= {"TEST_LONG_POLL_S": "1", "TEST_SILENT_S": "3"}
    world.start_bot()
    world.say("alice", "echo uno")
    world.expect("alice", "^uno$")
    world.fault("getUpdates", code=-1, delay=600)
    world.say("alice", "echo due")
    world.say("alice", "echo tre")

    world.expect("alice", "^tre$")

    assert world.proc.poll() is None
    assert "polling anew" in world.tail(200)


def test_poll_that_hangs_again_ends_the_bot_with_a_status_of_its_own(world):
    world.know("alice")
    world.env |= {"TEST_LONG_POLL_S": "1", "TEST_SILENT_S": "2"}
    world.start_bot()
    world.fault("getUpdates", code=-1, delay=600, times=1000)

    assert world.proc.wait(60) == 69
    assert len(world.calls("getMe")) > 1
