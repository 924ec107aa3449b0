"""Turns as plan memory sees them, without a house: what was asked, and how it ended."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

from core.catalog.loaded import NO_SDK, Catalog, LoadedExecutor
from core.errors import ErrorInfo
from core.execution.context import TurnContext
from core.execution.paths import Scope
from core.levels.remembering import FASTPATH
from core.levels.runner import Outcome
from core.messages import Actor, ChatAddress, FinalKind, Role
from core.observation import Observation
from core.plan import Plan, Step
from core.turn_state import Remembered, StepRecord, TurnState
from tests.support.catalogue import shipped_manifests

ANNA, BRUNO = Actor("anna", Role.HOST, "Anna"), Actor("bruno", Role.GUEST, "Bruno")
NOW = Plan((Step("get_now", {}),))
_TURNS = count()
_ZONE = "Europe/Rome"


@lru_cache(maxsize=1)
def catalog() -> Catalog:
    found = {name: LoadedExecutor(one, {}) for name, one in shipped_manifests().items()}
    return Catalog(found, (), NO_SDK, "x")


def turn_of(request: str, actor: Actor = ANNA, **fields: Any) -> TurnContext:
    """A turn that has just begun, with an id of its own."""
    return TurnContext(
        turn_id=f"turn{next(_TURNS)}",
        actor=actor,
        address=ChatAddress("terminal", actor.id),
        lang=fields.pop("lang", "it"),
        tz=_ZONE,
        now=datetime(2026, 3, 18, 10, 0, tzinfo=ZoneInfo(_ZONE)),
        request=request,
        catalog=catalog(),
        scope=Scope(("/home/sam",), "/home/sam", "/home/sam/.metnos", "/home/sam"),
        **fields,
    )


def ended_well(context: TurnContext, plan: Plan = NOW) -> Outcome:
    """A planned turn in which every step of the plan brought something."""
    state = TurnState(context.turn_id, context.request, plan=plan, engine="metis")
    for number, step in enumerate(plan.steps, start=1):
        seen = Observation(ok=True, content="x")
        state = state.with_step(
            StepRecord(number, step.tool, step.args, step.args, seen, {}, ran=True)
        )
    return Outcome(state, FinalKind.ANSWER)


def served(context: TurnContext, by: Remembered, error: ErrorInfo | None = None) -> Outcome:
    """The end of a turn that memory served: an answer, or this error before anything was done."""
    state = TurnState(context.turn_id, context.request, plan=NOW, engine=FASTPATH)
    # As it comes back from the store after a restart.
    state = TurnState.from_json(replace(state, remembered=by).to_json())
    kind = FinalKind.ANSWER if error is None else FinalKind.ERROR
    return Outcome(state, kind, error=error)
