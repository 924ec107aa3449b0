"""The JSON Schema of a stranger's tool, reduced to what a manifest holds, or refused. Pure.

References within the schema are written out, what only the server checks (patterns, formats,
further properties) is left to the server. Arguments get names like ours, which are mapped back
when the tool is called.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

# What the host may say that an argument holds, beside anything at all.
FREE_TYPES = frozenset({"free", "path", "url", "recipient", "person", "place", "datetime"})
MOST_ARGUMENTS = 16
MOST_CHARS = 4000
_MOST_DEPTH = 6
_MOST_NODES = 200
_MOST_WORDS = 80
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_KEPT = frozenset(
    """minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems
    uniqueItems""".split()
)
_REFUSED = frozenset("oneOf allOf not if then else prefixItems contains dependentSchemas".split())
_RESERVED = frozenset({"from_step", "entries"})
_SINKS = {"path": "path", "url": "url", "recipient": "recipient"}

Clean = Callable[..., str]


class ForeignRefused(ValueError):
    """Why something cannot be used: `reason` is a word of `mcp.bad.<reason>`, `detail` what
    decided."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason, self.detail = reason, detail


def reduced(
    schema: Mapping[str, Any], types: Mapping[str, str], clean: Clean
) -> tuple[dict[str, Any], dict[str, str]]:
    """The arguments as a manifest has them, and which of their names the server calls otherwise
    (ours → theirs). `types`: what they hold, by our name. Raises `ForeignRefused`."""
    work = _Reduction(schema, clean)
    whole = work.follow(schema)
    if whole.get("type", "object") != "object" or _REFUSED & set(whole) or "anyOf" in whole:
        raise ForeignRefused("schema", "the arguments are no plain object")
    given = whole.get("properties", {})
    if not isinstance(given, Mapping) or len(given) > MOST_ARGUMENTS:
        raise ForeignRefused("too_many_arguments", str(MOST_ARGUMENTS))
    properties: dict[str, Any] = {}
    names: dict[str, str] = {}
    for theirs, spec in given.items():
        ours = _name(str(theirs))
        if ours in properties:
            raise ForeignRefused("schema", f"two arguments are called {ours}")
        if ours != theirs:
            names[ours] = str(theirs)
        properties[ours] = _argument(ours, work.node(spec, 1), types)
    by_theirs = {theirs: ours for ours, theirs in names.items()}
    required = whole.get("required", [])
    if not isinstance(required, list) or any(name not in given for name in required):
        raise ForeignRefused("schema", "it requires what is no argument")
    args = {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": [by_theirs.get(name, name) for name in required],
    }
    if len(json.dumps(args, ensure_ascii=False)) > MOST_CHARS:
        raise ForeignRefused("schema_too_large", str(MOST_CHARS))
    return args, names


def _argument(name: str, spec: dict[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    wire = spec.get("items", {}) if spec.get("type") == "array" else spec
    kind = types.get(name) or ("url" if wire.get("format") == "uri" else "free")
    if kind != "free" and wire.get("type") != "string":
        raise ForeignRefused("type", f"{name}: {kind}")
    for one in (spec, wire):
        one.pop("format", None)
    said = spec.pop("description", "")
    spec["description"] = {"it": said, "en": said}
    spec["x-metnos-type"] = "person" if kind == "recipient" else kind
    if kind in _SINKS:
        spec["x-metnos-sink"] = _SINKS[kind]
    return spec


def _name(theirs: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", theirs)
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().casefold()
    plain = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")[:60]
    if not plain or not plain[0].isalpha():
        plain = f"arg_{plain}".rstrip("_")
    return f"{plain}_arg" if plain in _RESERVED else plain


class _Reduction:
    """One schema while it is written out; counts what it makes, so that nothing multiplies."""

    def __init__(self, whole: Mapping[str, Any], clean: Clean) -> None:
        self._whole, self._clean, self._nodes = whole, clean, 0

    def follow(self, spec: Any) -> Mapping[str, Any]:
        """What a reference within the schema stands for."""
        for _ in range(_MOST_DEPTH):
            if not isinstance(spec, Mapping):
                raise ForeignRefused("schema", "a part is no object")
            if "$ref" not in spec:
                return spec
            found: Any = self._whole
            parts = str(spec["$ref"]).split("/")
            if parts[0] != "#":
                raise ForeignRefused("schema", "a reference to another place")
            for part in parts[1:]:
                found = found.get(part) if isinstance(found, Mapping) else None
            rest = {key: value for key, value in spec.items() if key != "$ref"}
            spec = {**found, **rest} if isinstance(found, Mapping) else found
        raise ForeignRefused("schema", "references that lead nowhere")

    def node(self, spec: Any, depth: int) -> dict[str, Any]:
        self._nodes += 1
        if depth > _MOST_DEPTH or self._nodes > _MOST_NODES:
            raise ForeignRefused("schema_too_large", "it nests too deep")
        spec = self._plain(self.follow(spec))
        made: dict[str, Any] = {}
        kind = spec.get("type")
        if isinstance(kind, str) and kind in _TYPES:
            made["type"] = kind
        values = [spec["const"]] if "const" in spec else spec.get("enum")
        if values is not None:
            made["enum"] = self._values(values)
        if not made:
            raise ForeignRefused("schema", "a part without a type")
        made |= {key: spec[key] for key in _KEPT & set(spec) if _is_bound(spec[key])}
        if isinstance(spec.get("format"), str):
            made["format"] = spec["format"]
        if isinstance(said := spec.get("description"), str) and said.strip():
            made["description"] = self._clean(said, most=_MOST_WORDS)
        if made.get("type") == "array":
            made["items"] = self.node(spec.get("items", {"type": "string"}), depth + 1)
        if made.get("type") == "object":
            inner = spec.get("properties", {})
            if not isinstance(inner, Mapping):
                raise ForeignRefused("schema", "properties that are none")
            if inner:
                made["properties"] = {
                    self._clean(str(name), most=64): self.node(sub, depth + 1)
                    for name, sub in inner.items()
                }
            required = spec.get("required", [])
            if isinstance(required, list) and required:
                made["required"] = [name for name in required if name in inner]
        return made

    def _plain(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """Without the ways of saying that something may be null, which is not giving it."""
        if refused := _REFUSED & set(spec):
            raise ForeignRefused("schema", min(refused))
        if "anyOf" in spec:
            forms = [self.follow(form) for form in _list(spec["anyOf"])]
            forms = [form for form in forms if form.get("type") != "null"]
            if len(forms) != 1:
                raise ForeignRefused("schema", "anyOf")
            rest = {key: value for key, value in spec.items() if key != "anyOf"}
            return self._plain({**forms[0], **rest})
        if isinstance(kind := spec.get("type"), list):
            kinds = [one for one in kind if one != "null"]
            if len(kinds) != 1:
                raise ForeignRefused("schema", "more than one type")
            return {**spec, "type": kinds[0]}
        return spec

    def _values(self, values: Any) -> list[Any]:
        found = [value for value in _list(values) if value is not None]
        if not found or any(
            not isinstance(value, str | int | float | bool)
            or (isinstance(value, str) and self._clean(value, most=200) != value)
            for value in found
        ):
            raise ForeignRefused("schema", "enum")
        return found


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ForeignRefused("schema", "a list that is none")
    return value


def _is_bound(value: Any) -> bool:
    return isinstance(value, int | float)
