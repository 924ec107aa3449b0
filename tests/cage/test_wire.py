"""Strict JSON, and what a document means as an observation."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ErrorCode
from core.execution.cage import wire, worker
from core.observation import Effects, Provenance

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=25,
)


@given(JSON_VALUES)
def test_what_a_child_encodes_is_decoded_equal(value):
    document = {"ok": True, "content": value}

    assert wire.decode(worker.encode(document)) == document


@given(st.binary(max_size=200))
def test_decode_of_any_bytes_gives_an_object_or_bad_output(data: bytes):
    with contextlib.suppress(wire.BadOutput):
        assert isinstance(wire.decode(data), dict)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n",
        b"null",
        b"[]",
        b'"x"',
        b"1",
        b"{",
        b"}",
        b"{}x",
        b"{}{}",
        b"\x00{}",
        b"{'ok':true}",
        b'{"a":1,}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1e400}',
        b'{"a":-1e400}',
        b'{"a":1,"a":1}',
        b'{"a":{"b":1,"b":2}}',
        b'{"a":"\x01"}',
        b'{"a":"\\ud800"}',
        b'{"a":"\\udfff\\ud800"}',
        b'{"\\uD800":1}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\xc0\x80"}',
        b"\xff\xfe{\x00}\x00",
        b'{"a":9007199254740993}',
        b'{"a":-9007199254740993}',
        b'{"a":' + b"1" * 5000 + b"}",
        b'{"a":01}',
        b'{"a":+1}',
        b'{"a":0x1}',
        b'{"a":' + b"[" * 65 + b"]" * 65 + b"}",
        b'{"a":' + b'{"a":' * 70 + b"1" + b"}" * 71,
        b'{"a":' + b"[" * 100_000,
        b"]" * 100_000,
        b'{"a":"' + b"\\" * 99_999,
        b'{"a":[' + b"0," * 400_000 + b"0]}",
    ],
)
def test_decode_refuses(data: bytes):
    with pytest.raises(wire.BadOutput):
        wire.decode(data)


@pytest.mark.parametrize(
    "value",
    [
        "[" * 200,
        '\\"[{\\\\',
        "\\",
        '"',
        '\\\\"',
        "\U0001f600",
        "é\u0000\u2028",
        9007199254740992,
        -0.0,
        1e308,
    ],
)
def test_decode_keeps_what_only_looks_dangerous(value):
    for ascii_only in (True, False):
        data = json.dumps({"a": value}, ensure_ascii=ascii_only).encode()

        assert wire.decode(data) == {"a": value}


def test_decode_at_the_depth_limit_is_accepted():
    assert wire.decode(b'{"a":' + b"[" * 63 + b"]" * 63 + b"}")


def test_decode_of_eight_megabytes_of_escapes_takes_little_time_and_memory():
    text = '\\"' * 1_000_000

    assert wire.decode(json.dumps({"a": text}).encode()) == {"a": text}


@given(st.lists(st.text('a"\\[]{},', max_size=6), max_size=30), st.integers(1, 40))
def test_brackets_inside_strings_never_count(texts: list[str], size: int):
    data = json.dumps(texts, ensure_ascii=False).encode()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "_PIECE", size)
        bare = b"".join(wire._outside_strings(data))

    assert bare.translate(None, b" ") == b"[" + b"," * max(0, len(texts) - 1) + b"]"


def read(document, **about):
    return wire.to_observation(document, **{"mutating": False, "external": False, **about})


def test_observation_of_external_reader_is_external():
    assert read({"ok": True}, external=True).provenance is Provenance.EXTERNAL


def test_observation_entries_without_ok_are_ok():
    assert read({"ok": True, "entries": [{"path": "/x"}]}).entries == ({"ok": True, "path": "/x"},)


def test_observation_error_params_are_bounded_and_flat():
    error = {"code": "not_found", "params": {"path": "x" * 9999, "list": [1]}, "detail": "d"}

    observation = read({"ok": False, "error": error})

    assert observation.error is not None
    assert observation.error.params == {"path": "x" * 500}


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"ok": 1},
        {"ok": "true"},
        {"ok": None},
        {"ok": True, "entries": {}},
        {"ok": True, "entries": [[]]},
        {"ok": True, "entries": [{"ok": 1}]},
        {"ok": True, "metadata": []},
        {"ok": True, "metadata": 5},
        {"ok": False},
        {"ok": False, "error": "text"},
    ],
)
def test_observation_of_wrong_form_is_refused(document):
    with pytest.raises(wire.BadOutput):
        read(document)


@pytest.mark.parametrize(
    ("document", "mutating", "mode", "effects"),
    [
        ({"ok": True}, False, "run", Effects.NONE),
        ({"ok": True}, True, "run", Effects.DONE),
        ({"ok": True}, True, "preview", Effects.NONE),
        ({"ok": True, "metadata": {"effects": "unknown"}}, True, "run", Effects.UNKNOWN),
        ({"ok": True, "metadata": {"effects": ["done"]}}, True, "run", Effects.DONE),
        ({"ok": True, "metadata": {"effects": "done"}}, False, "run", Effects.NONE),
    ],
)
def test_observation_effects(document, mutating, mode, effects):
    observation = read(document, mutating=mutating, mode=mode)

    assert observation.effects is effects
    assert "effects" not in observation.metadata


def test_observation_of_unknown_code_is_a_crash():
    observation = read({"ok": False, "error": {"code": "made_up"}})

    assert observation.error is not None
    assert observation.error.code is ErrorCode.EXECUTOR_CRASHED
