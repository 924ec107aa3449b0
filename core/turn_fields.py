"""How one field of a form is drawn and answered: its hint, its options, what can be pressed, and
what of an answer is checked against the house. Stores nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core import dialog_answers, dialogs
from core.dialog_picks import answer_of_picked, picked
from core.dialogs import OPTION, Answer, Field, FieldKind, Suspension
from core.errors import CallRefused
from core.execution.paths import Scope, canonical_path, check_scope
from core.i18n import Texts
from core.messages import Reply

SKIP, DONE = "skip", "done"
MOST_BUTTONS = 8
# Longer labels are cut on a phone's buttons, where two with one beginning would look the same.
LONG_LABEL = 40

_HINTED = frozenset({FieldKind.NUMBER, FieldKind.DATE, FieldKind.FILE_PATH, FieldKind.SECRET})
_CHOSEN = frozenset({FieldKind.CHOICE, FieldKind.MULTI_CHOICE})


def notes(suspension: Suspension, field: Field, texts: Texts, lang: str) -> list[str]:
    """What stands in small type under the question: how far the form is, what fits."""
    found = []
    if len(suspension.fields) > 1:
        number, count = suspension.cursor + 1, len(suspension.fields)
        found.append(texts.say("dialog.field_of", lang, number=number, count=count))
    if field.kind is FieldKind.MULTI_CHOICE:
        many = len(field.options) > MOST_BUTTONS
        found.append(texts.say(f"dialog.hint.multi_choice{'_typed' if many else ''}", lang))
    elif field.kind in _HINTED:
        found.append(texts.say(f"dialog.hint.{field.kind.value}", lang))
    if field.optional and not _is_skipped_by_button(field):
        found.append(texts.say("dialog.hint.skip", lang))
    return found


def choices_of(
    suspension: Suspension, field: Field, texts: Texts, lang: str
) -> list[tuple[str, str]]:
    """What can be pressed for the field that is asked: (choice, label)."""
    if field.kind is FieldKind.YES_NO:
        found = [
            (dialogs.YES, texts.say("dialog.plain_yes", lang)),
            (dialogs.NO, texts.say("dialog.no", lang)),
        ]
    elif field.kind in _CHOSEN and len(field.options) <= MOST_BUTTONS:
        found = _options(field, picked(suspension))
        if field.kind is FieldKind.MULTI_CHOICE:
            found.append((DONE, texts.say("dialog.done", lang)))
    elif field.kind is FieldKind.CHOICE:
        found = _options(field)[:MOST_BUTTONS]
    else:
        found = []
    if field.optional and _is_skipped_by_button(field):
        found.append((SKIP, texts.say("dialog.skip", lang)))
    return found


def remarked(reply: Reply, suspension: Suspension) -> Reply:
    """The question of several choices as it was shown, with the picked ones marked: the same
    buttons under other labels."""
    field = suspension.asked
    labels = iter([label for _, label in _options(field, picked(suspension))])
    rows = tuple(tuple(replace(b, label=next(labels, b.label)) for b in r) for r in reply.buttons)
    return replace(reply, buttons=rows)


def listed(field: Field, *, always: bool = False) -> str:
    """The options by number, where buttons are not enough to say them all."""
    if len(field.options) <= MOST_BUTTONS and not always and not _is_long(field):
        return ""
    lines = [f"{number}. {option.label}" for number, option in enumerate(field.options, 1)]
    return "\n" + "\n".join(lines)


def is_within(scope: Scope, path: str) -> bool:
    """Whether a path, as a person says it, is one that they may read. The gate looks again."""
    try:
        check_scope(canonical_path(path, scope), scope, write=False)
    except CallRefused:
        return False
    return True


def is_toggle(suspension: Suspension, choice: str) -> bool:
    """Whether the button picks one of several options, and answers nothing yet."""
    return choice.startswith(OPTION) and suspension.asked.kind is FieldKind.MULTI_CHOICE


def pressed(suspension: Suspension, choice: str) -> Answer | None:
    """The answer of a button; None: it is none of this field."""
    asked = suspension.asked
    if choice == SKIP and asked.optional:
        return Answer(asked.default, skipped=True)
    if choice == DONE and asked.kind is FieldKind.MULTI_CHOICE:
        return answer_of_picked(suspension)
    return dialog_answers.answer_of_choice(asked, choice)


def _is_skipped_by_button(field: Field) -> bool:
    # One button only stands beside a secret: the phone must reply, so that it is told from a
    # request. A place shares the phone's keyboard.
    return field.kind is not FieldKind.SECRET


def _options(field: Field, picked: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The options as buttons: (choice, label). Long ones are told apart by their number."""
    numbered = _is_long(field)
    found = []
    for number, option in enumerate(field.options, 1):
        label = f"{number}. {option.label}" if numbered else option.label
        found.append((OPTION + option.key, f"☑️ {label}" if option.key in picked else label))
    return found


def _is_long(field: Field) -> bool:
    return any(len(option.label) > LONG_LABEL for option in field.options)
