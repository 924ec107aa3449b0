"""What a text answers: its meaning for a field, and which open question it is for.

Pure. How numbers, dates and short words are read stands in the `core.answer_…` modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from core import answer_shapes as shapes
from core.answer_dates import read_date
from core.answer_numbers import read_number, read_place_in_list
from core.dialogs import (
    MAX_ADDRESS,
    MAX_PATH,
    MAX_SECRET,
    MAX_TEXT,
    NO,
    OPTION,
    YES,
    Answer,
    Field,
    FieldKind,
    Option,
    Suspension,
    chosen,
)


def is_cancel(text: str) -> bool:
    """Whether the whole text says to drop the question: `annulla`, `lascia stare`, `cancel`, …"""
    return shapes.fold(text) in shapes.CANCELS


def parse_answer(field: Field, text: str, *, lang: str, today: date) -> Answer | None:
    """Read a text as the answer to a field; None when it is not of its shape.

    Both languages are understood whatever `lang` is, which decides only how `1.500` is read.
    Dates without a year are the next ones from `today` on. Options are found by label, by number
    from 1 on, or by key.
    """
    text = text.strip()
    if field.optional and shapes.fold(text) in shapes.SKIPS:
        return Answer(field.default, skipped=True)
    match field.kind:
        case FieldKind.TEXT:
            return Answer(text, text) if 0 < len(text) <= MAX_TEXT else None
        case FieldKind.SECRET:
            return Answer(text) if 0 < len(text) <= MAX_SECRET else None
        case FieldKind.YES_NO:
            said = shapes.read_yes_no(text)
            return None if said is None else Answer(said, text)
        case FieldKind.NUMBER:
            number = read_number(text, lang=lang)
            return None if number is None else Answer(number, text)
        case FieldKind.DATE:
            day = read_date(text, today=today)
            return None if day is None else Answer(day.isoformat(), text)
        case FieldKind.CHOICE:
            return _choice(field.options, text)
        case FieldKind.MULTI_CHOICE:
            return _choices(field.options, text)
        case FieldKind.FILE_PATH:
            fits = 0 < len(text) <= MAX_PATH and not shapes.has_breaks(text)
            return Answer(text, text) if fits else None
        case FieldKind.LOCATION:
            return _place(text)


def answer_of_choice(field: Field, key: str) -> Answer | None:
    """The answer of a button: of an option (`OPTION` and its key), or yes or no (`YES`, `NO`)."""
    if field.kind is FieldKind.YES_NO:
        return Answer(key == YES, key) if key in {YES, NO} else None
    key = key.removeprefix(OPTION)
    for option in field.options:
        if option.key == key:
            many = field.kind is FieldKind.MULTI_CHOICE
            return Answer([key] if many else key, option.label)
    return None


def which(
    open_suspensions: Sequence[Suspension],
    text: str,
    reply_to_key: str | None = None,
    *,
    lang: str,
    today: date,
) -> Suspension | None:
    """The open question that a text is for; None: it is a new request.

    A reply to a prompt (its outbox key, message id or turn) is for that question, whatever it
    says; a reply to another message is for none. Any other text is for the newest question, if it
    drops it (`is_cancel`) or has the shape of an answer to what is asked. Pass only questions of
    this person in this conversation that have not run out.
    """
    if reply_to_key is not None:
        named = [
            s for s in open_suspensions if reply_to_key in (s.prompt_key, s.message_id, s.turn_id)
        ]
        return named[0] if named else None
    if not open_suspensions:
        return None
    newest = max(open_suspensions, key=lambda s: s.created_at)
    if is_cancel(text):
        return newest
    asked = newest.asked
    if parse_answer(asked, text, lang=lang, today=today) is not None:
        kind = FieldKind.TEXT if newest.is_typing else asked.kind
        return newest if _is_plainly(kind, text.strip()) else None
    if asked.kind is FieldKind.SECRET and shapes.looks_like_key(text):
        # Too long for a secret, and still one: asked again rather than told to a model.
        return newest
    place = newest.wants_place and read_answer(newest, text, lang=lang, today=today) is not None
    return newest if place and _is_plainly(FieldKind.LOCATION, text.strip()) else None


def read_answer(suspension: Suspension, text: str, *, lang: str, today: date) -> Answer | None:
    """What a text means for what is asked now, as `parse_answer` reads it. Where one of several
    places is to be chosen it may as well be another address."""
    asked = suspension.asked
    answer = parse_answer(asked, text, lang=lang, today=today)
    if answer is not None:
        return chosen(suspension, answer)
    return _place(text.strip()) if suspension.wants_place else None


def _is_plainly(kind: FieldKind, text: str) -> bool:
    """Whether a text that nobody marked as a reply may be taken: free kinds fit nearly anything,
    so that a new request must be told from an answer by its looks."""
    match kind:
        case FieldKind.TEXT:
            return not shapes.looks_like_request(text)
        case FieldKind.LOCATION:
            return shapes.looks_like_address(text) or shapes.read_coordinates(text) is not None
        case FieldKind.SECRET:
            # Better taken for the secret than told to a model.
            alike = len(text.split()) == 1 or shapes.looks_like_key(text)
            return alike or not shapes.looks_like_request(text)
        case FieldKind.FILE_PATH:
            return shapes.looks_like_path(text)
        case _:
            return True


def _choice(options: Sequence[Option], text: str) -> Answer | None:
    option = _option(options, text)
    return None if option is None else Answer(option.key, option.label)


def _choices(options: Sequence[Option], text: str) -> Answer | None:
    folded = shapes.fold(text)
    whole = _option(options, text)
    if whole is not None:
        found = [whole]
    elif folded in shapes.ALL:
        found = list(options)
    elif folded in shapes.NONE:
        found = []
    else:
        parts = [_option(options, part) for part in shapes.split_list(text)]
        found = [option for option in parts if option is not None]
        if not found or len(found) < len(parts):
            return None
    chosen = list(dict.fromkeys(found))
    return Answer([o.key for o in chosen], ", ".join(o.label for o in chosen))


def _option(options: Sequence[Option], text: str) -> Option | None:
    folded = shapes.fold(text)
    labels = [shapes.fold(option.label) for option in options]
    if folded and labels.count(folded) == 1:
        return options[labels.index(folded)]
    place = read_place_in_list(text)
    # Where the labels begin with numbers themselves, "3" means one of them or nothing.
    if place is not None and not any(label[:1].isdigit() for label in labels):
        return options[place - 1] if place <= len(options) else None
    if by_key := [option for option in options if option.key == text]:
        return by_key[0]
    begun = [
        i for i, label in enumerate(labels) if folded and f"{label} ".startswith(f"{folded} ")
    ]
    return options[begun[0]] if len(begun) == 1 else None


def _place(text: str) -> Answer | None:
    if (point := shapes.read_coordinates(text)) is not None:
        return Answer({"lat": point[0], "lon": point[1]}, text)
    fits = len(text) <= MAX_ADDRESS and not shapes.has_breaks(text) and any(map(str.isalpha, text))
    return Answer({"address": text}, text) if fits else None
