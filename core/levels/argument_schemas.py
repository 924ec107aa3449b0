"""What one argument of one step may be, as a JSON schema: values of the person's text, by type.

Pure. A typed argument gets what stands in the text, or nothing; what is said with its unit and
its side ("the last three lines") must be given. Only prose is left to the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.catalog.manifest import Manifest
from core.execution.values import fold
from core.levels.amounts import Amount
from core.levels.path_choices import Offer, PathChoices, Schema, listed, references
from core.levels.wish import Wish

# Argument names say their unit (STYLE: `_days`, `_lines`) and their side.
_UNITS = {
    "line": "lines", "lines": "lines", "days": "days", "bytes": "bytes", "size": "bytes",
    "chars": "chars", "km": "km",
}  # fmt: skip
_SIDES = {
    "head": "first", "first": "first", "tail": "last", "last": "last", "start": "from",
    "from": "from", "end": "to", "to": "to", "min": "min", "max": "max", "within": "last",
}  # fmt: skip
CONTENT_FIELDS = ("body", "text", "value", "summary", "iso")
MOST_LABEL = 40
MOST_LABELS = 6
TEXT_ARGS = frozenset({"content", "body", "text"})
_FIELD_ARGS = frozenset({"by", "key", "field"})
_MEASURED = frozenset({"size", "number"})
_NO_FIELD = frozenset({"flag", "list", "blob"})
_OPS = ("contains", "not_contains", "eq", "ne", "gt", "ge", "lt", "le")
MOST_PROSE = 120
# Rows of a table as a person dictates them.
_ROWS: Schema = {
    "type": "array",
    "items": {
        "type": "array",
        "items": {"type": ["string", "number"]},
        "minItems": 1,
        "maxItems": 12,
    },
    "minItems": 1,
    "maxItems": 5,
}
# Arguments that narrow to one account or folder: there when a word for it was said.
_WHERE = frozenset({"account", "folder", "sheet"})
_NEVER = frozenset({"only", "regex", "exclude", "on_keys"})
_WORD = re.compile(r"\w+")
# Words of flags' descriptions that say nothing.
_IDLE = frozenset("anche too una is one di or the".split())


def object_schema(properties: Mapping[str, Any], required: Sequence[str]) -> Schema:
    """A closed object."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the arguments of one tool may be at one place of the plan (1 is the first).

    `from_text`: the step may live from the text alone, so that the person's own words may be its
    content; else it writes what an earlier step brought.
    """

    wish: Wish
    manifest: Manifest
    number: int
    from_text: bool

    def offer(self, name: str, spec: Mapping[str, Any], *, required: bool) -> Offer:
        """What the argument `name` may be."""
        spans = self.wish.spans
        kind = self.manifest.types.get(name) or self.manifest.sinks.get(name) or "free"
        if kind == "path":
            return PathChoices(self.wish, self.manifest, self.number).offer(name, spec)
        if kind == "url":
            found = references(self.number, "url") if self._finds_urls() else []
            return listed([*spans.urls, *found], spec), False
        if kind == "place":
            return listed((*self.wish.mentions.addresses, *spans.places), spec), False
        if kind == "window":
            times = self.wish.mentions.times
            return listed(times, spec), bool(times) and self.from_text
        if name == "coords":
            return listed(spans.coords, spec), False
        if name == "patterns" and "other_paths" in self.manifest.properties:
            # Of files that are compared a name is said to differ, not to be looked for.
            kinds = [pattern for pattern in spans.patterns if pattern.startswith("*.")]
            return listed(kinds, spec), bool(kinds)
        if name in {"pattern", "patterns"}:
            if spans.patterns:
                return _const(list(spans.patterns), spec), True
            if any(a.bound and a.unit in {"bytes", "days"} for a in spans.amounts):
                return None, False  # sought by size or age, not by name
            return listed(spans.name_patterns, spec, most=1), False
        if spec.get("type") in ("number", "integer"):
            return self._amounts(name, spec)
        if spec.get("type") == "boolean":
            return self._flag(name, spec)
        if "enum" in spec:
            return self._choice(name, spec, required)
        if name in TEXT_ARGS:
            return self._content(), self.manifest.is_mutating
        if name in _FIELD_ARGS:
            worked_out = name == "key" and spans.operation is not None
            return self._field(measured=worked_out), worked_out
        if name == "where":
            return self._conditions(), False
        if kind == "label":
            return self._labels(spec, required=required)
        if name == "rows" and self.from_text and self.manifest.name in self.wish.acting:
            return _ROWS, False
        if _is_of_lists(spec):
            return None, False
        if name.endswith("ids"):
            return self._ids(name, spec)
        if kind == "person" and not self.manifest.is_mutating:
            return listed(self.wish.mentions.mails, spec), False
        if name == "phone":
            return None, False  # whose number it is, is looked for by name
        if required:
            return {"type": "string"}, False
        return self._said(name, spec, kind), False

    def _finds_urls(self) -> bool:
        """Whether the plan may look for addresses."""
        return any(
            "query" in m.properties and "url" in output_fields(m) for m in self.wish.tools.values()
        )

    def _ids(self, name: str, spec: Mapping[str, Any]) -> Offer:
        """Ids of things are never said: an earlier step brings them."""
        field = name.rpartition("_")[2].removesuffix("s")
        return listed(references(self.number, field), spec, most=1), False

    def _said(self, name: str, spec: Mapping[str, Any], kind: str) -> Schema | None:
        """What may be left out and is no value of a type of its own: names that were said, and
        with a change of the person's own wish also prose."""
        mentions = self.wish.mentions
        if kind not in {"span", "free", "label"} or name in _NEVER:
            return None
        if name in _WHERE:
            return listed(mentions.names, spec) if self._speaks_of(spec) else None
        if kind == "span" and not self.manifest.is_mutating:
            return listed((*self.wish.spans.quoted, *mentions.names), spec, most=1)
        if self.manifest.name in self.wish.acting and spec.get("type") == "string":
            return {"type": "string", "maxLength": MOST_PROSE}
        return None

    def _speaks_of(self, spec: Mapping[str, Any]) -> bool:
        """Whether a word of the argument's description was said."""
        descriptions = spec.get("description", {})
        text = " ".join(descriptions.values()) if isinstance(descriptions, Mapping) else ""
        return not (frozenset(_WORD.findall(fold(text))) - _IDLE).isdisjoint(self.wish.words)

    def _labels(self, spec: Mapping[str, Any], *, required: bool) -> Offer:
        """Names of fields as the person calls them (`with name, date and hash`); where a tool
        needs some and none were told apart, as the model writes them."""
        names = self.wish.columns
        one: Schema = {"type": "string", "minLength": 1, "maxLength": MOST_LABEL}
        if spec.get("type") != "array":
            return (one, True) if required else (None, False)
        if names:
            return {"const": list(names)}, True
        some = {"type": "array", "items": one, "minItems": 1, "maxItems": MOST_LABELS}
        return (some, True) if required else (None, False)

    def _amounts(self, name: str, spec: Mapping[str, Any]) -> Offer:
        parts = name.split("_")
        if parts[-1] == "minutes":
            minutes = list(self.wish.mentions.minutes)
            looks = self.from_text and not self.manifest.is_mutating
            return ({"enum": minutes} if minutes else None), bool(minutes) and looks
        unit = next((_UNITS[p] for p in reversed(parts) if p in _UNITS), "")
        if self.manifest.types.get(name) == "size":
            unit = "bytes"
        side = next((_SIDES[p] for p in parts if p in _SIDES), "")
        fitting = [a for a in self.wish.spans.amounts if _measures(a, unit)]
        if side and unit:
            sure = [a for a in fitting if a.bound == side]
            rest = [a for a in fitting if a.bound == "" or (unit == "days" and a.bound == "max")]
            fitting = sure or rest
        elif not unit and parts[0] == "max" and self.wish.spans.descending is not None:
            return None, False  # `the 3 largest`: cut after sorting, not before
        elif not unit:
            fitting = [a for a in fitting if a.bound in {"", "first", "last", "max"}]
        low, high = spec.get("minimum", 0), spec.get("maximum")
        values = [a.value for a in fitting if a.value >= low and (high is None or a.value <= high)]
        if spec.get("type") == "integer":
            values = [v for v in values if isinstance(v, int)]
        # Bytes read are limited by what nobody says with an amount; sizes of files are asked for.
        forced = bool(values) and bool(side and unit) and all(a.bound == side for a in fitting)
        if unit == "bytes" and parts[0] == "max":
            return None, False
        return ({"enum": list(dict.fromkeys(values))} if values else None), forced

    def _flag(self, name: str, spec: Mapping[str, Any]) -> Offer:
        """A flag is there only when the person's words speak of it."""
        if name == "desc":
            direction = self.wish.spans.descending
            return ({"type": "boolean"} if direction is None else {"const": direction}), (
                direction is True
            )
        own = self.wish.words & frozenset(name.split("_")) - _IDLE
        return ({"const": True}, False) if own or self._speaks_of(spec) else (None, False)

    def _choice(self, name: str, spec: Mapping[str, Any], required: bool) -> Offer:
        if name == "mode" and "append" in spec["enum"]:
            # To add and to replace differ by what is lost: the words decide, not the model.
            return ({"const": "append"}, True) if self.wish.adds else (None, False)
        if self.wish.spans.operation in spec["enum"]:
            return {"const": self.wish.spans.operation}, True
        named = [value for value in spec["enum"] if value in self.wish.words]
        if named:
            return {"enum": named}, required
        return ({"enum": list(spec["enum"])}, False) if required else (None, False)

    def _content(self) -> Schema | None:
        """What is written: the person's words, or what a step brought; else the model's own."""
        options: list[Schema] = []
        said = self.wish.spans.contents
        if said:  # the person dictated it: nothing else is to be written
            return {"enum": list(said)} if self.from_text else None
        values = self._references()
        if values:
            options.append({"enum": values})
        if self.from_text and not self._must_refer():
            options.append({"type": "string"})
        if len(options) > 1:
            return {"anyOf": options}
        return options[0] if options else None

    def _must_refer(self) -> bool:
        """An address in the request is there to be fetched: what is written comes from it."""
        return bool(self.wish.spans.urls)

    def _references(self) -> list[str]:
        fields = [
            name
            for name in CONTENT_FIELDS
            if any(name in output_fields(m) for m in self.wish.tools.values())
        ]
        return [
            f"{{{{step{number}.{name}}}}}" for number in range(1, self.number) for name in fields
        ]

    def _fields(self, *, measured: bool = False) -> list[str]:
        """Names of what items have; `measured`: only what can be added up."""
        found: dict[str, None] = {}
        numbers: dict[str, None] = {}
        for manifest in self.wish.tools.values():
            if not manifest.is_mutating:
                kinds = manifest.output.get("entries", {})
                found |= {n: None for n, kind in kinds.items() if kind not in _NO_FIELD}
                numbers |= {n: None for n, kind in kinds.items() if kind in _MEASURED}
        if measured and numbers:
            return list(numbers)
        return list(found) or ["name"]

    def _field(self, *, measured: bool) -> Schema:
        """A field that is told apart by name; of a table, whose columns nobody knows before it is
        read, whatever the model calls it."""
        if any(
            m.render == "list" and not m.output.get("entries") for m in self.wish.tools.values()
        ):
            return {"type": "string", "minLength": 1, "maxLength": MOST_LABEL}
        return {"enum": self._fields(measured=measured)}

    def _conditions(self) -> Schema:
        """Words to be contained, or comparisons whose values stand in the text."""
        spans = self.wish.spans
        options: list[Schema] = []
        words = dict.fromkeys([*spans.sought, *spans.quoted])
        if words:
            options.append({"enum": list(words)})
        values: list[Any] = [a.value for a in spans.amounts if a.unit in {"bytes", "days", ""}]
        if values:
            condition = object_schema(
                {
                    "field": self._field(measured=False),
                    "op": {"enum": list(_OPS)},
                    "value": {"enum": list(dict.fromkeys(values))},
                },
                ["field", "op", "value"],
            )
            options.append({"type": "array", "items": condition, "minItems": 1, "maxItems": 2})
        return {"anyOf": options} if options else {"type": "string", "maxLength": 60}


def output_fields(manifest: Manifest) -> frozenset[str]:
    """The fields that a reference to this tool's step may name."""
    names: set[str] = set()
    for part in ("entries", "content", "metadata"):
        names |= set(manifest.output.get(part, {}))
    return frozenset(names)


def main_field(manifest: Manifest) -> str | None:
    """What `{{stepN.…}}` most likely wants of this tool: what it fetched, read or worked out."""
    fields = output_fields(manifest)
    return next((name for name in CONTENT_FIELDS if name in fields), None)


def _measures(amount: Amount, unit: str) -> bool:
    if unit == "lines":
        counted = amount.unit == "lines" or (amount.unit == "" and amount.bound != "")
        return counted and amount.value >= 1
    return amount.unit == unit and amount.bound != "older"


def _is_of_lists(spec: Mapping[str, Any]) -> bool:
    """Whether an argument is a list of something else than texts, which no model makes up."""
    return spec.get("type") == "array" and spec.get("items", {}).get("type") != "string"


def _const(value: list[str], spec: Mapping[str, Any]) -> Schema:
    return {"const": value if spec.get("type") == "array" else value[0]}
