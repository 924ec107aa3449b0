"""The builtins that ask the person something: the same questions, opened by a plan or a model.

A question whose answer is not there yet makes the turn wait; with it, the answer is what the step
brought.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.dialogs import MAX_FIELDS, Field, FieldKind, Option, SuspensionKind
from core.errors import CallRefused, ErrorCode
from core.execution.arguments import Lookup
from core.execution.consent import Decision, NeedsAnswer, Question
from core.llm.client import ToolSpec
from core.observation import Observation
from core.plan import as_step_number

GET_INPUTS = "get_inputs"
GET_APPROVAL = "get_approval"
GET_LOCATION = "request_location_from_user"
CHOOSE = "request_disambiguation_from_user"
ASKING = frozenset({GET_INPUTS, GET_APPROVAL, GET_LOCATION, CHOOSE})

MOST_PROMPT = 500
MOST_OPTIONS = 50

_TEXTS = {
    GET_INPUTS: {
        "it": "Chiede alla persona ciò che manca, un campo alla volta.",
        "en": "Asks the person for what is missing, one field at a time.",
    },
    CHOOSE: {
        "it": "Chiede alla persona di scegliere fra più possibilità.",
        "en": "Asks the person to choose between several possibilities.",
    },
}
_TEXT = {"type": "string"}
_OPTIONS = {"type": "array", "items": _TEXT}
_KINDS = [kind.value for kind in FieldKind]
_FORMS: Mapping[str, Mapping[str, Any]] = {
    GET_INPUTS: {
        "fields": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "var": _TEXT,
                    "prompt": _TEXT,
                    "kind": {"enum": _KINDS},
                    "options": _OPTIONS,
                    "from_step": {"type": "integer"},
                    "optional": {"type": "boolean"},
                },
                "required": ["var", "prompt", "kind"],
            },
        }
    },
    GET_LOCATION: {"prompt": _TEXT},
    CHOOSE: {"prompt": _TEXT, "options": _OPTIONS, "from_step": {"type": "integer"}},
}


def specs(lang: str) -> list[ToolSpec]:
    """The tools as a model sees them. For where the person is there is `get_location`, which asks
    only when that is not known."""
    return [
        ToolSpec(
            name,
            _TEXTS[name][lang],
            {
                "type": "object",
                "properties": dict(_FORMS[name]),
                "required": [key for key in _FORMS[name] if key not in {"options", "from_step"}],
                "additionalProperties": False,
            },
        )
        for name in (GET_INPUTS, CHOOSE)
    ]


def with_lists(tool: str, args: Mapping[str, Any], lookup: Lookup) -> dict[str, Any]:
    """Resolved arguments with the lists that fields take from earlier steps. Raises
    `CallRefused(bad_reference)` for a step that brought none."""
    fields = args.get("fields")
    if tool != GET_INPUTS or not isinstance(fields, list):
        return dict(args)
    return {**args, "fields": [_with_list(one, lookup) for one in fields]}


def _with_list(field: Any, lookup: Lookup) -> Any:
    if not isinstance(field, Mapping) or field.get("from_step") is None:
        return field
    number = as_step_number(field["from_step"])
    items = None if number is None else lookup.step(number).items()
    if items is None:
        raise CallRefused(ErrorCode.BAD_REFERENCE, "from_step: a step that brought a list")
    return {**{k: v for k, v in field.items() if k != "from_step"}, "options": items}


def answer_of(tool: str, args: Mapping[str, Any], decision: Decision | None) -> Observation:
    """What the person answered: `approved`, the fields by their `var`, the place, or `choice`.

    Raises `NeedsAnswer` with the question when there is no answer yet, and `CallRefused` for
    arguments that make none. `expires_s` among them is how long the question stays open, up to an
    hour.
    """
    if decision is None:
        raise NeedsAnswer(replace(_QUESTIONS[tool](args), expires_s=_open_for(args)))
    if tool == GET_APPROVAL:
        return Observation(ok=True, content={"approved": decision.agreed})
    values = dict(decision.values)
    if tool == GET_LOCATION:
        place = values.get(SuspensionKind.LOCATION.value)
        return Observation(ok=True, content=dict(place) if isinstance(place, Mapping) else {})
    return Observation(ok=True, content=values)


def _open_for(args: Mapping[str, Any]) -> int | None:
    """How many seconds a plan wishes its question to stay open; None: as long as its kind does."""
    wished = args.get("expires_s")
    if wished is None:
        return None
    if isinstance(wished, bool) or not isinstance(wished, int) or wished < 1:
        raise CallRefused(ErrorCode.INVALID_ARGS, "expires_s: whole seconds, from 1 on")
    return wished


def _inputs(args: Mapping[str, Any]) -> Question:
    fields = args.get("fields")
    if not isinstance(fields, list) or not 1 <= len(fields) <= MAX_FIELDS:
        raise CallRefused(ErrorCode.INVALID_ARGS, f"fields: a list of 1 to {MAX_FIELDS}")
    read = tuple(_field(one) for one in fields)
    if len({field.var for field in read}) < len(read):
        raise CallRefused(ErrorCode.INVALID_ARGS, "every field needs a var of its own")
    return Question(SuspensionKind.INPUTS, GET_INPUTS, fields=read)


def _field(data: Any) -> Field:
    if not isinstance(data, Mapping) or data.get("kind") not in _KINDS:
        raise CallRefused(ErrorCode.INVALID_ARGS, f"a field's kind is one of {', '.join(_KINDS)}")
    kind = FieldKind(data["kind"])
    var = data.get("var")
    if not isinstance(var, str) or not 0 < len(var) <= 40:
        raise CallRefused(ErrorCode.INVALID_ARGS, "a field has a short var")
    choosing = kind in {FieldKind.CHOICE, FieldKind.MULTI_CHOICE}
    options = _options(data.get("options")) if choosing else ()
    return Field(var, _prompt(data), kind, options, data.get("optional") is True)


def _approval(args: Mapping[str, Any]) -> Question:
    return Question(SuspensionKind.APPROVAL, GET_APPROVAL, text=_prompt(args))


def _location(args: Mapping[str, Any]) -> Question:
    return Question(SuspensionKind.LOCATION, GET_LOCATION, text=_prompt(args))


def _choice(args: Mapping[str, Any]) -> Question:
    options = _options(args.get("options") or args.get("entries"))
    field = Field("choice", _prompt(args), FieldKind.CHOICE, options)
    return Question(SuspensionKind.DISAMBIGUATION, CHOOSE, fields=(field,))


_QUESTIONS: Mapping[str, Callable[[Mapping[str, Any]], Question]] = {
    GET_INPUTS: _inputs,
    GET_APPROVAL: _approval,
    GET_LOCATION: _location,
    CHOOSE: _choice,
}


def _prompt(args: Mapping[str, Any]) -> str:
    prompt = args.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise CallRefused(ErrorCode.INVALID_ARGS, "prompt: what the person is asked")
    return " ".join(prompt.split())[:MOST_PROMPT]


def _options(items: Any) -> tuple[Option, ...]:
    """Options from texts, or from items that an earlier step brought."""
    if not isinstance(items, Sequence) or isinstance(items, str) or len(items) < 2:
        raise CallRefused(ErrorCode.INVALID_ARGS, "options: a list of two or more")
    found: dict[str, Option] = {}
    for item in items[:MOST_OPTIONS]:
        if isinstance(item, Mapping):
            key = _first(item, "key", "id", "path", "url", "name")
            label = _first(item, "label", "title", "name", "path", "url") or key
        else:
            key = label = str(item).strip()
        if key:
            found.setdefault(key, Option(key[:400], " ".join(label.split())[:80]))
    if len(found) < 2:
        raise CallRefused(ErrorCode.INVALID_ARGS, "options: nothing to choose between")
    return tuple(found.values())


def _first(item: Mapping[str, Any], *names: str) -> str:
    return next((str(item[name]) for name in names if item.get(name)), "")
