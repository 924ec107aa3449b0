"""The messages dialect of Anthropic: system apart, content in blocks, tool results as the user's.

The stable prefix (tools and the first system message) is marked for the provider's cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from core.llm.client import ChatRequest, Finish, Message, Usage
from core.llm.stream import BrokenStream, CallParts, Gathered

API_VERSION = "2023-06-01"
SCHEMA_TOOL = "reply"

_CACHE = {"type": "ephemeral"}
_NOT_ID = re.compile(r"[^A-Za-z0-9_-]")
_FINISH: Mapping[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
}


class AnthropicDialect:
    def url(self, base_url: str) -> str:
        path = urlsplit(base_url).path.rstrip("/")
        return base_url.rstrip("/") + ("" if path.endswith("/v1") else "/v1") + "/messages"

    def headers(self, key: str | None) -> dict[str, str]:
        return {"anthropic-version": API_VERSION, **({"x-api-key": key} if key else {})}

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
        """The request as JSON. A schema becomes the one tool that must be called; `think` is not
        asked for, as thinking and forced tools exclude each other."""
        system, messages = _split(request.messages)
        body: dict[str, Any] = {"model": model, "max_tokens": max_tokens, "stream": True}
        if "temperature" not in left_out:
            body["temperature"] = min(temperature, 1.0)
        tools, choice = _tools(request)
        if tools:
            body["tools"], body["tool_choice"] = tools, choice
        if system:
            body["system"] = [{"type": "text", "text": text} for text in system]
            # One mark covers everything before it: the tools stand before the system text.
            body["system"][0]["cache_control"] = _CACHE
        elif tools:
            tools[-1]["cache_control"] = _CACHE
        body["messages"] = messages
        return body

    def gatherer(self, request: ChatRequest) -> AnthropicGatherer:
        return AnthropicGatherer(schema=request.schema is not None)


class AnthropicGatherer:
    """Gathers stream events, or the one whole message of a server that does not stream."""

    def __init__(self, *, schema: bool) -> None:
        self.gathered = Gathered()
        self._schema = schema
        self._tokens: dict[str, int] = {}

    def feed(self, event: Mapping[str, Any]) -> bool:
        """Take in one event; True when it brought something that the model said."""
        match event.get("type"):
            case "message_start":
                self._head(event.get("message") or {})
            case "message":
                self._head(event)
                for index, block in enumerate(event.get("content") or ()):
                    self._block(index, block)
                self._stop(event)
                return True
            case "content_block_start":
                self._block(_index(event), event.get("content_block") or {})
                return True
            case "content_block_delta":
                self._delta(_index(event), event.get("delta") or {})
                return True
            case "message_delta":
                self._usage(event.get("usage") or {})
                self._stop(event.get("delta") or {})
                return True
            case None:
                raise BrokenStream("no_choices")
        return False

    def _head(self, message: Mapping[str, Any]) -> None:
        self.gathered.model = str(message.get("model") or "")
        self._usage(message.get("usage") or {})

    def _block(self, index: int, block: Mapping[str, Any]) -> None:
        if block.get("type") == "text":
            self.gathered.text.append(block.get("text") or "")
        elif block.get("type") == "tool_use" and not self._schema:
            parts = CallParts(str(block.get("id") or ""), str(block.get("name") or ""))
            self.gathered.calls[index] = parts
        if block.get("type") == "tool_use" and block.get("input"):
            self._arguments(index, _dump(block["input"]))

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        if delta.get("type") == "text_delta":
            self.gathered.text.append(delta.get("text") or "")
        elif delta.get("type") == "input_json_delta":
            self._arguments(index, delta.get("partial_json") or "")

    def _arguments(self, index: int, piece: str) -> None:
        if self._schema:
            self.gathered.text.append(piece)
        elif index in self.gathered.calls:
            self.gathered.calls[index].arguments.append(piece)

    def _stop(self, data: Mapping[str, Any]) -> None:
        reason = data.get("stop_reason")
        if reason:
            finish = _FINISH.get(reason, "other")
            forced = self._schema and finish == "tool_calls"
            self.gathered.finish = "stop" if forced else finish

    def _usage(self, usage: Mapping[str, Any]) -> None:
        """Counts are sums so far; `input_tokens` leaves the cached part out, ours has it in."""
        for key, value in usage.items():
            if isinstance(value, int):
                self._tokens[key] = value
        read = self._tokens.get("cache_read_input_tokens", 0)
        written = self._tokens.get("cache_creation_input_tokens", 0)
        self.gathered.usage = Usage(
            self._tokens.get("input_tokens", 0) + read + written,
            self._tokens.get("output_tokens", 0),
            read,
        )


def _split(messages: Sequence[Message]) -> tuple[list[str], list[dict[str, Any]]]:
    """Leading system texts, and the rest as turns that alternate between user and assistant."""
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system" and not turns:
            system.extend([message.content] if message.content.strip() else [])
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
    return system, turns


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        use = _NOT_ID.sub("_", message.tool_call_id or "call")
        return [{"type": "tool_result", "tool_use_id": use, "content": message.content}]
    blocks: list[dict[str, Any]] = []
    if message.content.strip():  # the provider refuses empty text blocks
        blocks.append({"type": "text", "text": message.content})
    blocks.extend(
        {
            "type": "tool_use",
            "id": _NOT_ID.sub("_", call.id or "call"),
            "name": call.name,
            "input": call.arguments or {},
        }
        for call in message.tool_calls
    )
    return blocks


def _tools(request: ChatRequest) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    if request.schema is not None:
        tool = {
            "name": SCHEMA_TOOL,
            "description": "Give the reply in this form.",
            "input_schema": dict(request.schema),
        }
        return [*_past_tools(request), tool], {"type": "tool", "name": SCHEMA_TOOL}
    if request.tools:
        tools: list[dict[str, Any]] = [
            {
                "name": t.name,
                "description": t.description,
                "input_schema": {"type": "object", **t.parameters},
            }
            for t in request.tools
        ]
        return tools, {"type": request.tool_choice}
    return _past_tools(request), {"type": "none"}


def _past_tools(request: ChatRequest) -> list[dict[str, Any]]:
    """The provider refuses a history with calls of tools that the request does not name."""
    names = {call.name for message in request.messages for call in message.tool_calls}
    return [
        {"name": name, "description": "", "input_schema": {"type": "object"}}
        for name in sorted(names)
    ]


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0


def _dump(value: Any) -> str:

    return json.dumps(value, ensure_ascii=False)
