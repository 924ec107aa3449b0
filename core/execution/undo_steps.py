"""What taking back a turn consists of: its effects, newest first, item by item.

Also the words that ask for it. Pure: reads the journal's rows, knows neither world nor store.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from core.observation import Effects
from core.store.effects import UNDO_LAST_TURN, EffectState, StoredEffect
from core.turn_state import StepRecord

__all__ = ["UNDO_LAST_TURN", "UndoItem", "is_undo_request", "items_of", "speaks_of_undo"]

Doing = Literal["restore", "move", "remove", "delete", "put_back", "none"]

MOST_WORDS = 60
_COMMAND = re.compile(r"/undo(?:@\w+)?", re.IGNORECASE)
_WHAT_IT = (
    "tutto|(?:tutto )?(?:quello|cio) che hai (?:appena )?fatto"
    "|(?:l )?ultim[oa](?: (?:operazione|azione|modifica|cosa|turno|passo))?"
    "(?: che hai (?:appena )?fatto)?"
    "|quest[oa]|le (?:ultime )?modifiche|la modifica|l operazione"
)
_WHAT_EN = (
    "it|that|this|everything|(?:all )?(?:what|that) you (?:just )?did|(?:the|your) changes?"
    "|(?:the |your |my )?last (?:turn|action|change|changes|operation|thing|step|one)"
)
_WHOLE = re.compile(
    "annulla|annullalo|annullala|disfa|undo"
    f"|(?:annulla|disfa) (?:{_WHAT_IT})"
    "|rimetti (?:tutto )?com ?era(?: prima)?"
    f"|(?:undo|revert|take back) (?:{_WHAT_EN})"
    "|put (?:it|everything|that) back(?: (?:as|the way) it was)?"
)
_SPEAKS = re.compile(
    r"\b(?:annull\w+|disf(?:a|are|ai)|ripristin\w+|rimett\w+ (?:tutto )?com)\b"
    r"|\b(?:undo|revert|take back)\b"
)
# Where one wish ends and the next, or the reason, begins.
_NEXT = re.compile(
    r"[,.;:!\s]+(?:(?P<why>perch[eé]|che ho|because|since|i made)\b"
    r"|(?:e\s+poi|e\s+dopo|e|poi|and\s+then|and|then)\b\s*)|[,.;:!]\s+",
    re.IGNORECASE,
)
_COURTESY = re.compile(r"^(?:per favore|ok|please|no)\s+|\s+(?:per favore|grazie|please|thanks)$")


@dataclass(frozen=True, slots=True)
class UndoItem:
    """One thing to put back: `source` goes to `path` (restore, move), or what was made at `path`
    goes away (remove). `delete`: what the step made under `made["id"]` goes away by `tool`, its
    name or id is in `path`. `put_back`: what `tool` changed under that id becomes again the `text`
    that `found` holds. `none`: the journal knows no way back.

    `wanted`: how the changed place was left; `found`: how `path` was before. None: not recorded.
    """

    do: Doing
    path: str
    source: str | None = None
    wanted: Mapping[str, Any] | None = None
    found: Mapping[str, Any] | None = None
    tool: str = ""
    made: Mapping[str, Any] = field(default_factory=dict)
    done_at: datetime | None = None


def is_undo_request(text: str) -> bool:
    """Whether the whole of a text asks to take back what was done last; a text that says more
    than that, whatever it says, is a request like any other."""
    spoken = text.strip()
    if len(spoken) > MOST_WORDS:
        return False
    if _COMMAND.fullmatch(spoken):
        return True
    if "?" in spoken:
        return False
    words = _bare(spoken)
    for _ in range(2):
        words = _COURTESY.sub("", words)
    return _WHOLE.fullmatch(words) is not None


def undo_and_rest(text: str) -> str | None:
    """What else a request asks for that begins by asking to take back what was done last: the rest
    of it, "" when that only says why. None: it does not begin so."""
    for match in _NEXT.finditer(text):
        if "?" in text[: match.start()] or not is_undo_request(text[: match.start()]):
            continue
        return "" if match["why"] else text[match.end() :].strip()
    return None


def speaks_of_undo(text: str) -> bool:
    """Whether a request has a word of taking back in it, so that the tool for it is offered."""
    return _SPEAKS.search(_bare(text)) is not None or undo_and_rest(text) is not None


def is_undoable(record: StepRecord) -> bool:
    """Whether a step changed something for which its preview knew a way back."""
    changed = record.observation.effects is Effects.DONE
    return changed and record.preview is not None and bool(record.preview.get("undo"))


def items_of(effects: Sequence[StoredEffect]) -> list[UndoItem]:
    """What to put back for these effects of a turn, in the order to be done."""
    items: list[UndoItem] = []
    for effect in sorted(effects, key=lambda one: one.step, reverse=True):
        if effect.state in {EffectState.DONE, EffectState.UNKNOWN}:
            items += _items(effect)
    return items


def _bare(text: str) -> str:
    """Words in small letters without accents, one space between."""
    folded = unicodedata.normalize("NFKD", text).lower()
    bare = "".join(c for c in folded if not unicodedata.combining(c))
    return " ".join(re.sub(r"[^a-z0-9]+", " ", bare).split())


def _items(effect: StoredEffect) -> Iterator[UndoItem]:
    expected = effect.expected if isinstance(effect.expected, Mapping) else {}
    before = effect.before if isinstance(effect.before, Mapping) else {}
    wanted, found = _by_path(expected.get("wanted")), _by_path(before.get("found"))
    steps = [step for step in expected.get("undo") or () if isinstance(step, Mapping)]
    if not steps:
        summary = effect.summary if isinstance(effect.summary, Mapping) else {}
        for target in summary.get("targets") or [effect.tool]:
            yield UndoItem("none", str(target))
    for step in steps:
        match step:
            case {"do": "delete_by_id"}:
                yield from _by_id(effect, "delete")
            case {"do": "put_back_by_id"}:
                yield from _by_id(effect, "put_back", _by_id_found(before.get("found")))
            case {"do": "remove", "path": str(path)}:
                yield UndoItem("remove", path, None, wanted.get(path), found.get(path))
            case {"do": "restore", "from": str(source), "to": str(path)}:
                yield UndoItem("restore", path, source, wanted.get(path), found.get(path))
            case {"do": "move", "from": str(source), "to": str(path)}:
                yield UndoItem("move", path, source, wanted.get(source), found.get(path))
            case _:
                yield UndoItem("none", str(step.get("to") or step.get("path") or effect.tool))


def _by_id(
    effect: StoredEffect, do: Doing, found: Mapping[str, Mapping[str, Any]] | None = None
) -> Iterator[UndoItem]:
    """What a step made or changed and its tool's manifest knows how to take back, newest first."""
    summary = effect.summary if isinstance(effect.summary, Mapping) else {}
    tool, made = str(summary.get("undo_tool") or ""), summary.get("made") or []
    if not tool or not made:  # a crash hid what came of it
        yield UndoItem("none", str((summary.get("targets") or [effect.tool])[0]))
    for one in reversed(made) if tool else ():
        label = str(one.get("name") or one["id"])
        former = (found or {}).get(str(one["id"]))
        if do == "put_back" and former is not None and former.get("exists") is False:
            continue  # it was gone already
        if do == "put_back" and not isinstance((former or {}).get("text"), str):
            yield UndoItem("none", label)
            continue
        yield UndoItem(
            do, label, None, None, former, tool=tool, made=one, done_at=effect.started_at
        )


def _by_id_found(states: Any) -> dict[str, Mapping[str, Any]]:
    listed = states if isinstance(states, list) else []
    return {str(one["id"]): one for one in listed if isinstance(one, Mapping) and "id" in one}


def _by_path(states: Any) -> dict[str, Mapping[str, Any]]:
    listed = states if isinstance(states, list) else []
    return {str(one["path"]): one for one in listed if isinstance(one, Mapping) and "path" in one}
