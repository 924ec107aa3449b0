"""What stays of a line of the turn log when its words are forgotten. Pure.

Only what is named here stays: when, how long, with which tools, how it ended, what it cost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from core.store.encoding import dump_json

_KEPT = (
    "turn_id",
    "segment",
    "ts_start",
    "ts_end",
    "actor",
    "channel",
    "conversation",
    "lang",
    "mode",
    "engine",
    "match_source",
    "effect_counts",
    "unbacked_claims",
    "final_kind",
    "error_class",
    "model",
    "model_calls",
    "model_ms",
    "tokens_in",
    "tokens_out",
    "tokens_cached",
    "cost",
)
_KEPT_OF_STEP = (
    "number",
    "tokens_in",
    "tokens_out",
    "tokens_cached",
    "model_ms",
    "ok",
    "error_class",
    "effects",
    "latency_ms",
)
# A name that a model made up may hold words of a person.
_TOOL = re.compile(r"[a-z]+(_[a-z]+){1,3}")


def without_words(line: Mapping[str, Any]) -> dict[str, Any]:
    """The line, marked as `forgotten`, without what was asked, answered, given and found. Done
    again it is the same."""
    kept = {name: line[name] for name in _KEPT if name in line}
    steps = [_step(step) for step in line.get("steps") or () if isinstance(step, Mapping)]
    return {**kept, "user_query": "", "final_message": "", "steps": steps, "forgotten": True}


def changed_line(
    raw: bytes, actor_id: str, before: float, *, ended: Collection[str], running: Collection[str]
) -> bytes:
    """A line of the file as it stands once this person's turns are forgotten that are `ended`, or
    began by then (seconds since the epoch) and are not `running`. Others' stay byte for byte.

    A torn line that names the person goes: what it told stands in the database still.
    """
    if actor_id.encode() not in raw:
        return raw
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return b""
    if not isinstance(line, dict) or line.get("actor") != actor_id or line.get("forgotten"):
        return raw
    turn_id, began = line.get("turn_id"), line.get("ts_start")
    early = isinstance(began, int | float) and began <= before and turn_id not in running
    return dump_json(without_words(line)).encode() + b"\n" if turn_id in ended or early else raw


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    tool = str(step.get("tool") or "")
    kept = {name: step[name] for name in _KEPT_OF_STEP if name in step}
    return {**kept, "tool": tool if _TOOL.fullmatch(tool) else ""}
