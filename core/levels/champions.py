"""Which of several plans for a request serves: their merit, and what votes make of it. Pure.

A plan is worth what can be said of it with some certainty (Wilson's lower bound), less a little
for slowness. What stands for a request gives way only to what is clearly better, so that two plans
of equal worth do not take turns.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from core.errors import CallRefused
from core.levels.edition import words_edition
from core.levels.meaning import Meaning, meaning_of
from core.levels.reuse import Lesson, exact_key, keys_of, normal
from core.levels.tracing import Binding
from core.plan import FINAL_ANSWER, PIPES, Plan, Step, parse_template
from core.vocabulary import Category, category_of

Z = 1.96
"""Two-sided 95 %."""

SILENT = 0.25
"""What an answer counts that nobody spoke about, beside a 👍."""

MARGIN = 0.05
"""By how much a challenger must be better."""

LATENCY_WEIGHT, LATENCY_FULL_MS = 0.1, 20_000
"""A plan whose steps take twenty seconds or more loses this much of its worth."""

STRIKES = 3
"""So many 👎 keep a plan away."""

SHADOW_STEPS, SHADOW_RUNS = 4, 2
"""A plan of so many steps serves without a 👍 after so many successes."""

HARD_FOR, SOFT_FOR = timedelta(days=30), timedelta(hours=1)
UNUSED_FOR, DEMOTED_FOR = timedelta(days=90), timedelta(days=30)


class Verdict(StrEnum):
    """How a turn was found. `RAN`: it ended well and nobody said a word; `ANEW`: it was planned
    anew, which speaks neither for it nor against it."""

    RAN = ""
    ANEW = "anew"
    UP = "up"
    DOWN = "down"


class Status(StrEnum):
    ACTIVE = "active"
    SHADOW = "shadow"
    DEMOTED = "demoted"


@dataclass(frozen=True, slots=True)
class Tally:
    """What is known of a plan: 👍, 👎, answers without a word, and failures of its own before it
    did anything; `latency_ms` of its steps, a mean that follows."""

    up: int = 0
    down: int = 0
    ran: int = 0
    broke: int = 0
    latency_ms: float = 0.0

    def moved(self, old: Verdict | None, new: Verdict | None) -> Tally:
        """The same with one turn found otherwise; None: it was not counted before, or is not now.
        Never below zero, whatever is taken back."""
        counts = {"up": self.up, "down": self.down, "ran": self.ran}
        for verdict, by in ((old, -1), (new, 1)):
            if verdict is not None and verdict is not Verdict.ANEW:
                name = verdict.value or "ran"
                counts[name] = max(0, counts[name] + by)
        return replace(self, **counts)

    def timed(self, latency_ms: float) -> Tally:
        """With one more run of that length among the last twenty or so."""
        runs = self.up + self.down + self.ran
        share = 1 / min(max(runs, 1), 20)
        return replace(self, latency_ms=self.latency_ms + (latency_ms - self.latency_ms) * share)

    @property
    def score(self) -> float:
        return score(self)


@dataclass(frozen=True, slots=True)
class Ranked:
    """One plan among those for the same request."""

    id: int
    status: Status
    tally: Tally
    is_champion: bool = False


def wilson(ok: float, fail: float, z: float = Z) -> float:
    """Lower bound of the share of successes after so many of both, from 0 to 1; 0 without any.
    Raises `ValueError` for negative counts."""
    if ok < 0 or fail < 0:
        raise ValueError("counts are not negative")
    n = ok + fail
    if n == 0:
        return 0.0
    share, square = ok / n, z * z
    middle = share + square / (2 * n)
    spread = z * math.sqrt((share * (1 - share) + square / (4 * n)) / n)
    return max(0.0, (middle - spread) / (1 + square / n))


def score(tally: Tally) -> float:
    """What a plan is worth; comparable among plans for the same request."""
    slow = min(1.0, max(0.0, tally.latency_ms) / LATENCY_FULL_MS)
    good = tally.up + SILENT * tally.ran
    return wilson(good, tally.down + tally.broke) - LATENCY_WEIGHT * slow


def crowned(rows: Sequence[Ranked]) -> int | None:
    """Which plan is to be the champion: the one that is, unless it serves no more or another is
    better by the margin. None when none is active."""
    active = [row for row in rows if row.status is Status.ACTIVE]
    if not active:
        return None
    best = max(active, key=_worth)
    now = next((row for row in active if row.is_champion), None)
    if now is None or score(best.tally) >= score(now.tally) + MARGIN:
        return best.id
    return now.id


def in_turn(rows: Sequence[Ranked]) -> list[Ranked]:
    """Those that may serve, in the order in which they are tried: the champion, other active ones
    by their worth, then those that nobody has confirmed."""
    serving = [row for row in rows if row.status is not Status.DEMOTED]
    return sorted(
        serving,
        key=lambda row: (
            row.status is Status.ACTIVE,
            row.is_champion,
            *_worth(row),
        ),
        reverse=True,
    )


def _worth(row: Ranked) -> tuple[float, int, int, int]:
    """Ties: more 👍, then more runs, then the elder."""
    return score(row.tally), row.tally.up, row.tally.ran, -row.id


def status_of(tally: Tally, *, steps: int, is_struck: bool, has_active: bool) -> Status | None:
    """What a plan is to its request by now; None: not to serve at all, there is nothing in its
    favour yet. One 👍 is enough, or, for a plan of several steps where no other serves
    (`has_active`), two successes that nobody disliked."""
    if is_struck or is_broken(tally):
        return Status.DEMOTED
    if tally.up:
        return Status.ACTIVE
    runs = tally.ran >= SHADOW_RUNS and not tally.down
    return Status.SHADOW if runs and steps >= SHADOW_STEPS and not has_active else None


def is_kept_away(fails: int) -> bool:
    """Whether so many 👎 of one person since their last 👍 keep a plan away from them."""
    return fails >= STRIKES


def is_struck(fails: Mapping[str, int], taught_by: str) -> bool:
    """Whether 👎 since the last 👍, by who gave them, take a plan away from all: one person alone
    does so only with what they taught themselves."""
    return sum(fails.values()) >= STRIKES and (len(fails) > 1 or taught_by in fails)


def is_broken(tally: Tally) -> bool:
    """Whether a plan that failed by its own fault is worth less than one with a single 👍."""
    good, bad = tally.up + SILENT * tally.ran, tally.down + tally.broke
    return tally.broke > 0 and wilson(good, bad) < wilson(1, 0)


# -- what is counted together ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Intent:
    """What kind of request it is: `key` over the verbs in their order and the objects, `said` the
    same in words of the word list, never in a person's."""

    key: str
    said: str


def intent_of(meaning: Meaning) -> Intent | None:
    """None for a request that says neither what to do nor with what."""
    if not (meaning.deeds or meaning.things):
        return None
    deeds, things = " ".join(meaning.deeds), " ".join(meaning.things)
    said = " · ".join(part for part in (deeds, things) if part)
    return Intent(_hash(f"{deeds}|{things}"), said)


def cluster_of(meaning: Meaning) -> str:
    """Requests that differ in nothing that tells them apart; empty for those with values, and for
    those that only their own words may repeat. Another edition of the word list makes others: what
    it held for the same is not known of rows that hold no words."""
    if meaning.values or not meaning.key:
        return ""
    return _hash(f"{words_edition()}|{meaning.key}")


def form_of(plan: Plan, bindings: Sequence[Binding] = (), kinds: Sequence[str] = ()) -> str:
    """By which a plan is known again whatever its values were, and whatever it says at the end: 16
    hexadecimal digits. `kinds`: of the values that the bindings lead to."""
    places = {
        (b.step, b.path): f"<{kinds[b.value]} {b.value} {b.how}>"
        for b in bindings
        if b.value < len(kinds)
    }
    steps = [
        [step.tool, _walk(step.args, (), lambda leaf, path, n=n: places.get((n, path), leaf))]
        for n, step in enumerate(plan.steps)
        if step.tool != FINAL_ANSWER
    ]
    return _hash(json.dumps(steps, sort_keys=True, ensure_ascii=False, default=str))


def form_of_lesson(lesson: Lesson) -> str:
    return form_of(lesson.plan, lesson.bindings, [kind for kind, _ in lesson.values])


def bare(lesson: Lesson) -> Plan:
    """The plan without anything that stood in a request: as it is when it holds no value, else its
    tools and references alone."""
    if not lesson.is_value_bound:
        return lesson.plan
    return Plan(
        tuple(
            Step(step.tool, _walk(step.args, (), _blank))
            for step in lesson.plan.steps
            if step.tool != FINAL_ANSWER
        )
    )


def lesson_from(request: str, plan: Plan, tools: str, families: str) -> Lesson:
    """What a request teaches that a plan without values served: this plan for these words."""
    return Lesson(
        text=normal(request),
        plan=plan,
        bindings=(),
        values=(),
        exact=exact_key(request),
        shape="",
        wording="",
        meaning=keys_of(meaning_of(request))[2],
        tools=tools,
        families=families,
        changes=any(category_of(step.tool) is Category.ACTS for step in plan.steps),
        request=request,
    )


def steps_of(plan: Plan) -> int:
    """How many steps a plan has, its closing words aside."""
    return sum(step.tool != FINAL_ANSWER for step in plan.steps)


def way_of(plan: Plan) -> str:
    """The tools of a plan, in their order."""
    return " > ".join(step.tool for step in plan.steps if step.tool != FINAL_ANSWER)


def _blank(leaf: Any, path: tuple[str | int, ...]) -> Any:
    if isinstance(leaf, bool) or leaf is None or (len(path) == 1 and path[0] in PIPES):
        return leaf
    try:
        template = parse_template(leaf) if isinstance(leaf, str) else None
    except CallRefused:
        template = None
    whole = template is not None and not any(isinstance(part, str) for part in template.parts)
    return leaf if whole else "…"


def _walk(value: Any, path: tuple[str | int, ...], leaf: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _walk(item, (*path, str(key)), leaf) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(item, (*path, n), leaf) for n, item in enumerate(value)]
    return leaf(value, path)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
