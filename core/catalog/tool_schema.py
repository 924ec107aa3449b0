"""From the argument schema of a manifest to the one a model is shown: one language, few tokens.

Pure, and the same bytes every time, so that the model's prefix cache holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What only the validator needs; models pay for every word in every turn. `enum`, `default` and
# nested `required` stay, because they tell a model what to write.
_VALIDATOR_ONLY = """
additionalProperties requires_one_of title minLength maxLength minItems maxItems uniqueItems
minProperties maxProperties pattern minimum maximum exclusiveMinimum exclusiveMaximum
"""
_HIDDEN = frozenset(_VALIDATOR_ONLY.split())
_NESTS_ONE = frozenset({"items", "not", "contains"})
_NESTS_MANY = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_STEP_OF = {"entries": "from_step", "other_entries": "other_step"}
_STEP = {
    "from_step": {"it": "passo N", "en": "step N"},
    "other_step": {"it": "altro passo", "en": "other step"},
}


def tool_schema(args: Mapping[str, Any], lang: str) -> dict[str, Any]:
    """The parameters as shown to a model in `lang`.

    Descriptions are those of `lang`; `x-*` and validator-only keywords are dropped; arguments
    that the runtime resolves are absent; `entries` is replaced by `from_step`, a step's number,
    which is required where `entries` was, and `other_entries` likewise by `other_step`.
    """
    properties: Mapping[str, Mapping[str, Any]] = args.get("properties", {})
    shown: dict[str, Any] = {}
    hidden: set[str] = set()
    for name, spec in properties.items():
        if spec.get("x-runtime-resolved") is True:
            hidden.add(name)
        elif name in _STEP_OF:
            hidden.add(name)
            step = _STEP_OF[name]
            shown[step] = {"type": "integer", "description": _STEP[step][lang]}
        else:
            shown[name] = in_language(spec, lang, terse=True)
    required = [name for name in args.get("required", ()) if name not in hidden]
    if "entries" in args.get("required", ()) or _only_entries(args):
        required.append("from_step")
    if "other_entries" in args.get("required", ()):
        required.append("other_step")
    schema: dict[str, Any] = {"type": "object", "properties": shown}
    if required:
        schema["required"] = required
    return schema


def _only_entries(args: Mapping[str, Any]) -> bool:
    groups = args.get("requires_one_of", ())
    return bool(groups) and all("entries" in group for group in groups)


def in_language(spec: Mapping[str, Any], lang: str, *, terse: bool = False) -> dict[str, Any]:
    """A schema with the descriptions of `lang`, at every depth: plain JSON Schema.

    `terse` drops `x-*` and what only a validator needs.
    """
    shown: dict[str, Any] = {}
    for key, value in spec.items():
        if terse and (key.startswith("x-") or key in _HIDDEN):
            continue
        if key == "description":
            shown[key] = value.get(lang, "") if isinstance(value, Mapping) else value
        elif key == "properties" and isinstance(value, Mapping):
            shown[key] = {k: _deeper(sub, lang, terse) for k, sub in value.items()}
        elif key in _NESTS_ONE:
            shown[key] = _deeper(value, lang, terse)
        elif key in _NESTS_MANY and isinstance(value, list):
            shown[key] = [_deeper(sub, lang, terse) for sub in value]
        else:
            shown[key] = value
    return shown


def _deeper(value: Any, lang: str, terse: bool) -> Any:
    return in_language(value, lang, terse=terse) if isinstance(value, Mapping) else value
