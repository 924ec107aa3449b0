"""What is asked of a language model and what comes back, whichever wire carries it.

Knows no provider and no HTTP: `openai_wire` and `anthropic_wire` translate these words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]
Finish = Literal["stop", "tool_calls", "length", "other"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model wrote it.

    `arguments` is None when `raw`, the text of the arguments, is not one strict JSON object
    (half, duplicate keys, NaN, a list): the caller answers that with an observation.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    `tool_calls` stand on assistant messages. A `tool` message is the observation of the call
    `tool_call_id`; `name` is the tool's, for servers that want it.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is shown it; `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model.

    Lay the messages out for the server's prefix cache: what never changes first, tools in one
    fixed order, the person's text last. With `schema` the reply's text is one JSON document that
    fits it (the wire asks for it; the caller still validates). `max_tokens` and `temperature`
    None: the tier's own. `on_text` hears now and then the text so far, thinking and all, while
    the reply comes; it begins anew when the model is asked again, and must not raise.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    tool_choice: Literal["auto", "none"] = "auto"
    on_text: Callable[[str], None] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply, or of several added up. `tokens_in` counts the whole prompt, of which
    `cached` came out of the server's prefix cache."""

    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.cached + other.cached,
        )


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What the model said. Never wholly empty unless the model was: then `text` is "" and
    `tool_calls` is ().

    `text` is without `<think>`. `latency_ms` is wall time including retries. `finish` "length":
    cut by `max_tokens`. `model` is the name the server gives, else the one asked for.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    latency_ms: float = 0.0
    finish: Finish = "stop"
    model: str = ""


class ChatModel(Protocol):
    """A model endpoint, a tier with its fallbacks, or a script in tests."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Ask once, retries included, and wait for the whole reply.

        Raises `ModelUnreachable`, `ModelTimeout`, `ModelRefused` or `ModelReplyInvalid`, whose
        texts never hold a key, the prompt or the reply. Cancelling closes the connection.
        """
        ...
