"""Everything a turn needs to go on, as versioned JSON.

Budgets and caps are counted from the records here, so that a pause never resets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from core.errors import StoreCorrupt, StoreTooNew
from core.observation import Effects, Observation
from core.plan import Plan

VERSION = 2

# Defaults of S9.
MAX_STEPS = 30
MAX_SAME_EXECUTOR = 10
MAX_VECTOR_RUN = 2
MAX_NON_ACTING_RUN = 3
MAX_SAME_FAILURE = 2
MAX_OBSERVATION_BYTES = 4096
MASS_MUTATION = 20


class Cap(StrEnum):
    """The caps that end a turn and that a person may extend, each once in a turn."""

    STEPS = "steps"
    SAME_EXECUTOR = "same_executor"
    IN_A_ROW = "in_a_row"
    DAY = "day"
    """What may be used in a day; how much that is, the settings say."""


# As much again, once.
MOST: Mapping[Cap, int] = {
    Cap.STEPS: MAX_STEPS,
    Cap.SAME_EXECUTOR: MAX_SAME_EXECUTOR,
    Cap.IN_A_ROW: MAX_NON_ACTING_RUN,
}


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step as it went: what was asked, what the checks said, what came back.

    `observation` is whole; `shown` is what the model saw of it (a handle when it was large).
    `ran` says that a program or builtin was started, whatever came of it.
    """

    number: int
    tool: str
    raw_args: Mapping[str, Any]
    resolved_args: Mapping[str, Any]
    observation: Observation
    shown: Mapping[str, Any]
    checks: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    ran: bool = False
    latency_ms: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    model_ms: int = 0
    call_id: str = ""
    preview: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "tool": self.tool,
            "raw_args": dict(self.raw_args),
            "resolved_args": dict(self.resolved_args),
            "observation": self.observation.to_json(),
            "shown": dict(self.shown),
            "checks": dict(self.checks),
            "key": self.key,
            "ran": self.ran,
            "latency_ms": self.latency_ms,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "cached": self.cached,
            "model_ms": self.model_ms,
            "call_id": self.call_id,
            "preview": None if self.preview is None else dict(self.preview),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StepRecord:
        fields = dict(data)
        fields["observation"] = Observation.from_json(fields["observation"])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that was proposed and has no record yet: the turn waits before it. `spent` is what
    its proposal cost, as the fields of a record have it."""

    tool: str
    args: Mapping[str, Any]
    call_id: str = ""
    problem: str | None = None
    spent: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "tool": self.tool,
            "args": dict(self.args),
            "call_id": self.call_id,
            "problem": self.problem,
            "spent": dict(self.spent),
        }


@dataclass(frozen=True, slots=True)
class Remembered:
    """The plan of memory that serves a turn: its row, the turn that taught it, and how it was
    found."""

    row: int
    taught_by: str
    how: str

    def to_json(self) -> dict[str, Any]:
        return {"row": self.row, "taught_by": self.taught_by, "how": self.how}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Remembered:
        return cls(int(data["row"]), str(data["taught_by"]), str(data["how"]))


@dataclass(frozen=True, slots=True)
class TurnState:
    """The state between two steps. Frozen: each step makes the next one.

    `pending` is set while the turn waits for an answer: the call that asked, and those proposed
    along with it. `segment` counts the stretches between questions, `told_steps` the steps that
    earlier ones have logged.

    `extended` are the caps that the person has extended, for this whole turn. `capped` is the
    refused step while the turn waits for that word. `remembered` is what memory serves it with.
    """

    turn_id: str
    request: str
    plan: Plan | None = None
    next_step: int = 0
    steps: tuple[StepRecord, ...] = ()
    candidates: tuple[str, ...] = ()
    engine: str = ""
    replans: int = 0
    pending: tuple[PendingCall, ...] = ()
    segment: int = 1
    told_steps: int = 0
    extended: tuple[Cap, ...] = ()
    capped: StepRecord | None = None
    remembered: Remembered | None = None

    def with_step(self, record: StepRecord) -> TurnState:
        return replace(self, steps=(*self.steps, record))

    @property
    def effects(self) -> Effects:
        """The gravest effect so far: unknown, else done, else none."""
        found = {record.observation.effects for record in self.steps}
        if Effects.UNKNOWN in found:
            return Effects.UNKNOWN
        return Effects.DONE if Effects.DONE in found else Effects.NONE

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "turn_id": self.turn_id,
            "request": self.request,
            "plan": None if self.plan is None else self.plan.to_json(),
            "next_step": self.next_step,
            "steps": [record.to_json() for record in self.steps],
            "candidates": list(self.candidates),
            "engine": self.engine,
            "replans": self.replans,
            "pending": [call.to_json() for call in self.pending],
            "segment": self.segment,
            "told_steps": self.told_steps,
            "extended": [cap.value for cap in self.extended],
            "capped": None if self.capped is None else self.capped.to_json(),
            "remembered": None if self.remembered is None else self.remembered.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TurnState:
        """Read a stored state. Raises `StoreTooNew` for one that a later version wrote, and
        `StoreCorrupt` for what is no state."""
        if data.get("version", 0) > VERSION:
            raise StoreTooNew("this turn was begun by a newer version")
        try:
            plan, capped, served = data.get("plan"), data.get("capped"), data.get("remembered")
            return cls(
                data["turn_id"],
                data["request"],
                None if plan is None else Plan.from_json(plan),
                int(data.get("next_step", 0)),
                tuple(StepRecord.from_json(step) for step in data.get("steps", ())),
                tuple(data.get("candidates", ())),
                str(data.get("engine", "")),
                int(data.get("replans", 0)),
                tuple(PendingCall(**call) for call in data.get("pending", ())),
                int(data.get("segment", 1)),
                int(data.get("told_steps", 0)),
                tuple(Cap(cap) for cap in data.get("extended", ())),
                None if capped is None else StepRecord.from_json(capped),
                None if served is None else Remembered.from_json(served),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise StoreCorrupt("the state of a turn cannot be read") from exc
