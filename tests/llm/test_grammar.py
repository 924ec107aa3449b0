"""The grammar admits exactly the compact JSON of a schema. It is read here as one regular
expression, with the recursion of open values cut at a depth."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.llm.grammar import compact_grammar
from core.llm.openai_wire import OpenAiDialect
from tests.support.model_servers import ask

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[a-z]\w*|[()|*?]|\{\d*,?\d*\}|\s+', re.S
)


def _regex(grammar: str) -> re.Pattern[str]:
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())

    open_rules: list[str] = []

    def expand(name: str) -> str:
        if open_rules.count(name) > 2:
            return "(?!)"
        open_rules.append(name)
        found = _TOKEN.findall(rules[name])
        assert "".join(found) == rules[name], f"unread text in {rules[name]}"
        text = "(?:" + "".join(map(piece, found)) + ")"
        open_rules.pop()
        return text

    def piece(token: str) -> str:
        if token.startswith('"'):
            text = re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.S)
            return f"(?:{re.escape(text)})"
        if token[0].isalpha():
            return expand(token)
        return "" if token.isspace() else token

    return re.compile(expand("root"))


def _admits(schema: dict, value: object) -> bool:
    grammar = compact_grammar(schema)
    assert grammar is not None
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _regex(grammar).fullmatch(text) is not None


CALL = {
    "type": "object",
    "properties": {
        "tool": {"const": "read_files"},
        "args": {
            "type": "object",
            "properties": {
                "paths": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "lines": {"type": "integer", "minimum": 1},
                "mode": {"enum": ["è", 'a"b', "c\\d"]},
                "all": {"type": ["boolean", "null"]},
            },
            "required": ["paths"],
            "additionalProperties": False,
        },
    },
    "required": ["tool", "args"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "args",
    [
        {"paths": ["a"]},
        {"paths": ["a", '~/è\n\t"\\'], "lines": 3},
        {"paths": ["a"], "mode": 'a"b', "all": None},
        {"paths": ["a"], "lines": -3, "mode": "c\\d", "all": True},
    ],
)
def test_grammar_admits_what_fits(args):
    assert _admits(CALL, {"tool": "read_files", "args": args})


@pytest.mark.parametrize(
    "value",
    [
        {"tool": "read_files"},
        {"tool": "other", "args": {"paths": ["a"]}},
        {"tool": "read_files", "args": {}},
        {"tool": "read_files", "args": {"paths": []}},
        {"tool": "read_files", "args": {"paths": ["a"], "more": 1}},
        {"tool": "read_files", "args": {"paths": ["a"], "lines": 1.5}},
        {"tool": "read_files", "args": {"paths": ["a"], "mode": "z"}},
        {"tool": "read_files", "args": {"lines": 1, "paths": ["a"]}},
        [],
    ],
)
def test_grammar_refuses_what_does_not_fit(value):
    assert not _admits(CALL, value)


@pytest.mark.parametrize("value", [{}, {"a": [1, None]}, [], [[True]], "x", -1.5, None])
def test_grammar_of_an_open_schema_admits_what_it_is_open_for(value):
    assert _admits({}, value)
    assert _admits({"type": "object"}, value) is isinstance(value, dict)
    assert _admits({"type": "array"}, value) is isinstance(value, list)


def test_grammar_of_an_array_may_ask_something_else_of_its_first_item():
    schema = {
        "type": "array",
        "prefixItems": [{"const": "read"}],
        "items": {"enum": ["read", "sort"]},
        "minItems": 1,
        "maxItems": 3,
    }

    assert _admits(schema, ["read"])
    assert _admits(schema, ["read", "sort", "read"])
    assert not _admits(schema, ["sort"])
    assert not _admits(schema, [])
    assert not _admits(schema, ["read"] * 4)


def test_grammar_leaves_no_room_for_white_space():
    text = json.dumps({"tool": "read_files", "args": {"paths": ["a"]}}, indent=1)

    assert not _regex(compact_grammar(CALL) or "").fullmatch(text)
    assert compact_grammar(CALL) == compact_grammar(json.loads(json.dumps(CALL)))


_LEAVES = st.sampled_from(
    [
        ({"type": "string"}, st.text(st.characters(exclude_characters="\x7f", codec="utf-8"))),
        ({"type": "string", "maxLength": 3, "minLength": 1}, st.just("abc")),
        ({"type": "integer"}, st.integers(-(10**15), 10**15)),
        ({"type": "number"}, st.sampled_from([0, -1, 2.5, 1000])),
        ({"type": "boolean"}, st.booleans()),
        ({"enum": ["x", 1, None, {"a": [1]}]}, st.sampled_from(["x", 1, None, {"a": [1]}])),
    ]
)


def _nest(inner):
    def array(of):
        schema, values = of
        return {"type": "array", "items": schema, "maxItems": 4}, st.lists(values, max_size=4)

    def thing(members):
        names = [f"k{n}" for n in range(len(members))]
        needed = [name for name, (_, must) in zip(names, members, strict=True) if must]
        properties = {name: of[0] for name, (of, _) in zip(names, members, strict=True)}
        present = {name: of[1] for name, (of, must) in zip(names, members, strict=True) if must}
        maybe = {name: of[1] for name, (of, must) in zip(names, members, strict=True) if not must}
        values = st.fixed_dictionaries(present, optional=maybe).map(
            lambda got: {name: got[name] for name in names if name in got}
        )
        schema = {
            "type": "object",
            "properties": properties,
            "required": needed,
            "additionalProperties": False,
        }
        return schema, values

    members = st.lists(st.tuples(inner, st.booleans()), max_size=4)
    return inner.map(array) | members.map(thing)


@settings(max_examples=150, deadline=None)
@given(st.recursive(_LEAVES, _nest, max_leaves=8), st.data())
def test_grammar_admits_every_value_of_its_schema(of, data):
    schema, values = of

    assert _admits(schema, data.draw(values))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/x"},
        {"allOf": [{"type": "string"}]},
        {"enum": []},
        {"type": "object", "properties": {}, "required": ["x"], "additionalProperties": False},
        {"type": "strange"},
        {"type": "array", "items": {"$ref": "#/x"}},
    ],
)
def test_grammar_of_what_is_not_known_here_is_none(schema):
    assert compact_grammar(schema) is None


@pytest.mark.parametrize(
    ("schema", "key"), [(CALL, "grammar"), ({"$ref": "#"}, "response_format")]
)
def test_body_for_llama_asks_with_a_grammar_where_there_is_one(schema, key):
    body = OpenAiDialect(compact=True).body(
        ask(schema=schema), model="m", max_tokens=9, temperature=0, think=None, left_out=()
    )

    assert len({"grammar", "response_format"} & set(body)) == 1
    assert key in body
