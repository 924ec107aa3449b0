"""Memory of the running bot, idle, after turns of every kind, and once the console was used."""

from __future__ import annotations

import re
import socket
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import Any

from tests.bench.figures import resident_mb, times
from tests.bench.town import MIXED, Town, open_town

_PEOPLE = 10
_IDLE_S = 10
_TURNS = 50


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """MiB in RAM: idle, after 50 turns, and after as many again: growth is not warmth."""
    port = _free_port()
    with open_town(_PEOPLE, METNOS_CONSOLE="on", METNOS_CONSOLE_PORT=str(port)) as town:
        pid, _ = town.start()
        time.sleep(times(_IDLE_S, least=1))
        idle, turns = resident_mb(pid), times(_TURNS, least=len(MIXED))
        _turns(town, "a", turns)
        after = resident_mb(pid)
        _turns(town, "b", turns)
        later = resident_mb(pid)
        pages = _visit(town)
        visited = resident_mb(pid)
    return {
        "idle_mb": idle,
        "turns": turns,
        "after_turns_mb": after,
        "after_as_many_again_mb": later,
        "after_console_mb": visited,
        "console_pages": pages,
        "budget_mb": 110,
        "peers_mb": "77-1316 after 50 turns",
    }


def _turns(town: Town, label: str, count: int) -> None:
    for number in range(count):
        # The host is whom files may be written for; the others ask for what anybody may.
        kind = MIXED[number % len(MIXED)]
        own = kind in {"files", "read", "write"}
        name = town.names[0] if own else town.names[1 + number % (_PEOPLE - 1)]
        town.ask(name, f"{kind} {label}{number}")


def _visit(town: Town) -> int:
    """Enter the console by the link that the bot gives, and look at every page of the menu; how
    many there were."""
    name = town.names[0]
    town.telegram.say(name, "/console")
    text = town.telegram.expect(name, r"http://")["message"]["text"]
    door = re.search(r"http://\S+", text)
    assert door is not None, text
    split = urllib.parse.urlsplit(door.group())
    origin = f"{split.scheme}://{split.netloc}"
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    key = urllib.parse.urlencode({"key": split.path.rpartition("/")[2]}).encode()
    entered = urllib.request.Request(f"{origin}/enter", data=key, headers={"Origin": origin})
    with browser.open(entered, timeout=30) as page:
        first = page.read().decode()
    menu = sorted(set(re.findall(r'href="(/\w+)"', first)))
    for path in menu:
        with browser.open(f"{origin}{path}", timeout=30) as page:
            page.read()
    return len(menu)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
