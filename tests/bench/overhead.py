"""Everything but model and executors in a turn of three steps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from core.llm.client import ChatReply, ChatRequest
from core.messages import FinalKind
from tests.bench.figures import spread, times
from tests.bench.room import open_room
from tests.support.house import ask
from tests.support.models import calls, plans, says

_REQUEST = "trova i file md nella cartella notes, ordinali per nome e dimmi che ore sono"
_STEPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("find_files", {"base_path": "notes", "patterns": ["*.md"]}),
    ("sort_entries", {"from_step": 1, "by": "name"}),
    ("get_now", {}),
)


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Milliseconds by engine: the time of the turn without that of its model and executors."""
    return {engine: asyncio.run(_engine(engine)) for engine in ("simple", "metis")}


async def _engine(engine: str) -> dict[str, Any]:
    script = _step_by_step if engine == "simple" else _whole
    async with open_room(script, metnos_engine=engine) as room:
        (room.notes / "a.md").write_text("a\n", encoding="utf-8")
        spent, apart = [], []
        for number in range(-3, times(40)):
            room.apart_s, room.runs = 0.0, 0
            start = time.perf_counter()
            closed = await ask(room.house, f"{_REQUEST} ({number})")
            whole = time.perf_counter() - start
            if closed.final_kind is not FinalKind.ANSWER or room.runs != len(_STEPS):
                told = f"{closed.final_kind} after {room.runs} steps: {closed.reply.plain}"
                raise RuntimeError(f"the turn ended as {told}")
            if number >= 0:
                spent.append(whole - room.apart_s)
                apart.append(room.apart_s)
        return {
            "overhead": spread(spent, budget_median_ms=15),
            "executors": spread(apart),
        }


def _step_by_step(request: ChatRequest) -> ChatReply:
    done = 0
    for message in reversed(request.messages):
        if message.role == "user":
            break
        done += message.role == "tool"
    return calls(_STEPS[done]) if done < len(_STEPS) else says("Fatto.")


def _whole(request: ChatRequest) -> ChatReply:
    return plans(*_STEPS, ("final_answer", {"text": ""}))
