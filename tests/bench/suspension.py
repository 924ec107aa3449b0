"""What it costs to stop a turn for a question and to go on after the answer.

The same deletion is done by a person who is asked and by one who is trusted, in turns, in one
house; neither the model's time nor the executors' counts. The difference of each pair is the
suspension: the state, the card and its buttons stored, the answer claimed, the card settled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from core.llm.client import ChatReply, ChatRequest
from core.messages import FinalKind, InboundKind, TurnClosed, TurnSuspended
from tests.bench.figures import spread, times
from tests.bench.room import Room, open_room
from tests.support.house import events_of, inbound
from tests.support.models import calls, says


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Milliseconds of a turn with and without a question, and of the question alone."""
    return asyncio.run(_run(times(60)))


async def _run(repeat: int) -> dict[str, Any]:
    async with open_room(_delete, metnos_engine="simple") as room:
        asked: list[float] = []
        trusted: list[float] = []
        for number in range(-3, repeat):
            # Who goes first changes, so that what the first one warms helps both.
            for with_question in (number % 2 == 0, number % 2 == 1):
                seconds = await _deletion(room, f"n{number + 3}-{with_question}", with_question)
                if number >= 0:
                    (asked if with_question else trusted).append(seconds)
        cost = [a - t for a, t in zip(asked, trusted, strict=True)]
        return {
            "with_question": spread(asked),
            "without": spread(trusted),
            "suspend_and_resume": spread(cost, budget_median_ms=20),
        }


async def _deletion(room: Room, name: str, asks: bool) -> float:
    """Seconds of the engine's own work; raises when the file is not gone by then."""
    path = room.notes / f"{name}.md"
    path.write_text("x\n", encoding="utf-8")
    autonomy = "supervised" if asks else "full"
    async with room.house.stores.main.write() as tx:
        await tx.execute("UPDATE actors SET autonomy = :autonomy", {"autonomy": autonomy})
    room.apart_s = 0.0
    start = time.perf_counter()
    end = (await events_of(room.house, inbound(f"cancella {name}.md")))[-1]
    if asks:
        if not isinstance(end, TurnSuspended):
            raise RuntimeError("nobody was asked")
        data = {"token": end.reply.buttons[0][0].token}
        end = (await events_of(room.house, inbound("", kind=InboundKind.CHOICE, data=data)))[-1]
    spent = time.perf_counter() - start - room.apart_s
    if not isinstance(end, TurnClosed) or end.final_kind is not FinalKind.ANSWER or path.exists():
        raise RuntimeError(f"the turn ended as {end}")
    return spent


def _delete(request: ChatRequest) -> ChatReply:
    last = request.messages[-1]
    if last.role == "tool":
        return says("Fatto.")
    return calls(("delete_files", {"paths": [last.content.split()[-1]]}))
