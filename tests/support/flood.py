"""Many chats writing at the same time, and what became of each message."""

from __future__ import annotations

import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

TOKEN = re.compile(r"\bg(\d+)-(\d+)\b")


@dataclass
class Poured:
    """What was said, by token: when. `since` is the first event that may answer it."""

    since: int
    said: dict[str, float] = field(default_factory=dict)


@dataclass
class Heard:
    """What came of it. Waits are seconds from a message in the queue to the first answer that
    holds its token."""

    waits: dict[str, float]
    order: dict[str, list[int]]
    """The numbers of the answers of each chat, as they came."""
    mixed: list[str]
    """Tokens that were shown in somebody else's chat."""
    doubled: list[str]


def pour(
    telegram: Any,
    names: Sequence[str],
    each: int,
    over_s: float,
    text: str = "plain {token}",
    *,
    seed: int = 5,
    now_and_then: Callable[[int], None] = lambda _: None,
) -> Poured:
    """Let each of these people say `each` messages, in random order, evenly over so many seconds.

    `now_and_then` is called after each message with its number.
    """
    turns = [number for number in range(len(names)) for _ in range(each)]
    random.Random(seed).shuffle(turns)
    poured, spoken, start = (
        Poured(len(telegram.tg.events)),
        defaultdict[int, int](int),
        time.time(),
    )
    for at, number in enumerate(turns):
        time.sleep(max(0.0, start + at * over_s / len(turns) - time.time()))
        token = f"g{number}-{spoken[number]}"
        spoken[number] += 1
        poured.said[token] = time.time()
        telegram.say(names[number], text.format(token=token))
        now_and_then(at)
    return poured


def heard(telegram: Any, names: Sequence[str], poured: Poured) -> Heard:
    """What was answered so far."""
    chats = {telegram.names[name]: number for number, name in enumerate(names)}
    found = Heard({}, defaultdict(list), [], [])
    for event in list(telegram.tg.events[poured.since :]):
        if event["kind"] not in {"send", "edit"} or event["chat_id"] not in chats:
            continue
        for owner, number in TOKEN.findall(event["message"].get("text") or ""):
            token = f"g{owner}-{number}"
            if token not in poured.said:
                continue
            if int(owner) != chats[event["chat_id"]]:
                found.mixed.append(token)
            elif token in found.waits:
                found.doubled.append(token)
            else:
                found.waits[token] = event["t"] - poured.said[token]
                found.order[names[int(owner)]].append(int(number))
    return found


def wait_for_all(
    telegram: Any, names: Sequence[str], poured: Poured, tokens: set[str], patience_s: float
) -> Heard:
    """Wait until all these are answered, as long as answers go on coming."""
    came, at = -1, time.monotonic()
    while True:
        found = heard(telegram, names, poured)
        if tokens <= found.waits.keys():
            return found
        if len(found.waits) > came:
            came, at = len(found.waits), time.monotonic()
        if time.monotonic() > at + patience_s:
            missing = sorted(tokens - found.waits.keys())
            raise AssertionError(f"{len(missing)} not answered: {missing[:10]}\n{telegram.tail()}")
        time.sleep(0.25)
