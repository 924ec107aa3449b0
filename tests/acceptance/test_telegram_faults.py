"""R9: Telegram refuses, fails, cuts answers, repeats and reorders; nobody is the worse for it."""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from typing import Any

import pytest

from tests.acceptance.scenes import repetitions
from tests.bench.town import Town, open_town
from tests.support.flood import TOKEN
from tests.support.scripted_model import Ask, Rule

TRIES, PEOPLE = 200, 10
PATIENCE_S = 90.0
REPEATED = "(ripetuto: forse lo hai già ricevuto)"
CUT_AFTER = "answer of a send cut"
# The bot with polls of a second, so that waiting out another program does not take half a minute.
RUN = """
from bot.telegram import poll
from bot.cli import main
poll.LONG_POLL_S = 1
raise SystemExit(main(["run"]))
"""


def token_of(ask: Ask) -> str:
    found = TOKEN.search(ask.user)
    assert found is not None
    return found[0]


RULES = [
    Rule(
        user="scrivi",
        after=0,
        calls=lambda ask: [
            (
                "write_files",
                {"path": "diario.md", "content": token_of(ask) + "\n", "mode": "append"},
            )
        ],
    ),
    Rule(user=r"g\d+-\d+", text=lambda ask: f"**Ecco** {token_of(ask)}."),
]

# What goes wrong with the answer to one person …
SENDS: dict[str, dict[str, Any]] = {
    "429 of a chat": {"code": 429, "retry_after": 1},
    "429 twice": {"code": 429, "retry_after": 1, "times": 2},
    "500": {"code": 500},
    "502 three times": {"code": 502, "times": 3},
    "send cut before": {"code": -1},
    CUT_AFTER: {"code": -1, "after": True},
    "400 of the formats": {"code": 400, "text": "can't parse entities: unexpected end"},
    "slow": {"code": 0, "delay": 3.0},
}
# … and with fetching for all of them.
FETCHES: dict[str, dict[str, Any] | None] = {
    "409": {"code": 409, "text": "terminated by other getUpdates request"},
    "409 of a webhook": {"code": 409, "text": "can't use getUpdates while webhook is active"},
    "429 of the poll": {"code": 429, "retry_after": 1},
    "5xx of the poll": {"code": 503, "times": 2},
    "poll cut": {"code": -1},
    "answer of the poll cut": {"code": -1, "after": True},
    "reordered": None,
    "repeated": None,
    "fine": None,
}  # fmt: skip


@pytest.mark.timeout(1200)
def test_faults_of_telegram_lose_and_double_nothing() -> None:
    dice = random.Random(9)
    with open_town(PEOPLE) as town:
        town.world.model.rules[:] = RULES
        town.telegram.cmd = [sys.executable, "-c", RUN]
        town.start()
        met: Counter[str] = Counter()
        fault_of: dict[str, str] = {}
        tries = repetitions(TRIES, least=PEOPLE * 3)
        kinds = list(SENDS) * tries
        fetches = list(FETCHES) * tries
        for number in range(0, tries, PEOPLE):
            fetch = fetches[number // PEOPLE]
            met[fetch] += 1
            tokens = {}
            for at, name in enumerate(town.names):
                kind = kinds[number + at]
                met[kind] += 1
                token = f"g{at}-{number}"
                fault_of[token] = kind
                verb = "scrivi" if dice.random() < 0.5 else "dimmi"
                tokens[name] = f"{verb} {token}"
                chat = town.telegram.names[name]
                town.telegram.fault("sendMessage", chat_id=chat, **SENDS[kind])
            _say_all(town, tokens, fetch)
            _wait_for(town, set(fault_of))
            for fault in town.telegram.tg.faults:
                fault["left"] = 0

        town.telegram.assert_patient()
        doubled = 0
        for at, name in enumerate(town.names):
            texts = town.telegram.texts(name)
            for token in (t for t in fault_of if t.startswith(f"g{at}-")):
                heard = [text for text in texts if re.search(rf"\b{token}\b", text)]
                marked = [text for text in heard if text.startswith(REPEATED)]
                if fault_of[token] == CUT_AFTER:
                    assert (len(heard), len(marked)) == (2, 1), (token, heard)
                    doubled += 1
                else:
                    assert len(heard) == 1, (token, fault_of[token], heard)
                    assert not marked or fault_of[token] == "send cut before", (token, heard)
            order = [t for text in texts for t in TOKEN.findall(text)]
            assert [int(n) for _, n in order] == sorted(int(n) for _, n in order)
        written = Counter(_diaries(town))
        assert set(written.values()) <= {1}, written
        states = town.world.rows("SELECT DISTINCT state FROM inbox")
        assert states == [("done",)]
        print(
            f"\nR9: {len(fault_of)} tries over {len(met)} kinds of faults, 0 lost, 0 doubled; "
            f"{doubled} answers of which nobody could know were repeated, marked; "
            f"{len(written)} changes made once"
        )


def _say_all(town: Town, said: dict[str, str], fetch: str) -> None:
    tg, names = town.telegram.tg, town.telegram.names
    if (fault := FETCHES[fetch]) is not None:
        town.telegram.fault("getUpdates", **fault)

    async def say() -> None:
        before = len(tg.updates)
        for name, text in said.items():
            await tg.user_send(names[name], names[name], text)
        new = tg.updates[before:]
        if fetch == "reordered":
            tg.updates[before:] = new[::-1]
        elif fetch == "repeated":
            tg.updates[before:] = [update for update in new for _ in range(2)]

    town.telegram._run(say())


def _wait_for(town: Town, tokens: set[str]) -> None:
    """Until all have been answered and nothing is under way any more."""
    end = time.monotonic() + PATIENCE_S
    while True:
        texts = "\n".join(text for name in town.names for text in town.telegram.texts(name))
        missing = tokens - {f"g{a}-{b}" for a, b in TOKEN.findall(texts)}
        open_rows = town.world.rows(
            "SELECT count(*) FROM outbox WHERE state IN ('pending', 'sending')"
        )
        if not missing and open_rows == [(0,)]:
            return
        assert time.monotonic() < end, f"{sorted(missing)}, {open_rows}\n{town.telegram.tail()}"
        time.sleep(0.05)


def _diaries(town: Town) -> list[str]:
    home = town.world.home / "files"
    files = [*home.glob("*/diario.md"), town.world.notes / "diario.md"]
    return [line for file in files if file.exists() for line in file.read_text().splitlines()]


@pytest.mark.parametrize("scope", ["chat", "bot"])
def test_control_lane_answers_while_others_are_refused(scope: str) -> None:
    """A 429 of one chat, or of so many that it is the bot's: who may be written to is answered."""
    with open_town(6) as town:
        town.world.model.rules[:] = [
            Rule(user="pazienza", text="Eccomi.", delay=600),
            *RULES,
        ]
        town.start()
        host, *others = town.names
        refused = others[:1] if scope == "chat" else others
        wait = 20 if scope == "chat" else 3
        for name in refused:
            chat = town.telegram.names[name]
            town.telegram.fault("sendMessage", code=429, chat_id=chat, retry_after=wait)
        town.telegram.say(host, "pazienza")
        for at, name in enumerate(refused):
            town.telegram.say(name, f"dimmi g{at}-1")
        for name in refused:
            town.telegram.expect(name, kind="error")
        asked = time.time()
        town.telegram.tap(host, "a-button-of-long-ago")
        waits = [town.telegram.expect(host, kind="answer")["t"] - asked]
        for words, answer in (("/status", "pazienza"), ("/stop", "Fermato")):
            asked = time.time()
            town.telegram.say(host, words)
            waits.append(town.telegram.expect(host, answer)["t"] - asked)
            if scope == "chat":
                assert not any("g0-1" in text for text in town.telegram.texts(refused[0]))
        for at, name in enumerate(refused):
            town.telegram.expect(name, f"Ecco g{at}-1")

        town.telegram.assert_patient()
        assert all(len(town.telegram.texts(name)) == 1 for name in refused)
        print(
            f"\n429 of the {scope}: tap {waits[0]:.2f} s, /status {waits[1]:.2f} s, "
            f"/stop {waits[2]:.2f} s"
        )
