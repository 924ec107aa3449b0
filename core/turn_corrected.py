"""A message that is corrected after its work began: what is offered then, and what a press does.

Nothing runs again by itself, and what has changed something does not run again at all: the person
would find it done twice.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from core.clock import Clock
from core.i18n import Texts
from core.language import clean_request
from core.messages import Block, Inbound, Reply
from core.redaction import redact
from core.store import actions, actors, effects, kv, outbox, questions, turns
from core.store.database import Transaction
from core.store.effects import EffectState
from core.store.stores import Stores
from core.store.suspensions import Standing
from core.turn_actions import Act, Press
from core.turn_offers import Offer, draw
from core.turn_setup import TurnSetup
from core.turn_state import TurnState

CORRECT = "correct"
# What was said longer ago is corrected for whoever reads it, not to be done.
RECENT = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Corrections:
    stores: Stores
    clock: Clock
    texts: Texts
    setup: TurnSetup

    async def offer(self, inbound: Inbound) -> bool:
        """Say what can be done about a corrected message; whether there is something to say.

        A later correction of the same message takes the place of an earlier one. Nothing is said
        of what was never worked, is long ago, reads the same, or holds a secret.
        """
        request, now = clean_request(inbound.text), self.clock.now()
        async with self.stores.main.write() as tx:
            actor = await actors.find_actor(tx, inbound.address.channel, inbound.sender_id)
            if actor is None:
                return False
            lang = self.setup.lang(actor, inbound, inbound.text)
            stored = await turns.find_by_message(
                tx, inbound.address.key, actor.id, inbound.message_ref or ""
            )
            if stored is None or not request or redact(request) != request:
                return False
            too_late = stored.ended_at is not None and now - stored.ended_at > RECENT
            if too_late or request == stored.request:
                return False
            note = f"correction:{stored.id}"
            if (before := await kv.get(tx, note)) is not None:
                await actions.void(tx, before, now)
                await questions.settle(tx, before, self._say("replaced", lang), lang, now)
            key = f"{inbound.id}:correction"
            await kv.put(tx, note, key)
            changed = await self._has_changed(tx, stored.id)
            runs = stored.state == "running"
            word = "changed" if changed else "running" if runs else "finished"
            rows = () if changed else ((Offer(CORRECT, "edit.restart", {"text": request}),),)
            drawn = draw(rows, self.texts, lang)
            reply = Reply(
                (Block("text", self._say(word, lang)),), lang, stored.id, buttons=drawn.buttons
            )
            await drawn.store(
                tx,
                turn_id=stored.id,
                actor_id=actor.id,
                conversation=inbound.address.key,
                shown_key=key,
                now=now,
            )
            await outbox.enqueue(tx, key, inbound.address, reply.to_json(), now)
        return True

    async def press(self, press: Press) -> Act:
        """Begin the corrected request as a turn of its own, unless the first one has changed
        something meanwhile."""
        async with self.stores.main.read() as tx:
            changed = await self._has_changed(tx, press.action.turn_id)
        if changed:
            return Act(settles="edit.changed")
        return Act(
            settles="edit.restarted", begins=TurnState("", str(press.action.params["text"]))
        )

    async def turn_to_stop(self, inbound: Inbound) -> str | None:
        """The turn that a press asks to make way for its correction."""
        data = inbound.data
        message_id = data.get("message_id")
        async with self.stores.main.read() as tx:
            actor = await actors.find_actor(tx, inbound.address.channel, inbound.sender_id)
            if actor is None:
                return None
            pressed = await actions.find(
                tx,
                str(data.get("token") or ""),
                actor_id=actor.id,
                conversation=inbound.address.key,
                message_id=message_id if isinstance(message_id, str) else None,
                now=self.clock.now(),
            )
        if pressed is None or pressed.action.name != CORRECT:
            return None
        is_open = pressed.standing is Standing.OPEN
        return pressed.action.turn_id if is_open else None

    async def _has_changed(self, tx: Transaction, turn_id: str) -> bool:
        """Whether a turn did something, or began what nobody knows the end of."""
        journal = await effects.of_turn(tx, turn_id)
        return any(effect.state is not EffectState.FAILED for effect in journal)

    def _say(self, word: str, lang: str) -> str:
        return self.texts.say(f"edit.{word}", lang)
