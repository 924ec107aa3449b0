"""R10: thousands of turns, and nothing that grows with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.scenes import repetitions
from tests.acceptance.test_flood import answered
from tests.bench.figures import resident_mb
from tests.bench.town import Town, open_town
from tests.support.flood import pour, wait_for_all
from tests.support.scripted_model import Rule

TURNS, CHATS, PER_S = 20_000, 200, 25.0
SAMPLES = 20


@dataclass(frozen=True)
class Sample:
    """What the bot holds at one moment."""

    memory_mb: float
    descriptors: int
    wal_mb: float


def look(town: Town, pid: int) -> Sample:
    wal = town.world.home / "private" / "metnos.db-wal"
    return Sample(
        resident_mb(pid),
        len(list(Path(f"/proc/{pid}/fd").iterdir())),
        wal.stat().st_size / 2**20 if wal.exists() else 0.0,
    )


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_memory_descriptors_and_log_stay_flat_over_twenty_thousand_turns() -> None:
    turns = repetitions(TURNS, least=CHATS * SAMPLES // 2)
    each = max(1, turns // SAMPLES // CHATS)
    with open_town(CHATS) as town:
        town.world.model.rules[:] = [
            Rule(user=r"clock g\d+-\d+", after=0, calls=[("get_now", {})]),
            Rule(user=r"g\d+-\d+", text=answered),
        ]
        pid, _ = town.start()
        samples, done = [], 0
        for number in range(SAMPLES):
            kind = "clock" if number % 4 == 3 else "plain"
            poured = pour(
                town.telegram,
                town.names,
                each,
                CHATS * each / PER_S,
                kind + " {token}",
                seed=number,
            )
            found = wait_for_all(town.telegram, town.names, poured, set(poured.said), 120.0)
            assert not found.mixed
            assert not found.doubled
            done += len(found.waits)
            samples.append(look(town, pid))

        # What is loaded and cached once has its place by the first fifth.
        warm, last = samples[SAMPLES // 5], samples[-1]
        print(
            f"\nR10: {done} turns; memory {warm.memory_mb:.0f} -> {last.memory_mb:.0f} MiB, "
            f"descriptors {warm.descriptors} -> {last.descriptors}, "
            f"WAL {max(s.wal_mb for s in samples):.1f} MiB at most"
        )
        assert last.memory_mb - warm.memory_mb <= 24
        # Two pools of connections of thirty-two each, to Telegram and to the model.
        assert last.descriptors <= 128
        assert max(s.wal_mb for s in samples) <= 16
