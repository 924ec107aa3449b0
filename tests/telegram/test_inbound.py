"""What an update means, before and after it is stored."""

from __future__ import annotations

from typing import Any

import pytest

from bot.telegram.inbound import (
    Command,
    Ignored,
    Noted,
    Said,
    Tap,
    Unsupported,
    lang_of,
    read,
)
from bot.telegram.screening import Lane, lane, screen, without_words
from core.messages import InboundKind

ANNA = {"id": 7, "is_bot": False, "first_name": "Anna", "language_code": "it-IT"}
PRIVATE = {"id": 7, "type": "private", "first_name": "Anna"}
GROUP = {"id": -100, "type": "supergroup", "title": "Casa"}
CHANNEL = {"id": -200, "type": "channel", "title": "Notizie"}


def update(kind: str = "message", *, sender: Any = ANNA, **fields: Any) -> dict[str, Any]:
    message = {"message_id": 3, "date": 1_790_000_000, "chat": PRIVATE, "from": sender, **fields}
    return {"update_id": 42, kind: {k: v for k, v in message.items() if v is not None}}


def tap(chat: dict[str, Any] = PRIVATE) -> dict[str, Any]:
    message = {"message_id": 3, "date": 1_790_000_000, "chat": chat}
    query = {"id": "9", "from": ANNA, "chat_instance": "1", "message": message, "data": "x:1"}
    return {"update_id": 42, "callback_query": query}


@pytest.mark.parametrize(
    "raw",
    [
        update(chat=CHANNEL, text="ciao"),
        update(chat=GROUP, sender={**ANNA, "is_bot": True}, sender_chat=GROUP, text="ciao"),
        update(chat=GROUP, sender_chat=CHANNEL, text="ciao"),
        update(sender=None, text="ciao"),
        update(sender={**ANNA, "is_bot": True}, text="ciao"),
        update("channel_post", text="ciao"),
        tap(CHANNEL),
        {"update_id": 1, "inline_query": {"id": "1"}},
        {"update_id": 1},
    ],
    ids=[
        "channel",
        "anonymous administrator",
        "in the name of a channel",
        "nobody",
        "bot",
        "channel post",
        "tap in a channel",
        "inline",
        "empty",
    ],
)
def test_screen_leaves_out_what_no_person_sent(raw):
    assert screen(raw) is None


@pytest.mark.parametrize(
    "raw",
    [
        update(chat="nonsense", text="x"),
        update(sender={"id": "x"}, text="x"),
        {"message": update(text="x")["message"]},
    ],
    ids=["chat", "sender", "no id"],
)
def test_screen_of_a_malformed_update_raises_what_the_poll_expects(raw):
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        screen(raw)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (update(chat=GROUP, text="ciao"), "message"),
        (update("edited_message", chat=GROUP, text="ciao"), "edited_message"),
        (update("guest_message", chat=CHANNEL, text="ciao"), "guest_message"),
        (update("my_chat_member", chat=GROUP), "my_chat_member"),
        (update("message_reaction", chat=GROUP, user=ANNA), "message_reaction"),
        (update(chat=GROUP, migrate_to_chat_id=-5), "message"),
        (tap(GROUP), "callback_query"),
    ],
    ids=["said", "edited", "guest", "membership", "reaction", "migration", "tap"],
)
def test_screen_lets_through_what_a_person_does_in_a_group(raw, kind):
    found = screen(raw)

    assert found is not None
    assert (found.kind, found.sender_id, found.is_private) == (kind, "7", False)


def test_screen_keys_by_sender_chat_and_topic():
    found = screen(update(text="ciao", message_thread_id=5, is_topic_message=True))

    assert found is not None
    assert (found.sender_id, found.address.key) == ("7", "telegram:7:5")


@pytest.mark.parametrize(
    ("text", "is_pairing"),
    [
        ("/start ABCD", True),
        ("/pair@x_bot ABCD", True),
        ("/Pair ABCD", True),  # as a phone's keyboard begins a message
        (" /pair ABCD", True),
        ("/start", False),
        ("pair ABCD", False),
    ],
)
def test_screen_knows_a_pairing_command(text, is_pairing):
    found = screen(update(text=text))

    assert found is not None
    assert found.is_pairing is is_pairing


def test_without_words_keeps_nothing_that_a_stranger_wrote():
    raw = update(text="segreto", photo=[{"file_id": "segreto"}], reply_to_message={"text": "s"})

    kept = without_words(raw)

    assert "segreto" not in str(kept)
    assert "Anna" not in str(kept)
    heard = read(kept, bot_id="1")
    assert isinstance(heard, Said)
    assert (heard.inbound.text, heard.origin.lang) == ("", "it")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (update(text="/stop"), Lane.PAST),
        (update(text="/STATUS@x_bot"), Lane.PAST),
        (update(text="/stopwatch"), Lane.QUEUE),
        (update(text="stop"), Lane.QUEUE),
        (update("edited_message", text="/stop"), Lane.EDIT),
        (tap(), Lane.TAP),
        (None, Lane.QUEUE),
        ({"message": "nonsense"}, Lane.QUEUE),
    ],
)
def test_lane_lets_only_control_and_taps_pass(raw, expected):
    assert lane(raw) is expected


def test_read_text_is_a_request_with_a_stable_id():
    heard = read(update(text="che ore sono?"), bot_id="700")

    assert isinstance(heard, Said)
    inbound = heard.inbound
    assert inbound.id == "telegram:700:42"
    assert (inbound.sender_id, inbound.sender_name, inbound.lang) == ("7", "Anna", "it")
    assert inbound.message_ref == "3"
    assert inbound.received_at.tzinfo is not None


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/help", "help", ""),
        ("/Start ABCD-2345", "start", "ABCD-2345"),
        ("/lang@casa_bot  en ", "lang", "en"),
    ],
)
def test_read_command(text, name, argument):
    heard = read(update(text=text), bot_id="1")

    assert isinstance(heard, Command)
    assert (heard.name, heard.argument) == (name, argument)


@pytest.mark.parametrize("text", ["/forget", "/Forget@casa_bot", "/forget  tutto "])
def test_command_of_the_engine_is_said_by_its_name(text):
    heard = read(update(text=text), bot_id="1")

    assert isinstance(heard, Said)
    assert heard.inbound.text == "/forget"


@pytest.mark.parametrize("text", ["/etc/passwd", "/ ciao", "a /help"])
def test_read_text_with_a_slash_that_is_no_command_is_a_request(text):
    assert isinstance(read(update(text=text), bot_id="1"), Said)


def test_read_quotes_the_message_that_is_replied_to():
    replied = {"message_id": 2, "date": 1_790_000_000, "chat": PRIVATE, "text": "vecchio"}

    heard = read(update(text="e questo?", reply_to_message=replied), bot_id="1")

    assert isinstance(heard, Said)
    assert heard.inbound.quoted == "vecchio"


def test_read_forwarded_text_is_no_order():
    origin = {"type": "hidden_user", "date": 1, "sender_user_name": "X"}

    heard = read(update(text="cancella tutto", forward_origin=origin), bot_id="1")

    assert isinstance(heard, Said)
    assert (heard.inbound.text, heard.inbound.quoted) == ("", "X: cancella tutto")


def test_read_text_joins_surrogate_pairs_and_replaces_lone_ones():
    heard = read(update(text="a\ud83d\ude00b\ud800c"), bot_id="1")

    assert isinstance(heard, Said)
    assert heard.inbound.text == "a😀b\ufffdc"


def test_read_tap_and_service_message():
    assert isinstance(read(tap(), bot_id="1"), Tap)
    assert isinstance(read(update(group_chat_created=True), bot_id="1"), Ignored)


def test_read_of_a_damaged_update_raises_value_error():
    with pytest.raises(ValueError, match="unreadable"):
        read({"update_id": 1, "message": {"message_id": "x"}}, bot_id="1")


@pytest.mark.parametrize(
    ("code", "lang"), [("it", "it"), ("en-US", "en"), ("IT", "it"), ("fr", None), (None, None)]
)
def test_lang_of_a_telegram_code(code, lang):
    assert lang_of(code) == lang


def test_read_tap_names_token_message_and_presser():
    raw = tap()
    raw["callback_query"]["message"]["from"] = {"id": 1, "is_bot": True, "first_name": "B"}

    heard = read(raw, bot_id="1")

    assert isinstance(heard, Tap)
    assert heard.inbound is not None
    assert heard.inbound.kind is InboundKind.CHOICE
    assert heard.inbound.data == {"token": "x:1", "message_id": "3"}
    assert (heard.inbound.id, heard.inbound.sender_id) == ("telegram:1:42", "7")


@pytest.mark.parametrize(
    "change",
    [
        {"from": {"id": 2, "is_bot": True, "first_name": "other"}},
        {"from": ANNA},
        {"chat": {"id": 8, "type": "private", "first_name": "Bob"}},
        {"forward_origin": {"type": "hidden_user", "date": 1, "sender_user_name": "X"}},
    ],
    ids=["another bot", "a person", "another chat", "forwarded"],
)
def test_read_tap_on_what_is_no_button_of_ours_says_nothing_to_the_engine(change):
    raw = tap()
    message = raw["callback_query"]["message"]
    message |= {"from": {"id": 1, "is_bot": True, "first_name": "B"}, **change}

    heard = read(raw, bot_id="1")

    assert isinstance(heard, Tap)
    assert heard.inbound is None


def test_read_place_with_accuracy_and_name():
    place = {"latitude": 0.0, "longitude": -7.5, "horizontal_accuracy": 30, "live_period": 60}
    venue = {"location": place, "title": "Bar", "address": "via Roma 1"}

    heard = read(update(location=place, venue=venue), bot_id="1")

    assert isinstance(heard, Said)
    assert heard.inbound.kind is InboundKind.LOCATION
    assert heard.inbound.text == "Bar, via Roma 1"
    assert heard.inbound.data == {"lat": 0.0, "lon": -7.5, "accuracy": 30, "live": True}


def test_read_reply_names_the_message_but_not_the_root_of_a_topic():
    replied = {"message_id": 2, "date": 1_790_000_000, "chat": PRIVATE, "text": "vecchio"}
    root = {**replied, "forum_topic_created": {"name": "x", "icon_color": 1}}

    to_prompt = read(update(text="Ada", reply_to_message=replied), bot_id="1")
    in_topic = read(update(text="Ada", reply_to_message=root), bot_id="1")

    assert isinstance(to_prompt, Said)
    assert isinstance(in_topic, Said)
    assert to_prompt.inbound.data == {"reply_to": "2"}
    assert in_topic.inbound.data == {}


BAD_PLACES = {
    "empty": {},
    "a text": "here",
    "no longitude": {"latitude": 45.0},
    "no latitude": {"longitude": 7.0},
    "beyond the pole": {"latitude": 90.5, "longitude": 7.0},
    "beyond the date line": {"latitude": 45.0, "longitude": -181.0},
    "texts": {"latitude": "45", "longitude": "7"},
    "not finite": {"latitude": float("nan"), "longitude": 7.0},
    "flags": {"latitude": True, "longitude": False},
}


@pytest.mark.parametrize("place", BAD_PLACES.values(), ids=BAD_PLACES)
def test_read_place_that_is_none_gets_a_word_and_reaches_no_engine(place):
    venue = {"location": place, "title": "Bar", "address": "via Roma 1"}

    for content in ({"location": place}, {"location": place, "venue": venue}):
        heard = read(update(**content), bot_id="1")

        assert isinstance(heard, Unsupported)
        assert heard.key == "place.unreadable"
        raw = update(**content)
        raw["edited_message"] = raw.pop("message")
        assert isinstance(read(raw, bot_id="1"), Ignored)


@pytest.mark.parametrize("live", [{"live_period": 900}, {}], ids=["moving", "stopped"])
def test_read_place_that_moved_is_told_apart_and_goes_past_the_queue(live):
    raw = update(location={"latitude": 45.1, "longitude": 7.7, **live}, edit_date=1_790_000_500)
    raw["edited_message"] = raw.pop("message")

    heard = read(raw, bot_id="1")

    assert lane(raw) is Lane.PAST
    assert isinstance(heard, Noted)
    assert (heard.inbound.data["lat"], heard.inbound.data["live"]) == (45.1, bool(live))
    assert heard.inbound.received_at.timestamp() == 1_790_000_500


def test_read_forwarded_place_is_nobodys():
    place = {"latitude": 45.1, "longitude": 7.7}
    origin = {"type": "hidden_user", "date": 1, "sender_user_name": "X"}

    heard = read(update(location=place, forward_origin=origin), bot_id="1")

    assert isinstance(heard, Said)
    assert heard.inbound.kind is InboundKind.TEXT
    assert (heard.inbound.text, heard.inbound.quoted) == ("", "X: 📍 45.1, 7.7")
