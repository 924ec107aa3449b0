"""A house inside this process with a model that answers at once and executors that are timed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from bot.app import House, open_house
from core.execution.cage.process import ProcessCage
from core.llm.client import ChatReply, ChatRequest
from core.llm.tiers import Tiers
from core.observation import Observation
from core.store import actors
from tests.support.executors import signed_home
from tests.support.house import house_settings

Script = Callable[[ChatRequest], ChatReply]


@dataclass(slots=True)
class Room:
    """`notes`: the one root. `requests`: what the model was asked. `apart_s`: seconds spent in
    model and executors, of which `runs` ran."""

    house: House
    notes: Path
    requests: list[ChatRequest] = field(default_factory=list)
    apart_s: float = 0.0
    runs: int = 0


class _Model:
    def __init__(self, room: Room, script: Script) -> None:
        self._room, self._script = room, script

    async def complete(self, request: ChatRequest) -> ChatReply:
        start = time.perf_counter()
        self._room.requests.append(request)
        reply = self._script(request)
        self._room.apart_s += time.perf_counter() - start
        return reply


@asynccontextmanager
async def open_room(script: Script, **settings: Any) -> AsyncIterator[Room]:
    """The house with `script` for every role's model; the person at the terminal is its host."""
    run = ProcessCage.run
    with tempfile.TemporaryDirectory(prefix="metnos-bench-") as folder:
        signed_home(Path(folder))
        async with open_house(
            house_settings(Path(folder), **{"metnos_most_tools": 0, **settings}), "bench"
        ) as house:
            async with house.stores.main.write() as tx:
                await actors.ensure_local_host(tx, house.clock)
            room = Room(house, Path(folder) / "notes")

            async def timed(cage: ProcessCage, *args: Any, **options: Any) -> Observation:
                start = time.perf_counter()
                seen = await run(cage, *args, **options)
                room.apart_s += time.perf_counter() - start
                room.runs += 1
                return seen

            with (
                mock.patch.object(ProcessCage, "run", timed),
                mock.patch.object(Tiers, "for_role", return_value=_Model(room, script)),
            ):
                yield room
