"""Where a call that the gate has let through is run: in the cage, or by a server elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from core.catalog.loaded import LoadedExecutor, LoadedSdk
from core.catalog.manifest import Limits
from core.observation import Observation


class Runner(Protocol):
    """Runs one call and says what came of it; never raises for the call's own failure, and leaves
    nothing running when it is cancelled. In `preview` mode nothing is changed, and `content` says
    what would be."""

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
    ) -> Observation: ...


@dataclass(frozen=True, slots=True)
class Runners:
    """Sends every call where it runs: `foreign` has the tools of connected servers, `cage` all
    executors."""

    cage: Runner
    foreign: Runner

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
        """Run a call there. Raises nothing of its own."""
        there = self.cage if executor.foreign is None else self.foreign
        return await there.run(
            executor,
            sdk,
            call,
            mode=mode,
            timeout_s=timeout_s,
            limits=limits,
            on_progress=on_progress,
        )
