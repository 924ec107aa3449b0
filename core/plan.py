"""The plan, and the reference syntax as parsed values.

A plan is `{"steps": [{"tool": NAME, "args": {...}}]}`. Inside `args` a model may write
`from_step: N` (the list an earlier step produced) and `other_step: N` (a second one),
`{{stepN.field}}` or `${stepN.field}` (one value), `${RUNTIME:key}` (a closed list of facts) and
`${FILLER:name}`. They are looked for once, in the plan's own strings only: text that came out of
an observation is never scanned.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.errors import CallRefused, ErrorCode

FINAL_ANSWER = "final_answer"
FROM_STEP = "from_step"
OTHER_STEP = "other_step"
# What a call says of earlier steps, and the argument that their list becomes.
PIPES = {FROM_STEP: "entries", OTHER_STEP: "other_entries"}

_REFERENCE = re.compile(
    r"""
      (?: \{\{ \s* step(?P<n1>\d{1,3}) \. (?P<p1>[\w.\[\]-]+) \s* \}\} )
    | (?: \$\{ \s* step(?P<n2>\d{1,3}) \. (?P<p2>[\w.\[\]-]+) \s* \} )
    | (?: \$\{ \s* RUNTIME: (?P<runtime>[^{}]{1,40}) \} )
    | (?: \$\{ \s* FILLER: (?P<filler>[A-Za-z0-9_]{1,40}) \} )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# What looks like a reference and is none: the call is refused, rather than sent with it.
_BROKEN = re.compile(r"(?:\{\{|\$\{)\s*(?:step|RUNTIME:|FILLER:)", re.IGNORECASE)
_INDEX = re.compile(r"\[(\d{1,6})\]")


@dataclass(frozen=True, slots=True)
class StepReference:
    step: int
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuntimeReference:
    key: str


@dataclass(frozen=True, slots=True)
class FillerReference:
    name: str


Reference = StepReference | RuntimeReference | FillerReference


@dataclass(frozen=True, slots=True)
class Template:
    """A string with references in it: literal pieces and references in their order."""

    parts: tuple[str | Reference, ...]

    @property
    def whole(self) -> Reference | None:
        """The reference when the string is nothing else: its value then keeps its type."""
        only = self.parts[0] if len(self.parts) == 1 else ""
        return None if isinstance(only, str) else only


def parse_template(text: str) -> Template | None:
    """The references of a string, None when it has none.

    Raises `CallRefused(bad_reference)` for what begins like a reference and does not parse.
    """
    parts: list[str | Reference] = []
    at = 0
    for match in _REFERENCE.finditer(text):
        if match.start() > at:
            parts.append(text[at : match.start()])
        parts.append(_reference(match))
        at = match.end()
    rest = text[at:]
    if any(_BROKEN.search(part) for part in (*parts, rest) if isinstance(part, str)):
        raise CallRefused(ErrorCode.BAD_REFERENCE, f"cannot read the reference in {text[:80]!r}")
    if not parts:
        return None
    if rest:
        parts.append(rest)
    return Template(tuple(parts))


def _reference(match: re.Match[str]) -> Reference:
    if match["runtime"] is not None:
        return RuntimeReference(match["runtime"].strip())
    if match["filler"] is not None:
        return FillerReference(match["filler"])
    number, path = match["n1"] or match["n2"], match["p1"] or match["p2"]
    keys = tuple(_INDEX.sub(r".\1", path).split("."))
    if not all(keys) or any("[" in key or "]" in key for key in keys):
        raise CallRefused(ErrorCode.BAD_REFERENCE, f"cannot read {match[0]!r}")
    return StepReference(int(number), keys)


def references_in(value: Any) -> Iterator[Reference]:
    """Every reference in a JSON value's strings, keys left out."""
    if isinstance(value, str):
        template = parse_template(value)
        if template is not None:
            yield from (part for part in template.parts if not isinstance(part, str))
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from references_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from references_in(item)


def steps_used(args: Mapping[str, Any]) -> set[int]:
    """Numbers of the earlier steps that a call's arguments speak of."""
    used = {ref.step for ref in references_in(dict(args)) if isinstance(ref, StepReference)}
    fields = args.get("fields")  # of a form, each of which may take the list of a step
    parts = [args, *(fields if isinstance(fields, list) else ())]
    for part in parts:
        for key in PIPES if isinstance(part, Mapping) else ():
            number = as_step_number(part.get(key))
            if number is not None:
                used.add(number)
    return used


def as_step_number(value: Any) -> int | None:
    """`2` or `"2"` → 2; anything else None. `true` is no number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return None


@dataclass(frozen=True, slots=True)
class Step:
    """One step as proposed: a tool's name and its raw arguments, references unresolved."""

    tool: str
    args: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"tool": self.tool, "args": dict(self.args)}


@dataclass(frozen=True, slots=True)
class Plan:
    steps: tuple[Step, ...]

    @classmethod
    def from_json(cls, data: Any) -> Plan:
        """Read a plan. Raises `CallRefused(invalid_args)` when it has not the form of one."""
        steps = data.get("steps") if isinstance(data, Mapping) else None
        if not isinstance(steps, Sequence) or isinstance(steps, str):
            raise CallRefused(ErrorCode.INVALID_ARGS, "a plan is an object with a list `steps`")
        parsed: list[Step] = []
        for step in steps:
            if not isinstance(step, Mapping) or not isinstance(step.get("tool"), str):
                raise CallRefused(ErrorCode.INVALID_ARGS, "a step needs `tool` and `args`")
            args = step.get("args") or {}
            if not isinstance(args, Mapping):
                raise CallRefused(ErrorCode.INVALID_ARGS, "`args` must be an object")
            parsed.append(Step(step["tool"], dict(args)))
        return cls(tuple(parsed))

    def to_json(self) -> dict[str, Any]:
        return {"steps": [step.to_json() for step in self.steps]}

    @property
    def fingerprint(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of the plan as canonical JSON."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
