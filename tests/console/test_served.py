"""The console of a real bot: the way in from Telegram and the terminal, over a real socket."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import httpx

from tests.support.world import World, open_world

LINK = re.compile(r"http://127\.0\.0\.1:\d+/enter/[\w-]{43}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) / 1000


def enter(link: str) -> httpx.Client:
    """A browser that opens a link and presses its button."""
    base = link.partition("/enter")[0]
    client = httpx.Client(base_url=base, timeout=60)
    door = client.get(link)
    assert door.status_code == 401
    assert "Entra" in door.text
    secret = link.rpartition("/")[2]
    entered = client.post("/enter", data={"key": secret}, headers={"origin": base})
    assert entered.status_code == 303
    return client


def link_of(world: World, name: str) -> str:
    world.telegram.say(name, "/console")
    world.telegram.expect(name, "/enter/")
    found = LINK.search(world.texts(name)[-1])
    assert found
    return found[0]


def test_console_is_entered_from_telegram_and_the_terminal(tmp_path: Path) -> None:
    port = free_port()
    with open_world(tmp_path, [], METNOS_CONSOLE="on", METNOS_CONSOLE_PORT=str(port)) as world:
        world.telegram.start_bot()
        world.host("anna")
        world.guest("luca")
        world.telegram.say("luca", "/console")
        world.telegram.expect("luca", "solo per chi mi ha in casa")
        pid = world.telegram.proc.pid
        before = resident_mb(pid)

        client = enter(link_of(world, "anna"))
        page = client.get("/")
        menu = re.findall(r'<li><a href="(/[a-z]*)"', page.text)
        assert len(menu) >= 7
        assert {client.get(path).status_code for path in menu * 5} == {200}
        after = resident_mb(pid)

        assert page.status_code == 200
        assert "Panoramica" in page.text
        assert "server" not in page.headers
        assert page.headers["connection"] == "close"
        print(f"console: {before:.0f} MB before the first visit, {after:.0f} MB after")
        assert after - before < 20  # what serves and draws pages, loaded once
        again = httpx.post(
            f"http://127.0.0.1:{port}/enter",
            data={"key": link_of(world, "anna")[-10:]},
            headers={"origin": f"http://127.0.0.1:{port}"},
        )
        assert again.status_code == 401

        told = world.cli("console").stdout
        found = LINK.search(told)
        assert found
        assert f"ssh -N -L {port}:127.0.0.1:{port}" in told
        other = enter(found[0])
        assert other.get("/praxis").status_code == 200
        assert "2" in world.cli("console", "--end-sessions").stdout
        assert client.get("/").status_code == other.get("/").status_code == 401
        world.telegram.stop_bot()
        assert LINK.search(world.telegram.log.read_text(encoding="utf-8")) is None
