"""The answer while a model still writes it: what of it may be seen already.

Only whole sentences that would stand in the answer too: no call written as text, no thinking, no
claim without a step. Where something was changed nothing is shown early: the log has the word.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from core.execution.context import TurnContext
from core.levels.honesty import check_claims, names_change
from core.llm.rescue import strip_think
from core.observation import Effects
from core.redaction import hide_handles
from core.turn_state import TurnState

# Shorter words may be the preamble of a call.
LEAST_CHARS = 60

# Where something begins that may be no prose: JSON, a call in tags, a reference.
_NO_PROSE = re.compile(r"[{]|<[|/!a-zA-Z]|\[TOOL")
_OPENS_STRANGELY = re.compile(r"\s*(?:[\[{<]|```)")
_SENTENCE_END = re.compile(r"[.!?…:][*_)\"»”]*(?=\s)|\n")


def hearing(context: TurnContext, state: TurnState) -> Callable[[str], None] | None:
    """What is to be called with the text so far; None: nothing may be seen before the end, or
    nobody looks."""
    on_words = context.on_words
    if on_words is None or state.effects is not Effects.NONE:
        return None
    shown, is_change = "", names_change(state.request)

    def hear(text: str) -> None:
        nonlocal shown
        words = seen_early(text, lang=context.lang, promises_only=not is_change)
        if words and words != shown:
            shown = words
            on_words(words)

    return hear


def seen_early(text: str, *, lang: str, promises_only: bool = False) -> str:
    """The sentences of a growing text that may be shown; "" while there are too few."""
    text = strip_think(text)
    if _OPENS_STRANGELY.match(text):
        return ""
    if (strange := _NO_PROSE.search(text)) is not None:
        text = text[: strange.start()]
    ends = [found.end() for found in _SENTENCE_END.finditer(text)]
    checked = check_claims(
        text[: ends[-1]].strip() if ends else "", lang=lang, done=(), promises_only=promises_only
    )
    words = hide_handles(checked.text).strip()
    return words if len(words) >= LEAST_CHARS else ""
