"""What a service of places answered a moment ago, so that the same question is not put to it
again: such services are public, and ask for that (S18).

In memory alone, for each person apart, and for minutes. A failure is never kept.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Literal

from core.catalog.loaded import LoadedExecutor, LoadedSdk
from core.catalog.manifest import Effect, Limits
from core.clock import Clock
from core.execution.runner import Runner
from core.observation import Observation

KEPT_S = 600.0
MOST_KEPT = 100
_MOST_ENTRIES = 200
_SERVICE = "service:photon"
# What is another in every call and changes no answer.
_OF_THE_CALL = frozenset({"turn_id", "step", "now"})


class Answered:
    """A `Runner` that answers a question about places from the last minutes itself, and sends
    every other call to `runner`."""

    def __init__(self, runner: Runner, clock: Clock) -> None:
        self._runner, self._clock = runner, clock
        self._kept: OrderedDict[str, tuple[float, Observation]] = OrderedDict()

    async def run(
        self,
        executor: LoadedExecutor,
        sdk: LoadedSdk,
        call: Mapping[str, Any],
        *,
        mode: Literal["run", "preview"] = "run",
        timeout_s: float | None = None,
        limits: Limits | None = None,
        on_progress: Callable[[int | None, int | None], None] | None = None,
    ) -> Observation:
        """Run a call, or say what the same one of this person brought less than ten minutes ago.
        Raises nothing of its own."""
        key = _key(executor, call) if mode == "run" and _asks_of_places(executor) else ""
        now = self._clock.monotonic()
        if key and (known := self._kept.get(key)) is not None and now - known[0] < KEPT_S:
            return known[1]
        seen = await self._runner.run(
            executor,
            sdk,
            call,
            mode=mode,
            timeout_s=timeout_s,
            limits=limits,
            on_progress=on_progress,
        )
        if key and _is_whole(seen):
            self._kept[key] = (now, seen)
            self._kept.move_to_end(key)
            self._tidy(now)
        return seen

    def _tidy(self, now: float) -> None:
        """Drop what is old, and the oldest of too many."""
        for key, (at, _) in list(self._kept.items()):
            if now - at < KEPT_S and len(self._kept) <= MOST_KEPT:
                break
            del self._kept[key]


def _asks_of_places(executor: LoadedExecutor) -> bool:
    manifest = executor.manifest
    return manifest.effect is Effect.PURE and any(
        _SERVICE in right.hints for right in manifest.capabilities
    )


def _key(executor: LoadedExecutor, call: Mapping[str, Any]) -> str:
    """One for all calls with the same answer; of what the call holds only a digest is kept."""
    asked = {name: value for name, value in call.items() if name not in _OF_THE_CALL}
    data = json.dumps([executor.manifest.digest, asked], sort_keys=True, default=str)
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()


def _is_whole(seen: Observation) -> bool:
    """Whether everybody answered, and all of it is worth keeping."""
    entries = seen.entries or ()
    failed = any(entry.get("ok") is False for entry in entries)
    return (
        seen.ok
        and not failed
        and not seen.metadata.get("unanswered")
        and len(entries) <= _MOST_ENTRIES
    )
