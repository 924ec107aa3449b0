"""Five hundred chats with five messages each over a hundred seconds, beside one chat alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tests.bench.figures import cpu_s, resident_mb, spread, times
from tests.bench.town import open_town
from tests.support.flood import pour, wait_for_all
from tests.support.scripted_model import Rule

CHATS, EACH, OVER_S, MODEL_S = 500, 5, 100.0, 0.05
_ALONE = 20
_PATIENCE_S = 60.0


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Milliseconds from each message to its answer, of one chat alone and of all at once, at a
    model of 50 ms; MiB in RAM before and at the end, processor seconds, messages per second."""
    chats = times(CHATS, least=10)
    seconds = OVER_S * chats / CHATS
    with open_town(chats + 1) as town:
        town.world.model.rules[:] = [
            Rule(user="^plain", text=lambda ask: f"Va bene: {ask.user}.", delay=MODEL_S),
            Rule(
                user=r"g\d+-\d+",
                text=lambda ask: f"Ecco {re.findall(r'g[0-9]+-[0-9]+', ask.user)[0]}.",
                delay=MODEL_S,
            ),
        ]
        pid, _ = town.start()
        host, *names = town.names
        alone = [town.ask(host, f"plain {n}") for n in range(times(_ALONE, least=3))]
        memory, (own, _) = resident_mb(pid), cpu_s(pid)
        poured = pour(town.telegram, names, EACH, seconds, "di {token}")
        found = wait_for_all(town.telegram, names, poured, set(poured.said), _PATIENCE_S)
        began = min(poured.said.values())
        ended = max(poured.said[token] + wait for token, wait in found.waits.items())
        return {
            "chats": chats,
            "messages_each": EACH,
            "over_s": seconds,
            "answered": len(found.waits),
            "chats_in_order": sum(found.order[name] == list(range(EACH)) for name in names),
            "mixed": len(found.mixed),
            "doubled": len(found.doubled),
            "alone": spread(alone),
            "crowd": spread(list(found.waits.values()), budget_p95_ms=3000),
            "messages_per_s": round(len(found.waits) / (ended - began), 1),
            "memory_mib": {"before": memory, "after": resident_mb(pid), "budget": 300},
            "cpu_s": round(cpu_s(pid)[0] - own, 2),
        }
