"""Update in → reply out over HTTP, the model answering at once: a plain answer, one tool."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

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
    return figures


def _asked(town: Town, kind: str, count: int) -> list[float]:
    waits = []
    for number in range(count):
        time.sleep(_BETWEEN_S)
        name = town.names[number % len(town.names)]
        waits.append(town.ask(name, f"{kind} {number}"))
    return waits
