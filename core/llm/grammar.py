"""A JSON Schema as a llama.cpp grammar that leaves no room for white space.

The server's own conversion lets the model indent, and small models do: a third of a plan's tokens
are then line breaks and spaces, each as slow as a word. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_STRING = r'"\"" char* "\""'
_CHAR = r'[^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" [0-9a-fA-F]{4})'
_INTEGER = r'"-"? ("0" | [1-9] [0-9]{0,15})'
_ANY = 'thing | list | string | number | "true" | "false" | "null"'
_THING = r'''"{" (string ":" any ("," string ":" any)*)? "}"'''
_LIST = r'''"[" (any ("," any)*)? "]"'''
_NOTHING = '""'
_NUMBER = r'integer ("." [0-9]{1,16})?'
_MOST = 256  # the server unrolls counts into rules; beyond this they are left open
_KNOWN = frozenset(
    """type properties required additionalProperties prefixItems items minItems maxItems enum const
    anyOf oneOf minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
    pattern format title description default examples $schema""".split()
)


class _Unsupported(Exception):
    pass


def compact_grammar(schema: Mapping[str, Any]) -> str | None:
    """The grammar of compact JSON that fits `schema`, or None when it asks for what is not known
    here (`$ref`, `allOf` …).

    Properties come in the schema's order; those not required may be left out. `prefixItems` needs
    `items` for what follows. Bounds of numbers, patterns, formats and very large counts are not in
    the grammar: whoever asks validates the reply anyway. The same schema gives the same bytes.
    """
    try:
        return _Writer().write(schema)
    except (_Unsupported, RecursionError):
        return None


class _Writer:
    def __init__(self) -> None:
        self._rules: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def write(self, schema: Mapping[str, Any]) -> str:
        root = self._body(schema)
        rules = {"root": root, **self._rules}
        return "\n".join(f"{name} ::= {body}" for name, body in rules.items()) + "\n"

    def _rule(self, body: str, name: str | None = None) -> str:
        """The name of a rule with this body; equal bodies share one."""
        if body not in self._names:
            self._names[body] = name or f"r{len(self._names)}"
            self._rules[self._names[body]] = body
        return self._names[body]

    def _body(self, schema: Any) -> str:
        if not isinstance(schema, Mapping) or not _KNOWN.issuperset(schema):
            raise _Unsupported
        if "const" in schema:
            return _literal(schema["const"])
        if "enum" in schema:
            return _either(_literal(value) for value in schema["enum"])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return _either(self._rule(self._body(option)) for option in schema[key])
        kind = schema.get("type")
        if isinstance(kind, list):
            return _either(self._rule(self._body({**schema, "type": one})) for one in kind)
        match kind:
            case "object":
                return self._object(schema)
            case "array":
                return self._array(schema)
            case "string":
                return self._string(schema)
            case "integer":
                return self._rule(_INTEGER, "integer")
            case "number":
                self._rule(_INTEGER, "integer")
                return self._rule(_NUMBER, "number")
            case "boolean":
                return '"true" | "false"'
            case "null":
                return '"null"'
            case None:
                return self._open("any")
        raise _Unsupported

    def _string(self, schema: Mapping[str, Any]) -> str:
        self._rule(_CHAR, "char")
        low, high = _bounds(schema, "Length")
        if not low and high is None:
            return self._rule(_STRING, "string")
        most = "" if high is None else high
        return rf'"\"" char{{{low},{most}}} "\""'

    def _array(self, schema: Mapping[str, Any]) -> str:
        if "items" not in schema:
            return self._open("list")
        item = self._rule(self._body(schema["items"]))
        low, high = _bounds(schema, "Items")
        head = [self._rule(self._body(one)) for one in schema.get("prefixItems", ())]
        if head:
            return self._tuple(head, item, low, high)
        if high == 0:
            return '"[]"'
        most = "" if high is None else high - 1
        some = f'"[" {item} ("," {item}){{{max(low - 1, 0)},{most}}} "]"'
        return some if low else f'"[]" | {some}'

    def _tuple(self, head: Sequence[str], item: str, low: int, high: int | None) -> str:
        """An array whose first items have rules of their own; it may end after any from `low`."""
        head = head[:high]
        most = "" if high is None else high - len(head)
        rest = f'("," {item}){{{max(low - len(head), 0)},{most}}}' if most != 0 else _NOTHING
        for at in range(len(head) - 1, 0, -1):
            here = f'"," {head[at]} {rest}'
            rest = here if at < low else self._rule(f"{here} | {_NOTHING}")
        some = f'"[" {head[0]} {rest} "]"' if head else '"[]"'
        return some if low else f'"[]" | {some}'

    def _object(self, schema: Mapping[str, Any]) -> str:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        if schema.get("additionalProperties") is not False and not properties:
            return self._open("thing")
        pairs: list[tuple[str, bool]] = []
        for name, value in properties.items():
            pair = f"{_literal(name)} {_quoted(':')} {self._rule(self._body(value))}"
            pairs.append((self._rule(pair), name in required))
        if not set(required) <= set(properties):
            raise _Unsupported
        return f'"{{" {self._members(pairs)} "}}"'

    def _open(self, name: str) -> str:
        """A rule for any JSON value (`any`), any object (`thing`) or any array (`list`)."""
        self._rule(_INTEGER, "integer")
        self._rule(_NUMBER, "number")
        self._rule(_CHAR, "char")
        self._rule(_STRING, "string")
        self._rule(_ANY, "any")
        self._rule(_THING, "thing")
        self._rule(_LIST, "list")
        return name

    def _members(self, pairs: Sequence[tuple[str, bool]]) -> str:
        """Pairs in order with commas between those that are there.

        Rules are built from the end: `rest` is what may follow once something stands before it,
        `first` what may stand at the beginning.
        """
        rest, first = "", _NOTHING
        for at, (pair, needed) in reversed(list(enumerate(pairs))):
            here = f"{pair} {rest}".strip()
            first = here if needed else self._rule(f"{here} | {first}")
            if at > 0:
                after = f'"," {here}'
                rest = self._rule(after if needed else f"{after} | {rest or _NOTHING}")
        return first


def _bounds(schema: Mapping[str, Any], of: str) -> tuple[int, int | None]:
    low, high = schema.get(f"min{of}", 0), schema.get(f"max{of}")
    return min(low, _MOST), None if high is None or high > _MOST else high


def _either(options: Any) -> str:
    bodies = list(dict.fromkeys(options))
    if not bodies:
        raise _Unsupported
    return " | ".join(bodies)


def _literal(value: Any) -> str:
    """A value as its compact JSON, as a literal of the grammar."""
    return _quoted(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " else f"\\x{ord(c):02X}" for c in plain) + '"'
