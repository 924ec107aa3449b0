"""What models write in place of a call, and what is none."""

from __future__ import annotations

import pytest

from core.llm.rescue import is_tool_shaped, parse_object, rescue_call, strip_think, unfence

OFFERED = ("get_now", "read_files")


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "get_now", "arguments": {"timezone": "Tokyo"}}',
        '```json\n{"name": "get_now", "arguments": {"timezone": "Tokyo"}}\n```',
        '``` \n{"name": "get_now", "parameters": {"timezone": "Tokyo"}}```',
        '  {"tool": "get_now", "args": {"timezone": "Tokyo"}}\n',
        '{"type": "function", "function": {"name": "get_now", "arguments": '
        '"{\\"timezone\\": \\"Tokyo\\"}"}}',
        '[{"name": "get_now", "arguments": {"timezone": "Tokyo"}}]',
        '<tool_call>\n{"name": "get_now", "arguments": {"timezone": "Tokyo"}}\n</tool_call>',
    ],
    ids=["bare", "fenced", "parameters", "tool-args", "openai", "list", "tagged"],
)
def test_rescue_call_when_alone_and_offered_is_the_call(text):
    call = rescue_call(text, OFFERED)

    assert call is not None
    assert (call.name, call.arguments) == ("get_now", {"timezone": "Tokyo"})


def test_rescue_call_with_bad_arguments_keeps_the_raw_text():
    call = rescue_call('{"name": "get_now", "arguments": "{half"}', OFFERED)

    assert call is not None
    assert (call.arguments, call.raw) == (None, "{half")


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "delete_files", "arguments": {}}',
        'Ecco: {"name": "get_now", "arguments": {}}',
        '[{"name": "get_now", "arguments": {}}, {"name": "get_now", "arguments": {}}]',
        '{"name": "get_now", "name": "read_files", "arguments": {}}',
        '{"name": "get_now"}',
        '{"name": 3, "arguments": {}}',
        "{" * 50_000,
        "Sono le 12.",
        "",
    ],
)
def test_rescue_call_when_not_one_lone_offered_call_is_none(text):
    assert rescue_call(text, OFFERED) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "delete_files", "arguments": {}}',
        '{"steps": [{"tool": "read_files", "args": {}}]}',
        '[{"name": "get_now", "arguments": {}}, {"name": "read_files", "arguments": {}}]',
        'Certo:\n```json\n{"name": "get_now", "arguments": {}}\n```\nFatto.',
        "<tool_response>\n{}\n</tool_response>",
        "Va bene\n<tool_call>{",
        '[TOOL_CALLS][{"name"',
    ],
)
def test_is_tool_shaped_sees_calls_written_as_text(text):
    assert is_tool_shaped(text, OFFERED)


@pytest.mark.parametrize(
    "text",
    [
        "Sono le 12.",
        '{"name": "Anna", "arguments": "none"}',
        'Il file dice:\n```json\n{"name": "my_tool", "arguments": {}}\n```',
        "Il tag <tool_call> serve ai modelli.",
        "[1, 2, 3]",
        "[]",
        "{}",
    ],
)
def test_is_tool_shaped_leaves_answers_alone(text):
    assert not is_tool_shaped(text, OFFERED)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>a</think>\nciao", "ciao"),
        ("<think>\n</think><think>b</think>ciao", "ciao"),
        ("ragiono...</think>\n\nciao", "ciao"),
        ("<think>mai chiuso", ""),
        ("ciao\n<think>x\ny</think>\nmondo", "ciao\nmondo"),
        ("il tag `<think>` apre, `</think>` chiude", "il tag `<think>` apre, `</think>` chiude"),
        ("I think so", "I think so"),
    ],
)
def test_strip_think_leaves_the_answer(text, left):
    assert strip_think(text) == left


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ('{"a": [1, {"b": null}]}', {"a": [1, {"b": None}]}),
        ("", {}),
        ("null", None),
        ('"x"', None),
        ('{"a": Infinity}', None),
        ('{"a": {"b": 1, "b": 2}}', None),
    ],
)
def test_parse_object_is_strict(raw, value):
    assert parse_object(raw) == value


def test_unfence_leaves_text_with_more_than_one_block_alone():
    assert unfence("```\na\n```\n```\nb\n```").startswith("```")
    assert unfence("```json\n{}\n```") == "{}"
