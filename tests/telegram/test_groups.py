"""Whether a message of a group is meant for the bot."""

from __future__ import annotations

from typing import Any

import pytest

from bot.telegram.groups import addressed
from tests.support.entities import auto_entities

BOT, NAME = "99", "casa_bot"
COMMANDS = frozenset({"start", "help", "stop"})
US = {"message_id": 5, "from": {"id": 99, "is_bot": True}}
ANNA = {"message_id": 6, "from": {"id": 7, "is_bot": False}}


def message(text: str, **fields: Any) -> dict[str, Any]:
    return {"message_id": 3, "text": text, "entities": auto_entities(text), **fields}


def asks(said: dict[str, Any]) -> str | None:
    found = addressed(said, bot_id=BOT, username=NAME, commands=COMMANDS)
    return None if found is None else found.get("text", found.get("caption"))


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("@casa_bot che ore sono?", "che ore sono?"),
        ("@Casa_Bot, che ore sono?", "che ore sono?"),
        ("che ore sono @casa_bot?", "che ore sono?"),
        ("ciao @casa_bot", "ciao"),
        ("dimmi @casa_bot che ore sono", "dimmi che ore sono"),
        ("👩‍👧 è tardi @casa_bot\n@casa_bot che ore sono", "👩‍👧 è tardi\nche ore sono"),
        ("@casa_bot", ""),
        ("@casa_bot /stop", "/stop"),
    ],
)
def test_message_that_names_the_bot_is_meant_for_it_without_the_name(text, request_):
    assert asks(message(text)) == request_


@pytest.mark.parametrize(
    "text",
    [
        "che ore sono",
        "@casa_bot2 che ore sono",
        "@anna chiedi a casa_bot",
        "scrivi a me@casa_bot.example",
        "/nope",
        "/stop@other_bot",
        "/stopwatch",
        "",
    ],
)
def test_other_talk_of_the_group_is_not_meant_for_the_bot(text):
    assert asks(message(text)) is None


@pytest.mark.parametrize("text", ["/stop", "/STOP@casa_bot ora", "/nope@Casa_bot", "/help a"])
def test_command_is_meant_for_the_bot_and_kept_as_it_is(text):
    assert asks(message(text)) == text


def test_reply_to_the_bot_is_meant_for_it():
    assert asks(message("e domani?", reply_to_message=US)) == "e domani?"
    assert asks(message("e domani?", reply_to_message=ANNA)) is None


def test_first_message_of_a_topic_that_the_bot_opened_is_no_reply_to_it():
    opened = {**US, "forum_topic_created": {"name": "Spesa", "icon_color": 1}}

    assert asks(message("pane", reply_to_message=opened)) is None


def test_command_of_another_bot_is_not_ours_even_as_a_reply_to_us():
    assert asks(message("/stop@other_bot", reply_to_message=US)) is None


def test_mention_without_a_user_name_counts_by_its_id():
    def named(id: int) -> dict[str, Any]:
        entity = {"type": "text_mention", "offset": 0, "length": 4, "user": {"id": id}}
        return {"message_id": 3, "text": "Casa che ore sono", "entities": [entity]}

    assert asks(named(99)) == "che ore sono"
    assert asks(named(98)) is None


def test_caption_counts_like_a_text():
    said = {
        "message_id": 3,
        "photo": [],
        "caption": "@casa_bot salva",
        "caption_entities": auto_entities("@casa_bot salva"),
    }

    assert asks(said) == "salva"


def test_bot_whose_name_is_not_known_is_never_named():
    said = message("@ ciao", entities=[{"type": "mention", "offset": 0, "length": 1}])

    assert addressed(said, bot_id=BOT, username="", commands=()) is None
    assert addressed(message("/x@"), bot_id=BOT, username="", commands=()) is None
