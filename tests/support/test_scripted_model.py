"""The scripted model server keeps its own promises, over real HTTP."""

import http.client
import json
import threading
import time
import urllib.error
import urllib.request

import pytest

from tests.support.scripted_model import Rule, ScriptedModel

TOOLS = [
    {"type": "function", "function": {"name": "read_files", "parameters": {"type": "object"}}}
]


def post(url, body):
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    return urllib.request.urlopen(request, timeout=60).read().decode()


def say(base, text="?", **extra):
    return json.loads(
        post(
            base + "/chat/completions", {"messages": [{"role": "user", "content": text}], **extra}
        )
    )


def test_calls_then_text_then_plan_and_stream():
    model = ScriptedModel(
        [
            Rule(
                user="diario",
                after=0,
                calls=[("read_files", {"paths": ["a"]})],
                plan={"steps": []},
            ),
            Rule(user="diario", after=1, text=lambda ask: "ecco " + ask.last_result),
        ]
    )
    with model.running() as base:
        url = base + "/chat/completions"
        ask: dict = {"messages": [{"role": "user", "content": "leggi il DIARIO"}], "tools": TOOLS}
        first = json.loads(post(url, ask))["choices"][0]["message"]
        assert first["tool_calls"][0]["function"]["name"] == "read_files"
        ask["messages"] += [first, {"role": "tool", "tool_call_id": "x", "content": "tre righe"}]
        assert json.loads(post(url, ask))["choices"][0]["message"]["content"] == "ecco tre righe"
        assert "data: [DONE]" in post(url, {**ask, "stream": True})
        plan = {"messages": ask["messages"][:1], "response_format": {"type": "json_schema"}}
        assert json.loads(json.loads(post(url, plan))["choices"][0]["message"]["content"]) == {
            "steps": []
        }
        assert say(base)["choices"][0]["message"]["content"] == "(unscripted)"
    assert len(model.asked) == 5
    assert len(model.unscripted) == 1


@pytest.mark.parametrize(
    "extra", [{}, {"tools": TOOLS, "tool_choice": "none"}], ids=["no tools", "tool_choice none"]
)
def test_calls_are_not_made_where_no_tool_may_be_called(extra):
    model = ScriptedModel([Rule(calls=[("read_files", {})]), Rule(text="in words")])
    with model.running() as base:
        message = say(base, **extra)["choices"][0]["message"]
        assert message["content"] == "in words"
        assert "tool_calls" not in message
        assert say(base, tools=TOOLS)["choices"][0]["finish_reason"] == "tool_calls"


def test_faults_end_after_their_times():
    model = ScriptedModel(
        [Rule(status=503, times=1), Rule(cut=True, times=1, text="x" * 200), Rule(text="well")]
    )
    with model.running() as base:
        with pytest.raises(urllib.error.HTTPError, match="503"):
            say(base)
        with pytest.raises((OSError, http.client.HTTPException)):
            say(base)
        assert say(base)["choices"][0]["message"]["content"] == "well"


def test_a_cut_stream_ends_in_an_error():
    model = ScriptedModel([Rule(cut=True, text="x" * 200)])
    with model.running() as base, pytest.raises((OSError, http.client.HTTPException)):
        post(
            base + "/chat/completions",
            {"messages": [{"role": "user", "content": "?"}], "stream": True},
        )


def test_usage_counts_the_prefix_shared_with_an_earlier_prompt():
    with ScriptedModel(default="ok").running() as base:
        first, second = say(base, "a" * 4000)["usage"], say(base, "a" * 2000 + "b" * 2000)["usage"]
        assert first["prompt_tokens_details"]["cached_tokens"] == 0
        assert (
            500 <= second["prompt_tokens_details"]["cached_tokens"] < 520 < second["prompt_tokens"]
        )


def test_a_voice_is_transcribed():
    body = (
        b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n--b\r\n'
        b'Content-Disposition: form-data; name="file"; '
        b'filename="v.ogg"\r\n'
        b"Content-Type: audio/ogg\r\n\r\nOggS\r\n--b--\r\n"
    )
    model = ScriptedModel(transcript=lambda data: f"{len(data)} bytes heard")
    with model.running() as base:
        request = urllib.request.Request(
            base + "/audio/transcriptions",
            body,
            {"content-type": "multipart/form-data; boundary=b"},
        )
        assert json.load(urllib.request.urlopen(request, timeout=60)) == {"text": "4 bytes heard"}
        with pytest.raises(urllib.error.HTTPError, match="400"):
            post(base + "/audio/transcriptions", {})
    assert model.heard == [b"OggS"]


def test_stops_at_once_while_an_answer_is_awaited():
    model = ScriptedModel([Rule(delay=30, text="late")])

    def ask(base):
        with pytest.raises((OSError, http.client.HTTPException)):
            urllib.request.urlopen(
                urllib.request.Request(base + "/chat/completions", b'{"messages": []}'), timeout=60
            )

    with model.running() as base:
        waiting = threading.Thread(target=ask, args=(base,))
        waiting.start()
        while not model.asked:
            time.sleep(0.01)
        started = time.monotonic()
    waiting.join(60)
    assert time.monotonic() - started < 5
