"""The OpenAI-compatible wire against real servers on loopback."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from aiohttp import web

from core.errors import ModelRefused, ModelReplyInvalid, ModelTimeout, ModelUnreachable
from core.llm.client import ChatRequest, Message, ToolCall, Usage
from core.llm.openai_wire import OpenAiDialect
from tests.support.model_servers import ask, chunk, model_at, sends, serving, streams, whole
from tests.support.scripted_model import Rule, ScriptedModel

LOADING = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}


async def test_complete_against_the_scripted_model_brings_text_calls_and_plans():
    script = ScriptedModel(
        [
            Rule(
                user="diario",
                after=0,
                calls=[("read_files", {"paths": ["à"]})],
                plan={"steps": []},
            ),
            Rule(user="diario", after=1, text=lambda a: "Ecco: " + a.last_result),
        ]
    )
    with script.running() as url:
        async with model_at(url) as model:
            first = await model.complete(ask("leggi il diario", tools=["read_files"]))
            told = (
                Message("user", "leggi il diario"),
                Message("assistant", "", first.tool_calls),
                Message("tool", "tre righe", tool_call_id=first.tool_calls[0].id),
            )
            second = await model.complete(ChatRequest(told))
            plan = await model.complete(ask("diario", schema={"type": "object"}))

    assert first.tool_calls[0].name == "read_files"
    assert first.tool_calls[0].arguments == {"paths": ["à"]}
    assert first.finish == "tool_calls"
    assert second.text == "Ecco: tre righe"
    assert second.usage.tokens_in > 0
    assert json.loads(plan.text) == {"steps": []}
    assert all(a.body["max_tokens"] == 1024 for a in script.asked)
    assert not script.unscripted


async def test_complete_when_the_server_ignores_streaming_reads_the_one_answer():
    async with serving(sends(whole("ciao"))) as served, model_at(served.url) as model:
        reply = await model.complete(ask())

    assert (reply.text, reply.finish, reply.model) == ("ciao", "stop", "served")
    assert reply.usage == Usage(20, 3, 16)
    assert served.bodies[0]["stream"] is True


async def test_complete_when_events_come_under_another_content_type_reads_them():
    body = "".join(
        f"data: {json.dumps(e)}\n\n" for e in [chunk(content="ci"), chunk("stop", content="ao")]
    )
    async with (
        serving(sends(body + "data: [DONE]\n\n", content_type="text/plain")) as served,
        model_at(served.url) as model,
    ):
        assert (await model.complete(ask())).text == "ciao"


async def test_complete_joins_call_pieces_with_and_without_index():
    events = [
        chunk(
            tool_calls=[{"index": 0, "id": "a", "function": {"name": "x", "arguments": '{"p":'}}]
        ),
        chunk(tool_calls=[{"index": 0, "function": {"arguments": " 1}"}}]),
        chunk(tool_calls=[{"id": "b", "function": {"name": "y", "arguments": {"q": 2}}}]),
        chunk("tool_calls"),
    ]
    async with serving(streams(events)) as served, model_at(served.url) as model:
        reply = await model.complete(ask(tools=["x", "y"]))

    assert reply.tool_calls == (
        ToolCall("a", "x", {"p": 1}, '{"p": 1}'),
        ToolCall("b", "y", {"q": 2}, '{"q": 2}'),
    )


@pytest.mark.parametrize(
    "raw",
    ['{"a": 1', '{"a": 1, "a": 2}', '{"a": NaN}', "[1]", '{"a": 1} etc', "[" * 100_000],
    ids=["half", "duplicate key", "nan", "list", "more after it", "deep"],
)
async def test_complete_with_bad_argument_json_keeps_the_raw_text(raw):
    call = {"id": "a", "function": {"name": "x", "arguments": raw}}
    answer = sends(whole(tool_calls=[call], finish="tool_calls"))
    async with serving(answer) as served, model_at(served.url) as model:
        reply = await model.complete(ask(tools=["x"]))

    assert reply.tool_calls[0].arguments is None
    assert reply.tool_calls[0].raw == raw


async def test_complete_with_a_call_without_arguments_has_none_to_pass():
    call = {"id": "a", "function": {"name": "x", "arguments": ""}}
    async with (
        serving(sends(whole(tool_calls=[call]))) as served,
        model_at(served.url) as model,
    ):
        assert (await model.complete(ask(tools=["x"]))).tool_calls[0].arguments == {}


@pytest.mark.parametrize(
    ("body", "content_type", "detail"),
    [
        ("<html><body>Login</body></html>", "text/html", "html"),
        ("  <!doctype html>", "application/json", "html"),
        ('{"choices": [{"mess', "application/json", "half_json"),
        ('{"status": "ok"}', "application/json", "no_choices"),
        ("[]", "application/json", "half_json"),
    ],
)
async def test_complete_when_the_reply_is_no_completion_is_invalid(body, content_type, detail):
    answer = sends(body, content_type=content_type)
    async with serving(answer) as served, model_at(served.url) as model:
        with pytest.raises(ModelReplyInvalid) as caught:
            await model.complete(ask("segreto"))

    assert caught.value.detail == detail


@pytest.mark.parametrize("cut", [True, False], ids=["connection cut", "stream merely ends"])
async def test_complete_when_the_stream_breaks_off_once_asks_again(cut):
    half = streams([chunk(content="Il tuo")], done=False, cut=cut)
    async with (
        serving(half, streams([chunk("stop", content="intero")])) as served,
        model_at(served.url) as model,
    ):
        reply = await model.complete(ask())

    assert reply.text == "intero"
    assert len(served.bodies) == 2


async def test_complete_when_every_stream_breaks_off_is_unreachable():
    half = streams([chunk(content="x"), 'data: {"choices": [{"del'], done=False, cut=True)
    async with serving(half) as served, model_at(served.url, retries=2) as model:
        with pytest.raises(ModelUnreachable):
            await model.complete(ask())

    assert len(served.bodies) == 3


async def test_complete_when_cut_after_the_finish_takes_the_reply():
    cut = streams([chunk(content="tutto"), chunk("stop")], done=False, cut=True)
    async with serving(cut) as served, model_at(served.url) as model:
        assert (await model.complete(ask())).text == "tutto"


async def test_complete_when_nobody_listens_is_unreachable_and_retryable():
    async with model_at("http://127.0.0.1:1/v1") as model:
        with pytest.raises(ModelUnreachable) as caught:
            await model.complete(ask())

    assert caught.value.retryable
    assert caught.value.params["host"] == "127.0.0.1"


async def test_complete_when_the_model_loads_waits_without_spending_attempts(monkeypatch):
    monkeypatch.setattr("core.llm.faults.LOADING_POLL_S", 0.02)
    loading = sends(LOADING, status=503)
    async with (
        serving(*[loading] * 5, sends(whole("pronto"))) as served,
        model_at(served.url, retries=0) as model,
    ):
        reply = await model.complete(ask())

    assert reply.text == "pronto"
    assert len(served.bodies) == 6


async def test_complete_when_the_model_loads_for_too_long_is_unreachable():
    async with (
        serving(sends(LOADING, status=503)) as served,
        model_at(served.url, total_timeout_s=0.7) as model,
    ):
        with pytest.raises(ModelUnreachable, match="loading"):
            await model.complete(ask())


async def test_complete_on_429_waits_as_long_as_the_server_says():
    busy = sends("{}", status=429, headers={"retry-after": "0.3"})
    async with serving(busy, sends(whole("ora"))) as served, model_at(served.url) as model:
        started = time.monotonic()
        reply = await model.complete(ask())

    assert reply.text == "ora"
    assert time.monotonic() - started >= 0.3


async def test_complete_on_429_that_lasts_longer_than_the_budget_is_refused_at_once():
    busy = sends("{}", status=429, headers={"retry-after": "600"})
    async with serving(busy) as served, model_at(served.url) as model:
        started = time.monotonic()
        with pytest.raises(ModelRefused) as caught:
            await model.complete(ask())

    assert caught.value.retryable
    assert caught.value.params["status"] == 429
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 302])
async def test_complete_when_refused_asks_once_and_shows_no_word_of_the_server(status):
    body = {"error": {"message": "Incorrect key sk-segreto", "code": "invalid_api_key"}}
    async with (
        serving(sends(body, status=status)) as served,
        model_at(served.url, api_key="sk-segreto", retries=3) as model,
    ):
        with pytest.raises(ModelRefused) as caught:
            await model.complete(ask("domanda"))

    assert len(served.bodies) == 1
    assert caught.value.detail.startswith(f"HTTP {status} (invalid_api_key)")
    assert "segreto" not in f"{caught.value!r}{caught.value.params}{model!r}{vars(caught.value)}"
    assert served.headers[0]["authorization"] == "Bearer sk-segreto"


async def test_complete_on_5xx_tries_again():
    async with (
        serving(sends("oops", status=500), sends(whole("ok"))) as served,
        model_at(served.url) as model,
    ):
        assert (await model.complete(ask())).text == "ok"


async def test_complete_when_an_error_stands_in_the_stream_tries_again():
    broken = streams([{"error": {"message": "gpu fell off", "code": 500}}])
    async with serving(broken, sends(whole("ok"))) as served, model_at(served.url) as model:
        assert (await model.complete(ask())).text == "ok"


async def test_complete_when_a_field_is_not_supported_leaves_it_out_from_then_on():
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    no = sends({"error": {"message": message, "type": "invalid_request_error"}}, status=400)
    async with (
        serving(no, sends(whole("uno"))) as served,
        model_at(served.url, retries=0) as model,
    ):
        await model.complete(ask())
        await model.complete(ask())

    assert ["max_tokens" in body for body in served.bodies] == [True, False, False]
    assert served.bodies[2]["max_completion_tokens"] == 1024


async def _hang(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(1000):
        await response.write(b": ping\n\n")
        await asyncio.sleep(0.05)
    return response


async def test_complete_when_the_server_only_pings_times_out_on_the_first_token():
    async with serving(_hang) as served, model_at(served.url, first_token_timeout_s=0.3) as model:
        started = time.monotonic()
        with pytest.raises(ModelTimeout, match="silent"):
            await model.complete(ask())

    assert time.monotonic() - started < 20
    assert len(served.bodies) == 1


async def test_complete_when_tokens_never_end_times_out_in_total():
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(1000):
            await response.write(f"data: {json.dumps(chunk(content='x'))}\n\n".encode())
            await asyncio.sleep(0.05)
        return response

    async with (
        serving(endless) as served,
        model_at(served.url, first_token_timeout_s=0.3, total_timeout_s=0.8) as model,
    ):
        with pytest.raises(ModelTimeout, match="no whole reply"):
            await model.complete(ask())


async def test_complete_when_cancelled_ends_at_once():
    async with serving(_hang) as served, model_at(served.url) as model:
        task = asyncio.create_task(model.complete(ask()))
        await served.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_complete_when_the_reply_is_empty_asks_once_more_and_counts_both():
    async with (
        serving(sends(whole("")), sends(whole("ora sì"))) as served,
        model_at(served.url) as model,
    ):
        reply = await model.complete(ask())

    assert reply.text == "ora sì"
    assert reply.usage.tokens_in == 40
    assert served.bodies[0]["temperature"] == 0
    assert served.bodies[1]["temperature"] > 0


async def test_complete_when_the_reply_stays_empty_is_invalid():
    async with serving(sends(whole(" \n"))) as served, model_at(served.url) as model:
        with pytest.raises(ModelReplyInvalid, match="empty"):
            await model.complete(ask())

    assert len(served.bodies) == 2


async def test_complete_when_thinking_fills_the_limit_is_invalid_without_another_try():
    cut = sends(whole("<think>hmm hmm", finish="length"))
    async with serving(cut) as served, model_at(served.url) as model:
        with pytest.raises(ModelReplyInvalid, match="empty"):
            await model.complete(ask())

    assert len(served.bodies) == 1


async def test_complete_when_a_lone_offered_call_stands_in_the_text_takes_it():
    text = '```json\n{"name": "get_now", "arguments": {"timezone": "Tokyo"}}\n```'
    async with serving(sends(whole(text))) as served, model_at(served.url) as model:
        reply = await model.complete(ask(tools=["get_now"]))

    assert reply.text == ""
    assert reply.finish == "tool_calls"
    assert reply.tool_calls == (
        ToolCall("call_0", "get_now", {"timezone": "Tokyo"}, '{"timezone": "Tokyo"}'),
    )


@pytest.mark.parametrize("choice", ["auto", "none"])
async def test_complete_when_text_is_tool_shaped_is_invalid_after_one_more_try(choice):
    text = '{"name": "delete_files", "arguments": {"paths": ["/"]}}'
    offered = ["get_now"] if choice == "auto" else ["delete_files"]
    async with serving(sends(whole(text))) as served, model_at(served.url) as model:
        with pytest.raises(ModelReplyInvalid, match="tool_shaped"):
            await model.complete(ask(tools=offered, tool_choice=choice))

    assert len(served.bodies) == 2


async def test_complete_with_a_schema_keeps_json_and_unwraps_its_fence():
    text = '```json\n{"name": "read_files", "arguments": {}}\n```'
    async with serving(sends(whole(text))) as served, model_at(served.url) as model:
        reply = await model.complete(ask(schema={"type": "object"}, tools=["read_files"]))

    assert reply.text == '{"name": "read_files", "arguments": {}}'
    assert "tools" not in served.bodies[0]
    assert served.bodies[0]["response_format"]["json_schema"]["schema"] == {"type": "object"}


async def test_complete_strips_thinking():
    events = [
        chunk(content="<thi"),
        chunk(content="nk>uhm</think>\n\nCi"),
        chunk("stop", content="ao"),
    ]
    async with serving(streams(events)) as served, model_at(served.url) as model:
        assert (await model.complete(ask())).text == "Ciao"


async def test_complete_uses_one_connection_for_many_calls():
    async with (
        serving(streams([chunk(content="ciao"), chunk("stop")])) as served,
        model_at(served.url) as model,
    ):
        for _ in range(5):
            await model.complete(ask())

    assert len(served.peers) == 1


async def test_complete_carries_lone_surrogates_and_nul_without_failing():
    async with serving(sends(whole("ok"))) as served, model_at(served.url) as model:
        await model.complete(ask("a\ud800b\x00c"))

    assert served.bodies[0]["messages"][0]["content"] == "a?b\x00c"


async def test_complete_when_no_model_is_named_asks_the_server_for_its_first():
    listed = sends({"data": [{"id": "qwen2.5:3b"}]})
    async with (
        serving(listed, sends(whole("ok"))) as served,
        model_at(served.url, model="") as model,
    ):
        await model.complete(ask())
        await model.complete(ask())

    assert served.paths == ["/v1/models", "/v1/chat/completions", "/v1/chat/completions"]
    assert served.bodies[0]["model"] == "qwen2.5:3b"


async def test_complete_reads_ten_thousand_deltas_whole():
    events = [chunk(content="è ") for _ in range(12_000)]
    async with serving(streams([*events, chunk("stop")])) as served, model_at(served.url) as model:
        reply = await model.complete(ask())

    assert reply.text == ("è " * 12_000).strip()


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/chat/completions"),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"),
        ("https://models.example/api/", "https://models.example/api/chat/completions"),
    ],
)
def test_url_of_a_bare_host_gets_the_version(base, url):
    assert OpenAiDialect().url(base) == url
