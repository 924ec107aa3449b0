"""What a person may do about a turn that was cut short: look again, do it again, or leave it.

Nothing is done again but by a press, and then in a turn of its own, through the gate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.clock import Clock
from core.execution.recovery import Verdict, verdict_of
from core.i18n import Texts
from core.levels.renderer import one_line
from core.levels.terminator import MOST_NAMED
from core.messages import Block
from core.store import effects
from core.store.database import Transaction
from core.store.effects import EffectState, StoredEffect
from core.store.stores import Stores
from core.turn_actions import Act, Handler, Press
from core.turn_offers import CHECK, LEAVE, REPEAT
from core.turn_state import TurnState


@dataclass(frozen=True, slots=True)
class AfterRestart:
    stores: Stores
    clock: Clock
    texts: Texts

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {CHECK: self.check, REPEAT: self.repeat, LEAVE: self.leave}

    async def check(self, press: Press) -> Act:
        """Look at the world again and say what is found; what is certain by now is written down.
        The buttons stay."""
        async with self.stores.main.read() as tx:
            journal = await effects.of_turn(tx, press.action.turn_id)
        doubtful = [effect for effect in journal if effect.state is EffectState.UNKNOWN]
        looked = [(e, await asyncio.to_thread(verdict_of, e)) for e in doubtful]

        async def write(tx: Transaction) -> None:
            for effect, verdict in looked:
                if verdict.state is not EffectState.UNKNOWN and not verdict.entries:
                    await effects.resolve(tx, effect.key, verdict.state, self.clock.now())

        lines = [
            line for effect, verdict in looked for line in self._found(press, effect, verdict)
        ]
        lines = lines or [self.texts.say("restart.found.nothing", press.lang)]
        return Act(again=True, tells=(Block("text", "\n".join(lines)),), writes=write)

    async def repeat(self, press: Press) -> Act:
        """Begin a turn of its own where the other one was cut."""
        state = TurnState.from_json(press.action.params["state"])
        return Act(settles="restart.repeated", begins=state)

    async def leave(self, press: Press) -> Act:
        return Act(settles="restart.left")

    def _found(self, press: Press, effect: StoredEffect, verdict: Verdict) -> list[str]:
        summary = effect.summary if isinstance(effect.summary, Mapping) else {}
        targets = [str(target) for target in summary.get("targets") or [effect.tool]]
        say = self.texts.say
        if verdict.entries:
            done = [str(e["path"]) for e in verdict.entries if e.get("ok")]
            rest = [str(e["path"]) for e in verdict.entries if not e.get("ok")]
            return [
                say("restart.found.done", press.lang, what=self._named(done, press.lang)),
                say("restart.found.not_done", press.lang, what=self._named(rest, press.lang)),
            ]
        key = {EffectState.DONE: "done", EffectState.FAILED: "not_done"}.get(verdict.state)
        if key is None:
            key = "unclear" if _has_states(effect.expected) else "unseen"
        what = self._named(targets, press.lang)
        return [say(f"restart.found.{key}", press.lang, what=what)]

    def _named(self, names: Sequence[str], lang: str) -> str:
        shown = ", ".join(one_line(name) for name in names[:MOST_NAMED])
        more = len(names) - MOST_NAMED
        return f"{shown} {self.texts.say('answer.more', lang, count=more)}" if more > 0 else shown


def _has_states(expected: Any) -> bool:
    return isinstance(expected, Mapping) and bool(expected.get("wanted"))
