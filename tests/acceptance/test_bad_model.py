"""What bad input gets: a model that is silent, talks HTML, breaks off, or invents.

Each: a message in the person's language that says nothing was changed, one line in the turn log,
and the next request is answered as if nothing had been.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bot.app import House, open_house
from core.errors import ErrorCode
from core.i18n import Texts
from core.store import actors
from tests.acceptance.scenes import turn_lines
from tests.support.executors import REPO
from tests.support.house import ask, house_settings
from tests.support.model_servers import Handler, chunk, sends, serving, streams

HTML = "<!DOCTYPE html><html><head><title>502</title></head><body>Bad Gateway</body></html>"


async def hangs(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(30)
    return web.Response(text="too late")


async def hangs_in_the_middle(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    await response.write(b'data: {"choices": [{"index": 0, "delta": {"content": "Le "}}]}\n\n')
    await asyncio.sleep(30)
    return response


def call(name: str, raw: str) -> Handler:
    """A reply that calls a tool with these raw arguments."""
    function = {"name": name, "arguments": raw}
    made = [{"index": 0, "id": "c1", "type": "function", "function": function}]
    return streams([chunk(tool_calls=made), chunk("tool_calls")])


BAD: dict[str, tuple[Handler, set[ErrorCode]]] = {
    "hangs": (hangs, {ErrorCode.MODEL_TIMEOUT}),
    "hangs in the middle": (hangs_in_the_middle, {ErrorCode.MODEL_TIMEOUT}),
    "html with 200": (
        sends(HTML, content_type="text/html"), {ErrorCode.MODEL_REPLY_INVALID},
    ),
    "html with 502": (
        sends(HTML, status=502, content_type="text/html"), {ErrorCode.MODEL_UNREACHABLE},
    ),
    "half json": (sends('{"choices": [{"message": {"cont'),
                  {ErrorCode.MODEL_REPLY_INVALID, ErrorCode.MODEL_UNREACHABLE}),
    "broken off": (streams([chunk(content="Le die")], cut=True), {ErrorCode.MODEL_UNREACHABLE}),
    "not json at all": (sends("ciao", content_type="text/plain"),
                        {ErrorCode.MODEL_REPLY_INVALID}),
    "another json": (sends({"ok": True}), {ErrorCode.MODEL_REPLY_INVALID}),
    "a list": (sends("[1, 2]"), {ErrorCode.MODEL_REPLY_INVALID}),
    "empty": (streams([chunk(content=""), chunk("stop")]), {ErrorCode.MODEL_REPLY_INVALID}),
    "only thoughts": (streams([chunk(content="<think>boh</think>"), chunk("stop")]),
                      {ErrorCode.MODEL_REPLY_INVALID}),
    "tool-shaped text": (
        streams([chunk(content='{"name": "launch_rocket", "arguments": {}}'), chunk("stop")]),
        {ErrorCode.MODEL_REPLY_INVALID},
    ),
    "wrong key": (sends({"error": {"message": "bad key"}}, status=401),
                  {ErrorCode.MODEL_REFUSED}),
    "no such model": (sends({"error": {"message": "no model"}}, status=404),
                      {ErrorCode.MODEL_REFUSED}),
    "too many requests": (sends({"error": {}}, status=429, headers={"Retry-After": "0"}),
                          {ErrorCode.MODEL_REFUSED, ErrorCode.MODEL_UNREACHABLE}),
}  # fmt: skip
NOT_SHOWN = ("Traceback", "<html", "<!DOCTYPE", "{", "launch_rocket", "http", "think")


@asynccontextmanager
async def house_on(tmp_path: Path, url: str, **options: Any) -> AsyncIterator[House]:
    """A house whose model is given little time, as config.toml can say it."""
    tier = {
        "base_url": url,
        "model": "served",
        "first_token_timeout_s": 1.5,
        "total_timeout_s": 3.0,
        "retries": 1,
    }
    settings = house_settings(
        tmp_path, metnos_llm_base_url=None, tiers={"middle": tier}, **options
    )
    async with open_house(settings, "test") as house:
        async with house.stores.main.write() as tx:
            await actors.ensure_local_host(tx, house.clock)
        yield house


@pytest.mark.parametrize(("engine", "lang"), [("simple", "it"), ("metis", "en")])
async def test_model_that_misbehaves_is_told_and_the_next_request_is_answered(
    tmp_path: Path, engine: str, lang: str
) -> None:
    texts = Texts.load(REPO / "locales", strict=True)
    now = {"steps": [{"tool": "get_now", "args": {}}]}
    good = {
        "simple": streams([chunk(content="Le dieci."), chunk("stop")]),
        "metis": streams([chunk(content=json.dumps(now)), chunk("stop")]),
    }[engine]
    answer: list[Handler] = [good]

    async def current(request: web.Request) -> web.StreamResponse:
        return await answer[0](request)

    async with (
        serving(current) as server,
        house_on(
            tmp_path, server.url, metnos_engine=engine, metnos_lang=lang, metnos_memory=False
        ) as house,
    ):
        for number, (name, (handler, codes)) in enumerate(BAD.items(), 1):
            answer[0] = handler

            closed = await ask(house, "che ore sono?", lang=lang)

            assert closed.error is not None, name
            assert closed.error.code in codes, (name, closed.error)
            shown = closed.reply.plain
            assert shown.startswith(texts.say(closed.error.message_key, lang)), (name, shown)
            assert texts.say("outcome.nothing_done", lang) in shown, name
            assert not [word for word in NOT_SHOWN if word in shown], (name, shown)
            line = turn_lines(house.settings.metnos_home)[-1]
            assert (line["final_kind"], line["error_class"]) == ("error", closed.error.code.value)

            answer[0] = good
            after = await ask(house, "che ore sono?", lang=lang)
            assert after.final_kind.value == "answer", name
            assert len(turn_lines(house.settings.metnos_home)) == 2 * number
    print(f"\nbad models, {engine}, {lang}: {len(BAD)} told, logged, the next answered")


HALF_ARGUMENTS = {
    "half json": '{"timezone": "Tok',
    "a doubled key": '{"timezone": "Tokyo", "timezone": "Rome"}',
    "not a number": '{"timezone": NaN}',
    "a list": '["Tokyo"]',
    "a word": "Tokyo",
    "code": "__import__('os').getcwd()",
}


@pytest.mark.parametrize("case", HALF_ARGUMENTS)
async def test_arguments_that_are_no_strict_json_are_mended_by_the_model(
    tmp_path: Path, case: str
) -> None:
    answers = [
        call("get_now", HALF_ARGUMENTS[case]),
        call("get_now", '{"timezone": "Tokyo"}'),
        streams([chunk(content="Le dieci."), chunk("stop")]),
    ]
    async with serving(*answers) as server, house_on(tmp_path, server.url) as house:
        closed = await ask(house, "che ore sono a Tokyo?")

        assert closed.reply.plain == "Le dieci."
        (line,) = turn_lines(house.settings.metnos_home)
        assert [s["error_class"] for s in line["steps"]] == ["invalid_args", None]
        told = [m for m in server.bodies[1]["messages"] if m["role"] == "tool"][-1]
        assert json.loads(told["content"])["error"]["detail"]
