"""Which updates are for us, what is kept of them, and in which lane they are worked. Pure.

Works on updates as Telegram wrote them, before anything is stored, and needs no more than who
wrote where. What an update means is read later, by `inbound`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from bot.telegram.groups import GROUPS
from bot.telegram.numbers import number
from core.messages import ChatAddress

CHANNEL = "telegram"

# Commands for the turn that runs, past the queue of the chat.
_CONTROL = re.compile(r"/(?:stop|status)(?:@\w+)?(?:\s|$)", re.IGNORECASE)
_ASKING = re.compile(r"\s*/start(?:@\w+)?\s*", re.IGNORECASE)
_PAIRING = re.compile(r"\s*/(?:start|pair)(?:@\w+)?\s+\S", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Screened:
    """An update before it is stored: where it belongs and who sent it. `kind` is Telegram's name
    of it. `is_pairing`: it brings a code; `is_asking`: it is a `/start` without any."""

    update_id: int
    kind: str
    sender_id: str
    chat_id: str
    thread_id: str | None
    is_pairing: bool
    is_asking: bool = False
    chat_type: str = "private"

    @property
    def address(self) -> ChatAddress:
        return ChatAddress(CHANNEL, self.chat_id, self.thread_id)

    @property
    def is_private(self) -> bool:
        return self.chat_type == "private"


_MESSAGES = ("message", "edited_message", "guest_message")
_MIGRATIONS = ("migrate_to_chat_id", "migrate_from_chat_id")
_KINDS = (*_MESSAGES, "callback_query", "my_chat_member", "message_reaction")


def screen(raw: Any) -> Screened | None:
    """Who wrote where, of an update that may be for us: a person's, in private or in a group.

    Whether what is said in a group is meant for the bot is for `bot.telegram.groups` to say. None
    for anything else: channels, anonymous administrators, other bots, kinds that are not handled.
    Raises `KeyError`, `TypeError` or `ValueError` when the update cannot be read at all.
    """
    raw = _object(raw)
    kind = next((kind for kind in _KINDS if kind in raw), None)
    if kind is None:
        return None
    content = _object(raw[kind])
    message = content.get("message") if kind == "callback_query" else content
    # A reaction of a channel or an anonymous administrator names no user.
    sender = content.get("user" if kind == "message_reaction" else "from")
    if message is None or sender is None:
        return None
    message, sender = _object(message), _object(sender)
    # Whoever moves a group or lets the bot in may be an anonymous administrator or a bot.
    about_group = kind == "my_chat_member" or any(key in content for key in _MIGRATIONS)
    if not about_group and (sender.get("is_bot") or "sender_chat" in content):
        return None
    chat = _object(message["chat"])
    chat_type = str(chat["type"])
    if chat_type != "private" and chat_type not in GROUPS and kind != "guest_message":
        return None
    text = str(message.get("text") or "")
    return Screened(
        update_id=number(raw["update_id"]),
        kind=kind,
        sender_id=str(number(sender["id"])),
        chat_id=str(number(chat["id"])),
        thread_id=_thread(message),
        is_pairing=kind == "message" and bool(_PAIRING.match(text)),
        is_asking=kind == "message" and bool(_ASKING.fullmatch(text)),
        chat_type=chat_type,
    )


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"a {type(value).__name__} where an object belongs")
    return value


class Lane(StrEnum):
    """Where a stored update is worked: behind the others of its chat, or past them."""

    QUEUE = "queue"
    PAST = "past"
    TAP = "tap"
    """Answered at once, then worked in the queue: what it sets going waits for the turn there."""
    EDIT = "edit"


def lane(raw: Any) -> Lane:
    """The lane of a stored update, by its raw form. What cannot be told goes into the queue."""
    if not isinstance(raw, Mapping):
        return Lane.QUEUE
    if "callback_query" in raw:
        return Lane.TAP
    if "edited_message" in raw:
        edited = raw["edited_message"]
        moved = isinstance(edited, Mapping) and "location" in edited
        return Lane.PAST if moved else Lane.EDIT
    message = raw.get("message")
    # What somebody else wrote commands nothing.
    if not isinstance(message, Mapping) or "forward_origin" in message:
        return Lane.QUEUE
    text = message.get("text")
    return Lane.PAST if isinstance(text, str) and _CONTROL.match(text.strip()) else Lane.QUEUE


def tap_id(raw: Mapping[str, Any]) -> str:
    """The id by which a stored tap is answered; empty when it has none."""
    query = raw.get("callback_query")
    return str(query.get("id") or "") if isinstance(query, Mapping) else ""


def sender_of(raw: Any) -> str | None:
    """Who sent a stored update; None when that cannot be told."""
    if isinstance(raw, Mapping):
        for kind in _KINDS:
            content = raw.get(kind)
            if isinstance(content, Mapping) and isinstance(content.get("from"), Mapping):
                return str(content["from"].get("id"))
    return None


def without_words(
    raw: Mapping[str, Any], *, keep_text: bool = False, keep_name: bool = False
) -> dict[str, Any]:
    """The update of a stranger with what the neutral line needs and nothing they wrote.

    `keep_text` for a pairing command, whose code is still to be checked; `keep_name` for who asks
    to be let in.
    """
    message = raw["message"]
    sender = message["from"]
    kept: dict[str, Any] = {
        "message_id": message["message_id"],
        "date": message["date"],
        "chat": {"id": message["chat"]["id"], "type": message["chat"]["type"]},
        "from": {"id": sender["id"], "is_bot": False, "first_name": ""},
        "text": "",
    }
    if "language_code" in sender:
        kept["from"]["language_code"] = str(sender["language_code"])[:8]
    if keep_text:
        kept["text"] = str(message["text"])[:100]
        kept["from"]["first_name"] = str(sender.get("first_name") or "")[:64]
    if keep_name:
        names = (str(sender.get(key) or "") for key in ("first_name", "last_name"))
        kept["from"]["first_name"] = " ".join(filter(None, names))[:64]
    if _thread(message) is not None:
        kept |= {"message_thread_id": message["message_thread_id"], "is_topic_message": True}
    return {"update_id": raw["update_id"], "message": kept}


def _thread(message: Mapping[str, Any]) -> str | None:
    thread = message.get("message_thread_id")
    return str(number(thread)) if thread is not None and message.get("is_topic_message") else None
