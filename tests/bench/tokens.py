"""How long the prompt of the simplest turn is, and how much of it the next turn has in common.

Tokens are characters of messages and tools as JSON, divided by four, as for the other assistants.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from typing import Any

from core.llm.client import ChatReply, ChatRequest
from core.llm.openai_wire import OpenAiDialect
from core.messages import ChatAddress
from tests.bench.room import open_room
from tests.support.house import ask
from tests.support.models import plans, says

_GREETING = "ciao"
_OTHERS = {
    "it": (
        "che ore sono a Lisbona?",
        "leggi le ultime tre righe di diario.md",
        "leggi il pdf fattura.pdf e converti listino.xlsx in csv",
    ),
    "en": (
        "what time is it in Lisbon?",
        "read the last three lines of diary.md",
        "read the pdf invoice.pdf and convert prices.xlsx to csv",
    ),
}


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Tokens and shares by engine and language.

    `shared_prefix` is of two requests that need tools of every day, `shared_prefix_with_greeting`
    of one of them and the greeting, `shared_prefix_with_others` of one of them and a request that
    needs tools of other families: there it is what the everyday tools that stay take.
    """
    figures = {engine: asyncio.run(_engine(engine)) for engine in ("simple", "metis")}
    return {
        **figures,
        "budget_tokens": 2000,
        "peers_with_tools_tokens": "7562-14966",
        "budget_shared_prefix": 0.999,
        "best_peer_shared_prefix": 0.999,
    }


async def _engine(engine: str) -> dict[str, Any]:
    async with open_room(_greet(engine), metnos_engine=engine) as room:
        figures: dict[str, Any] = {}
        for lang, others in _OTHERS.items():
            asked = []
            # Each in a conversation of its own, so that none is told what the other was.
            for number, text in enumerate((_GREETING, *others)):
                room.requests.clear()
                place = ChatAddress("terminal", f"{lang}{number}")
                await ask(room.house, text, address=place, lang=lang)
                asked.append(room.requests[0])
            greeting, first, second, other = asked
            figures[lang] = {
                "tokens": len(_prompt(greeting)) // 4,
                "tokens_of_tools": len(_tools(greeting)) // 4,
                "tools": len(greeting.tools),
                "tokens_of_a_request": len(_prompt(first)) // 4,
                "shared_prefix": shared_prefix(first, second),
                "shared_prefix_with_greeting": shared_prefix(first, greeting),
                "shared_prefix_with_others": shared_prefix(first, other),
            }
        return figures


def _greet(engine: str) -> Any:
    reply = says("Ciao.") if engine == "simple" else plans(("final_answer", {"text": "Ciao."}))

    def script(request: ChatRequest) -> ChatReply:
        return reply

    return script


def shared_prefix(first: ChatRequest, second: ChatRequest) -> float:
    """The share of the prompt before the person's own text that both requests begin with."""
    prompts = [_prompt(first), _prompt(second)]
    own = json.dumps(first.messages[-1].content, ensure_ascii=False)
    before = prompts[0].rindex(own)
    common = len(os.path.commonprefix(prompts))  # noqa: RUF071 - characters are meant
    return round(min(common, before) / before, 5)


def _prompt(request: ChatRequest) -> str:
    """Tools, then messages, as a chat template puts them."""
    return _tools(request) + _dumped(_body(request)["messages"])


def _tools(request: ChatRequest) -> str:
    return _dumped(_body(request).get("tools", []))


def _body(request: ChatRequest) -> dict[str, Any]:
    return OpenAiDialect().body(
        request, model="m", max_tokens=1, temperature=0.0, think=None, left_out=()
    )


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
