"""Nothing a person types breaks a write."""

from __future__ import annotations

import json
import math

import pytest

from core.store.encoding import clean_text, dump_json, load_json, load_object


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("plain", "plain"),
        ("", ""),
        ("perché \U0001f600", "perché \U0001f600"),
        ("a\0b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("x\ud83d", "x\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\u202egnp.exe", "\u202egnp.exe"),
    ],
    ids=["ascii", "empty", "unicode", "nul", "split pair", "lone", "wrong order", "bidi"],
)
def test_clean_text_makes_text_storable_and_keeps_the_rest(text: str, stored: str):
    assert clean_text(text) == stored
    assert clean_text(text).encode().decode() == stored


@pytest.mark.parametrize(
    "value",
    [
        {"a": "\ud800", "b": ["\0", 1.5, None, True]},
        {"nan": math.nan, "inf": [math.inf, -math.inf]},
        {1: "a", (2, 3): "b"},
        {"set": {1}, "bytes": b"x"},
        ["\u2028\u2029\n\r"],
    ],
    ids=["texts", "not finite", "odd keys", "odd values", "line ends"],
)
def test_dump_json_always_gives_one_strict_line(value: object):
    text = dump_json(value)

    assert "\n" not in text
    assert text.encode()
    assert json.loads(text, parse_constant=pytest.fail) is not None


@pytest.mark.parametrize("text", [None, "", "{", "[1]", "null", "[" * 100_000], ids=str)
def test_load_object_of_what_is_no_object_is_empty(text: str | None):
    assert load_object(text) == {}


def test_load_json_reads_back_what_was_dumped():
    value = {"a": [1, "due", None, {"b": 2.5}]}

    assert load_json(dump_json(value)) == value
