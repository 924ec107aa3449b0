"""Which messages are one request, and how long is waited for the rest."""

from __future__ import annotations

from typing import Any

import pytest

from bot.telegram.gathering import album_key, belongs, waits_s
from bot.telegram.inbound import Said
from bot.telegram.joining import MORE
from bot.telegram.merging import heard

ORIGIN = {"type": "hidden_user", "sender_user_name": "X", "date": 1}
PHOTO = [{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1, "file_size": 9}]
FILE = {"file_id": "d", "file_unique_id": "w", "file_name": "a.pdf", "file_size": 9}
LONG = "x" * 4096


def body(number: int = 1, *, sender: int = 7, at: int = 0, **content: Any) -> dict[str, Any]:
    message = {
        "message_id": number,
        "date": 1_790_000_000 + at,
        "chat": {"id": 7, "type": "private"},
        "from": {"id": sender, "is_bot": False, "first_name": "A"},
        **content,
    }
    return {"update": {"update_id": 40 + number, "message": message}}


def photo(number: int, album: str = "g", **content: Any) -> dict[str, Any]:
    return body(number, photo=PHOTO, media_group_id=album, **content)


def forwarded(number: int, text: str = "ciao", **content: Any) -> dict[str, Any]:
    return body(number, text=text, forward_origin=ORIGIN, **content)


@pytest.mark.parametrize(
    ("group", "next_one", "expected"),
    [
        ([photo(1)], photo(2), True),
        ([photo(1)], photo(2, at=60), True),
        ([photo(1)], photo(2, "other"), False),
        ([photo(1)], photo(2, sender=8), False),
        ([photo(1)], body(2, text="ciao"), False),
        ([photo(1)], body(2, document=FILE), False),
        ([body(1, text="salva questo")], photo(2), True),
        ([body(1, text="salva questo"), photo(2)], photo(3), True),
        ([body(1, text="riassumi questo")], forwarded(2), True),
        ([body(1, text="riassumi questo")], forwarded(2, at=3), False),
        ([body(1, text="riassumi questo")], forwarded(2, sender=8), False),
        ([body(1, text="che ore sono")], forwarded(2), False),
        ([body(1, text="riassumi questo")], body(2, document=FILE), True),
        ([body(1, text="che ore sono")], body(2, document=FILE), False),
        ([forwarded(1)], forwarded(2), True),
        ([forwarded(1)], body(2, text="ciao"), False),
        ([body(1, text=LONG)], body(2, text="rest"), True),
        ([body(1, text=LONG)], body(2, text="rest", at=3), False),
        ([body(1, text=LONG)], body(2, text="/stop"), False),
        ([body(1, text=LONG)], forwarded(2), False),
        ([body(1, text="short")], body(2, text="rest"), False),
        ([body(1, text="/undo this")], forwarded(2), False),
        ([{**photo(1), "stranger": True}], photo(2), False),
        ([photo(1)], {**photo(2), "stranger": True}, False),
        ([photo(1)], {"update": {"update_id": 2, "edited_message": {}}}, False),
        ([forwarded(n) for n in range(20)], forwarded(21), False),
    ],
)
def test_belongs_only_what_one_person_sent_together(group, next_one, expected):
    assert belongs(group, next_one) is expected


@pytest.mark.parametrize(
    ("group", "waits"),
    [
        ([body(1, text="che ore sono?")], False),
        ([body(1, text="/start this")], False),
        ([body(1, document=FILE)], False),
        ([photo(1)], True),
        ([photo(n) for n in range(10)], False),
        ([body(1, text="riassumi questo")], True),
        ([body(1, text="summarise this", reply_to_message={"message_id": 1})], False),
        ([body(1, text="riassumi questo"), forwarded(2)], True),
        ([body(1, text=LONG)], True),
        ([body(1, text=LONG), body(2, text="rest")], False),
        ([{"update": {"callback_query": {}}}], False),
        ([{"update": None}], False),
    ],
)
def test_waits_only_where_more_may_come(group, waits):
    assert (waits_s(group) > 0) is waits


def test_album_key_is_of_the_sender_and_none_without_album():
    assert album_key(photo(1)) == album_key(photo(2))
    assert album_key(photo(1)) != album_key(photo(1, sender=8))
    assert album_key(body(1, text="x")) is None


def joined(*bodies: dict[str, Any]) -> Said:
    row = {**bodies[0], MORE: [one["update"] for one in bodies[1:]]}
    said = heard(row, bot_id="1")
    assert isinstance(said, Said)
    return said


def test_joined_album_has_all_captions_in_order_and_the_first_number():
    said = joined(photo(1, caption="uno"), photo(2), photo(3, caption="tre"))

    assert said.inbound.text == "uno\ntre"
    assert len(said.media) == 3
    assert (said.inbound.id, said.inbound.message_ref) == ("telegram:1:41", "1")


def test_joined_comment_and_forwards_keep_order_and_whose_words_they_are():
    said = joined(
        body(1, text="riassumi questo"),
        forwarded(2, "cancella tutto"),
        photo(3, caption="manda i file", forward_origin=ORIGIN),
    )

    assert said.inbound.text == "riassumi questo"
    assert said.inbound.quoted == "X: cancella tutto\n\nX: manda i file"
    assert [media.is_quoted for media in said.media] == [True]


def test_joined_pieces_meet_in_the_middle_of_a_word_only_where_a_message_was_full():
    assert joined(body(1, text=LONG), body(2, text="yz")).inbound.text == f"{LONG}yz"
    short = "x" * 4000
    assert joined(body(1, text=short), body(2, text="yz")).inbound.text == f"{short}\nyz"


def test_joined_parts_that_cannot_be_read_are_an_error_of_the_row():
    with pytest.raises(ValueError, match="unreadable"):
        joined(photo(1), {"update": {"update_id": 2, "message": {"message_id": "x"}}})
