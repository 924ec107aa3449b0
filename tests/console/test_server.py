"""The socket of the console: loaded at the first knock, bounded, and no trouble for the bot."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.app import House, open_house
from bot.cli.checks import Doctor, State
from bot.cli.output import Console
from bot.console import server, serving
from bot.console.server import ConsoleServer
from bot.telegram.commands import Commands
from bot.telegram.inbound import Command, Origin
from core.messages import Actor, ChatAddress, Role
from core.store import actors
from tests.console.conftest import QuietEngine, open_console
from tests.support.house import house_settings, until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def served(tmp_path: Path, port: int) -> AsyncIterator[tuple[House, ConsoleServer]]:
    settings = house_settings(tmp_path, metnos_console_port=port)
    async with open_house(settings, "run") as house:
        async with house.stores.main.write() as tx:
            await actors.ensure_local_host(tx, house.clock)
        console = ConsoleServer(house)
        running = asyncio.create_task(console.run(QuietEngine()))
        try:
            yield house, console
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


def doctor(house: House) -> Doctor:
    return Doctor(Console(house.texts, "it"), house.settings)


async def test_port_that_is_taken_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_AGAIN_S", 0.05)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        async with served(tmp_path, port) as (house, console):
            looked: list[Any] = []
            while not looked or looked[-1].state is State.GOOD:
                looked.append(await asyncio.to_thread(doctor(house).console_page))
            assert looked[-1].state is State.FAULT
            assert str(port) in looked[-1].message
            assert not console.is_open

            other.close()
            await until(lambda: console.is_open)
            found = await asyncio.to_thread(doctor(house).console_page)
            assert found.state is State.GOOD


async def test_console_answers_over_its_socket_and_stops(tmp_path: Path) -> None:
    port = free_port()
    async with served(tmp_path, port) as (house, console):
        await until(lambda: console.is_open)
        async with house.stores.main.read() as tx:
            host = await actors.find_host(tx)
        assert host is not None
        link = await console.link(host)
        base = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=base, timeout=60) as client:
            assert (await client.get(link)).status_code == 401
            secret = link.rpartition("/")[2]
            entered = await client.post("/enter", data={"key": secret}, headers={"origin": base})
            assert entered.status_code == 303
            page = await client.get("/")
        assert page.status_code == 200
        assert "server" not in page.headers
    assert not console.is_open
    with pytest.raises(OSError, match="refused"), socket.socket() as late:
        late.connect(("127.0.0.1", port))


async def test_slow_clients_are_ended_and_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "LIFETIME_S", 1.0)
    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 4)
    port = free_port()
    async with served(tmp_path, port) as (_, console):
        await until(lambda: console.is_open)
        slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(12)]
        for _, writer in slow:
            writer.write(b"GET / HTTP/1.1\r\nHost: 127")

        async with httpx.AsyncClient(timeout=60) as client:
            page = await client.get(f"http://127.0.0.1:{port}/")
        assert page.status_code == 401

        async with asyncio.timeout(60):
            for reader, writer in slow:
                with suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()


class Door:
    """The console as `/console` sees it."""

    def __init__(self, is_open: bool = True) -> None:
        self.is_open, self.tunnel, self.asked = is_open, "ssh -L", 0

    async def link(self, actor: Actor) -> str:
        self.asked += 1
        return "http://127.0.0.1:8765/enter/abc"


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_console_command_lets_in_the_host_alone(tmp_path: Path, lang: str) -> None:
    settings = house_settings(tmp_path)
    async with open_house(settings, "run") as house:
        door = Door()
        texts = house.texts

        def commands(console: Door | None) -> Commands:
            return Commands(
                store=house.stores.main,
                texts=texts,
                clock=house.clock,
                default_lang=lang,
                tz="Europe/Rome",
                console=console,
            )

        async def say(console: Door | None, role: Role, chat: str = "7") -> str:
            origin = Origin(ChatAddress("telegram", chat), "7", "Anna", lang, 5)
            actor = Actor("a", role, "Anna", lang=lang)
            return (await commands(console).run(Command(origin, "console", ""), actor))[0]

        told = await say(door, Role.HOST)
        refusals = [
            await say(door, Role.GUEST),
            await say(door, Role.HOST, "-5"),
            await say(None, Role.HOST),
            await say(Door(is_open=False), Role.HOST),
        ]

    assert "/enter/abc" in told
    assert "ssh -L" in told
    assert door.asked == 1
    assert len(set(refusals)) == 4
    assert not any("/enter/" in refusal for refusal in refusals)


async def test_cookie_is_secure_behind_tls_alone(tmp_path: Path) -> None:
    name = "metnos.home.example"
    async with open_console(tmp_path, metnos_console_hosts=(name,)) as console:
        plain = await console.enter(console.stranger, await console.link())
        behind = await console.enter(
            console.stranger, await console.link(), host=name, origin=f"https://{name}"
        )

    assert plain.status_code == behind.status_code == 303
    assert "Secure" not in plain.headers["set-cookie"]
    assert "Secure" in behind.headers["set-cookie"]
