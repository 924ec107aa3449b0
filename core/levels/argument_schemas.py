"""What one argument of one step may be, as a JSON schema: values of the person's text, by type.

Pure. A typed argument gets what stands in the text, or nothing; what is said with its unit and
its side ("the last three lines") must be given. Only prose is left to the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.catalog.manifest import Manifest
from core.levels.amounts import Amount
from core.levels.spans import PathSpan
from core.levels.wish import DESTRUCTIVE, Wish
from core.vocabulary import verb_of

Schema = dict[str, Any]
Offer = tuple[Schema | None, bool]
"""The schema of an argument, None when nothing fits; and whether it must be given."""

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
            return self._paths(name, spec)
        if kind == "url":
            return _listed(spans.urls, spec), False
        if kind == "place":
            return _listed(spans.places, spec), False
        if name == "coords":
            return _listed(spans.coords, spec), False
        if name == "patterns" and "other_paths" in self.manifest.properties:
            # Of files that are compared a name is said to differ, not to be looked for.
            kinds = [pattern for pattern in spans.patterns if pattern.startswith("*.")]
            return _listed(kinds, spec), bool(kinds)
        if name in {"pattern", "patterns"}:
            if spans.patterns:
                return _const(list(spans.patterns), spec), True
            if any(a.bound and a.unit in {"bytes", "days"} for a in spans.amounts):
                return None, False  # sought by size or age, not by name
            return _listed(spans.name_patterns, spec, most=1), False
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
            return {"enum": self._fields(measured=worked_out)}, worked_out
        if name == "where":
            return self._conditions(), False
        if kind == "label":
            return self._labels(spec, required=required)
        if _is_of_lists(spec):
            return None, False
        return ({"type": "string"}, False) if required else (None, False)

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

    def _paths(self, name: str, spec: Mapping[str, Any]) -> Offer:
        many = spec.get("type") == "array"
        found = self._path_candidates(name, many=many)
        folders = [path for path in self.wish.spans.paths if not path.is_file]
        if name.startswith("other_"):
            # Several folders to be set side by side: the first is the other argument's.
            others = [path.text for path in folders[1:]]
            return _listed(others, spec, most=None), bool(others)
        if "other_paths" in self.manifest.properties and len(folders) > 1:
            found = folders[:1]
        texts = [path.text for path in found]
        # What is changed is looked for only where the person said.
        sure = bool(self.wish.acting) or all(path.grade != "hinted" for path in found)
        forced = bool(found) and not many and sure
        if many and len(found) > 1:
            return {"anyOf": [{"const": texts}, *({"const": [t]} for t in texts[:6])]}, False
        return _listed(texts, spec), forced

    def _path_candidates(self, name: str, *, many: bool) -> list[PathSpan]:
        wish, verb = self.wish, verb_of(self.manifest.name)
        paths, goal = list(wish.spans.paths), wish.destination
        said = [p for p in paths if p.grade == "said"]
        acts_towards = self.manifest.name in wish.acting and verb not in DESTRUCTIVE
        if acts_towards and not many:
            if goal is not None:
                return [goal]
            return said[-1:] if len(said) > 1 and verb != "write" else said
        if goal is not None:
            paths, said = [[p for p in those if p != goal] for those in (paths, said)]
        if not many:
            # A folder to look into.
            folders = [p for p in paths if not p.is_file]
            sure = [p for p in folders if p.grade != "hinted"]
            return sure or folders
        if verb in DESTRUCTIVE:
            # Not where it stands (`a.txt from /srv/x`), nor with what a search is narrowed by.
            narrowed = wish.spans.patterns or any(a.unit for a in wish.spans.amounts)
            return [p for p in said if p.role == "" and (p.is_file or not narrowed)]
        if self.manifest.is_mutating and wish.spans.patterns:
            return [p for p in said if p.is_file]
        if acts_towards:
            return said[:-1] if goal is None and len(said) > 1 else said or _named(paths)
        return [p for p in said if p.is_file] or (said if not wish.spans.patterns else [])

    def _amounts(self, name: str, spec: Mapping[str, Any]) -> Offer:
        parts = name.split("_")
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
        descriptions = spec.get("description", {})
        text = " ".join(descriptions.values()) if isinstance(descriptions, Mapping) else ""
        said = self.wish.words & set(f"{name} {text}".lower().split())
        return ({"const": True}, False) if said - _IDLE else (None, False)

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
                    "field": {"enum": self._fields()},
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


def _named(paths: Sequence[PathSpan]) -> list[PathSpan]:
    return [path for path in paths if path.grade == "named"]


def _listed(
    values: Sequence[Any], spec: Mapping[str, Any], *, most: int | None = None
) -> Schema | None:
    """One of the values, or where a list is wanted all or one of them."""
    if not values:
        return None
    if spec.get("type") != "array":
        return {"enum": list(values)}
    singles: list[Schema] = [{"const": [value]} for value in values[:8]]
    if most == 1 or len(values) == 1:
        return {"anyOf": singles} if len(singles) > 1 else singles[0]
    return {"anyOf": [{"const": list(values)}, *singles]}


def _is_of_lists(spec: Mapping[str, Any]) -> bool:
    """Whether an argument is a list of something else than texts, which no model makes up."""
    return spec.get("type") == "array" and spec.get("items", {}).get("type") != "string"


def _const(value: list[str], spec: Mapping[str, Any]) -> Schema:
    return {"const": value if spec.get("type") == "array" else value[0]}
