"""Every kind of content that a message can hold, by the library's list of the Bot API: what it is
to us. A kind that this table does not know fails a test."""

from __future__ import annotations

from typing import Any

import pytest
from telegram import Message
from telegram.constants import MessageType

from bot.telegram.content import _SERVICE as SERVICE
from bot.telegram.content import Content, content_of

CHAT = {"id": 7, "type": "private", "first_name": "Anna"}
ANNA = {"id": 7, "is_bot": False, "first_name": "Anna"}
BOT = {"id": 1, "is_bot": True, "first_name": "B"}
FILE = {"file_id": "f", "file_unique_id": "u", "file_size": 9}
SIZED = {**FILE, "width": 1, "height": 1}
POLL = {
    "id": "1",
    "question": "Pizza?",
    "options": [{"text": "sì", "voter_count": 0, "persistent_id": "1"}],
    "total_voter_count": 0,
    "is_closed": False,
    "is_anonymous": True,
    "type": "regular",
    "allows_multiple_answers": False,
    "allows_revoting": True,
    "members_only": False,
}
PLACE = {"latitude": 45.0, "longitude": 7.6}
STICKER = {**SIZED, "type": "regular", "is_animated": False, "is_video": False, "emoji": "👍"}
MOVING = {**SIZED, "duration": 1}


def message(**content: Any) -> Message:
    raw = {"message_id": 3, "date": 1_790_000_000, "chat": CHAT, "from": ANNA, **content}
    made = Message.de_json(raw, None)
    assert made is not None
    return made


def held(**content: Any) -> Content:
    return content_of(message(**content), bot_id="1")


# What each kind is: its own words, quoted words, the kind of file.
HELD: dict[str, tuple[dict[str, Any], str, str | None, str | None]] = {
    "text": ({"text": "ciao"}, "ciao", None, None),
    "photo": ({"photo": [SIZED], "caption": "c"}, "c", None, "photo"),
    "video": ({"video": MOVING}, "", None, "video"),
    "animation": ({"animation": MOVING, "document": FILE}, "", None, "animation"),
    "audio": ({"audio": {**FILE, "duration": 1}}, "", None, "audio"),
    "voice": ({"voice": {**FILE, "duration": 1}}, "", None, "voice"),
    "video_note": ({"video_note": {**FILE, "length": 1, "duration": 1}}, "", None, "video_note"),
    "document": ({"document": FILE}, "", None, "document"),
    "sticker": ({"sticker": STICKER}, "👍", None, "sticker"),
    "contact": (
        {"contact": {"phone_number": "+39333", "first_name": "Mario"}},
        "",
        "👤 Mario, +39333",
        None,
    ),
    "poll": ({"poll": POLL}, "", "📊 Pizza?\n- sì", None),
    "location": ({"location": PLACE}, "", "📍 45.0, 7.6", None),
    "venue": (
        {"venue": {"location": PLACE, "title": "Bar", "address": "via Roma"}, "location": PLACE},
        "",
        "📍 Bar, via Roma (45.0, 7.6)",
        None,
    ),
}
# What gets a word, because a bot cannot have it or nothing is made of it.
WORD: dict[str, tuple[dict[str, Any], str]] = {
    "dice": ({"dice": {"emoji": "🎲", "value": 4}}, "telegram.dice"),
    "game": (
        {"game": {"title": "g", "description": "d", "photo": [SIZED]}},
        "telegram.unsupported.other",
    ),
    "story": ({"story": {"chat": CHAT, "id": 1}}, "telegram.unsupported.other"),
    "invoice": (
        {
            "invoice": {
                "title": "t",
                "description": "d",
                "start_parameter": "s",
                "currency": "EUR",
                "total_amount": 1,
            }
        },
        "telegram.unsupported.other",
    ),
    "paid_media": (
        {"paid_media": {"star_count": 1, "paid_media": []}},
        "telegram.unsupported.other",
    ),
    "checklist": (
        {"checklist": {"title": "t", "tasks": [{"id": 1, "text": "latte"}]}},
        "telegram.unsupported.other",
    ),
    "giveaway": (
        {
            "giveaway": {
                "chats": [{"id": -1, "type": "channel", "title": "c"}],
                "winners_selection_date": 1,
                "winner_count": 1,
            }
        },
        "telegram.unsupported.other",
    ),
    "giveaway_winners": (
        {
            "giveaway_winners": {
                "chat": {"id": -1, "type": "channel", "title": "c"},
                "giveaway_message_id": 1,
                "winners_selection_date": 1,
                "winner_count": 1,
                "winners": [ANNA],
            }
        },
        "telegram.unsupported.other",
    ),
    "passport_data": (
        {
            "passport_data": {
                "data": [],
                "credentials": {"data": "d", "hash": "h", "secret": "s"},
            }
        },
        "telegram.unsupported.other",
    ),
}
# Said of a message, not held by it.
ABOUT = {"business_connection_id", "effect_id", "reply_to_story", "sender_boost_count",
         "sender_business_bot", "suggested_post_info"}  # fmt: skip
# Comes with the photo that it is, for clients and bots that do not know it.
LIKE_A_PHOTO = {"live_photo"}


def test_every_kind_of_the_bot_api_has_an_answer() -> None:
    known = {*HELD, *WORD, *SERVICE, *ABOUT, *LIKE_A_PHOTO}
    kinds = {kind.value for kind in MessageType} | {"contact", "poll", "dice"}

    assert kinds - known == set()


@pytest.mark.parametrize("kind", HELD)
def test_kind_is_words_or_data_or_a_file(kind: str) -> None:
    raw, text, quoted, media = HELD[kind]
    content = held(**raw)

    assert (content.text, content.quoted) == (text, quoted)
    assert [one.kind for one in content.media] == ([media] if media else [])
    assert content.word is None


@pytest.mark.parametrize("kind", WORD)
def test_kind_gets_a_word(kind: str) -> None:
    raw, key = WORD[kind]
    content = held(**raw)

    assert content.word == key
    assert not content.media


@pytest.mark.parametrize(
    "raw",
    [
        {"group_chat_created": True},
        {"new_chat_title": "x"},
        {"left_chat_member": ANNA},
        {"pinned_message": {"message_id": 1, "date": 1, "chat": CHAT, "text": "x"}},
        {"forum_topic_created": {"name": "t", "icon_color": 1}},
        {"write_access_allowed": {}},
    ],
    ids=lambda raw: next(iter(raw)),
)
def test_line_about_a_chat_says_nothing(raw: dict[str, Any]) -> None:
    assert held(**raw).is_empty


def test_kind_that_is_newer_than_the_library_gets_a_word() -> None:
    assert held(rich_message={"blocks": []}).word == "telegram.unsupported.other"


@pytest.mark.parametrize("kind", [kind for kind in HELD if kind not in {"sticker"}])
def test_whatever_is_forwarded_holds_no_word_of_the_person(kind: str) -> None:
    origin = {"type": "user", "sender_user": {**ANNA, "first_name": "Luca"}, "date": 1}
    raw, text, quoted, media = HELD[kind]
    content = held(**raw, forward_origin=origin)

    assert content.text == ""
    words = quoted or text
    assert content.quoted == (f"Luca: {words}" if words else None)
    assert all(one.is_quoted for one in content.media)
    assert len(content.media) == (1 if media else 0)


@pytest.mark.parametrize(
    ("sender", "extra", "kind"),
    [
        (BOT, {}, "told"),
        (ANNA, {}, "said"),
        ({**ANNA, "id": 8}, {}, "quoted"),
        ({**BOT, "id": 2}, {}, "quoted"),
        (ANNA, {"via_bot": {**BOT, "id": 2}}, "quoted"),
        (BOT, {"via_bot": {**BOT, "id": 2}}, "quoted"),
        (
            ANNA,
            {"forward_origin": {"type": "hidden_user", "sender_user_name": "X", "date": 1}},
            "quoted",
        ),
        (
            BOT,
            {"forward_origin": {"type": "hidden_user", "sender_user_name": "X", "date": 1}},
            "quoted",
        ),
    ],
)
def test_reply_is_to_the_bot_to_oneself_or_to_others(
    sender: dict[str, Any], extra: dict[str, Any], kind: str
) -> None:
    replied = {"message_id": 2, "date": 1, "chat": CHAT, "from": sender, "text": "prima", **extra}
    content = held(text="e poi?", reply_to_message=replied)

    found = {name: getattr(content, name) for name in ("told", "said", "quoted")}
    assert {name for name, words in found.items() if words} == {kind}
    assert content.text == "e poi?"


def test_reply_with_a_quote_speaks_of_the_quote_alone() -> None:
    replied = {"message_id": 2, "date": 1, "chat": CHAT, "from": BOT, "text": "uno due tre"}
    quote = {"text": "due", "position": 4, "is_manual": True}
    content = held(text="e?", reply_to_message=replied, quote=quote)

    assert content.told == "due"


def test_quote_from_another_chat_is_data() -> None:
    content = held(text="e?", quote={"text": "due", "position": 0, "is_manual": True})

    assert (content.text, content.quoted) == ("e?", "due")


def test_reply_to_a_file_means_that_file() -> None:
    replied = {"message_id": 2, "date": 1, "chat": CHAT, "from": ANNA, "document": FILE}
    content = held(text="riassumi", reply_to_message=replied)

    assert [(one.kind, one.is_quoted) for one in content.media] == [("document", True)]
