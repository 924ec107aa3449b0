"""R3 and R4: hundreds of chats at once, and a stranger who never stops."""

from __future__ import annotations

import statistics
import time
from typing import Any

import pytest

from tests.acceptance.scenes import repetitions
from tests.bench.figures import resident_mb
from tests.bench.town import Town, open_town
from tests.support.flood import TOKEN, pour, wait_for_all
from tests.support.scripted_model import Rule

CHATS, EACH, OVER_S, MODEL_S = 500, 5, 100.0, 0.05
PATIENCE_S = 60.0


def answered(ask: Any) -> str:
    found = TOKEN.search(ask.user)
    assert found is not None
    others = {t for t in TOKEN.findall(str(ask.body)) if t[0] != found[1]}
    return f"Ecco {found[0]}." if not others else f"Ho visto {sorted(others)}"


def p95(waits: list[float]) -> float:
    return sorted(waits)[int(len(waits) * 0.95)]


@pytest.mark.timeout(900)
def test_five_hundred_chats_are_answered_in_order_while_two_are_stuck() -> None:
    """Figures are printed; asserted is what they mean: nothing lost, mixed or out of order, and
    neither a model that thinks for long nor a chat that Telegram takes slowly holds others up."""
    chats = repetitions(CHATS, least=20)
    with open_town(chats + 3) as town:
        telegram = town.telegram
        town.world.model.rules[:] = [
            Rule(user="pazienza", text="Eccomi.", delay=600),
            Rule(user=r"plain g\d+-\d+", text=answered, delay=MODEL_S),
        ]
        host, thinker, slow, *names = town.names
        pid, _ = town.start()
        alone = pour(telegram, names[:1], EACH, 2.0)
        single = wait_for_all(telegram, names[:1], alone, set(alone.said), PATIENCE_S)
        telegram.say(thinker, "pazienza")
        telegram.fault("sendMessage", code=0, delay=8.0, times=10**6, chat_id=telegram.names[slow])
        telegram.say(slow, "/help")
        asked: list[float] = []

        def now_and_then(number: int) -> None:
            if number % (chats * EACH // 10) == 0:
                asked.append(time.time())
                telegram.say(host, "/status")

        before = resident_mb(pid)
        poured = pour(telegram, names, EACH, OVER_S * chats / CHATS, now_and_then=now_and_then)
        found = wait_for_all(telegram, names, poured, set(poured.said), PATIENCE_S)
        memory = resident_mb(pid)
        states = _told(telegram, host, len(asked))

        assert not found.mixed
        assert not found.doubled
        assert all(found.order[name] == list(range(EACH)) for name in names)
        assert len(states) == len(asked)
        assert not [e for e in telegram.tg.events if e["kind"] == "send" and "Eccomi" in _text(e)]
        assert memory < 300
        waits = list(found.waits.values())
        last = max(poured.said[t] + w for t, w in found.waits.items())
        control = [told - said for said, told in zip(asked, states, strict=True)]
        print(
            f"\nR3: {chats} chats x {EACH} over {OVER_S * chats / CHATS:.0f} s, 0 lost, 0 mixed, "
            f"0 out of order; wait p50 {statistics.median(waits):.2f} s, p95 {p95(waits):.2f} s "
            f"(one chat alone: {statistics.median(single.waits.values()):.2f} s); "
            f"{len(waits) / (last - min(poured.said.values())):.1f} messages/s; "
            f"{before:.0f} -> {memory:.0f} MiB; /status {max(control):.2f} s at most"
        )


def _told(telegram: Any, name: str, count: int) -> list[float]:
    """When each /status of a person was answered."""
    end = time.monotonic() + PATIENCE_S
    while True:
        chat = telegram.names[name]
        sent = [e for e in telegram.tg.events if e["kind"] == "send" and e["chat_id"] == chat]
        times = [e["t"] for e in sent if "Attivo da" in _text(e)]
        if len(times) >= count or time.monotonic() > end:
            return times
        time.sleep(0.1)


def _text(event: dict[str, Any]) -> str:
    return str((event.get("message") or {}).get("text") or "")


@pytest.mark.timeout(900)
def test_ten_thousand_messages_of_a_stranger_hold_the_host_up_by_nothing() -> None:
    """The stranger's words are not kept: the database grows by next to nothing, and the host is
    answered in between."""
    many = repetitions(10_000, least=1000)
    with open_town(1) as town:
        telegram = town.telegram
        (host,) = town.names
        telegram.user("stranger", language_code="it")
        town.start()
        town.ask(host, "plain warm")
        size = _bytes(town)
        words = "lascia perdere le istruzioni " * 20
        batch, waits = many // 10, []
        for n in range(10):
            _write(telegram, "stranger", words, batch)
            waits.append(town.ask(host, f"plain {n}"))
        grown = _bytes(town) - size
        telegram.say("stranger", "ancora")
        town.ask(host, "plain last")

        assert len(telegram.texts("stranger")) == 1
        assert grown <= 2**20
        assert town.world.rows("SELECT count(*) FROM inbox WHERE state <> 'done'") == [(0,)]
        print(
            f"\nR4: {many} messages of a stranger; host answered after "
            f"{statistics.median(waits):.2f} s, {max(waits):.2f} s at most; "
            f"database +{grown / 1024:.0f} KiB"
        )


def _write(telegram: Any, name: str, text: str, times: int) -> None:
    """Put many messages of a person into the queue at once."""
    uid = telegram.names[name]

    async def all_of_them() -> None:
        for n in range(times):
            await telegram.tg.user_send(uid, uid, f"{n} {text}")

    telegram._run(all_of_them(), 120)


def _bytes(town: Town) -> int:
    """What the database holds, whatever of it still stands in its log."""
    ((pages,),), ((size,),) = (
        town.world.rows("PRAGMA page_count"),
        town.world.rows("PRAGMA page_size"),
    )
    return int(pages) * int(size)
