"""Reading what an executor wrote: one strict JSON document, and what it means as an observation.

Pure. Everything here treats its input as hostile: bounded in depth and in number of values before
the parser sees it, no duplicate keys, no NaN, no number that a double or SQLite would bend.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from core.errors import ErrorCode, ErrorInfo
from core.observation import Effects, Observation, Provenance

MAX_DEPTH = 64
MAX_CONTAINERS = 100_000
MAX_VALUES = 300_000
MAX_WHOLE = 2**53
_PIECE = 65_536
_STRING = re.compile(rb'"[^"]*"')
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_MAX_PARAM_CHARS = 500
_SAID = tuple(effect.value for effect in Effects)


class BadOutput(ValueError):
    """The bytes are no document we accept; the text says why, in English."""


def decode(data: bytes) -> dict[str, Any]:
    """Read one JSON object. Raises `BadOutput`; never needs much more memory than `data` has."""
    _check_size(data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadOutput("not UTF-8") from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_int=_whole,
            parse_float=_finite,
        )
        if _SURROGATE.search(data):
            json.dumps(value, ensure_ascii=False).encode()
    except BadOutput:
        raise
    except UnicodeEncodeError:
        raise BadOutput("lone surrogate") from None
    except RecursionError:
        raise BadOutput("too deep") from None
    except ValueError:
        raise BadOutput("not one JSON document: nothing may be printed") from None
    if not isinstance(value, dict):
        raise BadOutput("not an object")
    return value


def _check_size(data: bytes) -> None:
    if not data.strip():
        raise BadOutput("empty")
    depth = values = containers = 0
    for bare in _outside_strings(data):
        values += bare.count(b",")
        for char in bare.translate(None, _NOT_BRACKETS):
            if char in b"[{":
                depth += 1
                containers += 1
                if depth > MAX_DEPTH:
                    raise BadOutput("too deep")
                if containers > MAX_CONTAINERS:
                    raise BadOutput("too many objects")
            else:
                depth -= 1
        if values > MAX_VALUES:
            raise BadOutput("too many values")


def _outside_strings(data: bytes) -> Iterator[bytes]:
    """The document without its strings, in pieces: one pass over all of it would need a buffer
    record of 80 bytes for every string there is."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    inside = False
    for start in range(0, len(data), _PIECE):
        piece = data[start : start + _PIECE]
        if inside:
            _, quote, piece = piece.partition(b'"')
            if not quote:
                continue
        piece, quote, _ = _STRING.sub(b"", piece).partition(b'"')
        inside = bool(quote)
        yield piece


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise BadOutput("duplicate key")
    return made


def _no_constant(name: str) -> Any:
    raise BadOutput(f"{name} is no number")


def _whole(text: str) -> int:
    if len(text) > 17 or abs(value := int(text)) > MAX_WHOLE:
        raise BadOutput("whole number too large")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise BadOutput("number too large")
    return value


def to_observation(
    document: Mapping[str, Any], *, mutating: bool, external: bool, mode: str = "run"
) -> Observation:
    """What the document says, checked for form. Raises `BadOutput` when it is no observation.

    In `preview` mode the whole answer of `preview(call)` becomes `content`, unless it failed.
    """
    provenance = Provenance.EXTERNAL if external else Provenance.OWN
    if mode == "preview" and "ok" not in document:
        return Observation(ok=True, content=dict(document), provenance=provenance)
    ok = document.get("ok")
    if not isinstance(ok, bool):
        raise BadOutput("`ok` is neither true nor false")
    entries = document.get("entries")
    if entries is not None:
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise BadOutput("`entries` is no list of objects")
        if not all(isinstance(entry.get("ok", True), bool) for entry in entries):
            raise BadOutput("`ok` of an entry is neither true nor false")
        entries = tuple({"ok": True, **entry} for entry in entries)
    metadata = document.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise BadOutput("`metadata` is no object")
    metadata = dict(metadata or {})
    said = metadata.pop("effects", None)
    return Observation(
        ok=ok,
        entries=entries,
        content=document.get("content"),
        metadata=metadata,
        error=None if ok else _error(document.get("error")),
        effects=_effects(ok, entries, said, mutating=mutating and mode == "run"),
        provenance=provenance,
    )


# What is decided outside the cage: a program that says so would end the turn as if it were true.
_THE_HOUSES_OWN = frozenset(
    {
        ErrorCode.CAP_STEPS,
        ErrorCode.CAP_SAME_EXECUTOR,
        ErrorCode.LOOP_BREAK,
        ErrorCode.DUPLICATE_CALL,
        ErrorCode.DUPLICATE_READ,
        ErrorCode.VECTORISE,
        ErrorCode.JUDGE_DENIED,
        ErrorCode.DECLINED,
        ErrorCode.CANCELLED,
        ErrorCode.QUESTION_EXPIRED,
        ErrorCode.PRIVATE_CHAT_CLOSED,
        ErrorCode.EXECUTOR_CHANGED,
        ErrorCode.INTERRUPTED,
        ErrorCode.STOPPED,
        ErrorCode.STORE_FAILED,
    }
)


def _error(error: Any) -> ErrorInfo:
    if not isinstance(error, dict):
        raise BadOutput("failed without an error")
    info = ErrorInfo.from_json(error)
    params = {
        key: value[:_MAX_PARAM_CHARS] if isinstance(value, str) else value
        for key, value in info.params.items()
        if isinstance(value, str | int | float | bool)
    }
    code = info.code
    if code is ErrorCode.INTERNAL and error.get("code") != "internal":
        return ErrorInfo(ErrorCode.EXECUTOR_CRASHED, {}, detail="unknown error code")
    if code in _THE_HOUSES_OWN:
        return ErrorInfo(ErrorCode.EXECUTOR_CRASHED, {}, detail=f"not a program's to say: {code}")
    return ErrorInfo(code, params, info.retryable, info.detail)


def _effects(
    ok: bool, entries: tuple[Mapping[str, Any], ...] | None, said: Any, *, mutating: bool
) -> Effects:
    if not mutating:
        return Effects.NONE
    if said in _SAID:
        return Effects(said)
    if entries is not None:
        return Effects.DONE if any(entry["ok"] for entry in entries) else Effects.NONE
    return Effects.DONE if ok else Effects.NONE
