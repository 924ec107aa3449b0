"""A turn that takes back another: no model is asked, and these are its words."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from core.execution import keeping
from core.execution.context import TurnContext
from core.execution.undo import Undo
from core.execution.undo_steps import UNDO_LAST_TURN
from core.i18n import Texts
from core.levels.renderer import MOST_LISTED, Renderer
from core.levels.runner import Outcome
from core.levels.terminator import Closing
from core.messages import Block, FinalKind, Reply, StepFinished, StepStarted, TurnEvent
from core.observation import Observation
from core.turn_actions import Act, Press
from core.turn_offers import UNDO_ENGINE, UNDO_OF, undoing
from core.turn_state import StepRecord, TurnState

MOST_QUOTED = 80


async def undo_turn(
    undo: Undo,
    texts: Texts,
    context: TurnContext,
    state: TurnState,
    emit: Callable[[TurnEvent], None],
    on_state: Callable[[TurnState], Awaitable[None]],
) -> Outcome:
    """Walk a turn whose only step is taking back the last one that changed something; one that a
    button began takes back that button's turn, or says why not."""
    planned = state.plan.steps[0].args if state.plan is not None else {}
    state = TurnState(state.turn_id, state.request, engine=UNDO_ENGINE)
    number = len(state.steps) + 1
    phrase = texts.say("undo.phrase", context.lang)
    emit(StepStarted(context.turn_id, number, UNDO_LAST_TURN, phrase))
    started = undo.clock.monotonic()
    seen, key = await undo.put_back_last(context, state, only=planned.get(UNDO_OF))
    record = StepRecord(
        number=number,
        tool=UNDO_LAST_TURN,
        raw_args={},
        resolved_args={},
        observation=seen,
        shown={},
        ran=True,
        latency_ms=round((undo.clock.monotonic() - started) * 1000),
    )
    record = await keeping.keep(undo.stores, undo.clock, context, state, record, journal=key)
    emit(StepFinished(context.turn_id, number, UNDO_LAST_TURN, seen.ok))
    state = state.with_step(record)
    await on_state(state)
    return Outcome(state, FinalKind.ANSWER if seen.ok else FinalKind.ERROR, error=seen.error)


async def press_undo(press: Press) -> Act:
    """What ↩️ under an answer does: its turn is taken back, in a turn of its own."""
    return Act(settles="action.undo.pressed", begins=undoing(None, press.action.turn_id))


def undo_closing(texts: Texts, context: TurnContext, outcome: Outcome) -> Closing | None:
    """The end of a turn that `undo_turn` walked; None for any other."""
    steps = outcome.state.steps
    if outcome.state.engine != UNDO_ENGINE or not steps or steps[-1].tool != UNDO_LAST_TURN:
        return None
    if "status" not in steps[-1].observation.metadata:
        return None  # refused like any other call, and told like it
    words = _Words(texts, context)
    lines = words.of(steps[-1].observation)
    reply = Reply(
        tuple(Block("text", line) for line in lines), context.lang, context.turn_id, outcome.kind
    )
    return Closing(reply, (), outcome.error)


@dataclass(frozen=True, slots=True)
class _Words:
    texts: Texts
    context: TurnContext

    def of(self, seen: Observation) -> list[str]:
        say, facts = self._say, seen.metadata
        match facts.get("status"):
            case "nothing":
                return [say("undo.nothing")]
            case "not_last":
                return [say("undo.not_last", **self._facts(facts))]
            case "already":
                return [
                    say("undo.already", **self._facts(facts), at=self._when(facts, "undone_at"))
                ]
        entries = list(seen.entries or ())
        good = [e for e in entries if e.get("ok") is not False]
        bad = [e for e in entries if e.get("ok") is False]
        acted = [e for e in good if e.get("did") != "already"]
        key = "undo.done" if acted else ("undo.no_need" if not bad else "undo.refused")
        blocks = [say(key, **self._facts(facts))]
        for did in ("restore", "move", "remove", "delete"):
            paths = list(dict.fromkeys(str(e["path"]) for e in acted if e.get("did") == did))
            if paths:
                blocks.append(self._listed(f"undo.did.{did}", paths))
        if bad:
            blocks.append("\n".join([say("undo.left"), *self._reasons(bad)]))
        return (
            ["\n".join(blocks[:-1]), blocks[-1]]
            if bad and len(blocks) > 1
            else ["\n".join(blocks)]
        )

    def _reasons(self, bad: list[Mapping[str, Any]]) -> list[str]:
        renderer = self._renderer
        lines = [
            self._say(
                "undo.left.item",
                what=renderer.path(str(entry["path"])),
                why=self._why(entry["error"]),
            )
            for entry in bad[:MOST_LISTED]
        ]
        more = len(bad) - MOST_LISTED
        return [*lines, self._say("answer.more", count=more)] if more > 0 else lines

    def _why(self, error: Mapping[str, Any]) -> str:
        code = str(error.get("code"))
        key = f"undo.why.{code}"
        return self._say(key if self.texts.has(key, self.context.lang) else "undo.why.other")

    def _listed(self, key: str, paths: list[str]) -> str:
        named = [self._renderer.path(path) for path in paths[:MOST_LISTED]]
        more = len(paths) - len(named)
        what = ", ".join(named)
        if more:
            what = f"{what} {self._say('answer.more', count=more)}"
        return self._say(key, what=what)

    def _facts(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        request = " ".join(str(facts.get("request") or "").split())
        if len(request) > MOST_QUOTED:
            request = request[: MOST_QUOTED - 1].rstrip() + "…"
        return {"request": request, "when": self._when(facts, "changed_at")}

    def _when(self, facts: Mapping[str, Any], name: str) -> str:
        moment = dt.datetime.fromisoformat(str(facts[name]))
        lang, tz = self.context.lang, self.context.tz
        zone = ZoneInfo(tz)
        if moment.astimezone(zone).date() == self.context.now.astimezone(zone).date():
            return self.texts.time(moment, lang, tz)
        return self.texts.datetime(moment, lang, tz)

    @property
    def _renderer(self) -> Renderer:
        context = self.context
        return Renderer(self.texts, context.lang, context.tz, context.scope.home)

    def _say(self, key: str, **params: Any) -> str:
        return self.texts.say(key, self.context.lang, **params)
