"""Reading what models really write: strict argument JSON, thinking, calls written as text.

Pure. What is rescued here is as untrusted as a native call; the gate treats both alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from core.llm.client import ToolCall

_THINK_BLOCK = re.compile(r"^[ \t]*(?:<think(?:ing)?>.*?</think(?:ing)?>\s*)+", re.S | re.M)
_THINK_OPEN = re.compile(r"^\s*<think(?:ing)?>", re.S)
_THINK_CLOSE = re.compile(r"</think(?:ing)?>\s*")
_FENCE = re.compile(r"\s*```[\w-]*[ \t]*\n?(.*?)\n?[ \t]*```\s*", re.S)
_INNER_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.S)
_TAGGED = re.compile(r"\s*<(tool_call|function_call)>\s*(.*?)\s*(?:</\1>\s*)?", re.S)
_TAG_LINE = re.compile(
    r"^\s*(?:</?(?:tool_call|tool_response|function_call|tools)>|<function=|\[TOOL_CALLS\]"
    r"|<\|tool_calls?(?:_begin)?\|>)",
    re.M,
)


_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


class _Refused(ValueError):
    pass


def parse_object(raw: str) -> dict[str, Any] | None:
    """One strict JSON object, else None: no duplicate keys, no NaN or Infinity, nothing after it.

    Empty text is `{}`, as servers write calls without arguments.
    """
    if not raw.strip():
        return {}
    value = _parse(raw)
    return value if isinstance(value, dict) else None


def strip_think(text: str) -> str:
    """The text without what the model thought aloud.

    Thinking that was never closed leaves nothing: it was cut before the answer began. A closing
    tag alone (the template had opened it) ends the thinking. `<think>` inside a line stays.
    """
    if "think" not in text:
        return text
    text = _THINK_BLOCK.sub("", text)
    if _THINK_OPEN.match(text):
        return ""
    close = _THINK_CLOSE.search(text)
    if close and not re.search(r"<think(?:ing)?>", text[: close.start()]):
        text = text[close.end() :]
    return text


def unfence(text: str) -> str:
    """The inside of a reply that is nothing but one fenced block, else the text, stripped."""
    match = _FENCE.fullmatch(text)
    return (match.group(1) if match and "```" not in match.group(1) else text).strip()


def rescue_call(text: str, offered: Collection[str]) -> ToolCall | None:
    """The call in a reply that is nothing but one call in JSON, fenced or not, else None.

    Only for a tool of `offered`. Understands the shapes that small models write: name/arguments,
    name/parameters, tool/args, an OpenAI `function` object, and each of these alone in a list.
    The id is empty.
    """
    value = _lone_json(text)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    shape = _call_shape(value)
    if shape is None or shape[0] not in offered:
        return None
    name, arguments = shape
    if isinstance(arguments, str):
        return ToolCall("", name, parse_object(arguments), arguments)
    raw = json.dumps(arguments, ensure_ascii=False)
    return ToolCall("", name, arguments if isinstance(arguments, dict) else None, raw)


def is_tool_shaped(text: str, offered: Collection[str] = ()) -> bool:
    """Whether a reply is or holds a call written as text, which a person must never be shown.

    Lone JSON of this shape counts for any name, JSON amid prose only for `offered`
    names, so that an answer about somebody's JSON stays an answer.
    """
    if _TAG_LINE.search(text):
        return True
    names = frozenset(offered)
    if _holds_call(_lone_json(text), names, lone=True):
        return True
    return any(
        _holds_call(_parse(block), names, lone=False) for block in _INNER_FENCE.findall(text)
    )


def _holds_call(value: Any, offered: frozenset[str], *, lone: bool) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_holds_call(item, offered, lone=lone) for item in value)
    if not isinstance(value, dict):
        return False
    for key in ("tool_calls", "steps", "calls"):
        if isinstance(value.get(key), list) and _holds_call(value[key], offered, lone=lone):
            return True
    shape = _call_shape(value)
    if shape is None:
        return False
    name, arguments = shape
    named = lone and _IDENTIFIER.fullmatch(name) is not None and isinstance(arguments, dict)
    return name in offered or named


def _call_shape(value: Any) -> tuple[str, Any] | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[k] for k in ("name", "tool", "function", "tool_name") if k in value), None)
    keys = ("arguments", "parameters", "args", "params", "tool_args")
    key = next((k for k in keys if k in value), None)
    if not isinstance(name, str) or key is None:
        return None
    return name, value[key]


def _lone_json(text: str) -> Any:
    text = unfence(text)
    tagged = _TAGGED.fullmatch(text)
    if tagged:
        text = unfence(tagged.group(2))
    return _parse(text) if text[:1] in {"{", "["} else None


def _parse(raw: str) -> Any:
    try:
        return json.loads(raw, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Refused("duplicate key")
    return value


def _no_constant(name: str) -> Any:
    raise _Refused(name)
