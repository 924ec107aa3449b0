"""Many people at once: order within a chat, nobody waits for another; the figures are printed."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

PEOPLE = [f"user{n:02}" for n in range(20)]


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(x.split()[1]) / 1024 for x in status.splitlines() if x.startswith("VmRSS"))


def test_twenty_chats_with_five_messages_each_are_answered_in_order(world):
    world.know(*PEOPLE)
    pid = world.start_bot()

    said = {}
    for n in range(5):
        for name in PEOPLE:
            said[name, n] = time.time()
            world.say(name, f"echo {name} {n}")
    for name in PEOPLE:
        world.expect(name, f"^{name} 4$")

    heard = {
        (e["chat_id"], e["message"]["text"]): e["t"]
        for e in world.tg.events
        if e["kind"] == "send"
    }
    waits = [heard[world.names[name], f"{name} {n}"] - t for (name, n), t in said.items()]
    for name in PEOPLE:
        assert world.texts(name) == [f"{name} {n}" for n in range(5)]
    print(
        f"\n20x5: p50 {statistics.median(waits):.2f} s, p95 {quantile(waits, 0.95):.2f} s, "
        f"resident {resident_mb(pid):.0f} MB"
    )
    world.assert_clean()


def test_slow_turns_of_some_do_not_hold_the_others(world):
    world.know(*PEOPLE)
    world.start_bot()
    for name in PEOPLE[:15]:
        world.say(name, "slow 30 tardi")

    world.say(PEOPLE[-1], "echo subito")
    world.expect(PEOPLE[-1], "^subito$")

    assert not any("tardi" in text for name in PEOPLE for text in world.texts(name))


def test_flood_of_a_stranger_is_not_stored_and_does_not_hold_the_host(world):
    world.know("alice")
    world.user("mallory", language_code="en")
    world.start_bot()

    for n in range(600):
        world.say("mallory", f"spam {n} " + "x" * 200)
        if n % 3 == 0:
            world.say("mallory", f"/pair {n}")
    asked = time.time()
    world.say("alice", "echo eccomi")
    answer = world.expect("alice", "^eccomi$")

    assert answer["t"] - asked < 20
    world._wait(lambda: not world.tg.updates, 45, "end of the flood")
    assert len([t for t in world.texts("mallory") if "private" in t]) == 1
    (rows,) = world.rows("SELECT count(*), coalesce(sum(length(body)), 0) FROM inbox")
    # Tries that came before the sender was locked are stored, those after are not.
    assert rows[0] < 150
    assert rows[1] < 100_000
    assert not world.rows("SELECT 1 FROM inbox WHERE body LIKE '%spam%'")


def test_latency_of_a_plain_answer(world):
    """Prints the figures; the bar is looked at by people, a machine under load proves nothing."""
    world.know("alice", "bob", "carl")
    started = time.time()
    pid = world.start_bot()
    start_s = time.time() - started
    names = ["alice", "bob", "carl"]

    waits = []
    for n in range(30):
        name = names[n % 3]
        asked = time.time()
        world.say(name, f"echo m{n}")
        waits.append((world.expect(name, f"^m{n}$")["t"] - asked) * 1000)
        time.sleep(0.25)

    print(
        f"\nupdate in → reply out: first {waits[0]:.0f} ms, p50 {statistics.median(waits):.0f} ms,"
        f" p95 {quantile(waits, 0.95):.0f} ms; start to poll {start_s:.2f} s;"
        f" resident {resident_mb(pid):.0f} MB"
    )
    assert len(waits) == 30
