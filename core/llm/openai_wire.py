"""The chat-completions dialect: llama.cpp, Ollama, vLLM, OpenAI and many that speak like it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from core.llm.client import ChatRequest, Finish, Message, ToolSpec, Usage
from core.llm.grammar import compact_grammar
from core.llm.stream import BrokenStream, CallParts, Gathered

_FINISH: Mapping[str, Finish] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
}


class OpenAiDialect:
    def __init__(self, *, compact: bool = False) -> None:
        """`compact`: the server is known to be llama.cpp, which takes a grammar of its own."""
        self._compact = compact

    def url(self, base_url: str) -> str:
        """A bare host gets `/v1`, as people forget it; any other path is taken as it is."""
        path = "" if urlsplit(base_url).path.strip("/") else "/v1"
        return base_url.rstrip("/") + path + "/chat/completions"

    def headers(self, key: str | None) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(
        self,
        request: ChatRequest,
        *,
        model: str,
        max_tokens: int,
        temperature: float,
        think: bool | None,
        left_out: Collection[str],
    ) -> dict[str, Any]:
        """The request as JSON; a schema is asked for without tools beside it.

        `think` None: the server is not told, as hosted ones refuse what they do not know.
        """
        # OpenAI's newer models want another name for the same limit.
        limit = "max_completion_tokens" if "max_completion_tokens" in left_out else "max_tokens"
        body: dict[str, Any] = {
            "model": model,
            "messages": [_message(m) for m in request.messages],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": temperature,
            limit: max_tokens,
        }
        if request.schema is not None:
            grammar = compact_grammar(request.schema) if self._compact else None
            if grammar is not None:
                body["grammar"] = grammar
            else:
                body["response_format"] = {
                    "type": "json_schema",
                    "json_schema": {"name": "reply", "schema": dict(request.schema)},
                }
        elif request.tools:
            body["tools"] = [_tool(t) for t in request.tools]
            body["tool_choice"] = request.tool_choice
        if think is not None:
            body["chat_template_kwargs"] = {"enable_thinking": think}
        for name in left_out:
            if name != limit:
                body.pop(name, None)
        return body

    def gatherer(self, request: ChatRequest) -> OpenAiGatherer:
        return OpenAiGatherer()


class OpenAiGatherer:
    """Gathers chunks, or the one whole answer of a server that does not stream."""

    def __init__(self) -> None:
        self.gathered = Gathered()

    def feed(self, event: Mapping[str, Any]) -> bool:
        """Take in one document; True when it brought something that the model said."""
        whole = self.gathered
        if not whole.model and isinstance(event.get("model"), str):
            whole.model = event["model"]
        if isinstance(event.get("usage"), Mapping):
            whole.usage = _usage(event["usage"])
        choices = event.get("choices")
        if not isinstance(choices, list) and "usage" not in event:
            raise BrokenStream("no_choices")
        said = False
        for choice in (choices or ())[:1]:
            delta = choice.get("delta") or choice.get("message") or {}
            said = self._delta(delta) or said
            if choice.get("finish_reason"):
                whole.finish = _FINISH.get(choice["finish_reason"], "other")
                said = True
        return said

    def _delta(self, delta: Mapping[str, Any]) -> bool:
        content = delta.get("content")
        if isinstance(content, list):
            content = "".join(part.get("text") or "" for part in content)
        if content:
            self.gathered.text.append(content)
        for at, call in enumerate(delta.get("tool_calls") or ()):
            self._call(call, at)
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        return bool(content or delta.get("tool_calls") or thought)

    def _call(self, call: Mapping[str, Any], at: int) -> None:
        calls = self.gathered.calls
        index = call.get("index")
        if not isinstance(index, int):
            # Some servers leave the index out: a new id is a new call, else the last one goes on.
            new = call.get("id") and all(parts.id != call["id"] for parts in calls.values())
            index = len(calls) if new or not calls else max(calls)
        parts = calls.setdefault(index, CallParts())
        function = call.get("function") or {}
        parts.id = call.get("id") or parts.id
        parts.name = parts.name or function.get("name") or ""
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            parts.arguments.append(arguments)
        elif arguments is not None:
            parts.arguments.append(json.dumps(arguments, ensure_ascii=False))


def _message(message: Message) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        data["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                # A call whose arguments were no JSON would make templates fail: shown empty.
                "function": {
                    "name": call.name,
                    "arguments": json.dumps(call.arguments or {}, ensure_ascii=False),
                },
            }
            for call in message.tool_calls
        ]
    if message.role == "tool":
        data["tool_call_id"] = message.tool_call_id or ""
        if message.name:
            data["name"] = message.name
    return data


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
        },
    }


def _usage(usage: Mapping[str, Any]) -> Usage:
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return Usage(
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
        _count(cached or usage.get("prompt_cache_hit_tokens")),
    )


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and value > 0 else 0
