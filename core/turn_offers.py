"""What can be done about an answer: the buttons under it, drawn with it and stored with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.clock import new_token
from core.execution.context import TurnContext
from core.i18n import Texts
from core.messages import Button
from core.store import actions
from core.store.database import Transaction

# As long as the channel remembers which message it was.
OFFER_TTL = dt.timedelta(days=7)

UNDO = "undo"

UNDO_ENGINE = "undo"


@dataclass(frozen=True, slots=True)
class Offer:
    """One button: `name` is the action's, `label` the key of its text, `params` any JSON object
    that the action reads."""

    name: str
    label: str
    params: Mapping[str, Any] = field(default_factory=dict)


Rows = Sequence[Sequence[Offer]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Buttons as they are shown, and what each token in them offers."""

    buttons: tuple[tuple[Button, ...], ...] = ()
    offers: Mapping[str, Offer] = field(default_factory=dict)

    async def store(
        self,
        tx: Transaction,
        *,
        turn_id: str,
        actor_id: str,
        conversation: str,
        shown_key: str,
        now: dt.datetime,
    ) -> None:
        """Keep what the buttons do, in the transaction that keeps the message that shows them."""
        for token, offer in self.offers.items():
            action = actions.Action(
                turn_id=turn_id,
                actor_id=actor_id,
                conversation=conversation,
                shown_key=shown_key,
                name=offer.name,
                created_at=now,
                expires_at=now + OFFER_TTL,
                params=offer.params,
            )
            await actions.offer(tx, token, action)


def draw(rows: Rows, texts: Texts, lang: str) -> Drawn:
    """Give each offer a fresh token and its label in that language."""
    offers: dict[str, Offer] = {}
    buttons: list[tuple[Button, ...]] = []
    for row in rows:
        drawn: list[Button] = []
        for offer in row:
            token = new_token()
            offers[token] = offer
            drawn.append(Button(texts.say(offer.label, lang), token))
        if drawn:
            buttons.append(tuple(drawn))
    return Drawn(tuple(buttons), offers)


def shown_key(context: TurnContext) -> str:
    """The message under which the buttons of a turn's end hang."""
    return f"{context.turn_id}:final"
