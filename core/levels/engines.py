"""Which engine serves a turn: by mode, then by what is known of the model."""

from __future__ import annotations

from collections.abc import Mapping

from core.accounts import AccountKind
from core.config import Mode
from core.execution.context import TurnContext
from core.levels.candidates import Candidates
from core.levels.proposal import Proposer
from core.levels.router import choose_mode
from core.llm.tiers import Tiers


class Engines:
    """`proposers` by engine name: simple, metis, frontier."""

    def __init__(
        self,
        *,
        mode: Mode,
        tiers: Tiers,
        candidates: Candidates,
        proposers: Mapping[str, Proposer],
    ) -> None:
        self._mode, self._tiers = mode, tiers
        self._candidates, self._proposers = candidates, proposers

    async def choose(self, context: TurnContext) -> Proposer:
        """The proposer of this turn. Raises `ModelError` when no model is set or reachable."""
        mode = self._mode
        if mode == "hybrid":
            traits = self._candidates.traits(context)
            mode = choose_mode(mode, traits, has_frontier=self._tiers.has_frontier)
        if mode == "online":
            return self._proposers["frontier"]
        return await self.local()

    def lacking(self, context: TurnContext) -> AccountKind | None:
        """The kind of account without which this request cannot be served."""
        return self._candidates.lacking(context)

    async def local(self) -> Proposer:
        """The proposer that suits the everyday model."""
        traits = await self._tiers.traits_of("plan")
        return self._proposers[traits.engine]
