"""A `ChatModel` inside the process that says what it was told to say, in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from core.llm.client import ChatReply, ChatRequest, ToolCall

Answer = ChatReply | Exception | Callable[[ChatRequest], "ChatReply | Exception"]

_ids = count(1)


class ScriptedModel:
    """Answers each request with the next of `answers`; fails when asked more than scripted.

    An exception is raised, a callable gets the request. `requests` holds every request asked.
    """

    def __init__(self, answers: Sequence[Answer] = ()) -> None:
        self._answers = list(answers)
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        if len(self.requests) > len(self._answers):
            raise AssertionError(f"asked {len(self.requests)} times, scripted {self.scripted}")
        answer = self._answers[len(self.requests) - 1]
        if not isinstance(answer, ChatReply | Exception):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def scripted(self) -> int:
        return len(self._answers)

    @property
    def exhausted(self) -> bool:
        """Whether everything scripted has been said."""
        return len(self.requests) == len(self._answers)


def says(text: str) -> ChatReply:
    return ChatReply(text=text, model="scripted")


def plans(*steps: tuple[str, dict[str, Any]]) -> ChatReply:
    """A whole plan as a schema-constrained reply."""
    plan = {"steps": [{"tool": tool, "args": args} for tool, args in steps]}
    return ChatReply(text=json.dumps(plan, ensure_ascii=False), model="scripted")


def calls(*pairs: tuple[str, dict[str, Any]], text: str = "") -> ChatReply:
    made = tuple(
        ToolCall(f"call_{next(_ids)}", name, args, json.dumps(args, ensure_ascii=False))
        for name, args in pairs
    )
    return ChatReply(text=text, tool_calls=made, finish="tool_calls", model="scripted")
