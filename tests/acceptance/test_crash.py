"""Acceptance 3: SIGKILL at bad moments; every message is answered, in order, once."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.messages import Role
from tests.acceptance.scenes import repetitions, turn_lines
from tests.acceptance.town import LONG, Town, open_town
from tests.support.executors import home_settings, manifest_toml, signed_executor
from tests.support.scripted_model import Ask, Rule

REPEATED = "(ripetuto: forse lo hai già ricevuto)"
WORDS = ("lento", "secondo", "terzo", "quarto")
SLOW_S = 1.5


def reading(word: str, *, delay: float = 0.0) -> list[Rule]:
    """The model reads the file of that name, then says its text."""

    def told(ask: Ask) -> str:
        return f"{word}: " + ("letto" if f"testo di {word}" in ask.last_result else "niente")

    step = ("read_files", {"paths": [f"~/notes/{word}.md"]})
    return [
        Rule(user=f"leggi {word}", after=0, calls=[step], delay=delay),
        Rule(user=f"leggi {word}", after=1, text=told, delay=delay),
    ]


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    rules = [rule for word in WORDS for rule in reading(word, delay=SLOW_S * (word == "lento"))]
    rules += [Rule(user=r"dimmi (\w+)", text=lambda ask: ask.user.split()[1])]
    with open_town(tmp_path, rules) as town:
        for word in WORDS:
            (town.notes / f"{word}.md").write_text(f"testo di {word}\n", encoding="utf-8")
        town.telegram.start_bot()
        town.pair_all(["anna"], Role.HOST)
        town.pair_all(["carla"], Role.GUEST)
        yield town


REVERSIBLE = 'reversible = true\nundo = "restore_kept"\n'
# A change that takes long: it is killed after it has begun to be real.
STARTS_AND_WAITS = """
import time

PATH = {path!r}


def run(call):
    with open(PATH, "a") as file:
        file.write("riga\\n")
    time.sleep(8)
    return {{"ok": True, "entries": [{{"ok": True, "path": PATH}}]}}


def preview(call):
    return {{"targets": [PATH], "count": 1}}
"""


def say_four(town: Town) -> list[str]:
    for word in WORDS:
        town.telegram.say("anna", f"leggi {word}")
    return [f"{word}: letto" for word in WORDS]


def settle(town: Town, last: str, *, timeout: float = LONG) -> None:
    town.telegram.expect("anna", f"{last}$", timeout=timeout)
    town.settle()
    time.sleep(0.3)


def bare(texts: list[str]) -> list[str]:
    return [text.removeprefix(f"{REPEATED}\n\n") for text in texts]


def assert_whole(town: Town, expected: list[str], *, turns: int) -> None:
    """All answered, in order, once; the database sound, a log line each, other chats silent."""
    assert town.texts("anna")[1:] == expected
    assert len(town.texts("carla")) == 1
    assert not any(town.open_rows().values()), town.open_rows()
    assert town.is_sound()
    lines = [line for line in turn_lines(town.home) if line["channel"] == "telegram"]
    assert len(lines) == turns
    assert len({line["turn_id"] for line in lines}) == turns
    assert town.rows("SELECT count(*) FROM outbox WHERE state = 'dead'") == [(0,)]


# Seconds after the four were said: before and after the batch is stored, in the first and in the
# second model call of the slow turn, and shortly before its end.
@pytest.mark.parametrize(
    "after_s",
    [0.0, 0.3, 1.7, *(pytest.param(s, marks=pytest.mark.soak) for s in (0.02, 0.1, 1.0, 2.9))],
)
def test_kill_while_a_turn_runs_and_three_wait_answers_all_four_once(
    town: Town, after_s: float
) -> None:
    expected = say_four(town)
    time.sleep(after_s)

    town.restart()

    settle(town, expected[-1])
    assert_whole(town, expected, turns=4)


def test_kill_between_close_and_send_says_it_once_or_marks_it(town: Town) -> None:
    """The answer is committed and on its way: said again only with the mark that it may be."""
    town.telegram.fault("sendMessage", code=0, delay=4, times=1)
    town.telegram.say("anna", "leggi secondo")
    town.telegram.say("anna", "leggi terzo")
    town.wait_for(lambda: town.telegram.calls("sendMessage")[2:], timeout=LONG, what="a send")

    town.restart()

    settle(town, "terzo: letto")
    assert_whole(town, [f"{REPEATED}\n\nsecondo: letto", "terzo: letto"], turns=2)


def test_kill_before_a_send_was_taken_on_does_not_mark_it(town: Town) -> None:
    """While Telegram asks to wait nothing is on its way, so nothing may be there already."""
    town.telegram.fault("sendMessage", code=429, retry_after=3, times=1)
    for word in ("uno", "due", "tre"):
        town.telegram.say("anna", f"dimmi {word}")
    town.wait_for(lambda: len(turn_lines(town.home)) == 3, timeout=LONG, what="three turns")
    time.sleep(0.3)

    town.restart()

    settle(town, "tre")
    assert_whole(town, ["uno", "due", "tre"], turns=3)


def test_three_crashes_within_seconds_lose_and_double_nothing(town: Town) -> None:
    expected = say_four(town)
    for n in range(3):
        time.sleep(0.5)
        town.restart()
        town.telegram.say("anna", f"dimmi extra{n}")
        expected.append(f"extra{n}")

    settle(town, "extra2")
    assert_whole(town, expected, turns=7)


def test_messages_of_a_stopped_bot_are_answered_after_the_start(town: Town) -> None:
    town.telegram.stop_bot()
    expected = say_four(town)

    town.telegram.start_bot()

    settle(town, expected[-1])
    assert_whole(town, expected, turns=4)


def random_kills(town: Town, kills: int, seed: int) -> int:
    """Kill at random moments while messages keep coming; how many answers were marked repeated."""
    rng = random.Random(seed)
    said: list[str] = []
    for n in range(kills):
        for k in range(rng.randint(1, 3)):
            said.append(f"m{n}x{k}")
            town.telegram.say("anna", f"dimmi {said[-1]}")
        time.sleep(rng.uniform(0, 0.5))
        town.restart()
    settle(town, said[-1], timeout=LONG + len(said))

    texts = town.texts("anna")[1:]
    marked = sum(text.startswith(REPEATED) for text in texts)
    once = list(dict.fromkeys(bare(texts)))
    assert once == said
    # A message stands there twice only when the second says so.
    assert len(texts) == len(set(texts))
    assert len(texts) - len(said) <= marked
    assert_whole(town, texts, turns=len(said))
    return marked


def test_random_kills_answer_every_message(town: Town) -> None:
    kills = repetitions(20, least=4)
    marked = random_kills(town, kills, seed=1)
    print(f"\ncrash: {kills} SIGKILLs, 0 lost, 0 doubled, {marked} marked as repeated")


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_many_random_kills_answer_every_message(town: Town, seed: int) -> None:
    kills = repetitions(200, least=40)
    marked = random_kills(town, kills, seed=seed)
    print(f"\ncrash, seed {seed}: {kills} SIGKILLs, 0 lost, 0 doubled, {marked} marked")


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Town]:
    """A model that writes two files, and thinks long before the second and before the answer."""

    def write(name: str) -> list[tuple[str, dict[str, Any]]]:
        return [
            ("write_files", {"path": f"~/notes/{name}", "content": "riga\n", "mode": "append"})
        ]

    rules = [
        Rule(user="scrivi", after=0, calls=write("uno.md")),
        Rule(user="scrivi", after=1, calls=write("due.md"), delay=4),
        Rule(user="scrivi", after=2, text="Ho scritto due file."),
        Rule(user="dimmi", text="eccomi"),
    ]
    with open_town(tmp_path, rules) as town:
        town.telegram.start_bot()
        town.pair_all(["anna"], Role.HOST)
        yield town


def test_crash_after_a_change_is_told_and_the_change_not_made_again(writer: Town) -> None:
    writer.telegram.say("anna", "scrivi riga in uno.md e in due.md")
    one = writer.notes / "uno.md"
    writer.wait_for(one.exists, timeout=LONG, what="the first file")
    writer.wait_for(
        lambda: writer.rows("SELECT state FROM effects") == [("done",)], what="its journal"
    )

    writer.restart()

    writer.telegram.expect("anna", "interrotto", timeout=LONG)
    writer.telegram.say("anna", "dimmi se ci sei")
    writer.telegram.expect("anna", "eccomi", timeout=LONG)
    told = writer.texts("anna")[1]
    assert "uno.md" in told
    assert "Scritto" in told
    assert "Non ho cambiato nulla" not in told
    assert one.read_text(encoding="utf-8") == "riga\n"
    assert not (writer.notes / "due.md").exists()
    line = turn_lines(writer.home)[0]
    assert (line["final_kind"], line["error_class"]) == ("error", "interrupted")
    assert line["effect_counts"]["mutations"] == 1
    assert len(writer.texts("anna")) == 3


def test_crash_inside_a_change_is_told_as_unknown_and_not_run_again(writer: Town) -> None:
    """The journal says started and nothing more: said honestly, settled, never repeated."""
    target = writer.notes / "inside.md"
    manifest = manifest_toml("write_texts", effect="checkable", top=REVERSIBLE, right="fs:write")
    code = STARTS_AND_WAITS.format(path=str(target))
    signed_executor(home_settings(writer.tmp), manifest, code)
    writer.model.rules.insert(0, Rule(user="prova", after=0, calls=[("write_texts", {})]))
    writer.telegram.say("anna", "prova a scrivere inside.md")
    writer.wait_for(target.exists, timeout=LONG, what="the change")
    assert writer.rows("SELECT state FROM effects") == [("started",)]

    writer.restart()

    writer.telegram.expect("anna", "Non so se", timeout=LONG)
    time.sleep(0.5)
    assert "inside.md" in writer.texts("anna")[1]
    assert "Non ho cambiato nulla" not in writer.texts("anna")[1]
    assert target.read_text(encoding="utf-8") == "riga\n"
    assert writer.rows("SELECT state FROM effects") == [("unknown",)]
    assert turn_lines(writer.home)[0]["steps"][0]["effects"] == "unknown"
    assert len(writer.model.asked) == 1
