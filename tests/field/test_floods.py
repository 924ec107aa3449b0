"""Kinds 3.3 to 3.5: Telegram says wait, another program polls, or polling is dead: nothing is
lost, nothing is said twice, and it can be seen."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.field.field import LONG, NOW, Field, both, open_field

REQUEST = {"it": "che ore sono?", "en": "what time is it?"}


@pytest.fixture(autouse=True)
def without_faults(field: Field) -> Iterator[None]:
    yield
    field.telegram.tg.faults.clear()


@both
def test_3_03_final_answer_waits_and_is_delivered_once(field: Field, lang: str):
    field.teach(REQUEST[lang], answer=f"tocca {lang}")
    name = field.person(lang)
    chat = field.telegram.names[name]
    field.telegram.fault("sendMessage", code=429, chat_id=chat, retry_after=2)

    field.telegram.say(name, REQUEST[lang])
    refused = field.hear(name, kind="error")
    answer = field.hear(name, f"tocca {lang}")

    assert answer["t"] - refused["t"] > 1.9
    assert field.texts(name) == [f"tocca {lang}"]
    between = field.telegram.tg.events[refused["n"] + 1 : answer["n"]]
    assert not [e for e in between if e["chat_id"] == chat and e["kind"] in {"action", "edit"}]
    field.telegram.assert_patient()


def test_3_03_edit_that_must_wait_is_not_said_as_a_new_message_instead(field: Field):
    field.teach("lavora a lungo", NOW, answer="ecco fatto", delay=3.5)
    name = field.person()
    chat = field.telegram.names[name]

    field.telegram.say(name, "lavora a lungo")
    progress = field.hear(name, kind="send")
    field.telegram.fault("editMessageText", code=429, chat_id=chat, retry_after=2)
    refused = field.hear(name, kind="error")
    end = field.hear(name, "ecco fatto")

    assert end["t"] - refused["t"] > 1.9
    assert field.texts(name) == ["ecco fatto"]
    sends = field.events(name, "send")
    assert len(sends) <= 2
    assert sends[0]["message"]["message_id"] == progress["message"]["message_id"]
    field.telegram.assert_patient()


def test_3_03_flood_in_one_chat_does_not_stall_another(field: Field):
    for who in ("uno", "due"):
        field.teach(f"saluta {who}", answer=f"ciao {who}")
    slow, quick = field.person(), field.person()
    field.telegram.fault(
        "sendMessage", code=429, chat_id=field.telegram.names[slow], retry_after=3
    )

    field.telegram.say(slow, "saluta uno")
    field.hear(slow, kind="error")
    other = field.ask(quick, "saluta due", "ciao due")
    first = field.hear(slow, "ciao uno")

    assert other["t"] < first["t"]


def test_3_03_progress_and_typing_are_dropped_first_where_messages_are_counted(field: Field):
    field.teach("fai con calma", NOW, answer="finito", delay=4.0)
    name = field.person()
    chat = field.telegram.names[name]
    field.telegram.tg.limits[chat] = (20, 60.0)
    try:
        field.ask(name, "fai con calma", "finito")
    finally:
        del field.telegram.tg.limits[chat]

    assert field.events(name, "error") == []
    assert field.texts(name) == ["finito"]
    edits = [e["t"] for e in field.events(name, "edit")]
    assert all(later - earlier > 0.5 for earlier, later in itertools.pairwise(edits))


def test_3_04_second_poller_is_waited_out_and_nothing_is_lost(field: Field):
    field.teach("prima", answer="uno")
    field.teach("dopo", answer="due")
    name = field.person()
    field.ask(name, "prima", "uno")
    before = len(field.telegram.calls("getUpdates"))
    began = time.monotonic()
    field.telegram.fault(
        "getUpdates", code=409, text="terminated by other getUpdates request", times=2
    )

    field.telegram.say(name, "dopo")
    field.hear(name, "due")
    waited = time.monotonic() - began

    # It does not fight for the poll: a few requests, each later than the one before.
    assert len(field.telegram.calls("getUpdates")) - before <= 4 + waited
    assert field.texts(name) == ["uno", "due"]


def test_3_04_webhook_left_behind_is_taken_away_and_its_updates_kept(tmp_path):
    with open_field(tmp_path, start=False) as field:
        field.telegram._run(field.telegram.tg.m_setWebhook({"url": "http://127.0.0.1:9/hook"}))
        name = field.person()
        field.teach("ci sei?", answer="eccomi")
        field.telegram.say(name, "ci sei?")
        field.telegram.tg.polls_seen -= 1  # a refused poll is not counted by the fake
        field.telegram.start_bot()

        field.hear(name, "eccomi")

        assert field.telegram.tg.webhook is None


@both
def test_3_05_poll_that_is_dead_is_told_although_the_token_answers(field: Field, lang: str):
    def polled(at: datetime) -> None:
        row = f"('telegram.last_poll', '{at.isoformat()}')"
        field.execute(f"INSERT OR REPLACE INTO kv (key, value) VALUES {row}")

    def told() -> list[tuple[str, str]]:
        # What another program did to the poll a moment ago is a finding of its own.
        field.execute("DELETE FROM kv WHERE key = 'telegram.conflict'")
        field.env["METNOS_LANG"] = lang
        found = json.loads(field.cli("doctor", "--json", check=False).stdout)["checks"]
        return [(c["state"], c["message"]) for c in found if c["check"] == "telegram"]

    polled(datetime.now(UTC))
    alive = told()
    field.telegram.fault("getUpdates", code=502, times=10_000)
    field.telegram.say(field.stranger(), "?")  # ends the poll that waits
    field.wait_for(
        lambda: "error" in field.telegram.calls("getUpdates")[-1], timeout=LONG, what="a dead poll"
    )
    polled(datetime(2020, 1, 1, tzinfo=UTC))
    dead = told()

    assert "fault" not in [state for state, _ in alive]
    assert [state for state, _ in dead].count("fault") == 1
    assert [message for state, message in dead if state == "good"]  # getMe is well
    word = {"it": "non sente Telegram", "en": "has not heard Telegram"}[lang]
    assert word in next(message for state, message in dead if state == "fault")
