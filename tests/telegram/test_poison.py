"""Updates that are not as Telegram promises: none of them ends the bot or holds the others up."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.telegram import gathering
from bot.telegram.client import build_bot
from bot.telegram.groups import addressed, change_of
from bot.telegram.identity import Identity
from bot.telegram.inbound import read
from bot.telegram.intake import Intake
from bot.telegram.numbers import UNREADABLE, update_id
from bot.telegram.reach import Reach
from bot.telegram.screening import lane, screen, sender_of, tap_id
from bot.telegram.sifting import Sifter, readable
from core.config import load_settings
from core.i18n import Texts
from core.messages import Role
from core.store import actors, chats, inbox
from core.store.chats import ChatState
from core.store.stores import Stores, open_stores
from tests.support.clock import FrozenClock
from tests.telegram.test_webhook import SECRET, free_port

SCALE = float(os.environ.get("METNOS_TEST_SCALE") or 0.2)
CHECKS = list(HealthCheck)

ANNA = {"id": 7, "is_bot": False, "first_name": "Anna", "language_code": "it"}
PRIVATE = {"id": 7, "type": "private"}
GROUP = {"id": -100, "type": "supergroup", "title": "Casa", "is_forum": True}
WORDS = {
    "message_id": 3,
    "date": 1_790_000_000,
    "chat": PRIVATE,
    "from": ANNA,
    "text": "/stop @x_bot",
    "entities": [{"type": "mention", "offset": 6, "length": 6}],
    "media_group_id": "1",
    "message_thread_id": 5,
    "is_topic_message": True,
    "reply_to_message": {"message_id": 1, "date": 1, "chat": PRIVATE, "from": {"id": 1}},
    "location": {"latitude": 45.0, "longitude": 7.0},
    "photo": [{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}],
    "forward_origin": {"type": "user", "date": 1, "sender_user": ANNA},
}
GOOD: list[dict[str, Any]] = [
    {"update_id": 1, "message": WORDS},
    {"update_id": 2, "message": {**WORDS, "chat": GROUP}},
    {"update_id": 3, "edited_message": {**WORDS, "chat": GROUP}},
    {"update_id": 4, "edited_message": {k: v for k, v in WORDS.items() if k != "location"}},
    {
        "update_id": 5,
        "callback_query": {
            "id": "9",
            "from": ANNA,
            "chat_instance": "1",
            "message": WORDS,
            "data": "x:1",
        },
    },
    {
        "update_id": 6,
        "message_reaction": {
            "chat": PRIVATE,
            "message_id": 3,
            "user": ANNA,
            "date": 1,
            "old_reaction": [],
            "new_reaction": [{"type": "emoji", "emoji": "👍"}],
        },
    },
    {
        "update_id": 7,
        "my_chat_member": {
            "chat": GROUP,
            "from": ANNA,
            "date": 1,
            "old_chat_member": {"status": "left", "user": ANNA},
            "new_chat_member": {"status": "member", "user": ANNA},
        },
    },
    {"update_id": 8, "message": {**WORDS, "chat": GROUP, "migrate_to_chat_id": -200}},
    {"update_id": 9, "guest_message": {**WORDS, "chat": GROUP, "guest_query_id": "1"}},
    {"update_id": 10, "message": {"message_id": 1, "date": 1, "chat": PRIVATE, "from": ANNA}},
]

numbers = st.sampled_from([0, -1, 7, 2**31, 2**53, 2**63, -(2**70), 10**400]) | st.integers()
scalars = (
    st.none()
    | st.booleans()
    | numbers
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\ud83d", "\ude00\ud83d", "\0", "/stop", "/start ABCD", "private", "7", ""])
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "chat", "from", "type", "text", "message", "message_id"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


def paths(value: Any, so_far: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value, as the keys that lead to it."""
    yield so_far
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, inner in pairs:
        yield from paths(inner, (*so_far, key))


SPOTS = [[path for path in paths(one) if path] for one in GOOD]


@st.composite
def spoilt(draw: st.DrawFn) -> Any:
    """A good update in which up to three places hold something else, or nothing at all."""
    which = draw(st.integers(0, len(GOOD) - 1))
    update = copy.deepcopy(GOOD[which])
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(SPOTS[which]))
        place: Any = update
        try:
            for key in path[:-1]:
                place = place[key]
            if draw(st.booleans()):
                place[path[-1]] = draw(anything)
            else:
                del place[path[-1]]
        except (LookupError, TypeError):  # spoilt further up already
            continue
    return update


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@settings(max_examples=round(2500 * SCALE), deadline=None, suppress_health_check=CHECKS)
@given(spoilt() | anything)
def test_what_reads_updates_raises_only_what_it_says(raw):
    lane(raw)
    sender_of(raw)
    update_id(raw)
    readable([raw])
    for reader in (screen, change_of):
        with contextlib.suppress(*UNREADABLE):
            reader(raw)
    if not isinstance(raw, dict):
        return
    tap_id(raw)
    with contextlib.suppress(ValueError):
        read(raw, bot_id="1")
    body = {"update": raw}
    gathering.waits_s([body])
    gathering.belongs([body], body)
    gathering.album_key(body)
    message = raw.get("message")
    if isinstance(message, dict):
        with contextlib.suppress(*UNREADABLE):
            addressed(message, bot_id="1", username="x_bot", commands={"stop"})


class Door:
    """A real intake over a real store, and what is asked of it."""

    def __init__(self, stores: Stores, clock: FrozenClock) -> None:
        bot = build_bot("1:ABCDEFGHIJKL", "http://127.0.0.1:9", "http://127.0.0.1:9")
        identity = Identity(bot, "1")
        identity.username = "x_bot"
        texts = Texts.load(Path(__file__).parents[2] / "locales")
        self.stores = stores
        sifter = Sifter(
            identity=identity,
            clock=clock,
            is_locked=lambda _: False,
            commands={"stop"},
            reach=Reach(store=stores.main, texts=texts, clock=clock, lang="it"),
        )
        self.intake = Intake(
            bot_id="1",
            sifter=sifter,
            store=stores.main,
            vault=stores.vault,
            clock=clock,
            on_stored=lambda: None,
            slow=self.nothing,
        )

    async def nothing(self, updates: list[Any]) -> None:
        return

    async def keep(self, updates: list[Any], next_offset: int) -> list[inbox.StoredInbox]:
        """What is stored of these, and of nothing else."""
        async with self.stores.main.write() as tx:
            await tx.execute("DELETE FROM inbox")
            await tx.execute("UPDATE chats SET state = 'on', moved_to = NULL")
        await self.intake.keep(updates, next_offset)
        async with self.stores.main.read() as tx:
            return await inbox.open_rows(tx, "telegram", "1", vault=self.stores.vault)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[tuple[asyncio.Runner, Door]]:
    clock = FrozenClock()

    async def make() -> Stores:
        stores = await open_stores(load_settings(metnos_home=tmp_path / "home"), clock)
        async with stores.main.write() as tx:
            anna = await actors.add(tx, Role.HOST, "Anna", clock)
            await actors.link(tx, "telegram", "7", anna.id)
            now = clock.now()
            await chats.meet(tx, "telegram", "-100", title="Casa", is_forum=True, now=now)
            await chats.set_state(tx, "telegram", "-100", ChatState.ON, now)
        return stores

    with asyncio.Runner() as runner:
        stores = runner.run(make())
        yield runner, Door(stores, clock)
        runner.run(stores.close())


def test_spoilt_updates_are_stored_or_left_out_and_the_others_of_their_batch_come_in(door):
    runner, house = door
    counted = {"updates": 0, "kept": 0, "empty": 0}

    @settings(max_examples=round(400 * SCALE), deadline=None, suppress_health_check=CHECKS)
    @given(st.lists(spoilt() | anything, min_size=5, max_size=20))
    def sift(updates: list[Any]) -> None:
        for number, one in enumerate(updates):
            if isinstance(one, dict) and isinstance(one.get("update_id"), int):
                one["update_id"] = 1000 + number
        good = {"update_id": 5000, "message": {**WORDS, "chat": PRIVATE, "text": "ciao"}}
        rows = runner.run(house.keep([*updates, good], 5001))

        assert rows[-1].update_id == 5000
        assert rows[-1].body["update"]["message"]["text"] == "ciao"
        assert runner.run(house.intake.first_offset()) == 5001
        counted["updates"] += len(updates)
        counted["kept"] += len(rows) - 1
        counted["empty"] += sum(1 for row in rows if not row.body)

    sift()

    print(f"\n{counted}")
    assert counted["kept"] > counted["empty"] > 0


@pytest.mark.parametrize(
    "poison",
    [
        {"update_id": True, "message": WORDS},
        {"update_id": 2**63, "message": WORDS},
        {"update_id": 6, "message": {**WORDS, "from": {**ANNA, "id": float("inf")}}},
        {"update_id": 6, "message": {**WORDS, "text": "\ud83d\0"}},
        {"update_id": 6, "message": {**WORDS, "x": deep(400)}},
        {"update_id": 6, "message": {**WORDS, "x": deep(100_000)}},
        {"update_id": 6, "message": {**WORDS, "chat": {**GROUP, "title": "\ud83d"}}},
        ["update_id"],
        "message",
        None,
    ],
    ids=["bool", "huge", "inf", "surrogate", "deep", "abyss", "title", "list", "text", "none"],
)
def test_one_poison_among_good_ones_holds_nothing_up(door, poison):
    runner, house = door
    good = [{"update_id": n, "message": {**WORDS, "text": "ciao"}} for n in (5, 7)]

    rows = runner.run(house.keep([good[0], poison, good[1]], 8))

    assert [row.update_id for row in rows if row.update_id != 6] == [5, 7]
    assert all(row.body for row in rows if row.update_id != 6)
    assert runner.run(house.intake.first_offset()) == 8


# What passes the door because of who sent it, and cannot be worked.
def poisons(sender: dict[str, Any]) -> list[tuple[str, Any]]:
    chat = {"id": sender["id"], "type": "private"}
    said = {"message_id": 900, "date": 1, "chat": chat, "from": sender}
    without_number = {k: v for k, v in said.items() if k != "message_id"}
    return [
        ("edited_message", {**without_number, "text": "echo corretto"}),
        ("edited_message", {**said, "message_id": [1], "text": "echo corretto"}),
        ("edited_message", "nonsense"),
        ("message", {**said, "text": 5}),
        ("message", {**said, "text": {"a": 1}, "media_group_id": "1"}),
        ("message", {**said, "date": 10**30, "text": "echo futuro"}),
        ("message", {**said, "photo": [{}]}),
        ("message", {**said, "from": {**sender, "language_code": 5}, "text": "/status"}),
        ("message", ["nonsense"]),
        ("callback_query", {"id": 5, "from": sender, "message": {"chat": chat}, "data": [1]}),
        ("message_reaction", {"user": sender, "chat": chat, "new_reaction": 5}),
        ("my_chat_member", {"chat": {"id": "x", "type": "group"}}),
    ]


def test_poison_neither_ends_the_process_nor_comes_again_after_a_restart(world):
    world.know("alice")
    sender = world.tg.users[world.names["alice"]]
    for kind, content in poisons(sender):
        world.raw(kind, content)
    world.say("alice", "echo in mezzo")
    world.start_bot()
    world.expect("alice", "^in mezzo$")
    for kind, content in poisons(sender):
        world.raw(kind, content)
    world.say("alice", "echo ancora")
    world.expect("alice", "^ancora$")
    world.stop_bot()
    world.start_bot()
    world.say("alice", "echo fine")
    world.expect("alice", "^fine$")

    assert not world.tg.updates, "all acknowledged"
    assert "echo corretto" not in world.log.read_text()
    open_now = "SELECT count(*) FROM inbox WHERE state NOT IN ('done', 'dead')"
    world._wait(lambda: world.rows(open_now) == [(0,)], 45, "all worked")


def test_poison_that_is_brought_is_acknowledged_and_the_next_is_worked(world):
    port = free_port()
    world.know("alice")
    world.env |= {
        "METNOS_WEBHOOK_URL": f"http://127.0.0.1:{port}/hook",
        "METNOS_WEBHOOK_PORT": str(port),
        "METNOS_WEBHOOK_SECRET": SECRET,
    }
    world.start_bot()
    statuses = []
    for number, (kind, content) in enumerate(poisons(world.tg.users[world.names["alice"]])):
        body = json.dumps({"update_id": 7000 + number, kind: content}).encode()
        headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/hook", body, headers)
        with urllib.request.urlopen(request, timeout=45) as answer:
            statuses.append(answer.status)
    world.say("alice", "echo fine")
    world.expect("alice", "^fine$")

    assert set(statuses) == {200}
