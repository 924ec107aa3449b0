"""What the row of buttons under an answer does (UX): votes, the fast path, steps, planning anew.

A vote may be given as long as its buttons stand, and the last one counts. Its buttons stay; only
⚡ is used up and drawn anew, so that a press that comes twice does not take itself back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from core.catalog.loader import CatalogLoader
from core.clock import Clock
from core.i18n import Texts
from core.messages import Block, Button, Reply
from core.store import actions, feedback, outbox, turns
from core.store.database import Transaction
from core.store.feedback import Vote
from core.store.stores import Stores
from core.store.turns import StoredTurn
from core.turn_actions import Act, Handler, Press
from core.turn_given import from_stored
from core.turn_memory import TurnMemory
from core.turn_offers import (
    ANEW,
    ANEW_ENGINE,
    DOWN,
    OPEN,
    PIN,
    STEPS,
    UNDO,
    UP,
    Drawn,
    Offer,
    draw,
)
from core.turn_state import TurnState
from core.turn_votes import CHOSEN, LABELS, below_of, pin_of
from core.vocabulary import spoken_foreign

Redraw = Callable[[Transaction], Awaitable[Drawn | None]]

_VOTES = {UP: Vote.UP, DOWN: Vote.DOWN}
_BELOW = (STEPS, ANEW, UNDO)
_TALK = 3


@dataclass(frozen=True, slots=True)
class Votes:
    """Votes are kept also where memory is turned off since."""

    stores: Stores
    clock: Clock
    texts: Texts
    loader: CatalogLoader
    memory: TurnMemory

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {
            UP: self.vote,
            DOWN: self.vote,
            PIN: self.pin,
            OPEN: self.open,
            STEPS: self.steps,
            ANEW: self.anew,
        }

    async def vote(self, press: Press) -> Act:
        """👍 and 👎. What was not liked is forgotten, as far as it is this person's."""
        vote, turn = _VOTES[press.action.name], await self._turn(press)
        if turn is None:
            return Act(says=self._say("action.over", press))
        forgot = await self.memory.judge(turn, vote)

        async def keep(tx: Transaction) -> None:
            await feedback.give(tx, turn.id, press.actor.id, vote, at=self.clock.now())

        labels = {**LABELS, press.action.name: CHOSEN[press.action.name]}
        if vote is Vote.UP or not forgot:
            del labels[PIN]  # stays as it stands
        word = "vote.forgotten" if forgot else f"{press.action.name}.said"
        redraws = self._redraw(press, labels)
        return Act(again=True, writes=keep, redraws=redraws, says=self._say(word, press))

    async def pin(self, press: Press) -> Act:
        """⚡: the plan of this turn is approved, or is not any more."""
        turn, pinned = await self._turn(press), press.action.params.get("to") is not False
        found = None if turn is None else await self.memory.to_pin(turn)
        if turn is None or found is None:
            return Act(again=True, says=self._say("vote.pin.nothing", press))

        async def write(tx: Transaction) -> None:
            await self.memory.pin(turn, found, pinned)

        word = "vote.pin.said" if pinned else "vote.pin.taken_back"
        redraws = self._redraw(press, {}, in_place=pin_of(pinned))
        return Act(writes=write, redraws=redraws, says=self._say(word, press))

    async def open(self, press: Press) -> Act:
        """⋯: the row below opens, or closes again."""
        return Act(again=True, redraws=self._redraw(press, {}, opens=True))

    async def steps(self, press: Press) -> Act:
        """What was done for the answer, in the words of the programs themselves."""
        params, executors = press.action.params, self.loader.current().executors
        lines = [self._say("vote.steps.head", press)]
        for number, (tool, ok, ms) in enumerate(params.get("steps") or (), start=1):
            executor = executors.get(tool)
            phrase = (
                spoken_foreign(tool) or self._say("vote.steps.gone", press)
                if executor is None
                else executor.manifest.phrase[press.lang]
            )
            seconds = self.texts.number(round(ms / 1000, 1), press.lang)
            key = "vote.steps.done" if ok else "vote.steps.failed"
            lines.append(
                self._say(key, press, number=number, phrase=phrase.rstrip("…. "), seconds=seconds)
            )
        if params.get("remembered") is True:
            lines.append(self._say("vote.steps.remembered", press))
        else:
            lines.append(self._say("vote.steps.planned", press, count=params.get("calls") or 0))
        tells = (Block("text", "\n".join(lines)),)
        return Act(again=True, tells=tells, redraws=self._redraw(press, {}))

    async def anew(self, press: Press) -> Act:
        """The request is walked again without memory, after what had been said before it."""
        turn = await self._turn(press)
        if turn is None:
            return Act(says=self._say("action.over", press))
        await self.memory.anew(turn)
        async with self.stores.main.read() as tx:
            talk = await turns.recent(
                tx, turn.conversation, turn.actor_id, _TALK, before=turn.started_at
            )
        return Act(
            begins=TurnState("", turn.request, engine=ANEW_ENGINE),
            talk=[(one.request, one.answer, one.external) for one in talk],
            given=from_stored(press.action.params.get("given") or {}),
            redraws=self._redraw(press, {}),
        )

    def _redraw(
        self,
        press: Press,
        labels: Mapping[str, str],
        *,
        in_place: Offer | None = None,
        opens: bool = False,
    ) -> Redraw:
        """The buttons as they stand, with other `labels` (by the action's name), another button
        `in_place` of the pressed one, and without the row below; with it when it `opens` and was
        not open."""

        async def redraw(tx: Transaction) -> Drawn | None:
            action, now = press.action, self.clock.now()
            shown = await outbox.find(tx, action.shown_key)
            if shown is None:
                return None
            reply = Reply.from_json(shown.body)
            pressed = str(press.inbound.data.get("token"))
            tokens = [button.token for row in reply.buttons for button in row]
            names = await actions.names_under(tx, action.shown_key, tokens)
            new: list[Drawn] = []
            rows: list[tuple[Button, ...]] = []
            was_open = any(name in _BELOW for name in names.values())
            for line in reply.buttons:
                kept: list[Button] = []
                for button in line:
                    name = names.get(button.token)
                    if button.token == pressed and in_place is not None:
                        new.append(draw(((in_place,),), self.texts, press.lang))
                        kept.append(new[-1].buttons[0][0])
                    elif name is not None and name in labels:
                        label = self.texts.say(labels[name], press.lang)
                        kept.append(Button(label, button.token))
                    elif name is not None and name not in _BELOW:
                        kept.append(button)
                rows += [tuple(kept)] if kept else []
            await actions.void_named(tx, action.shown_key, _BELOW, now)
            if opens and not was_open:
                new.append(draw(below_of(dict(action.params)), self.texts, press.lang))
                rows += new[-1].buttons
            buttons = tuple(rows)
            if buttons == reply.buttons:
                return None
            row = Reply((), press.lang, buttons=buttons).to_json()
            body = {**shown.body, "buttons": row["buttons"]}
            await outbox.rewrite(tx, action.shown_key, body)
            return Drawn(buttons, {token: o for one in new for token, o in one.offers.items()})

        return redraw

    async def _turn(self, press: Press) -> StoredTurn | None:
        async with self.stores.main.read() as tx:
            turn = await turns.get(tx, press.action.turn_id)
        return turn if turn is not None and turn.actor_id == press.actor.id else None

    def _say(self, key: str, press: Press, **words: object) -> str:
        return self.texts.say(key, press.lang, **words)
