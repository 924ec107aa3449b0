"""From the start of the process to its first poll, and the first turn after it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tests.bench.figures import spread, times
from tests.bench.town import open_town


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Milliseconds; the home has been set up and its disk cache is warm."""
    polls, plain, tools, stops = [], [], [], []
    with open_town(2) as town:
        for number in range(times(5)):
            _, seconds = town.start()
            polls.append(seconds)
            plain.append(town.ask(town.names[0], f"plain {number}"))
            tools.append(town.ask(town.names[1], f"clock {number}"))
            begun = time.monotonic()
            town.telegram.stop_bot()
            stops.append(time.monotonic() - begun)
    return {
        "start_to_first_poll": spread(polls, budget_median_ms=1000, best_peer_median_ms=790),
        "first_turn": spread(plain, budget_median_ms=100, best_peer_median_ms=50),
        "first_tool_turn": spread(tools),
        "stop": spread(stops),
    }
