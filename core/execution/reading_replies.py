"""What a model may answer about passages, as schemas, and what is believed of its answers. Pure.

A class is one of those offered. A value that was pulled out of a text stands in that text, or it
is dropped: a model that reads what others wrote makes up nothing here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from core.llm.client import ChatReply

Schema = dict[str, Any]

MOST_LABELS = 8
MOST_RECORDS = 60
_BLANK = re.compile(r"\s+")
_LOOSE = re.compile(r"[\W_]+")


def _thing(properties: Mapping[str, Any]) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def labels_schema() -> Schema:
    """A few classes for a dimension that nobody named the classes of."""
    label = {"type": "string", "minLength": 1, "maxLength": 40}
    return _thing(
        {"labels": {"type": "array", "items": label, "minItems": 2, "maxItems": MOST_LABELS}}
    )


def classes_schema(count: int, labels: Sequence[str]) -> Schema:
    """One class for each of `count` passages, in their order."""
    one = {"enum": list(labels)}
    return _thing(
        {"classes": {"type": "array", "items": one, "minItems": count, "maxItems": count}}
    )


def records_schema(count: int, fields: int) -> Schema:
    """Records found in `count` passages: `n` is the passage, from 1, `f1`… the values, "" for
    what is not there."""
    value = {"type": "string", "maxLength": 200}
    record = _thing(
        {
            "n": {"enum": list(range(1, count + 1))},
            **{f"f{number}": value for number in range(1, fields + 1)},
        }
    )
    return _thing({"found": {"type": "array", "items": record, "maxItems": MOST_RECORDS}})


def list_of(reply: ChatReply, name: str) -> list[Any] | None:
    """The list `name` of a reply that is one JSON object; None when it is none."""
    try:
        data = json.loads(reply.text)
    except (ValueError, RecursionError):
        return None
    found = data.get(name) if isinstance(data, dict) else None
    return found if isinstance(found, list) else None


def labels_in(found: Sequence[Any]) -> list[str]:
    """The classes that a model thought of, each once."""
    texts = (" ".join(label.split())[:40] for label in found if isinstance(label, str))
    return list(dict.fromkeys(text for text in texts if text))[:MOST_LABELS]


def classes_in(found: Sequence[Any], count: int, labels: Sequence[str]) -> list[str] | None:
    """One known class for each passage, "" where the model gave none that was offered; None when
    it did not answer for all of them."""
    if len(found) != count:
        return None
    known = {label.casefold(): label for label in labels}
    return [known.get(str(each).strip().casefold(), "") for each in found]


def records_in(
    found: Sequence[Any], passages: Sequence[str], fields: Sequence[str]
) -> tuple[list[tuple[int, dict[str, str]]], int]:
    """The records whose values stand in their passage, as (index of the passage, values by field)
    and how many values were dropped because they do not. A record without any is none."""
    kept: list[tuple[int, dict[str, str]]] = []
    dropped = 0
    for record in found:
        number = record.get("n") if isinstance(record, dict) else None
        if not isinstance(number, int) or isinstance(number, bool):
            continue
        if not 1 <= number <= len(passages):
            continue
        values: dict[str, str] = {}
        for place, name in enumerate(fields, start=1):
            value = record.get(f"f{place}")
            text = _BLANK.sub(" ", value).strip() if isinstance(value, str) else ""
            if not text:
                continue
            if stands_in(text, passages[number - 1]):
                values[name] = text
            else:
                dropped += 1
        if values and (number - 1, values) not in kept:
            kept.append((number - 1, values))
    return kept, dropped


def stands_in(value: str, text: str) -> bool:
    """Whether a value was written in a text: its words in their order, however they are spaced,
    punctuated or accented, and not as a part of a longer word or number."""
    wanted, whole = _loose(value), _loose(text)
    return bool(wanted) and f" {wanted} " in f" {whole} "


def _loose(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    return _LOOSE.sub(" ", plain).strip()
