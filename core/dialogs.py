"""The questions of a turn that waits: their kinds, their fields, and how far each has come.

Pure; nothing here knows of Telegram, of SQLite or of a model. What a text answers is
`core.dialog_answers`'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

MAX_FIELDS = 30
MAX_TEXT = 4000
MAX_SECRET = 1000
MAX_PATH = 1024
MAX_ADDRESS = 200

# What is asked where nobody else reads along.
_PRIVATE = frozenset({"secret", "location"})

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


def is_private(kind: SuspensionKind, fields: Sequence[Field]) -> bool:
    """Whether a question is for the person alone: it asks for a secret, or where they are."""
    return kind is SuspensionKind.LOCATION or any(field.kind in _PRIVATE for field in fields)


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
