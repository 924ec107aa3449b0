"""Update in → reply out over HTTP, the model answering at once: a plain answer, one tool.

And what it costs to lay a full message out: prose of all kinds, and a table.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from bot.telegram.formatting import render
from core.messages import Block, Reply
from tests.bench.figures import cpu_s, spread, times
from tests.bench.town import Town, open_town

# A chat may be sent five messages at once and then one a second: people take turns, so that this
# gate is not what is measured.
_PEOPLE = 10
_BETWEEN_S = 0.1
_KINDS = (
    ("plain", 50, {"budget_p95_ms": 30, "ten_line_bot_p95_ms": 8, "best_peer_p95_ms": 25}),
    ("clock", 20, {"budget_p95_ms": 45, "best_peer_p95_ms": 49}),
)
_PROSE = (
    "Testo **forte**, `codice` e [un luogo](https://a.example/x).\n\n- uno\n- due\n\n"
    "```py\nx = 1\n```\n\n" * 60
)[:4096]
_TABLE = ("| Nome | Peso | Quando |\n|---|--:|---|\n" + "| file.pdf | 12,5 kB | ieri |\n" * 200)[
    :4096
]
_NAMES = {"plain": "plain_answer", "clock": "one_tool"}


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Milliseconds by kind of turn, and those of the first turn after the start.

    `cpu_ms` is what one turn costs the bot (and its executors) in processor time.
    """
    with open_town(_PEOPLE) as town:
        pid, _ = town.start()
        figures: dict[str, Any] = {"first_ms": round(town.ask(town.names[0], "plain first") * 1e3)}
        for kind, wanted, beside in _KINDS:
            count, before = times(wanted, least=5), cpu_s(pid)
            waits = _asked(town, kind, count)
            own, children = (
                round((now - then) * 1e3 / count, 1)
                for now, then in zip(cpu_s(pid), before, strict=True)
            )
            figures[_NAMES[kind]] = spread(waits, **beside, cpu_ms=own, executors_cpu_ms=children)
    for name, text in (("layout_prose", _PROSE), ("layout_table", _TABLE)):
        figures[name] = spread(_laid_out(text, times(100, least=5)), characters=len(text))
    return figures


def _laid_out(text: str, count: int) -> list[float]:
    reply, waits = Reply((Block("prose", text),), "it"), []
    for _ in range(count):
        began = time.perf_counter()
        render(reply)
        waits.append(time.perf_counter() - began)
    return waits


def _asked(town: Town, kind: str, count: int) -> list[float]:
    waits = []
    for number in range(count):
        time.sleep(_BETWEEN_S)
        name = town.names[number % len(town.names)]
        waits.append(town.ask(name, f"{kind} {number}"))
    return waits
