"""The questions of a turn that waits: their kinds and fields, and which of them a text answers.

Pure. Callers pass the open questions, the person's words and the date; nothing here knows of
Telegram, of SQLite or of a model. How a text is read stands in the `core.answer_…` modules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from core import answer_shapes as shapes
from core.answer_dates import read_date
from core.answer_numbers import read_number, read_place_in_list

MAX_FIELDS = 30
MAX_TEXT = 4000
MAX_SECRET = 1000
MAX_PATH = 1024
MAX_ADDRESS = 200

# How often a field is asked again after an answer that is none.
MOST_MISSED = 3

TTL = timedelta(seconds=600)
TTL_LOCATION = timedelta(seconds=300)
TTL_SCHEDULED = timedelta(seconds=3600)
TTL_MOST = timedelta(seconds=3600)

YES, NO = "yes", "no"
# Before the key of an option that a button stands for, so that none is taken for another button.
OPTION = "="

# Beside the values of a question for a place: that an address is going to be typed, and what the
# address that was typed may mean, `[{"lat", "lon", "address"}]`.
TYPING, MATCHES = "?typing", "?matches"


class SuspensionKind(StrEnum):
    INPUTS = "inputs"
    APPROVAL = "approval"
    LOCATION = "location"
    DISAMBIGUATION = "disambiguation"
    CAP = "cap"


class SuspensionState(StrEnum):
    """open → claimed → done | indeterminate; open or claimed → cancelled; open → expired."""

    OPEN = "open"
    CLAIMED = "claimed"
    DONE = "done"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    INDETERMINATE = "indeterminate"


class FieldKind(StrEnum):
    TEXT = "text"
    SECRET = "secret"  # noqa: S105 - a kind, not one
    YES_NO = "yes_no"
    CHOICE = "choice"
    MULTI_CHOICE = "multi_choice"
    NUMBER = "number"
    DATE = "date"
    FILE_PATH = "file_path"
    LOCATION = "location"


@dataclass(frozen=True, slots=True)
class Option:
    """Something to choose: `key` is what the plan gets, `label` what the person reads."""

    key: str
    label: str


@dataclass(frozen=True, slots=True)
class Field:
    """One thing to ask. `var` names it among the values, `prompt` is said to the person.

    An `optional` field may be passed over and then has `default` (a value of its kind or None).
    """

    var: str
    prompt: str
    kind: FieldKind
    options: tuple[Option, ...] = ()
    optional: bool = False
    default: Any = None

    def to_json(self) -> dict[str, Any]:
        return {
            "var": self.var,
            "prompt": self.prompt,
            "kind": self.kind.value,
            "options": [[option.key, option.label] for option in self.options],
            "optional": self.optional,
            "default": self.default,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Field:
        return cls(
            data["var"],
            data["prompt"],
            FieldKind(data["kind"]),
            tuple(Option(key, label) for key, label in data.get("options", ())),
            data.get("optional") is True,
            data.get("default"),
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a text means for a field: `value` as JSON has it, and `said`, the same in words.

    text, secret, file_path: a text · yes_no: a bool · choice: the key · multi_choice: a list of
    keys in the order they were said · number: int or float · date: `YYYY-MM-DD` · location:
    `{"lat", "lon"}` or `{"address"}`, which is still to be looked up · an optional field passed
    over: its default. `said` is empty for a secret.
    """

    value: Any
    said: str = ""
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class Suspension:
    """A question that a turn waits for.

    `fields` are asked one after the other, `cursor` is the one that is asked now, `values` hold
    what was said before it. Kinds without fields of their own ask one thing: see `asked`.
    `digest` binds an approval to the call that was shown. The question stands in the outbox under
    `prompt_key` and, once it is out, in the chat as `message_id`. `data` is the opener's. `missed`
    counts the answers to `asked` that had not its shape.
    """

    id: str
    kind: SuspensionKind
    turn_id: str
    actor_id: str
    conversation: str
    created_at: datetime
    expires_at: datetime
    fields: tuple[Field, ...] = ()
    cursor: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)
    digest: str | None = None
    prompt_key: str | None = None
    message_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    missed: int = 0

    @property
    def asked(self) -> Field:
        """The field that is asked now. An approval or a cap without fields asks yes or no, a
        location a place; once an address may mean several places, which of them."""
        field = self._field
        if field.kind is not FieldKind.LOCATION or not self.matches:
            return field
        options = tuple(Option(_point(m), str(m["address"])) for m in self.matches)
        return Field(field.var, "", FieldKind.CHOICE, options)

    @property
    def wants_place(self) -> bool:
        """Whether a place answers what is asked now."""
        return self._field.kind is FieldKind.LOCATION

    @property
    def is_typing(self) -> bool:
        """Whether the person said that they are going to type an address."""
        return self.wants_place and self.values.get(TYPING) is True

    @property
    def matches(self) -> Sequence[Mapping[str, Any]]:
        """What the address that was typed may mean."""
        return tuple(self.values.get(MATCHES) or ())

    @property
    def _field(self) -> Field:
        if self.cursor < len(self.fields):
            return self.fields[self.cursor]
        kind = FieldKind.LOCATION if self.kind is SuspensionKind.LOCATION else FieldKind.YES_NO
        return Field(self.kind.value, "", kind)

    @property
    def is_last(self) -> bool:
        """Whether the answer to `asked` completes the question."""
        return self.cursor + 1 >= len(self.fields)


def ttl_of(
    kind: SuspensionKind, *, scheduled: bool = False, wished_s: float | None = None
) -> timedelta:
    """How long a question stays open; a wish counts from 1 second up to an hour."""
    if wished_s is not None:
        return min(max(timedelta(seconds=wished_s), timedelta(seconds=1)), TTL_MOST)
    if scheduled:
        return TTL_SCHEDULED
    return TTL_LOCATION if kind is SuspensionKind.LOCATION else TTL


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


def chosen(suspension: Suspension, answer: Answer) -> Answer:
    """The answer with the place in it that its key stands for, where one is to be chosen."""
    for match in suspension.matches:
        if answer.value == _point(match):
            return Answer(dict(match), answer.said)
    return answer


def anew(suspension: Suspension, *, typing: bool) -> Suspension:
    """The same question as it was first; `typing`: for an address that is going to be typed."""
    return replace(suspension, values={**_said(suspension), **({TYPING: True} if typing else {})})


def choosing(suspension: Suspension, matches: Sequence[Mapping[str, Any]]) -> Suspension:
    """The same question, for one of the places that an address may mean."""
    return replace(suspension, values={**_said(suspension), MATCHES: list(matches)})


def with_answer(suspension: Suspension, answer: Answer) -> Mapping[str, Any]:
    """All values so far, with the answer to what is asked now. A secret is locked before."""
    return {**_said(suspension), suspension.asked.var: answer.value}


def _said(suspension: Suspension) -> dict[str, Any]:
    return {k: v for k, v in suspension.values.items() if k not in (TYPING, MATCHES)}


def _point(place: Mapping[str, Any]) -> str:
    return f"{place['lat']},{place['lon']}"


def advanced(suspension: Suspension, values: Mapping[str, Any]) -> Suspension:
    """The same question at its next field."""
    return replace(suspension, cursor=suspension.cursor + 1, values=dict(values), missed=0)


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
            return len(text.split()) == 1 or not shapes.looks_like_request(text)
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
