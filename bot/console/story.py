"""One turn told in order: its segments, what each step was given, how it was checked and what came
of it. Pure: lines of the log, journal and questions in, values for a page out.

Lines were written by an earlier version or by nobody who can be asked, so whatever is not as it
should be is left out and never raises.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from core.catalog.loaded import Catalog
from core.dialogs import Suspension, SuspensionState
from core.redaction import for_log, hide_handles, redact
from core.store.effects import EffectState, StoredEffect

CHECKS = ("validation", "grounding", "scope", "guard", "judge", "consent")
_TONES = {
    "ok": "good",
    "given": "good",
    "standing": "good",
    "denied": "bad",
    "declined": "bad",
    "needed": "warn",
    "without": "warn",
}
_SILENT = frozenset({"not_needed"})
MOST_TARGETS = 8


@dataclass(frozen=True, slots=True)
class Check:
    """`verdict` is one of the words of `console.verdict.…`, `about` what it names."""

    name: str
    verdict: str
    tone: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """`phrase` says what the program does in the reader's language, "" for one that is not there
    any more. Times are seconds."""

    number: int
    tool: str
    phrase: str
    ok: bool
    tone: str
    error: str
    detail: str
    effects: str
    checks: tuple[Check, ...]
    seconds: float
    model_seconds: float
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    args: str
    raw_args: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of the turn; what was answered is not here."""

    kind: str
    state: str
    at: dt.datetime
    expires: dt.datetime


@dataclass(frozen=True, slots=True)
class Segment:
    """What went on without waiting for a person, how it ended (`kind`) and what it then asked."""

    number: int
    began: dt.datetime | None
    ended: dt.datetime | None
    source: str
    engine: str
    model: str
    model_calls: int
    model_seconds: float
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost: float
    kind: str
    error: str
    detail: str
    unbacked: int
    candidates: tuple[str, ...]
    steps: tuple[Step, ...]
    asked: tuple[Asked, ...] = ()

    @property
    def seconds(self) -> float:
        if self.began is None or self.ended is None:
            return 0.0
        return max(0.0, (self.ended - self.began).total_seconds())


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the journal: the places it touched, `more` of them beyond those named."""

    step: int
    tool: str
    phrase: str
    state: EffectState
    targets: tuple[str, ...]
    more: int
    began: dt.datetime
    ended: dt.datetime | None


@dataclass(frozen=True, slots=True)
class Story:
    segments: tuple[Segment, ...]
    changes: tuple[Change, ...]
    questions: tuple[Asked, ...]

    @property
    def tokens(self) -> tuple[int, int, int]:
        """Read, written, and of those read the ones the server had seen before."""
        return (
            sum(one.tokens_in for one in self.segments),
            sum(one.tokens_out for one in self.segments),
            sum(one.tokens_cached for one in self.segments),
        )

    @property
    def cost(self) -> float:
        return sum(one.cost for one in self.segments)

    @property
    def model_calls(self) -> int:
        return sum(one.model_calls for one in self.segments)

    @property
    def seconds(self) -> float:
        return sum(one.seconds for one in self.segments)

    @property
    def model(self) -> str:
        return next((one.model for one in reversed(self.segments) if one.model), "")


def story_of(
    lines: Sequence[Mapping[str, Any]],
    journal: Sequence[StoredEffect],
    questions: Sequence[tuple[Suspension, SuspensionState]],
    *,
    catalog: Catalog,
    lang: str,
    secrets: Collection[str] = (),
) -> Story:
    """`secrets` and what looks like one are masked once more, whatever the lines hold."""
    asked = tuple(
        Asked(one.kind.value, state.value, one.created_at, one.expires_at)
        for one, state in questions
    )
    segments = [_segment(line, catalog, lang, secrets) for line in lines]
    return Story(
        tuple(
            replace(one, asked=tuple(q for q in asked if _is_of(q, one, after)))
            for one, after in zip_longest(segments, segments[1:])
        ),
        tuple(change_of(effect, catalog, lang, secrets) for effect in journal),
        asked,
    )


def change_of(
    effect: StoredEffect, catalog: Catalog, lang: str, secrets: Collection[str] = ()
) -> Change:
    summary = effect.summary if isinstance(effect.summary, Mapping) else {}
    targets = summary.get("targets")
    named = [_text(one, secrets) for one in targets] if isinstance(targets, list) else []
    return Change(
        effect.step,
        effect.tool,
        phrase_of(effect.tool, catalog, lang),
        effect.state,
        tuple(named[:MOST_TARGETS]),
        max(0, len(named) - MOST_TARGETS),
        effect.started_at,
        effect.ended_at,
    )


def phrase_of(tool: str, catalog: Catalog, lang: str) -> str:
    """What a program does, as it says itself; "" for one that is not in the catalogue."""
    executor = catalog.executors.get(tool)
    return "" if executor is None else executor.manifest.phrase.get(lang, "")


def _segment(
    line: Mapping[str, Any], catalog: Catalog, lang: str, secrets: Collection[str]
) -> Segment:
    steps = line.get("steps")
    candidates = line.get("candidates")
    return Segment(
        number=_whole(line.get("segment")) or 1,
        began=_moment(line.get("ts_start")),
        ended=_moment(line.get("ts_end")),
        source=_word(line.get("match_source")),
        engine=_word(line.get("engine")),
        model=_word(line.get("model")),
        model_calls=_whole(line.get("model_calls")),
        model_seconds=_number(line.get("model_ms")) / 1000,
        tokens_in=_whole(line.get("tokens_in")),
        tokens_out=_whole(line.get("tokens_out")),
        tokens_cached=_whole(line.get("tokens_cached")),
        cost=_number(line.get("cost")),
        kind=_word(line.get("final_kind")),
        error=_word(line.get("error_class")),
        detail=_text(line.get("error_detail"), secrets),
        unbacked=_whole(line.get("unbacked_claims")),
        candidates=tuple(map(str, candidates)) if isinstance(candidates, list) else (),
        steps=tuple(
            _step(step, catalog, lang, secrets)
            for step in (steps if isinstance(steps, list) else ())
            if isinstance(step, Mapping)
        ),
    )


def _step(step: Mapping[str, Any], catalog: Catalog, lang: str, secrets: Collection[str]) -> Step:
    tool, ok, effects = _word(step.get("tool")), step.get("ok") is True, _word(step.get("effects"))
    tone = "good" if ok else "warn" if _word(step.get("consent")) == "needed" else "bad"
    return Step(
        number=_whole(step.get("number")),
        tool=tool,
        phrase=phrase_of(tool, catalog, lang),
        ok=ok,
        tone="warn" if effects == "unknown" else tone,
        error=_word(step.get("error_class")),
        detail=_text(step.get("error_detail"), secrets),
        effects=effects,
        checks=tuple(check for name in CHECKS if (check := _check(name, step.get(name)))),
        seconds=_number(step.get("latency_ms")) / 1000,
        model_seconds=_number(step.get("model_ms")) / 1000,
        tokens_in=_whole(step.get("tokens_in")),
        tokens_out=_whole(step.get("tokens_out")),
        tokens_cached=_whole(step.get("tokens_cached")),
        args=_json(step.get("resolved_args"), secrets),
        raw_args=_json(step.get("raw_args"), secrets),
    )


def _check(name: str, value: Any) -> Check | None:
    verdict, _, about = _word(value).partition(" ")
    if not verdict or verdict in _SILENT:
        return None
    return Check(name, verdict, _TONES.get(verdict, "calm"), about)


def _is_of(asked: Asked, segment: Segment, after: Segment | None) -> bool:
    """Whether a question was asked in a segment: before the next one began."""
    begins = segment.began is None or asked.at >= segment.began
    ends = after is None or after.began is None or asked.at < after.began
    return begins and ends


def _json(value: Any, secrets: Collection[str]) -> str:
    if not value:
        return ""
    shown = json.dumps(for_log(value, secrets), ensure_ascii=False, indent=2, default=str)
    return hide_handles(shown)


def _text(value: Any, secrets: Collection[str]) -> str:
    return "" if value is None else hide_handles(redact(str(value), secrets))


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    return float(value) if 0 <= value < 1e15 else 0.0


def _whole(value: Any) -> int:
    return int(_number(value))


def _moment(value: Any) -> dt.datetime | None:
    seconds = _number(value)
    return dt.datetime.fromtimestamp(seconds, dt.UTC) if 0 < seconds < 1e11 else None
