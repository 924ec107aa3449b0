"""`metnos actors`: who may speak here, beside a bot that may be running."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

import pytest

from core.clock import SystemClock
from core.config import load_settings
from core.messages import Actor, Role
from core.store import actors, grants, visitors
from core.store.database import Transaction
from core.store.grants import GrantKind
from core.store.stores import open_stores
from core.store.visitors import VisitorState
from tests.cli.conftest import Cli

T = TypeVar("T")


def in_store(cli: Cli, work: Callable[[Transaction], Awaitable[T]]) -> T:
    async def go() -> T:
        stores = await open_stores(load_settings(metnos_home=cli.home), SystemClock())
        try:
            async with stores.main.write() as tx:
                return await work(tx)
        finally:
            await stores.close()

    return asyncio.run(go())


@pytest.fixture
def guest(cli: Cli) -> Actor:
    async def make(tx: Transaction) -> Actor:
        clock = SystemClock()
        await actors.ensure_local_host(tx, clock)
        guest = await actors.add(tx, Role.GUEST, "Luca", clock)
        await actors.link(tx, "telegram", "77", guest.id)
        await grants.add(tx, guest.id, GrantKind.HOST, "nas.example", now=clock.now())
        return guest

    return in_store(cli, make)


def listed(cli: Cli) -> dict[str, dict[str, object]]:
    data = json.loads(cli("actors", "list", "--json").out)
    return {one["name"]: one for one in data["actors"]}


@pytest.mark.parametrize("lang", ["it", "en"])
def test_actors_list_shows_host_then_guests(cli: Cli, guest: Actor, lang: str) -> None:
    cli.env(METNOS_LANG=lang)

    ran = cli("actors", "list")

    first, second = ran.out.splitlines()
    assert first.startswith("host")
    assert second.split()[:2] == ["Luca", {"it": "ospite", "en": "guest"}[lang]]
    assert "77" in second
    assert guest.id[:8] in second
    assert listed(cli)["Luca"]["senders"] == [{"channel": "telegram", "id": "77"}]


def test_actors_list_of_an_empty_home_says_how_to_begin(cli: Cli) -> None:
    assert "metnos pair --host" in cli("actors", "list").out


def test_actors_set_changes_each_thing_and_takes_it_back(cli: Cli, guest: Actor) -> None:
    words = "--autonomy read_only --lang en --tz Asia/Tokyo --name Gianluca"
    limits = "--turns-per-hour 5 --tokens-per-day 0 --money-per-day 0,50"
    assert cli("actors", "set", "luca", *words.split(), *limits.split()).status == 0
    after = listed(cli)["Gianluca"]

    words = "--lang default --turns-per-hour default --money-per-day default"
    assert cli("actors", "set", guest.id[:6], *words.split()).status == 0
    back = listed(cli)["Gianluca"]

    assert {k: after[k] for k in ("autonomy", "lang", "tz")} == {
        "autonomy": "read_only", "lang": "en", "tz": "Asia/Tokyo"}  # fmt: skip
    assert (after["turns_per_hour"], after["tokens_per_day"], after["money_per_day"]) == (
        5,
        0,
        0.5,
    )
    assert (back["lang"], back["turns_per_hour"], back["money_per_day"]) == (None, None, None)
    assert back["autonomy"] == "read_only"


@pytest.mark.parametrize("lang", ["it", "en"])
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("set", "Luca"), 2),
        (("set", "Luca", "--name", " "), 2),
        (("set", "Luca", "--autonomy", "all"), 2),
        (("set", "Luca", "--lang", "fr"), 2),
        (("set", "Luca", "--tz", "Rome"), 2),
        (("set", "Luca", "--turns-per-hour", "-1"), 2),
        (("set", "Luca", "--tokens-per-day", "many"), 2),
        (("set", "Luca", "--money-per-day", "nan"), 2),
        (("set", "nobody", "--lang", "it"), 1),
        (("set", "Luca", "--name", "host"), 1),
        (("revoke", "nobody"), 1),
        (("revoke", "host"), 1),
        (("unblock", "12"), 1),
    ],
)
def test_actors_what_cannot_be_done_is_refused_in_a_sentence(
    cli: Cli, guest: Actor, words: tuple[str, ...], status: int, lang: str
) -> None:
    cli.env(METNOS_LANG=lang)
    before = listed(cli)

    ran = cli("actors", *words)

    assert (ran.status, ran.out) == (status, "")
    assert ran.err.strip()
    assert "Traceback" not in ran.err
    assert listed(cli) == before


def test_actors_revoke_takes_right_grants_and_number(cli: Cli, guest: Actor) -> None:
    folder = cli.home / "files" / guest.id
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("x", encoding="utf-8")

    ran = cli("actors", "revoke", "Luca")

    assert ran.status == 0
    assert "Luca" in ran.out
    assert guest.id in ran.out, "where their files are"
    assert list(listed(cli)) == ["host"]
    assert json.loads(cli("grants", "list", "--json").out) == []
    assert in_store(cli, lambda tx: actors.find_actor(tx, "telegram", "77")) is None
    assert cli("actors", "revoke", "Luca").status == 1


def test_two_guests_of_one_name_are_told_apart_by_id(cli: Cli, guest: Actor) -> None:
    other = in_store(cli, lambda tx: actors.add(tx, Role.GUEST, "Luca", SystemClock()))

    assert cli("actors", "revoke", "Luca").status == 1
    assert cli("actors", "revoke", other.id).status == 0
    assert listed(cli)["Luca"]["id"] == guest.id


def test_blocked_stranger_is_listed_and_forgotten(cli: Cli, guest: Actor) -> None:
    now = datetime.now(UTC)

    async def block(tx: Transaction) -> None:
        await visitors.ask(tx, "telegram", "99", "Eve\u202e\n", "it", now)
        await visitors.decide(tx, "telegram", "99", VisitorState.BLOCKED, now)

    in_store(cli, block)

    assert "Blocked: Eve (99)" in cli("actors", "list").out
    assert cli("actors", "unblock", "99").status == 0
    assert "Eve" not in cli("actors", "list").out


def test_grants_add_right_opens_it_to_one_guest_and_nothing_that_is_the_hosts(
    cli: Cli, guest: Actor
) -> None:
    assert cli("grants", "add", "right", "mail:read", "--actor", "Luca").status == 0

    refused = [
        cli("grants", "add", "right", right, "--actor", "Luca").status
        for right in ("code:exec", "system:admin", "mail:send", "metnos:write", "x")
    ]
    kinds = [one["kind"] for one in json.loads(cli("grants", "list", "--json").out)]

    assert refused == [1, 1, 1, 1, 1]
    assert kinds == ["host", "right"]
