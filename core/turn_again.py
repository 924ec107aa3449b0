"""Asking again what ran out: what the button does under the end of a turn whose question got no
answer in time.

The request is walked again as a turn of its own, with what was quoted and said before it then.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.store import suspensions, turns
from core.store.stores import Stores
from core.turn_actions import Act, Press
from core.turn_given import from_stored
from core.turn_question import talk_of
from core.turn_state import TurnState


@dataclass(frozen=True, slots=True)
class AskAgain:
    stores: Stores

    async def press(self, press: Press) -> Act:
        """Begin the request of the turn that ran out anew; nothing when it is forgotten."""
        async with self.stores.main.read() as tx:
            turn_id = str(press.action.params.get("turn") or press.action.turn_id)
            stored = await turns.get(tx, turn_id)
            asked = await suspensions.of_turn(tx, turn_id)
        if stored is None:
            return Act()
        data = asked[-1][0].data if asked else {}
        return Act(
            settles="action.again.pressed",
            begins=TurnState("", stored.request),
            given=from_stored(data),
            talk=talk_of(data),
        )
