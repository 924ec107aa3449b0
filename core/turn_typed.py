"""A button of a card, typed: its label without the sign, or the word that stands for it.

Pure. "Yes" and "no" are read as any answer is; here is what only buttons say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.answer_shapes import fold, is_always
from core.dialogs import Suspension, SuspensionKind
from core.execution import cards
from core.execution.consent import ALWAYS
from core.i18n import Texts
from core.turn_question import question_of

_SIGN = re.compile(r"^\W+")
# Typed where it is not offered.
NOT_OFFERED = "not_offered"


def typed_button(
    open_ones: Sequence[Suspension], text: str, reply_to: str | None, texts: Texts
) -> tuple[Suspension, str] | None:
    """The card, and the choice of the button that the text stands for: of the card that is replied
    to, else of the newest question if that is a card. `NOT_OFFERED`: an "always" to a card that
    has no such button. None: it is no button's word."""
    asked = _meant(open_ones, reply_to)
    if asked is None or asked.kind is not SuspensionKind.APPROVAL or asked.fields:
        return None
    question = question_of(asked)
    typed = _bare(text)
    for lang in texts.langs:
        for choice, label in cards.choices(question, texts, lang):
            if typed and _bare(label) == typed:
                return asked, choice
    if is_always(text):
        return asked, ALWAYS if question.may_always else NOT_OFFERED
    return None


def _meant(open_ones: Sequence[Suspension], reply_to: str | None) -> Suspension | None:
    if reply_to is not None:
        named = [one for one in open_ones if reply_to in (one.prompt_key, one.message_id)]
        return named[0] if named else None
    return max(open_ones, key=lambda one: one.created_at, default=None)


def _bare(text: str) -> str:
    """A label as people type it: without the sign before it, in any case."""
    return fold(_SIGN.sub("", text))
