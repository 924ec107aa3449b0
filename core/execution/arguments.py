"""From the arguments a model wrote to the arguments an executor gets.

In this order and each once: references resolved, empty optional ones dropped, JSON Schema,
canonical values by `x-metnos-type`. What came out of an observation is never scanned again.
Pure but for the caller's `Lookup` and its way of making a path canonical.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from core.catalog.manifest import Manifest
from core.errors import CallRefused, ErrorCode
from core.execution.piping import Lookup as Lookup
from core.execution.piping import piped, pipes_of
from core.execution.values import canonical_url, parse_duration, parse_number, parse_size
from core.observation import Observation
from core.plan import (
    FROM_STEP,
    PIPES,
    FillerReference,
    Reference,
    RuntimeReference,
    StepReference,
    Template,
    parse_template,
)

MAX_DEPTH = 16
MAX_JSON_BYTES = 4 * 1024 * 1024
# What references may bring together: a few bodies of pages or files, not a thousand times one.
MAX_RESOLVED_CHARS = 64 * 1024 * 1024

_LISTS = frozenset(PIPES.values())


def resolve_references(
    args: Mapping[str, Any], manifest: Manifest | None, lookup: Lookup
) -> dict[str, Any]:
    """Replace references by values; a string that is one reference keeps the value's type.

    `from_step` becomes `entries`, or the list argument that a tool without `entries` has. Raises
    `CallRefused`: `bad_reference`, `bad_text` for lone surrogates and NUL, `invalid_args` for what
    is nested too deep or too large.
    """
    _check_size(args)
    resolved: dict[str, Any] = {}
    for name, value in args.items():
        if name not in pipes_of(manifest):
            resolved[name] = _resolve(value, lookup, 1)
    resolved |= piped(args, manifest, lookup)
    if _weight(resolved) > MAX_RESOLVED_CHARS:
        raise CallRefused(ErrorCode.INVALID_ARGS, "the references bring too much for one call")
    return resolved


def storable(args: Mapping[str, Any]) -> dict[str, Any]:
    """The raw arguments as they may be kept and shown again: none of them when they nest too deep,
    are too large or are not JSON, since then they were refused anyway."""
    try:
        _check_size(args)
        _check_depth(args, 0)
    except CallRefused:
        return {}
    return dict(args)


def _check_depth(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH + 1:
        raise CallRefused(ErrorCode.INVALID_ARGS, f"arguments nest deeper than {MAX_DEPTH}")
    if isinstance(value, (Mapping, list)):
        for item in value.values() if isinstance(value, Mapping) else value:
            _check_depth(item, depth + 1)


def _weight(value: Any) -> int:
    """About how many characters a JSON value holds."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, Mapping):
        return sum(len(str(key)) + 4 + _weight(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return sum(_weight(item) + 2 for item in value)
    return 8


def _resolve(value: Any, lookup: Lookup, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise CallRefused(ErrorCode.INVALID_ARGS, f"arguments nest deeper than {MAX_DEPTH}")
    if isinstance(value, str):
        _check_text(value)
        template = parse_template(value)
        return value if template is None else _fill(template, lookup)
    if isinstance(value, Mapping):
        for key in value:
            _check_text(str(key))
        return {key: _resolve(item, lookup, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(item, lookup, depth + 1) for item in value]
    return value


def _check_text(text: str) -> None:
    if "\x00" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise CallRefused(ErrorCode.BAD_TEXT, "NUL or half a character in an argument")


def _fill(template: Template, lookup: Lookup) -> Any:
    if template.whole is not None:
        return _value(template.whole, lookup)
    pieces: list[str] = []
    room = MAX_RESOLVED_CHARS
    for part in template.parts:
        value = part if isinstance(part, str) else _value(part, lookup)
        if isinstance(value, (dict, list)):
            raise CallRefused(
                ErrorCode.BAD_REFERENCE, "a list or object cannot stand inside a longer text"
            )
        pieces.append(value if isinstance(value, str) else json.dumps(value))
        room -= len(pieces[-1])
        if room < 0:
            raise CallRefused(ErrorCode.INVALID_ARGS, "the references bring too much for one call")
    return "".join(pieces)


def _value(reference: Reference, lookup: Lookup) -> Any:
    match reference:
        case StepReference(step, path):
            try:
                return lookup.step(step).read(path)
            except KeyError:
                raise CallRefused(
                    ErrorCode.BAD_REFERENCE,
                    f"step {step} has no field {'.'.join(path)}{_hint(lookup.step(step))}",
                ) from None
        case RuntimeReference(key):
            return lookup.runtime(key)
        case FillerReference(name):
            raise CallRefused(ErrorCode.BAD_REFERENCE, f"there is no filler {name}")


def _hint(observation: Observation) -> str:
    """Which fields would have worked, for the model's second try."""
    if observation.entries is not None and len(observation.entries) > 1:
        return "; it has several entries: use from_step"
    names = list(observation.metadata)
    if observation.entries:
        names += list(observation.entries[0])
    return f"; it has {', '.join(sorted(set(map(str, names))))}" if names else ""


def validate(
    args: Mapping[str, Any], manifest: Manifest, runtime: Callable[[str], Any] | None = None
) -> dict[str, Any]:
    """Check resolved arguments against the manifest and return them without empty optional ones,
    and with those that `runtime` fills by their names.

    Null, "" and, where the schema's minimum is above it, 0 count as not given (small models fill
    every field); numbers, sizes and durations written as text become numbers. Raises
    `CallRefused`: `invalid_args` naming the argument, `too_many` for a list longer than the tool
    takes, `missing_input` when none of a `requires_one_of` group is there.
    """
    supplied = set(manifest.runtime_args) & set(args)
    if supplied:
        raise CallRefused(ErrorCode.INVALID_ARGS, f"{sorted(supplied)[0]} is not yours to give")
    kept = _filled(args, manifest)
    if runtime is not None:
        kept |= {name: runtime(name) for name in sorted(manifest.runtime_args)}
    error = best_match(_validator(manifest).iter_errors(kept))
    if error is not None:
        raise _refused(error)
    groups = manifest.requires_one_of
    if groups and not any(all(name in kept for name in group) for group in groups):
        needed = " or ".join(" and ".join(group) for group in groups)
        raise CallRefused(ErrorCode.MISSING_INPUT, f"needs {needed}".replace("entries", FROM_STEP))
    return kept


def _filled(args: Mapping[str, Any], manifest: Manifest) -> dict[str, Any]:
    """The arguments that say something, each in the type that the schema wants."""
    required = set(manifest.args.get("required", ()))
    kept: dict[str, Any] = {}
    for name, value in args.items():
        spec = manifest.properties.get(name)
        if spec is not None and name not in required and _is_empty(value, spec):
            continue
        kept[name] = _typed(value, spec, manifest.types.get(name))
    return kept


def validate_partly(
    args: Mapping[str, Any], manifest: Manifest, *, promised: frozenset[str]
) -> None:
    """Check the arguments that stand already; those in `promised` will come by reference.

    Raises `CallRefused` like `validate`.
    """
    args = _filled(args, manifest)
    unknown = promised - set(manifest.properties) - {""}
    if unknown:
        raise CallRefused(
            ErrorCode.INVALID_ARGS, f"{manifest.name} has no argument {sorted(unknown)[0]}"
        )
    required = set(manifest.args.get("required", ()))
    missing = required - set(args) - promised - manifest.runtime_args
    if missing:
        raise CallRefused(ErrorCode.INVALID_ARGS, f"needs {sorted(missing)[0]}")
    groups = manifest.requires_one_of
    given = set(args) | promised
    if groups and not any(set(group) <= given for group in groups):
        needed = " or ".join(" and ".join(group) for group in groups)
        raise CallRefused(ErrorCode.MISSING_INPUT, f"needs {needed}".replace("entries", FROM_STEP))
    for error in _validator(manifest).iter_errors(dict(args)):
        # What a reference will bring is no fault yet; everything else is.
        if error.validator != "required" or error.absolute_path:
            raise _refused(error)


def _refused(error: ValidationError) -> CallRefused:
    """What the schema says against a value, without the value where that is long."""
    where = ".".join(str(part) for part in error.absolute_path)
    if error.validator == "maxItems" and isinstance(error.instance, list):
        count, limit = len(error.instance), error.validator_value
        detail = f"{where}: {count} items, at most {limit} in one call"
        return CallRefused(ErrorCode.TOO_MANY, detail, argument=where, count=count, limit=limit)
    said = error.message
    if len(said) > 250:  # it begins with the value
        said = f"against {error.validator} {error.validator_value}"[:250]
    detail = f"{where}: {said}" if where else said
    return CallRefused(ErrorCode.INVALID_ARGS, detail, argument=where)


def _is_empty(value: Any, spec: Mapping[str, Any]) -> bool:
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    if isinstance(value, list) and not value and spec.get("minItems", 0) > 0:
        return True
    minimum = spec.get("minimum", spec.get("exclusiveMinimum", 0))
    is_zero = isinstance(value, (int, float)) and not isinstance(value, bool) and value == 0
    return is_zero and ("exclusiveMinimum" in spec or minimum > 0)


_PARSERS: dict[str | None, Callable[[Any], float]] = {
    "size": parse_size,
    "duration": parse_duration,
}


def _typed(value: Any, spec: Mapping[str, Any] | None, kind: str | None) -> Any:
    """Numbers, sizes and durations written as text, and one item where a list is wanted."""
    if spec is None:
        return value
    wanted = spec.get("type")
    if isinstance(value, str) and wanted in ("integer", "number"):  # may be a list of types
        try:
            parse = _PARSERS.get(kind) or parse_number
            return _whole(parse(value), wanted)
        except CallRefused:
            return value
    if isinstance(value, str) and wanted == "array" and spec.get("items", {}).get("type"):
        return [value]
    return _whole(value, wanted)


def _whole(value: Any, wanted: Any) -> Any:
    whole = isinstance(value, float) and wanted == "integer" and value.is_integer()
    return int(value) if whole else value


@lru_cache(maxsize=512)
def _validator_for(digest: str, schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema))


def _validator(manifest: Manifest) -> Draft202012Validator:
    return _validator_for(manifest.digest, _schema_text(manifest))


@lru_cache(maxsize=512)
def _schema_by_digest(digest: str) -> list[str]:
    return []


def _schema_text(manifest: Manifest) -> str:
    known = _schema_by_digest(manifest.digest)
    if not known:
        schema = {k: v for k, v in manifest.args.items() if k != "requires_one_of"}
        known.append(json.dumps(schema))
    return known[0]


def canonicalise(
    args: Mapping[str, Any], manifest: Manifest, to_path: Callable[[str], str]
) -> dict[str, Any]:
    """Give every typed argument, also inside lists, its one form. Paths become absolute.

    `entries` injected from a step keep their own values; only a tool that works on paths gets
    their `path` fields canonical too, since it will open them. Raises `CallRefused`.
    """
    done: dict[str, Any] = {}
    for name, value in args.items():
        kind = manifest.types.get(name)
        sink = manifest.sinks.get(name)
        if kind == "path" or sink == "path":
            done[name] = _each(value, to_path)
        elif kind == "url" or sink == "url":
            done[name] = _each(value, canonical_url)
        elif kind == "size":
            done[name] = _each(value, parse_size)
        elif kind == "duration":
            done[name] = _each(value, parse_duration)
        elif name in _LISTS and isinstance(value, list) and _has_path_sink(manifest):
            done[name] = [_entry(item, to_path) for item in value]
        else:
            done[name] = value
    return done


def _each(value: Any, make: Callable[[Any], Any]) -> Any:
    return [make(item) for item in value] if isinstance(value, list) else make(value)


def _entry(item: Any, to_path: Callable[[str], str]) -> Any:
    if not isinstance(item, Mapping) or "path" not in item:
        return item
    if not isinstance(item["path"], str):
        raise CallRefused(ErrorCode.INVALID_ARGS, "entries: the path of an item is a text")
    return {**item, "path": to_path(item["path"])}


def paths_in(args: Mapping[str, Any], manifest: Manifest) -> dict[str, list[str]]:
    """Canonical paths by argument, `entries` counted in, for scope, guard and duplicates."""
    found: dict[str, list[str]] = {}
    for name, value in args.items():
        if manifest.types.get(name) == "path" or manifest.sinks.get(name) == "path":
            found[name] = value if isinstance(value, list) else [value]
        elif name in _LISTS and isinstance(value, list) and _has_path_sink(manifest):
            found[name] = [
                item["path"]
                for item in value
                if isinstance(item, Mapping) and isinstance(item.get("path"), str)
            ]
    return found


def _has_path_sink(manifest: Manifest) -> bool:
    return "path" in manifest.sinks.values()


def _check_size(args: Mapping[str, Any]) -> None:
    try:
        size = len(json.dumps(args, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as exc:
        raise CallRefused(ErrorCode.INVALID_ARGS, "the arguments are not JSON") from exc
    if size > MAX_JSON_BYTES:
        raise CallRefused(ErrorCode.INVALID_ARGS, "the arguments are too large")
