"""An answer shown while it grows: as drafts, once a second, and the answer in their place."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.telegram.conftest import World

WORDS = "Una **prima** frase. " * 8 + "Fine."
PLAIN = ("Una prima frase. " * 8 + "Fine.").strip()


def drafts(world: World) -> list[dict[str, Any]]:
    return [e for e in world.tg.events if e["kind"] == "draft"]


@pytest.fixture
def world(world: World) -> World:
    world.know("alice")
    return world


def test_answer_grows_as_one_draft_at_most_once_a_second_and_is_sent_whole(world):
    world.start_bot()

    world.say("alice", f"grow 3.4 {WORDS}")
    answer = world.expect("alice", "Fine")

    seen = drafts(world)
    assert 2 <= len(seen) <= 4
    assert len({e["draft_id"] for e in seen}) == 1
    assert all(b["t"] - a["t"] > 0.9 for a, b in itertools.pairwise(seen))
    assert all("**" not in e["text"] and PLAIN.startswith(e["text"]) for e in seen)
    assert answer["kind"] == "send"
    assert all(e["n"] < answer["n"] for e in seen)
    assert world.texts("alice") == [PLAIN]
    world.expect_none("alice", within=1.5, kind=("draft", "action", "send", "edit"))
    world.assert_clean()


def test_server_that_knows_no_drafts_is_asked_once_and_edits_do_instead(world):
    world.fault("sendMessageDraft", code=404, times=99)
    world.start_bot()

    world.say("alice", f"grow 4.5 {WORDS}")
    world.expect("alice", "Fine")

    assert not drafts(world)
    assert len(world.calls("sendMessageDraft")) == 1
    assert world.calls("editMessageText")
    assert world.texts("alice") == [PLAIN]
    said = [c for method in ("sendMessage", "editMessageText") for c in world.calls(method)]
    assert all("is_disabled" in str(c) for c in said)


def test_draft_that_has_no_room_is_left_out_and_the_answer_comes(world):
    world.fault("sendMessageDraft", code=429, retry_after=2)
    world.start_bot()

    world.say("alice", f"grow 1.5 {WORDS}")
    world.expect("alice", "Fine")

    assert len(world.calls("sendMessageDraft")) == 1
    assert world.texts("alice") == [PLAIN]


def test_setting_turns_growing_answers_off(world):
    world.start_bot(extra_env={"METNOS_TELEGRAM_STREAM": "0"})

    world.say("alice", f"grow 2.5 {WORDS}")
    world.expect("alice", "Fine")

    assert not world.calls("sendMessageDraft")
    assert not world.calls("editMessageText")
