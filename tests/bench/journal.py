"""What it costs that a change is written down before it is made.

A turn with one step that changes something beside one with a step that looks, in turns, in one
house; neither the model's time nor the executors' counts. The difference of each pair is what a
mutating step costs more: verdict, preview, journal, and the commit of both ends. `commits` is the
journal alone: the time spent in its own functions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

from core.execution import keeping
from core.llm.client import ChatReply, ChatRequest
from core.messages import FinalKind
from tests.bench.figures import spread, times
from tests.bench.room import Room, open_room
from tests.support.house import ask
from tests.support.models import calls, says

# What a request says last is the file, and before it what is to stand there.
_LOOK, _NEW, _OVER = "mostra", "scrivi", "riscrivi"


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Milliseconds: `new_file` and `overwriting` against looking, and the journal's own."""
    return asyncio.run(_run(times(60)))


async def _run(repeat: int) -> dict[str, Any]:
    async with open_room(_step, metnos_engine="simple") as room:
        (room.notes / "a.md").write_text("prima\n", encoding="utf-8")
        spent: dict[str, list[float]] = {word: [] for word in (_LOOK, _NEW, _OVER)}
        journal: list[float] = []
        with (
            mock.patch.object(keeping, "open_journal", _timed(keeping.open_journal, journal)),
            mock.patch.object(keeping, "_finish", _timed(keeping._finish, journal)),
        ):
            for number in range(-3, repeat):
                for word in spent:
                    seconds = await _turn(room, word, number + 3)
                    if number >= 0:
                        spent[word].append(seconds)
        each = [sum(pair) for pair in zip(journal[::2], journal[1::2], strict=True)]

        def more(word: str) -> list[float]:
            return [c - s for c, s in zip(spent[word], spent[_LOOK], strict=True)]

        return {
            "looking": spread(spent[_LOOK]),
            "new_file": spread(more(_NEW), budget_median_ms=5),
            "overwriting": spread(more(_OVER), budget_median_ms=5),
            "commits": spread(each[6:], budget_median_ms=5),
        }


def _timed(function: Callable[..., Any], into: list[float]) -> Callable[..., Any]:
    async def timed(*args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        done = await function(*args, **options)
        into.append(time.perf_counter() - start)
        return done

    return timed


async def _turn(room: Room, word: str, number: int) -> float:
    request = {
        _LOOK: f"mostra la cartella notes {number}",
        _NEW: f"scrivi riga{number} in notes/n{number}.md",
        _OVER: f"riscrivi riga{number} in notes/a.md",
    }[word]
    room.apart_s = 0.0
    start = time.perf_counter()
    closed = await ask(room.house, request)
    spent = time.perf_counter() - start - room.apart_s
    if closed.final_kind is not FinalKind.ANSWER:
        raise RuntimeError(f"the turn ended as {closed.reply.plain}")
    return spent


def _step(request: ChatRequest) -> ChatReply:
    last = request.messages[-1]
    if last.role == "tool":
        return says("Fatto.")
    word, content, *_, path = last.content.split()
    if word == _LOOK:
        return calls(("list_dirs", {"paths": ["notes"]}))
    return calls(("write_files", {"path": path, "content": content}))
