"""Where a plan's literals stand in the request it served, and the same plan for another request.

A literal that stands in the request is bound to it: the plan is then a template, and serves a
request that says the same of other values. What only this request can mean makes the plan exact;
what nobody said and that would touch the world makes it not worth keeping. Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from core.catalog.lexicon import fold
from core.catalog.manifest import Manifest
from core.errors import CallRefused
from core.levels.amounts import amounts_in
from core.levels.meaning import Meaning, Value
from core.plan import FINAL_ANSWER, PIPES, Plan, Step, parse_template

Path = tuple[str | int, ...]

_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d-[01]\d-[0-3]\d")
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
# Typed values that nobody may make up. The rest of the types only narrow or measure.
_TOUCHING = frozenset({"path", "url", "person", "recipient"})
_MOVING = frozenset({"datetime", "window"})
_MEASURING = frozenset({"number", "size", "duration", "place"})
_SHORTEST_PART = 3


class NotKept(Exception):
    """The plan of this request is not to be remembered; `reason` says why in one word."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Binding:
    """A literal of the plan that is a value of the request: `args` path in a step (from 0), the
    value's place among the values, and how it was made of it.

    `how`: `text` as it was written, between `before` and `after`; `number`; `size` in bytes.
    """

    step: int
    path: Path
    value: int
    how: str = "text"
    before: str = ""
    after: str = ""

    def to_json(self) -> list[Any]:
        return [self.step, list(self.path), self.value, self.how, self.before, self.after]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Binding:
        step, path, value, how, before, after = data
        return cls(int(step), tuple(path), int(value), str(how), str(before), str(after))


@dataclass(frozen=True, slots=True)
class Traced:
    """`exact`: only the very same words may use it again, for `why`. `worded`: a literal follows
    from the words as they stand (`the folder work`, `the last line`), so that only the values may
    differ. `places`: the values that are used as paths and nothing else."""

    bindings: tuple[Binding, ...]
    exact: bool
    why: str = ""
    worded: bool = False
    places: frozenset[int] = frozenset()


def trace(plan: Plan, meaning: Meaning, manifests: Mapping[str, Manifest]) -> Traced:
    """Bind the literals of a plan to the values of the request it was made for.

    Raises `NotKept` for a plan that holds what nobody said and that would touch the world, an
    absolute date, or a moving time by its value.
    """
    bindings: list[Binding] = []
    why, worded = "", False
    places: set[int] = set()
    others: set[int] = set()
    for number, step in enumerate(plan.steps):
        manifest = manifests.get(step.tool)
        for path, leaf in _leaves(step):
            name = str(path[0])
            kind = "free" if manifest is None else manifest.types.get(name, "free")
            touching = kind in _TOUCHING or (manifest is not None and name in manifest.sinks)
            found = _bind(leaf, meaning.values, number, path)
            if isinstance(leaf, str) and _DATE.search(leaf):
                raise NotKept("absolute_date")
            if found is not None:
                bindings.append(found)
                (places if kind == "path" else others).add(found.value)
            elif _is_constant(leaf, name, path, manifest):
                continue
            elif (touching or kind in _MEASURING) and _is_said(leaf, kind, meaning.words):
                worded = True
            elif touching:
                raise NotKept("untraced_target")
            elif kind in _MOVING and not meaning.moving:
                raise NotKept("untraced_time")
            elif _is_implied(leaf, kind, meaning):
                worded = True
            elif kind == "label":
                why = why or "untraced_label"
            elif kind in _MEASURING | _MOVING or _has_free_number(leaf, meaning.values):
                why = why or f"untraced_{kind}"
            elif manifest is not None and manifest.is_mutating:
                if not _stands_in(leaf, meaning.words):
                    raise NotKept("untraced_content")
                worded = True
    return Traced(tuple(bindings), bool(why), why, worded, frozenset(places - others))


def shape_of(meaning: Meaning, bound: set[int]) -> tuple[str, str]:
    """The key and the wording of a request with its bound values by type only; either may be
    empty. What is not bound stays as it is and must be equal."""
    texts = [
        ("<name>" if is_name(v) else type_of(v)) if i in bound else v.text
        for i, v in enumerate(meaning.values)
    ]
    return meaning.key_with(texts), meaning.wording_with(texts)


def fill(plan: Plan, bindings: Sequence[Binding], values: Sequence[Value]) -> Plan | None:
    """The plan with other values in its bindings; None when one of them cannot be made."""
    filled = [_thaw(dict(step.args)) for step in plan.steps]
    for binding in bindings:
        made = _made(binding, values[binding.value])
        if made is None or not _put(filled[binding.step], binding.path, made):
            return None
    return Plan(
        tuple(Step(step.tool, args) for step, args in zip(plan.steps, filled, strict=True))
    )


def type_of(value: Value) -> str:
    """What a value must be like to stand where this one stood: its kind, and the ending of a name
    or what a number measures, since these decide which tool is right."""
    match value.kind:
        case "name" | "word":
            return "<name>"
        case "path":
            return f"<path{posixpath.splitext(value.text)[1]}{'/' if '*' in value.text else ''}>"
        case "url":
            return f"<url{posixpath.splitext(urlsplit(value.text).path)[1]}>"
        case "number":
            amount, _, unit = value.text.partition(" ")
            if _NUMBER.fullmatch(amount) is None:
                return f"<text {''.join(c if not c.isdigit() else '0' for c in value.text)}>"
            kinds = {a.unit for a in amounts_in(value.raw)} if unit else {""}
            return f"<number {'/'.join(sorted(kinds))}>"
        case kind:
            return f"<{kind}>"


PLACE = "<place>"
"""The type of a value that is used as a path and nothing else, and has no ending."""


def is_name(value: Value) -> bool:
    """Whether a value may be what a folder is called: a word, a path without an ending, or letters
    with digits among them."""
    match value.kind:
        case "name" | "word":
            return True
        case "path":
            return "*" not in value.text and not posixpath.splitext(value.text)[1]
        case "number":
            return value.text[:1].isalpha() and " " not in value.text
        case _:
            return False


def types_of(meaning: Meaning, places: Collection[int]) -> tuple[str, ...]:
    """What the values of a request must be like that is served by this one's plan."""
    return tuple(
        PLACE if place in places and is_name(value) else type_of(value)
        for place, value in enumerate(meaning.values)
    )


def stands_for(kind: str, value: Value) -> bool:
    """Whether a value may stand where one of this type stood."""
    return type_of(value) == kind or (kind == PLACE and is_name(value))


# -- binding --------------------------------------------------------------------------------------


def _leaves(step: Step) -> Iterator[tuple[Path, Any]]:
    """Literals of a step's arguments: texts and numbers that are no reference."""

    def walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield from walk(item, (*path, str(key)))
        elif isinstance(value, list | tuple):
            for index, item in enumerate(value):
                yield from walk(item, (*path, index))
        elif isinstance(value, bool) or value is None:
            return
        elif not (isinstance(value, str) and _is_reference(value)):
            yield path, value

    for name, value in step.args.items():
        if name not in PIPES and step.tool != FINAL_ANSWER:
            yield from walk(value, (name,))


def _is_reference(text: str) -> bool:
    """Whether a text is nothing but references; with words between them it is a literal."""
    try:
        template = parse_template(text)
    except CallRefused:
        raise NotKept("bad_reference") from None
    if template is None:
        return False
    if any(isinstance(part, str) and part.strip() for part in template.parts):
        raise NotKept("mixed_text")
    return True


def _bind(leaf: Any, values: Sequence[Value], step: int, path: Path) -> Binding | None:
    for index, value in enumerate(values):
        if isinstance(leaf, str):
            if not leaf.strip():
                continue
            if leaf == value.raw or fold(leaf) == value.text:
                return Binding(step, path, index)
            at = fold(leaf).find(value.text) if len(fold(leaf)) == len(leaf) else -1
            end = at + len(value.text)
            whole = at >= 0 and not (leaf[:at][-1:].isalnum() or leaf[end:][:1].isalnum())
            if whole and len(value.text) >= _SHORTEST_PART:
                return Binding(step, path, index, "text", leaf[:at], leaf[end:])
        else:
            for how in ("number", "size"):
                if _made(Binding(step, path, index, how), value) == leaf:
                    return Binding(step, path, index, how)
    return None


def _made(binding: Binding, value: Value) -> Any:
    """The literal that a binding makes of a value; None when it makes none."""
    if binding.how == "text":
        if binding.before and value.kind == "path" and value.raw[0] in "/~.":
            return None  # a whole path behind another one
        return f"{binding.before}{value.raw}{binding.after}"
    if value.kind != "number":
        return None
    if binding.how == "size":
        sizes = [a.value for a in amounts_in(value.raw) if a.unit == "bytes"]
        return round(sizes[0]) if sizes else None
    if _NUMBER.fullmatch(value.text) is None:
        return None
    number = float(value.text.replace(",", "."))
    return int(number) if number.is_integer() else number


def _is_constant(leaf: Any, name: str, path: Path, manifest: Manifest | None) -> bool:
    """Whether a literal is a way of doing (a choice of a closed list), or no part of the world."""
    if manifest is None or not isinstance(leaf, str):
        return False
    schema: Any = manifest.properties.get(name, {})
    for part in path[1:]:
        schema = schema.get("items" if isinstance(part, int) else "properties", {})
        schema = schema.get(part, {}) if isinstance(part, str) else schema
    return isinstance(schema, Mapping) and leaf in schema.get("enum", ())


def _is_said(leaf: Any, kind: str, words: Sequence[str | None]) -> bool:
    """Whether the words as they stand name a literal; of a path its own name will do (`the list
    of the shopping` is `shopping.txt`)."""
    if _stands_in(leaf, words):
        return True
    if kind != "path" or not isinstance(leaf, str):
        return False
    stem = posixpath.splitext(posixpath.basename(leaf))[0]
    return len(stem) >= _SHORTEST_PART and _stands_in(stem, words)


def _stands_in(leaf: Any, words: Sequence[str | None]) -> bool:
    """Whether a literal was said, word by word, among what was not read as a value."""
    said = _WORD.findall(fold(leaf)) if isinstance(leaf, str) else []
    places = range(len(words) - len(said) + 1) if said else ()
    return any(list(words[at : at + len(said)]) == said for at in places)


def _is_implied(leaf: Any, kind: str, meaning: Meaning) -> bool:
    """Whether a measure can only come from the words: nobody said a number, nor a time."""
    number = isinstance(leaf, int | float) and kind in _MEASURING
    return number and not meaning.moving and not _has_free_number(leaf, meaning.values)


def _has_free_number(leaf: Any, values: Sequence[Value]) -> bool:
    """Whether a number was said from which this one may have been reckoned."""
    number = isinstance(leaf, int | float)
    return number and any(value.kind == "number" and not is_name(value) for value in values)


# -- filling --------------------------------------------------------------------------------------


def _thaw(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_thaw(item) for item in value]
    return value


def _put(args: Any, path: Path, value: Any) -> bool:
    try:
        for part in path[:-1]:
            args = args[part]
        args[path[-1]] = value
    except (KeyError, IndexError, TypeError):
        return False
    return True
