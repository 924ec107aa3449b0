"""What an update means: something said, a command, a tap, or nothing for us. Pure.

Reads what is stored with python-telegram-bot's types; what is stored at all, and where it is
worked, is decided before, in `screening`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from telegram import MaybeInaccessibleMessage, Message, ReactionTypeEmoji, Update
from telegram import User as TelegramUser
from telegram.error import TelegramError

from bot.telegram.content import Content, content_of, whole
from bot.telegram.media import Media
from bot.telegram.numbers import UNREADABLE
from bot.telegram.screening import CHANNEL
from core.config import LANGS
from core.messages import ChatAddress, Inbound, InboundKind
from core.positions import read_position

_ANY_TIME = datetime.fromtimestamp(0, UTC)

_VOTES = {"👍": "up", "👎": "down"}
# Commands that are asked of the engine, as they stand.
_ASKED = frozenset({"undo", "praxis", "forget"})
# Of these only the name counts, however it was written and whatever stands behind it.
_BARE = frozenset({"praxis", "forget"})
_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,32})(?:@\w+)?(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote where. `lang` is a language we speak or None."""

    address: ChatAddress
    sender_id: str
    sender_name: str = ""
    lang: str | None = None
    message_id: int | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A request for the engine. `edited`: it corrects the message of the same number. `media`:
    what is still to be fetched. `late`: part of an album that was worked before."""

    origin: Origin
    inbound: Inbound
    edited: bool = False
    media: tuple[Media, ...] = ()
    late: bool = False


@dataclass(frozen=True, slots=True)
class Noted:
    """What wants no answer: a place that is shared while it moves has moved, or stopped moving; or
    a sign was put under a message, or taken away."""

    origin: Origin
    inbound: Inbound


@dataclass(frozen=True, slots=True)
class Command:
    origin: Origin
    name: str
    argument: str


@dataclass(frozen=True, slots=True)
class Tap:
    """A press on a button. `inbound` is what it says to the engine; None when it cannot be a
    press on a button of ours: not on a message of the bot, in another person's chat, or empty."""

    origin: Origin
    query_id: str
    inbound: Inbound | None


@dataclass(frozen=True, slots=True)
class Unsupported:
    """Content that nothing is made of; `key` is the text that says so, filled with `params`."""

    origin: Origin
    key: str
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ignored:
    reason: str


Heard = Said | Noted | Command | Tap | Unsupported | Ignored


def read(raw: Mapping[str, Any], *, bot_id: str) -> Heard:
    """What a stored update means. Raises `ValueError` when it cannot be read."""
    try:
        return _heard(raw, bot_id)
    except (*UNREADABLE, OSError, TelegramError) as exc:
        raise ValueError(f"unreadable update: {type(exc).__name__}") from exc


def _heard(raw: Mapping[str, Any], bot_id: str) -> Heard:
    raw, spoilt = _without_spoilt_place(raw)
    update = Update.de_json(dict(raw), None)
    if update.callback_query is not None:
        return _tap(update, bot_id)
    if update.message_reaction is not None:
        return _reacted(update, bot_id)
    message = update.message or update.edited_message
    if message is None or message.from_user is None:
        return Ignored("no message")
    edited = update.edited_message is not None
    origin = _origin(message, message.from_user)
    if spoilt:
        return Ignored("no place") if edited else Unsupported(origin, "place.unreadable")
    command = None
    if message.text is not None and message.forward_origin is None:
        command = _COMMAND.fullmatch(message.text.strip())
        if command is not None and not edited and command[1].lower() not in _ASKED:
            return Command(origin, command[1].lower(), (command[2] or "").strip())
    inbound_id = _inbound_id(update, bot_id)
    content = content_of(message, bot_id=bot_id)
    if message.location is not None and message.forward_origin is None:
        inbound = _place(message, _said(message, origin, inbound_id, content))
        # Where a shared place has moved to is no new message.
        return Noted(origin, inbound) if edited else Said(origin, inbound)
    if content.is_empty and message.text is None:
        return Ignored("service message")
    if content.word is not None:
        ignored = Ignored("edited")
        return ignored if edited else Unsupported(origin, content.word, content.params)
    said = _said(message, origin, inbound_id, content)
    if command is not None and command[1].lower() in _BARE:
        said = replace(said, text=f"/{command[1].lower()}")
    return Said(origin, said, edited, content.media)


def lang_of(code: str | None) -> str | None:
    """The language of ours that a Telegram language code names, or None."""
    short = (code or "").lower()[:2]
    return short if short in LANGS else None


def _origin(message: Message, user: TelegramUser) -> Origin:
    thread = message.message_thread_id if message.is_topic_message else None
    return Origin(
        ChatAddress(CHANNEL, str(message.chat.id), None if thread is None else str(thread)),
        str(user.id),
        user.first_name,
        lang_of(user.language_code),
        message.message_id,
    )


def _inbound_id(update: Update, bot_id: str) -> str:
    return f"{CHANNEL}:{bot_id}:{update.update_id}"


def _place(message: Message, said: Inbound) -> Inbound:
    """A place shared by a person: degrees, and the accuracy in metres where the phone tells it."""
    place = message.location
    assert place is not None  # noqa: S101 - asked for by the caller
    named = "" if message.venue is None else f"{message.venue.title}, {message.venue.address}"
    data = {
        **said.data,
        "lat": place.latitude,
        "lon": place.longitude,
        "accuracy": place.horizontal_accuracy,
        "live": "live_period" in place.to_dict(),
    }
    at = message.edit_date or message.date
    return replace(
        said,
        kind=InboundKind.LOCATION,
        text=whole(named),
        quoted=None,
        data=data,
        received_at=at,
    )


def _without_spoilt_place(raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The update without a place that is no point of the earth, which would make all of it
    unreadable; and whether there was one."""
    for kind in ("message", "edited_message"):
        message = raw.get(kind)
        if not isinstance(message, Mapping) or "location" not in message:
            continue
        place = message["location"]
        found = place if isinstance(place, Mapping) else {}
        point = {"lat": found.get("latitude"), "lon": found.get("longitude")}
        if read_position(point, at=_ANY_TIME) is None:
            kept = {k: v for k, v in message.items() if k not in {"location", "venue"}}
            return {**raw, kind: kept}, True
    return raw, False


def _said(message: Message, origin: Origin, inbound_id: str, content: Content) -> Inbound:
    replied = message.reply_to_message
    if replied is not None and replied.forum_topic_created is not None:
        replied = None
    data = {"said": content.said, "told": content.told}
    if replied is not None:
        data["reply_to"] = str(replied.message_id)
    return Inbound(
        id=inbound_id,
        address=origin.address,
        sender_id=origin.sender_id,
        kind=InboundKind.TEXT,
        text=content.text,
        received_at=message.date,
        sender_name=whole(origin.sender_name),
        lang=origin.lang,
        message_ref=str(message.message_id),
        quoted=content.quoted,
        data={key: value for key, value in data.items() if value is not None},
    )


def _tap(update: Update, bot_id: str) -> Heard:
    query = update.callback_query
    if query is None or query.message is None:
        return Ignored("tap without a message")
    shown, person = query.message, query.from_user
    thread = shown.message_thread_id if isinstance(shown, Message) else None
    if isinstance(shown, Message) and not shown.is_topic_message:
        thread = None
    origin = Origin(
        ChatAddress(CHANNEL, str(shown.chat.id), None if thread is None else str(thread)),
        str(person.id),
        person.first_name,
        lang_of(person.language_code),
        shown.message_id,
    )
    elsewhere = shown.chat.type == "private" and shown.chat.id != person.id
    if not query.data or elsewhere or not _is_ours(shown, bot_id):
        return Tap(origin, query.id, None)
    inbound = Inbound(
        id=_inbound_id(update, bot_id),
        address=origin.address,
        sender_id=origin.sender_id,
        kind=InboundKind.CHOICE,
        text="",
        # Of the message: when a button was pressed Telegram does not say.
        received_at=shown.date,
        sender_name=whole(origin.sender_name),
        lang=origin.lang,
        message_ref=str(shown.message_id),
        data={"token": query.data, "message_id": str(shown.message_id)},
    )
    return Tap(origin, query.id, inbound)


def _reacted(update: Update, bot_id: str) -> Heard:
    reaction = update.message_reaction
    if reaction is None or reaction.user is None:
        return Ignored("nobody's reaction")
    person = reaction.user
    signs = {sign.emoji for sign in reaction.new_reaction if isinstance(sign, ReactionTypeEmoji)}
    votes = [vote for sign, vote in _VOTES.items() if sign in signs]
    # Where the message stands in a forum Telegram does not say.
    origin = Origin(
        ChatAddress(CHANNEL, str(reaction.chat.id)),
        str(person.id),
        person.first_name,
        lang_of(person.language_code),
        reaction.message_id,
    )
    inbound = Inbound(
        id=_inbound_id(update, bot_id),
        address=origin.address,
        sender_id=origin.sender_id,
        kind=InboundKind.REACTION,
        text="",
        received_at=reaction.date,
        data={
            "message_id": str(reaction.message_id),
            # Both at once say neither.
            "vote": votes[0] if len(votes) == 1 else None,
        },
    )
    return Noted(origin, inbound)


def _is_ours(shown: MaybeInaccessibleMessage, bot_id: str) -> bool:
    """Whether the message is the bot's own and no copy of it. One that is too old to be shown to
    the bot may be."""
    if not isinstance(shown, Message) or not shown.is_accessible:
        return True
    by_us = shown.from_user is not None and str(shown.from_user.id) == bot_id
    return by_us and shown.forward_origin is None
