"""Tools that live in the engine: no manifest, no process, same gate."""

from __future__ import annotations

from typing import Any

from core.errors import CallRefused, ErrorCode
from core.execution.account_words import CREDENTIALS
from core.execution.asking import ASKING
from core.execution.context import TurnContext
from core.execution.values import parse_number
from core.execution.whereabouts import GET_LOCATION
from core.llm.client import ToolSpec
from core.observation import Observation
from core.plan import FINAL_ANSWER
from core.store import scratchpad
from core.store.effects import UNDO_LAST_TURN as UNDO_LAST_TURN
from core.store.stores import Stores
from core.turn_state import TurnState

SCRATCHPAD_READ = "scratchpad_read"
BUILTINS = (
    frozenset({SCRATCHPAD_READ, UNDO_LAST_TURN, GET_LOCATION, FINAL_ANSWER}) | ASKING | CREDENTIALS
)
MAX_READ = 8000

_SCRATCHPAD_TEXTS = {
    "it": "Legge altro testo di un risultato lungo, dal suo scratchpad_id.",
    "en": "Reads more of a long result, by its scratchpad_id.",
}

_UNDO_TEXTS = {
    "it": "Annulla le modifiche dell'ultimo turno che ha cambiato qualcosa. Senza argomenti.",
    "en": "Takes back the changes of the last turn that changed something. No arguments.",
}


def undo_spec(lang: str) -> ToolSpec:
    """The tool as a model sees it, offered only when the request speaks of taking back."""
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    return ToolSpec(UNDO_LAST_TURN, _UNDO_TEXTS[lang], empty)


def scratchpad_spec(lang: str) -> ToolSpec:
    """The tool as a model sees it, offered only while the turn has entries."""
    return ToolSpec(
        SCRATCHPAD_READ,
        _SCRATCHPAD_TEXTS[lang],
        {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "mode": {"enum": ["full", "head", "tail", "range"]},
                "n": {"type": "integer", "minimum": 1, "maximum": MAX_READ},
                "start": {"type": "integer", "minimum": 0},
                "end": {"type": "integer", "minimum": 0},
            },
            "required": ["id", "mode"],
            "additionalProperties": False,
        },
    )


def has_scratchpad(state: TurnState) -> bool:
    return any("scratchpad_id" in record.shown for record in state.steps)


async def scratchpad_read(
    stores: Stores, context: TurnContext, args: dict[str, Any]
) -> Observation:
    """Characters of a stored result: `head` and `tail` take `n`, `range` takes [start, end),
    `full` all of it.

    At most `MAX_READ` characters come back, also of `full`: `truncated` says so and `end` where to
    read on. Empty arguments count as not given. Another actor's or turn's id does not exist.
    Raises `CallRefused`.
    """
    args = {name: value for name, value in args.items() if value not in (None, "")}
    unknown = sorted(set(args) - {"id", "mode", "n", "start", "end"})
    if unknown or not isinstance(args.get("id"), str):
        raise CallRefused(ErrorCode.INVALID_ARGS, "needs id and mode; n, start, end are optional")
    async with stores.main.read() as tx:
        data = await scratchpad.get(tx, context.actor.id, context.turn_id, args["id"])
    if data is None:
        raise CallRefused(ErrorCode.NOT_FOUND, "no such scratchpad_id", path=args["id"][:40])
    text = data.decode("utf-8", "replace")
    start, end = _window(args, len(text))
    cut = text[start : min(end, start + MAX_READ)]
    return Observation(
        ok=True,
        content=cut,
        metadata={
            "start": start,
            "end": start + len(cut),
            "size": len(text),
            "truncated": start + len(cut) < end,
        },
    )


def _window(args: dict[str, Any], size: int) -> tuple[int, int]:
    def whole(name: str, default: int) -> int:
        value = parse_number(args.get(name, default))
        if int(value) != value:
            raise CallRefused(ErrorCode.INVALID_ARGS, f"{name} is a whole number")
        return max(0, int(value))

    count = max(1, min(whole("n", 2000), MAX_READ))
    match args.get("mode", "head"):
        case "full":
            return 0, size
        case "head":
            return 0, min(count, size)
        case "tail":
            return max(0, size - count), size
        case "range":
            start = min(whole("start", 0), size)
            return start, max(start, min(whole("end", start + count), size))
    raise CallRefused(ErrorCode.INVALID_ARGS, "mode is full, head, tail or range")
