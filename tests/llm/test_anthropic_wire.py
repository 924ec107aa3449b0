"""The Anthropic wire against a server on loopback that streams its events."""

from __future__ import annotations

import json

import pytest

from core.errors import ModelRefused, ModelUnreachable
from core.llm.anthropic_wire import AnthropicDialect
from core.llm.client import ChatRequest, Message, ToolCall, ToolSpec, Usage
from tests.support.model_servers import ask, model_at, sends, serving, streams

USAGE = {
    "input_tokens": 7,
    "cache_creation_input_tokens": 5,
    "cache_read_input_tokens": 100,
    "output_tokens": 1,
}


def _said(*blocks: tuple[dict, list[dict]], stop: str = "end_turn") -> list[dict]:
    events: list[dict] = [
        {"type": "message_start", "message": {"model": "claude-x", "usage": USAGE}},
        {"type": "ping"},
    ]
    for index, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    last = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}}
    return [*events, last, {"type": "message_stop"}]


def _text(*pieces: str) -> tuple[dict, list[dict]]:
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": p} for p in pieces]


def _use(name: str, *pieces: str) -> tuple[dict, list[dict]]:
    start = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
    return start, [{"type": "input_json_delta", "partial_json": p} for p in pieces]


async def test_complete_reads_text_and_counts_the_cached_tokens():
    answer = streams(_said(_text("Ci", "ao")), done=False)
    async with (
        serving(answer) as served,
        model_at(served.url, provider="anthropic", api_key="sk-x") as model,
    ):
        reply = await model.complete(ask(system="Sei Metnos."))

    assert (reply.text, reply.finish, reply.model) == ("Ciao", "stop", "claude-x")
    assert reply.usage == Usage(tokens_in=112, tokens_out=9, cached=100)
    assert served.paths == ["/v1/messages"]
    assert served.headers[0]["x-api-key"] == "sk-x"
    assert served.headers[0]["anthropic-version"]
    assert served.bodies[0]["max_tokens"] == 1024


async def test_complete_reads_text_and_call_in_one_reply():
    events = _said(_text("Guardo."), _use("read_files", '{"paths"', ': ["à"]}'), stop="tool_use")
    async with (
        serving(streams(events, done=False)) as served,
        model_at(served.url, provider="anthropic") as model,
    ):
        reply = await model.complete(ask(tools=["read_files"]))

    assert reply.text == "Guardo."
    assert reply.finish == "tool_calls"
    assert reply.tool_calls == (
        ToolCall("toolu_1", "read_files", {"paths": ["à"]}, '{"paths": ["à"]}'),
    )


async def test_complete_reads_a_whole_message_that_was_not_streamed():
    message = {
        "type": "message",
        "model": "claude-x",
        "content": [{"type": "tool_use", "id": "t", "name": "x", "input": {"a": 1}}],
        "stop_reason": "tool_use",
        "usage": USAGE,
    }
    async with (
        serving(sends(message)) as served,
        model_at(served.url, provider="anthropic") as model,
    ):
        reply = await model.complete(ask(tools=["x"]))

    assert reply.tool_calls == (ToolCall("t", "x", {"a": 1}, '{"a": 1}'),)


async def test_complete_with_a_schema_forces_one_tool_and_gives_its_input_as_text():
    schema = {"type": "object", "properties": {"steps": {"type": "array"}}}
    events = _said(_use("reply", '{"steps"', ": []}"), stop="tool_use")
    async with (
        serving(streams(events, done=False)) as served,
        model_at(served.url, provider="anthropic") as model,
    ):
        reply = await model.complete(ask(schema=schema, tools=["ignored"]))

    assert json.loads(reply.text) == {"steps": []}
    assert (reply.tool_calls, reply.finish) == ((), "stop")
    assert served.bodies[0]["tool_choice"] == {"type": "tool", "name": "reply"}
    assert [t["input_schema"] for t in served.bodies[0]["tools"]] == [schema]


async def test_complete_when_overloaded_in_the_stream_tries_again():
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    start = {"type": "message_start", "message": {}}
    async with (
        serving(streams([start, overloaded], done=False), streams(_said(_text("ok")))) as served,
        model_at(served.url, provider="anthropic") as model,
    ):
        assert (await model.complete(ask())).text == "ok"

    async with (
        serving(streams([start, overloaded], done=False)) as served,
        model_at(served.url, provider="anthropic") as model,
    ):
        with pytest.raises(ModelUnreachable, match="overloaded_error"):
            await model.complete(ask())


async def test_complete_when_the_key_is_wrong_is_refused_without_showing_it():
    error = {"type": "error", "error": {"type": "authentication_error", "message": "bad sk-x"}}
    async with (
        serving(sends(error, status=401)) as served,
        model_at(served.url, provider="anthropic", api_key="sk-x") as model,
    ):
        with pytest.raises(ModelRefused) as caught:
            await model.complete(ask())

    assert caught.value.detail == "HTTP 401 (authentication_error)"


async def test_complete_when_cut_before_the_stop_reason_is_unreachable():
    events = _said(_text("mez"))[:-2]
    async with (
        serving(streams(events, done=False)) as served,
        model_at(served.url, provider="anthropic", retries=0) as model,
    ):
        with pytest.raises(ModelUnreachable, match="broke off"):
            await model.complete(ask())


def _body(request: ChatRequest) -> dict:
    return AnthropicDialect().body(
        request, model="m", max_tokens=9, temperature=2, think=None, left_out=()
    )


def test_body_splits_system_and_joins_results_into_the_turn_of_the_user():
    calls = (ToolCall("a:1", "x", {"p": 1}), ToolCall("b", "y", None, "{half"))
    body = _body(
        ChatRequest(
            (
                Message("system", "regole"),
                Message("system", "oggi"),
                Message("user", "domanda"),
                Message("assistant", "", calls),
                Message("tool", "uno", tool_call_id="a:1"),
                Message("tool", "due", tool_call_id="b"),
                Message("system", "nota"),
            ),
            tools=(ToolSpec("x", "d", {"properties": {}}),),
        )
    )

    assert body["system"] == [
        {"type": "text", "text": "regole", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "oggi"},
    ]
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]
    assert body["messages"][1]["content"] == [
        {"type": "tool_use", "id": "a_1", "name": "x", "input": {"p": 1}},
        {"type": "tool_use", "id": "b", "name": "y", "input": {}},
    ]
    assert [b["type"] for b in body["messages"][2]["content"]] == [
        "tool_result",
        "tool_result",
        "text",
    ]
    assert body["messages"][2]["content"][0]["tool_use_id"] == "a_1"
    assert body["tools"] == [
        {"name": "x", "description": "d", "input_schema": {"type": "object", "properties": {}}}
    ]
    assert body["tool_choice"] == {"type": "auto"}
    assert body["temperature"] == 1


def test_body_with_past_calls_and_no_tools_names_them_and_forbids_them():
    body = _body(
        ChatRequest(
            (
                Message("user", "q"),
                Message("assistant", "", (ToolCall("a", "x", {}),)),
                Message("tool", "r", tool_call_id="a"),
            )
        )
    )

    assert [t["name"] for t in body["tools"]] == ["x"]
    assert body["tool_choice"] == {"type": "none"}


def test_body_without_system_marks_the_last_tool_for_the_cache():
    body = _body(ask(tools=["x", "y"]))

    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]


@pytest.mark.parametrize("base", ["https://models.example", "https://models.example/v1"])
def test_url_has_the_version_once(base):
    assert AnthropicDialect().url(base) == "https://models.example/v1/messages"
