"""Twenty chats with five messages each, all at once: answered, in order, and after how long."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tests.bench.figures import cpu_s, spread, times
from tests.bench.town import Town, open_town

_CHATS, _EACH = 20, 5
# Thirty messages a second over all chats; what one crowd has used up is waited for before the
# next, as Telegram's own pace is not what is measured.
_PER_SECOND = 30
_KINDS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("plain", "plain", {"budget_p95_ms": 2000, "best_peer_p95_ms": 2400}),
    ("one_tool", "clock", {}),
)


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Counts, and milliseconds from each message to its answer; `cpu_s` of the bot and of its
    executors for the whole crowd. Each crowd is of other people: a chat takes five at once."""
    chats = times(_CHATS, least=3)
    with open_town(1 + chats * len(_KINDS)) as town:
        pid, _ = town.start()
        warming, *others = town.names
        town.ask(warming, "plain warm")
        figures: dict[str, Any] = {"chats": chats, "messages_each": _EACH}
        for number, (name, kind, beside) in enumerate(_KINDS):
            people = others[number * chats : (number + 1) * chats]
            before = cpu_s(pid)
            figures[name] = _crowd(town, people, kind, **beside)
            own, children = (now - then for now, then in zip(cpu_s(pid), before, strict=True))
            figures[name] |= {"cpu_s": round(own, 2), "executors_cpu_s": round(children, 2)}
            time.sleep(chats * _EACH / _PER_SECOND)
        return figures


def _crowd(town: Town, people: Sequence[str], kind: str, **beside: Any) -> dict[str, Any]:
    mark = len(town.telegram.tg.events)
    said = [town.say(name, f"{kind} {n}") for n in range(_EACH) for name in people]
    waits = []
    for one in said:
        try:
            waits.append(town.answered_after(one))
        except TimeoutError:
            continue
    in_order = sum(_numbers(town, kind, name, mark) == list(range(_EACH)) for name in people)
    return {
        "said": len(said),
        "answered": len(waits),
        "chats_in_order": in_order,
        **spread(waits or [float("inf")], **beside),
    }


def _numbers(town: Town, kind: str, name: str, mark: int) -> list[int]:
    """The numbers of the answers in a chat, in the order in which they came."""
    chat = town.telegram.names[name]
    texts = [
        event["message"]["text"]
        for event in town.telegram.tg.events[mark:]
        if event["kind"] == "send" and event["chat_id"] == chat
    ]
    return [int(text.split(f"{kind} ")[1].rstrip(".")) for text in texts if f"{kind} " in text]
