"""What somebody's own turns say about which tools a request of theirs wants (S3).

Learnt from turns that a model planned and that ended well; a thumb down takes it back. Weighs in
the choice of candidates alone: what of these stands in a prompt, and in which order, stays what
it is. What cannot be read or written is passed over.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import replace

from core.catalog.evidence import Evidence
from core.clock import Clock
from core.errors import StoreError
from core.execution.context import TurnContext
from core.levels.runner import Outcome
from core.messages import FinalKind
from core.redaction import redact
from core.store import evidence
from core.store.stores import Stores

log = logging.getLogger(__name__)

# People whose rows are held ready.
_MOST_HELD = 8


class Past:
    """Reads and writes the evidence of turns; one for the whole engine."""

    def __init__(self, stores: Stores, clock: Clock) -> None:
        self._stores, self._clock = stores, clock
        self._held: OrderedDict[str, tuple[tuple[int, int], bytes, Evidence]] = OrderedDict()

    async def knowing(self, context: TurnContext) -> TurnContext:
        """The context with what this person's past says; as it was when there is none."""
        try:
            return replace(context, past=await self._of(context.actor.id))
        except StoreError as exc:
            log.warning("evidence not read", extra={"detail": exc.detail})
            return context

    async def learn(self, context: TurnContext, outcome: Outcome) -> None:
        """After the end of a turn: note which tools served it, if it ended well, was planned by a
        model and needed any. Told twice it is noted once."""
        tools = tools_of(context, outcome)
        if not tools:
            return
        actor_id = context.actor.id
        try:
            async with self._stores.memory.write() as tx:
                salt = await evidence.salt_of(tx, actor_id)
                features = Evidence(salt=salt).features(redact(context.request))
                before = await evidence.stamp(tx, actor_id)
                now = self._clock.now()
                await evidence.keep(tx, actor_id, context.turn_id, features, tools, now)
                after = await evidence.stamp(tx, actor_id)
            held = self._held.get(actor_id)
            if held is not None and held[:2] == (before, salt) and after[1] == before[1] + 1:
                held[2].learn(features, tools)
                self._held[actor_id] = (after, salt, held[2])
        except StoreError as exc:
            log.warning("evidence not kept", extra={"detail": exc.detail})

    async def drop(self, turn_id: str) -> None:
        """Somebody did not like how this turn was served."""
        try:
            async with self._stores.memory.write() as tx:
                await evidence.drop_turn(tx, turn_id)
        except StoreError as exc:
            log.warning("evidence not dropped", extra={"detail": exc.detail})

    async def _of(self, actor_id: str) -> Evidence | None:
        held = self._held.pop(actor_id, None)
        async with self._stores.memory.read() as tx:
            stamp = await evidence.stamp(tx, actor_id)
            salt = await evidence.known_salt(tx, actor_id)
            if salt is None or not stamp[1]:
                return None
            if held is None or held[:2] != (stamp, salt):
                rows = await evidence.of_actor(tx, actor_id)
                known = Evidence(salt=salt)
                known.learn_all((row.features, row.tools) for row in rows)
                held = (stamp, salt, known)
        self._held[actor_id] = held
        while len(self._held) > _MOST_HELD:
            self._held.popitem(last=False)
        return held[2]


def tools_of(context: TurnContext, outcome: Outcome) -> tuple[str, ...]:
    """The tools of the catalogue that served a turn, in their order, each once; none of a turn
    that did not end well, or that no model planned."""
    if outcome.kind is not FinalKind.ANSWER or outcome.error or not outcome.model_calls:
        return ()
    served = [
        record.tool
        for record in outcome.state.steps
        if record.ran and record.observation.ok and record.tool in context.catalog.offered
    ]
    return tuple(dict.fromkeys(served))
