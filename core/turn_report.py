"""The line that every turn leaves in the log (S1). Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from typing import Any

from core.execution.context import TurnContext
from core.levels.runner import Outcome
from core.messages import Reply
from core.observation import Effects
from core.redaction import for_log, redact
from core.turn_state import StepRecord

# What a person was told is kept longer than what programs were given.
MOST_MESSAGE = 4096


def log_line(
    *,
    context: TurnContext,
    outcome: Outcome,
    reply: Reply,
    ended: dt.datetime,
    mode: str,
    match_source: str,
    cost: float,
    unbacked: Sequence[str] = (),
    secrets: Collection[str] = (),
) -> dict[str, Any]:
    """One segment of a turn, with its own steps. Times are seconds since the epoch, latencies
    milliseconds.

    `secrets` are masked wherever they stand, like everything that looks like one.
    """
    steps = outcome.state.steps[outcome.state.told_steps :]
    return {
        "turn_id": context.turn_id,
        "segment": outcome.state.segment,
        "ts_start": context.now.timestamp(),
        "ts_end": ended.timestamp(),
        "actor": context.actor.id,
        "channel": context.address.channel,
        "conversation": context.address.key,
        "lang": context.lang,
        "user_query": redact(context.request, secrets),
        "mode": mode,
        "engine": outcome.state.engine,
        "match_source": match_source,
        "candidates": list(outcome.state.candidates),
        "steps": [_step(record, secrets) for record in steps],
        "effect_counts": _effect_counts(steps),
        "unbacked_claims": len(unbacked),
        "final_message": for_log(reply.plain, secrets, most=MOST_MESSAGE),
        "final_kind": reply.final_kind.value,
        "error_class": outcome.error.code.value if outcome.error else None,
        "error_detail": for_log(outcome.error.detail, secrets) if outcome.error else None,
        "model": outcome.model,
        "model_calls": outcome.model_calls,
        "model_ms": outcome.model_ms,
        "tokens_in": outcome.usage.tokens_in,
        "tokens_out": outcome.usage.tokens_out,
        "tokens_cached": outcome.usage.cached,
        "cost": round(cost, 6),
    }


def _step(record: StepRecord, secrets: Collection[str]) -> dict[str, Any]:
    observation = record.observation
    checks = record.checks
    return {
        "number": record.number,
        "tool": for_log(record.tool, secrets),
        "raw_args": for_log(record.raw_args, secrets),
        "resolved_args": for_log(record.resolved_args, secrets),
        "tokens_in": record.tokens_in,
        "tokens_out": record.tokens_out,
        "tokens_cached": record.cached,
        "model_ms": record.model_ms,
        "validation": checks.get("validation"),
        "scope": checks.get("scope"),
        "grounding": checks.get("grounding"),
        "guard": checks.get("guard"),
        "judge": checks.get("judge"),
        "consent": checks.get("consent"),
        "ok": observation.ok,
        "error_class": observation.error.code.value if observation.error else None,
        "error_detail": for_log(observation.error.detail, secrets) if observation.error else None,
        "effects": observation.effects.value,
        "latency_ms": record.latency_ms,
    }


def _effect_counts(steps: Sequence[StepRecord]) -> dict[str, int]:
    """Items read or found, items changed, items that failed."""
    items = changed = failed = 0
    for record in steps:
        entries = record.observation.entries or ()
        good = sum(entry.get("ok") is not False for entry in entries)
        failed += len(entries) - good + (not record.observation.ok and not entries)
        if record.observation.effects is Effects.DONE:
            changed += max(good, 1)
        else:
            items += good
    return {"items": items, "mutations": changed, "failures": failed}
