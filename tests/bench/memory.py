"""Memory of the running bot, idle and after turns of every kind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tests.bench.figures import resident_mb, times
from tests.bench.town import MIXED, Town, open_town

_PEOPLE = 10
_IDLE_S = 10
_TURNS = 50


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """MiB in RAM: idle, after 50 turns, and after as many again: growth is not warmth."""
    with open_town(_PEOPLE) as town:
        pid, _ = town.start()
        time.sleep(times(_IDLE_S, least=1))
        idle, turns = resident_mb(pid), times(_TURNS, least=len(MIXED))
        _turns(town, "a", turns)
        after = resident_mb(pid)
        _turns(town, "b", turns)
        later = resident_mb(pid)
    return {
        "idle_mb": idle,
        "turns": turns,
        "after_turns_mb": after,
        "after_as_many_again_mb": later,
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
