"""A running bot among a fake Bot API and a scripted model, with people it knows already.

The servers run on threads of this process, as they did for the other assistants, so their own work
is part of every time taken here.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.clock import SystemClock
from core.config import Settings
from core.messages import Role
from core.store import actors
from core.store.stores import open_stores
from tests.support.executors import signed_home
from tests.support.scripted_model import Ask, Rule
from tests.support.world import World, open_world

_ANSWER_S = 30.0

# Requests are `plain 3` or `clock 3`: the number comes back, so that an answer is known by it.
RULES = (
    Rule(user="^plain", text=lambda ask: f"Va bene: {ask.user}."),
    Rule(user="^clock", after=0, calls=[("get_now", {})]),
    Rule(user="^clock", after=1, text=lambda ask: f"Ecco: {ask.user}."),
    Rule(user="^files", after=0, calls=[("find_files", {"base_path": "~/notes"})]),
    Rule(user="^files", after=1, text=lambda ask: f"Trovati: {ask.user}."),
    Rule(user="^read", after=0, calls=[("read_files", {"paths": ["~/notes/diary.md"]})]),
    Rule(user="^read", after=1, text=lambda ask: f"Letto: {ask.user}."),
    Rule(user="^write", after=0, calls=lambda ask: [("write_files", _written(ask))]),
    Rule(user="^write", after=1, text=lambda ask: f"Finito: {ask.user}."),
    Rule(
        user="^long", text=lambda ask: f"{ask.user}.\n\n" + "Una riga di testo qualsiasi.\n" * 350
    ),
    Rule(user="^wrong", after=0, calls=[("no_such_tool", {})]),
    Rule(user="^wrong", after=1, text=lambda ask: f"Non riesco: {ask.user}."),
)
MIXED = ("plain", "clock", "files", "read", "write", "long", "wrong")


def _written(ask: Ask) -> dict[str, Any]:
    return {"path": f"~/notes/{ask.user.replace(' ', '_')}.txt", "content": "riga\n" * 200}


class Town:
    """The bot's people by name, and the times at which they are answered."""

    def __init__(self, world: World, names: Sequence[str]) -> None:
        self.world, self.names, self.telegram = world, tuple(names), world.telegram

    def start(self) -> tuple[int, float]:
        """Start the bot; its process id, and the seconds from there to its first poll."""
        since, begun = len(self.telegram.tg.events), time.time()
        pid: int = self.telegram.start_bot()
        first = next(e for e in self.telegram.tg.events[since:] if e["kind"] == "poll")
        return pid, first["t"] - begun

    def say(self, name: str, text: str) -> tuple[str, str, int, float]:
        """Put one message in the queue; what `answered_after` wants to know of it."""
        since, begun = len(self.telegram.tg.events), time.time()
        self.telegram.say(name, text)
        return name, text, since, begun

    def answered_after(self, said: tuple[str, str, int, float], sign: str = "") -> float:
        """Seconds from the message in the queue to the first send or edit that holds its answer,
        which is known by its `sign` or else by the request.

        Raises `TimeoutError` with the end of the bot's log when none comes.
        """
        name, text, at, begun = said
        chat, events = self.telegram.names[name], self.telegram.tg.events
        while time.time() - begun < _ANSWER_S:
            end = len(events)
            for event in events[at:end]:
                shown = (event.get("message") or {}).get("text") or ""
                spoken = event["kind"] in {"send", "edit"} and event["chat_id"] == chat
                if spoken and (sign or f"{text}.") in shown:
                    return float(event["t"] - begun)
            at = end
            time.sleep(0.004)
        raise TimeoutError(f"no answer to {text!r}\n{self.telegram.tail()}")

    def ask(self, name: str, text: str, sign: str = "") -> float:
        return self.answered_after(self.say(name, text), sign)


@contextmanager
def open_town(people: int, rules: Sequence[Rule] = RULES, **env: str) -> Iterator[Town]:
    """A home whose bot knows `people`, the first of them as its host. It is not started."""
    names = [f"user{n:02}" for n in range(people)]
    with tempfile.TemporaryDirectory(prefix="metnos-bench-") as folder:
        tmp = Path(folder)
        settings = signed_home(tmp)
        with open_world(tmp, rules, **env) as world:
            (world.notes / "diary.md").write_text("una riga del diario\n" * 400, encoding="utf-8")
            ids = [str(world.telegram.user(name, language_code="it")) for name in names]
            asyncio.run(_know(settings, ids))
            world.telegram.forks = False  # the start is measured too
            yield Town(world, names)


async def _know(settings: Settings, senders: Sequence[str]) -> None:
    clock = SystemClock()
    stores = await open_stores(settings, clock)
    try:
        async with stores.main.write() as tx:
            for number, sender in enumerate(senders):
                role = Role.GUEST if number else Role.HOST
                actor = await actors.add(tx, role, "", clock)
                await actors.link(tx, "telegram", sender, actor.id)
    finally:
        await stores.close()
