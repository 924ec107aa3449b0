"""What can be done about an answer: the buttons under it, drawn with it and stored with it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.clock import new_token
from core.execution.context import TurnContext
from core.i18n import Texts
from core.messages import Block, Button
from core.observation import Effects
from core.plan import Plan, Step
from core.redaction import MASK, hide_handles, redact
from core.store import actions
from core.store.database import Transaction
from core.store.effects import UNDO_LAST_TURN, EffectState, StoredEffect
from core.turn_state import StepRecord, TurnState
from core.vocabulary import Category, category_of

# As long as the channel remembers which message it was.
OFFER_TTL = dt.timedelta(days=7)

# Kept of the items that one answer does not show, in characters.
MOST_KEPT = 64_000

UNDO, AGAIN, CHECK, REPEAT, LEAVE = "undo", "again", "check", "repeat", "leave"
MORE = "more"

# The row under an answer, and the row below it that the last of them opens.
UP, DOWN, PIN, OPEN = "vote.up", "vote.down", "pin", "open"
STEPS, ANEW = "steps", "anew"

# The engine of a turn that is to be planned although memory may know its request.
ANEW_ENGINE = "anew"

UNDO_COMMAND, UNDO_ENGINE, UNDO_OF = "/undo", "undo", "turn"


@dataclass(frozen=True, slots=True)
class Offer:
    """One button: `name` is the action's, `label` the key of its text with `words` in it,
    `params` any JSON object that the action reads."""

    name: str
    label: str
    params: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, Any] = field(default_factory=dict)


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
        ttl: dt.timedelta = OFFER_TTL,
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
                expires_at=now + ttl,
                params=offer.params,
            )
            await actions.offer(tx, token, action)


def again_of(request: str, effects: Effects, *, turn_id: str) -> Rows:
    """What the end of a turn offers whose question ran out: to ask again. Not where something was
    changed already, which would be done twice, nor where the request is not kept as it was said.
    """
    if effects is not Effects.NONE or not is_kept(request):
        return ()
    return ((Offer(AGAIN, "action.again", {"turn": turn_id}),),)


def is_kept(request: str) -> bool:
    """Whether a request is kept as it was said, so that it can be said again."""
    return bool(request) and MASK not in request and redact(request) == request


def more_of(blocks: Sequence[Block], *, alone: bool) -> Rows:
    """What an answer offers whose lists are not shown whole; no row when all are. `alone`: no
    other button stands under it. The rest is kept with the button, as it would be shown: nothing
    is looked up again."""
    lists = [block.rest for block in blocks if block.rest]
    if not lists:
        return ()
    text = hide_handles("\n\n".join("\n".join(items) for items in lists))
    if len(text) > MOST_KEPT:
        text = text[: max(text.rfind("\n", 0, MOST_KEPT), 0) or MOST_KEPT] + "\n…"
    params = {"text": text, "alone": alone}
    return ((Offer(MORE, "action.more", params, {"count": sum(map(len, lists))}),),)


def draw(rows: Rows, texts: Texts, lang: str) -> Drawn:
    """Give each offer a fresh token and its label in that language."""
    offers: dict[str, Offer] = {}
    buttons: list[tuple[Button, ...]] = []
    for row in rows:
        drawn: list[Button] = []
        for offer in row:
            token = new_token()
            offers[token] = offer
            drawn.append(Button(texts.say(offer.label, lang, **offer.words), token))
        if drawn:
            buttons.append(tuple(drawn))
    return Drawn(tuple(buttons), offers)


def shown_key(context: TurnContext) -> str:
    """The message under which the buttons of a turn's end hang."""
    return f"{context.turn_id}:final"


def after_cut(state: TurnState, journal: Sequence[StoredEffect]) -> Rows:
    """What a person may choose about a turn that was cut short: to look again at what is not
    known, to do again what was not done for sure, or to leave it."""
    found = {EffectState.UNKNOWN, EffectState.STARTED}
    row = [Offer(CHECK, "restart.check")] if any(e.state in found for e in journal) else []
    again = state_again(state, journal)
    if again is not None:
        row.append(Offer(REPEAT, "restart.repeat", {"state": again.to_json()}))
    return ((*row, Offer(LEAVE, "restart.leave")),) if row else ()


def state_again(state: TurnState, journal: Sequence[StoredEffect]) -> TurnState | None:
    """The state from which a turn of its own does again what this one began and did not finish for
    sure, and what would have followed. None: everything was done, as far as is known.

    `state` as it was kept when the last change began. What was done before is known to the new
    turn, and is no change of its own.
    """
    known = {record.number for record in state.steps}
    cut = next((effect for effect in journal if effect.step not in known), None)
    if cut is not None and cut.tool == UNDO_LAST_TURN:
        return None if cut.state is EffectState.DONE and not _is_partial(cut) else undoing(cut)
    position, pending = state.next_step, state.pending
    if cut is not None and cut.state is EffectState.DONE and not _is_partial(cut):
        # That one is done: only what a plan had after it is left.
        position, pending = position + 1, ()
    planned = state.plan is not None and position < len(state.plan.steps)
    if cut is None or not (planned or pending):
        return None
    if state.plan is not None and not any(
        category_of(step.tool) is Category.ACTS for step in state.plan.steps[position:]
    ):
        return None
    steps = tuple(_as_history(record) for record in state.steps)
    return replace(
        state,
        steps=steps,
        next_step=position,
        pending=pending,
        segment=1,
        told_steps=len(steps),
    )


def undoing(effect: StoredEffect | None, turn_id: str = "") -> TurnState:
    """The state of a turn that takes back another: that of a button, or of an earlier try."""
    summary = effect.summary if effect is not None else None
    wanted = str(summary.get("undoes") or "") if isinstance(summary, Mapping) else turn_id
    step = Step(UNDO_LAST_TURN, {UNDO_OF: wanted})
    return TurnState("", UNDO_COMMAND, Plan((step,)), engine=UNDO_ENGINE)


def _is_partial(effect: StoredEffect) -> bool:
    return isinstance(effect.summary, Mapping) and bool(effect.summary.get("partial"))


def _as_history(record: StepRecord) -> StepRecord:
    """A step of an earlier turn: its result may be used, its effects are told already."""
    seen = replace(record.observation, effects=Effects.NONE)
    return replace(record, observation=seen, preview=None)
