"""From what a server answered to an observation: always external, and never more than fits. Pure.

Texts and JSON become content; pictures, sounds and files become blobs, one entry each.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from core.catalog.foreign import clean
from core.errors import ErrorCode, ErrorInfo
from core.observation import Effects, Observation, Provenance

_MOST_DEPTH = 32
_MOST_BLOCKS = 200


def observation_of(answer: Mapping[str, Any], *, mutating: bool, most: int) -> Observation:
    """`answer`: the JSON of a tool's result. More than `most` bytes, or what is no JSON, is a
    failure. A changing tool that says that it failed may have changed something all the same."""
    left = Effects.UNKNOWN if mutating else Effects.NONE
    if len(json.dumps(answer, ensure_ascii=False)) > most:
        return failed(ErrorCode.OUTPUT_TOO_LARGE, f"more than {most} bytes", left, bytes=most)
    blocks = answer.get("content")
    if not isinstance(blocks, list) or len(blocks) > _MOST_BLOCKS:
        return failed(ErrorCode.BAD_OUTPUT, "no list of content", left)
    texts: list[str] = []
    entries: list[dict[str, Any]] = []
    for block in blocks:
        text, entry = _read(block if isinstance(block, Mapping) else {}, len(entries) + 1)
        texts += [text] if text else []
        entries += [entry] if entry else []
    said = "\n".join(texts)
    if answer.get("isError") is True:
        return failed(ErrorCode.EXECUTOR_CRASHED, clean(said, most=500), left)
    content: Any = said
    structured = answer.get("structuredContent")
    if structured not in (None, {}, []) and not entries:
        content = structured
        if isinstance(content, Mapping) and set(content) == {"result"}:
            content = content["result"]
        if _depth(content) > _MOST_DEPTH:
            return failed(ErrorCode.BAD_OUTPUT, "it nests too deep", left)
        if isinstance(content, list) and content and all(isinstance(i, Mapping) for i in content):
            entries = [_entry(item) for item in content]
            content = None
    return Observation(
        ok=True,
        entries=tuple(entries) if entries else None,
        content=None if entries and not content else content,
        effects=Effects.DONE if mutating else Effects.NONE,
        provenance=Provenance.EXTERNAL,
    )


def failed(code: ErrorCode, detail: str, effects: Effects, **params: Any) -> Observation:
    """A failure whose words come from outside."""
    return Observation(
        ok=False,
        error=ErrorInfo(code, params, detail=detail),
        effects=effects,
        provenance=Provenance.EXTERNAL,
    )


def _entry(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item of a list; its own `ok` and `error` would be read as ours."""
    own = {f"{key}_" if key in {"ok", "error", "blob"} else str(key): v for key, v in item.items()}
    return {"ok": True, **own}


def _read(block: Mapping[str, Any], number: int) -> tuple[str, dict[str, Any] | None]:
    """A block of an answer: its text, or a blob as an entry."""
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", "")), None
    if kind == "resource_link":
        return f"{clean(str(block.get('name', '')), most=200)}: {block.get('uri', '')}", None
    inner = block.get("resource") if kind == "resource" else block
    if not isinstance(inner, Mapping):
        return "", None
    if "text" in inner:
        return str(inner["text"]), None
    packed = inner.get("data", inner.get("blob"))
    try:
        size = len(base64.b64decode(str(packed), validate=True))
    except (binascii.Error, ValueError):
        return "", None
    media = clean(str(inner.get("mimeType", "application/octet-stream")), most=100)
    body = {"blob": packed, "bytes": size, "media_type": media, "charset": None}
    return "", {"ok": True, "name": f"{kind} {number}", "media_type": media, "content": body}


def _depth(value: Any, depth: int = 0) -> int:
    if depth > _MOST_DEPTH:
        return depth
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return max((_depth(item, depth + 1) for item in value), default=depth)
    return depth
