"""`/forget`: of what a person said nothing is left, wherever it was kept; of others nothing goes.

Every table and every file of the home is searched. What is cut short goes on at the next start.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.app import House, open_house
from core.messages import ChatAddress, Inbound, InboundKind, Role, TurnClosed, TurnSuspended
from core.store import actors, forgetting
from core.store.database import Database
from core.store.forgetting import Forgetting
from core.store.turn_log import TurnLog
from tests.acceptance import hoard
from tests.support import house as support
from tests.support.house import LOCAL, events_of, house_settings, open_scripted
from tests.support.scripted_model import Rule

WORD, OTHER = "k4narino", "v0lpino"
LUCA = {"address": ChatAddress("telegram", "7"), "sender_id": "7"}

# What a person did not say, but was given, or counted: it stays, as the question says.
STAYS = {
    "accounts": "where they may log in",
    "actors": "the name",
    "chats": "groups",
    "console_links": "keys to the console, hashed",
    "console_sessions": "keys to the console, hashed",
    "credentials": "passwords, locked",
    "embedder_floors": "how near two meanings are for an embedder",
    "forgetting": "the order itself",
    "grants": "permissions",
    "identities": "who they are in a channel",
    "inbox_offsets": "how far a channel was read",
    "kv": "a channel's state",
    "mcp_servers": "servers that the host connected",
    "mcp_tools": "what servers say, and what the host approved",
    "pairing_attempts": "guesses at codes",
    "pairing_codes": "codes, hashed",
    "stranger_notices": "when a stranger was told something",
    "unreachable": "chats out of reach",
    "usage": "counts",
    "visitors": "who asked to come in",
}
# Names of rows, in the hoard alone made of the canary.
NAMES = {("actions", "token_hash"), ("outbox", "key")}


_ids = itertools.count()


def inbound(text: str, **fields: Any) -> Inbound:
    """Names of messages hold no words in any channel of ours."""
    return support.inbound(text, **{"id": f"test:{next(_ids)}", **fields})


async def ask(house: House, text: str, **fields: Any) -> TurnClosed:
    last = (await events_of(house, inbound(text, **fields)))[-1]
    assert isinstance(last, TurnClosed)
    return last


def rules() -> list[Rule]:
    return [
        Rule(
            user="scrivi",
            after=0,
            calls=[("write_files", {"path": "diario.md", "content": f"{WORD} caro diario"})],
        ),
        Rule(
            user="chiedi",
            after=0,
            calls=[
                (
                    "get_inputs",
                    {"fields": [{"var": "x", "prompt": f"{WORD}, quando?", "kind": "text"}]},
                )
            ],
        ),
        Rule(user="ore", after=0, calls=[("get_now", {})]),
        Rule(text=f"Detto: {WORD}.", user=WORD),
        Rule(text=f"Detto: {OTHER}.", user=OTHER),
        Rule(text="Detto."),
    ]


def tables(house: House) -> Iterator[tuple[Path, str, str, Any]]:
    """Database, table, column and value of everything that is stored."""
    for database in (house.stores.main, house.stores.memory):
        yield from dump(database.path)


def dump(path: Path) -> Iterator[tuple[Path, str, str, Any]]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in names.fetchall():
            for row in connection.execute(f"SELECT * FROM {table}"):
                for column in row.keys():  # noqa: SIM118 - a row is no dict
                    yield path, table, column, row[column]
    finally:
        connection.close()


def files_with(home: Path, word: str, *, but: str = "files") -> list[Path]:
    """Every file of the home, but for people's own, that holds the word in its bytes."""
    return [
        path
        for path in sorted(home.rglob("*"))
        if path.is_file()
        and path.relative_to(home).parts[0] != but
        and word.encode() in path.read_bytes()
    ]


def token_of(closed: TurnClosed, label: str) -> str:
    found = [b.token for row in closed.reply.buttons for b in row if re.search(label, b.label)]
    assert len(found) == 1, closed.reply.buttons
    return found[0]


async def press(house: House, token: str, **fields: Any) -> TurnClosed:
    said = inbound("", kind=InboundKind.CHOICE, data={"token": token}, **fields)
    last = (await events_of(house, said))[-1]
    assert isinstance(last, TurnClosed)
    return last


async def forget(house: House, **fields: Any) -> str:
    """Say `/forget` and yes; what stands in the place of the question then."""
    asked = await ask(house, "/forget", **fields)
    said = inbound("", kind=InboundKind.CHOICE, data={"token": token_of(asked, "^🗑 Sì")}, **fields)
    settled = (await events_of(house, said))[0]
    return str(getattr(settled, "text", settled))


async def talk(house: House) -> None:
    """The host and a guest, each with words of their own in all that turns leave."""
    async with house.stores.main.write() as tx:
        luca = await actors.add(tx, Role.GUEST, "Luca", house.clock)
        await actors.link(tx, "telegram", "7", luca.id)
    for text in (f"scrivi {WORD} nel diario", f"ciao {WORD}", f"che ore sono a {WORD}"):
        assert (await ask(house, text)).error is None, text
    await ask(house, f"ciao {OTHER}", **LUCA)
    last = (await events_of(house, inbound(f"chiedi {WORD}")))[-1]
    assert isinstance(last, TurnSuspended)
    await ask(house, f"ieri {WORD}")
    assert await forgetting_left(house) == []


async def forgetting_left(house: House) -> list[forgetting.Order]:
    async with house.stores.main.read() as tx:
        return await forgetting.orders(tx)


async def test_nothing_is_left_of_a_person_and_all_of_the_others(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, rules()) as (house, _):
        await talk(house)
        home = house.settings.metnos_home
        private, turns = home / "private", home / "turns"
        assert {path.parent for path in files_with(home, WORD)} == {private, turns}
        theirs = [one for one in tables(house) if OTHER in str(one[3])]
        lines = [line for path in turns.iterdir() for line in path.read_bytes().splitlines()]
        others = [line for line in lines if OTHER.encode() in line]
        assert theirs
        assert others

        text = await forget(house)

        assert text.startswith("🗑 Dimenticato alle ")
        assert files_with(home, WORD) == []
        assert [one for one in tables(house) if WORD in str(one[3])] == []
        assert [one for one in tables(house) if OTHER in str(one[3])] == theirs
        after = [line for path in turns.iterdir() for line in path.read_bytes().splitlines()]
        assert len(after) == len(lines)
        assert [line for line in after if OTHER.encode() in line] == others
        counted = [b'"mutations":1' in line for line in lines]
        assert [b'"mutations":1' in line for line in after] == counted
        assert any(counted), "that something was changed stays"
        assert await forgetting_left(house) == []
        assert WORD in (tmp_path / "notes/diario.md").read_text(), "files stay"
        undone = await ask(house, "/undo")
        assert "nulla da annullare" in undone.reply.plain
        assert (await ask(house, f"che ore sono a {WORD}")).reply.plain[-1] != "⚡"


async def test_every_table_of_the_hoard_is_emptied_or_said_to_stay(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, rules()) as (house, _):
        async with house.stores.main.write() as tx:
            host = await actors.ensure_local_host(tx, house.clock)
        held = await hoard.fill(house, host.id)
        async with house.stores.main.write() as tx:
            await actors.link(tx, "telegram", "9", host.id)
        assert set(STAYS) <= {*held, "forgetting"}

        log = TurnLog(house.settings.metnos_home / "turns")
        assert await Forgetting(house.stores, house.clock, log).forget(host.id)

        left = {
            table
            for _, table, column, value in tables(house)
            if re.search(f"{hoard.CANARY}(?!turn)", str(value)) and (table, column) not in NAMES
        }
        assert left == set(STAYS) - {"forgetting"}


def break_in(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Let the engine die there, once everything before it is done."""

    def dies(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    async def dies_awaited(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    match place:
        case "words":
            monkeypatch.setattr(forgetting, "_forget_words", dies_awaited)
        case "memory":
            monkeypatch.setattr(forgetting, "_forget_learnt", dies_awaited)
        case "log":
            monkeypatch.setattr(TurnLog, "rewrite", dies)
        case "copies":
            monkeypatch.setattr(Forgetting, "_drop_copies", dies)
        case "journal":
            monkeypatch.setattr(Database, "settle", dies_awaited)
        case "end":
            monkeypatch.setattr(forgetting, "_note", dies_awaited)


PLACES = ["words", "memory", "log", "copies", "journal", "end"]


async def test_cut_short_anywhere_it_is_finished_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_scripted(tmp_path, rules()) as (house, _):
        home = house.settings.metnos_home
        await talk(house)
        host = await host_of(house)
        for place in PLACES:
            await ask(house, f"che ore sono a {WORD}")
            await cut_short(house, host, monkeypatch, place)

            assert await Forgetting(house.stores, house.clock, TurnLog(home / "turns")).finish()

            assert await forgetting_left(house) == [], place
            assert files_with(home, WORD) == [], place
            assert any(OTHER in str(one[3]) for one in tables(house))


async def test_next_start_finishes_what_was_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_scripted(tmp_path, rules()) as (house, _):
        settings = house.settings
        await ask(house, f"che ore sono a {WORD}")
        await cut_short(house, await host_of(house), monkeypatch, "memory")
        assert [one for one in tables(house) if WORD in str(one[3])]

    async with open_house(settings, "test") as house:
        assert await forgetting_left(house) == []
        assert files_with(settings.metnos_home, WORD) == []


async def host_of(house: House) -> str:
    async with house.stores.main.read() as tx:
        host = await actors.find_host(tx)
    assert host is not None
    return host.id


async def cut_short(
    house: House, actor_id: str, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Begin to forget somebody and die there; the order stands."""
    with monkeypatch.context() as broken:
        break_in(broken, place)
        log = TurnLog(house.settings.metnos_home / "turns")
        with pytest.raises(KeyboardInterrupt):
            await Forgetting(house.stores, house.clock, log).forget(actor_id)
    assert [one.actor_id for one in await forgetting_left(house)] == [actor_id]


async def test_what_is_open_goes_when_it_ends(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, rules()) as (house, _):
        home = house.settings.metnos_home
        await ask(house, f"ciao {WORD}")
        last = (await events_of(house, inbound(f"chiedi a {WORD}")))[-1]
        assert isinstance(last, TurnSuspended)
        asked = await ask(house, "/forget")
        assert "1 richiesta è ancora aperta" in asked.reply.plain

        text = await forget(house)

        assert "ancora aperto" in text
        waiting = {one[1] for one in tables(house) if WORD in str(one[3])}
        assert waiting == {"turns", "suspensions"}
        assert await house.turns.expire() == []
        assert [one.swept for one in await forgetting_left(house)] == [True]
        assert await house.turns.stop(LOCAL, "local")
        await house.turns.expire()
        assert await forgetting_left(house) == []
        assert files_with(home, WORD) == []


async def test_only_its_owner_presses_and_twice_is_once(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, rules()) as (house, _):
        await talk(house)
        asked = await ask(house, "/forget")
        yes, no = token_of(asked, "^🗑 Sì"), token_of(asked, "No$")

        foreign = await press(house, yes, sender_id="7", address=LUCA["address"])
        assert foreign.error is not None
        assert files_with(house.settings.metnos_home, WORD)
        left = await ask(house, "/forget")
        assert (await press(house, token_of(left, "No$"))).error is None
        assert files_with(house.settings.metnos_home, WORD)

        assert (await press(house, yes)).error is None
        assert files_with(house.settings.metnos_home, WORD) == []
        await ask(house, f"ciao {WORD}")
        for token in (yes, no):
            again = await press(house, token)
            assert again.error is not None
        assert files_with(house.settings.metnos_home, WORD), "a new word is not forgotten"


async def test_guest_forgets_for_themselves(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, rules()) as (house, _):
        await talk(house)
        home = house.settings.metnos_home

        assert "ancora aperto" in await forget(house, **LUCA)
        assert {one[1] for one in tables(house) if OTHER in str(one[3])} == {"outbox"}
        assert await house.turns.expire() == []
        async with house.stores.main.write() as tx:
            await tx.execute("UPDATE outbox SET state = 'sent'")
        await house.turns.expire()

        assert await forgetting_left(house) == []
        assert [one for one in tables(house) if OTHER in str(one[3])] == []
        assert files_with(home, WORD)


async def test_copies_from_before_an_upgrade_go_too(tmp_path: Path) -> None:
    settings = house_settings(tmp_path)
    async with open_house(settings, "test") as house:
        async with house.stores.main.write() as tx:
            host = await actors.ensure_local_host(tx, house.clock)
        for name in ("metnos.db.before-3", "memory.db.before-2", "memory.db.damaged"):
            (settings.private_dir / name).write_text(WORD, encoding="utf-8")
        log = TurnLog(settings.metnos_home / "turns")

        assert await Forgetting(house.stores, house.clock, log).forget(host.id)

        assert files_with(settings.metnos_home, WORD) == []
