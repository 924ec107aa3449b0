"""What a message holds: the person's own words, words of others, and files. Pure.

What was forwarded, and what others wrote that is replied to, is quoted: data, never an order. A
reply to the bot, or to what the person said themselves, goes on with the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from telegram import (
    Message,
    MessageOriginChannel,
    MessageOriginChat,
    MessageOriginHiddenUser,
    MessageOriginUser,
)

from bot.telegram.media import Media, media_of

# Content that a bot cannot have, or that we make nothing of: it gets a word.
_OTHER = (
    "checklist",
    "game",
    "giveaway",
    "giveaway_winners",
    "invoice",
    "paid_media",
    "passport_data",
    "story",
)


@dataclass(frozen=True, slots=True)
class Content:
    """What one message brings. `quoted`: words of others. `said` and `told`: what the person and
    the bot had said, when the message replies to that. `word`: the key of the text that answers
    content which nothing is made of, `params` what fills it."""

    text: str = ""
    quoted: str | None = None
    said: str | None = None
    told: str | None = None
    media: tuple[Media, ...] = ()
    word: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to answer: a service message."""
        return not (self.text or self.quoted or self.media or self.word)


def content_of(message: Message, *, bot_id: str) -> Content:
    """What a message holds. A place is not looked at: see `inbound`."""
    held = _held(message)
    if message.forward_origin is not None:
        return _as_forwarded(held, message)
    replied = message.reply_to_message
    if replied is not None and replied.forum_topic_created is not None:
        replied = None  # what every message of a topic replies to
    quote = None if message.quote is None else whole(message.quote.text)
    if replied is None:
        return held if quote is None else replace(held, quoted=_both(quote, held.quoted))
    before = _held(replied)
    words = quote or before.quoted or before.text
    media = held.media
    if quote is None and not media:
        media = tuple(replace(one, is_quoted=True) for one in before.media)
    held = replace(held, media=media)
    if not words:
        return held
    if _is_by(replied, bot_id):
        return replace(held, told=words)
    if message.from_user is not None and _is_by(replied, str(message.from_user.id)):
        own = before.quoted is None
        return (
            replace(held, said=words) if own else replace(held, quoted=_both(words, held.quoted))
        )
    return replace(held, quoted=_both(words, held.quoted))


def whole(text: str) -> str:
    """Surrogate pairs joined, lone ones replaced: text that any file and any model can take."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _held(message: Message) -> Content:
    """What a message holds by itself, whoever wrote it."""
    if message.text is not None:
        return Content(whole(message.text))
    media = media_of(message)
    if media is not None:
        if message.sticker is not None:
            # Said with a picture: what it stands for is the word.
            return Content(whole(message.sticker.emoji or ""), media=(media,))
        return Content(whole(message.caption or ""), media=(media,))
    if message.contact is not None:
        person = message.contact
        name = " ".join(filter(None, (person.first_name, person.last_name)))
        return Content(quoted=whole(f"👤 {name}, {person.phone_number}"))
    if message.poll is not None:
        lines = [f"📊 {message.poll.question}", *(f"- {o.text}" for o in message.poll.options)]
        return Content(quoted=whole("\n".join(lines)))
    if message.venue is not None:
        place = message.venue
        at = f"{place.location.latitude}, {place.location.longitude}"
        return Content(quoted=whole(f"📍 {place.title}, {place.address} ({at})"))
    if message.location is not None:
        return Content(quoted=f"📍 {message.location.latitude}, {message.location.longitude}")
    if message.dice is not None:
        params = {"emoji": message.dice.emoji, "value": str(message.dice.value)}
        return Content(word="telegram.dice", params=params)
    if any(getattr(message, name) for name in _OTHER) or _is_of_a_newer_kind(message):
        return Content(word="telegram.unsupported.other")
    return Content()


def _is_of_a_newer_kind(message: Message) -> bool:
    """Whether it holds something that the library has no name for, and nothing that it has."""
    return bool(message.api_kwargs) and not any(
        getattr(message, name) for name in _SERVICE if hasattr(message, name)
    )


def _as_forwarded(held: Content, message: Message) -> Content:
    if held.word is not None:
        return held
    media = tuple(replace(one, is_quoted=True) for one in held.media)
    words = held.quoted or held.text
    if not words:
        return replace(held, text="", media=media)
    name = _origin_name(message)
    return Content(quoted=f"{name}: {words}" if name else words, media=media)


def _origin_name(message: Message) -> str:
    match message.forward_origin:
        case MessageOriginUser(sender_user=user):
            return whole(user.full_name)
        case MessageOriginHiddenUser(sender_user_name=name):
            return whole(name)
        case MessageOriginChat(sender_chat=chat) | MessageOriginChannel(chat=chat):
            return whole(chat.title or "")
    return ""


def _is_by(message: Message, user_id: str) -> bool:
    """Whether this person, or bot, wrote these words themselves."""
    by = message.from_user is not None and str(message.from_user.id) == user_id
    others = (message.forward_origin, message.via_bot, message.sender_chat)
    return by and all(one is None for one in others)


def _both(first: str, second: str | None) -> str:
    return first if not second else f"{first}\n\n{second}"


# Lines about a chat that nobody said.
_SERVICE = (
    "boost_added",
    "channel_chat_created",
    "chat_background_set",
    "chat_owner_changed",
    "chat_owner_left",
    "chat_shared",
    "checklist_tasks_added",
    "checklist_tasks_done",
    "connected_website",
    "delete_chat_photo",
    "direct_message_price_changed",
    "forum_topic_closed",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_reopened",
    "general_forum_topic_hidden",
    "general_forum_topic_unhidden",
    "gift",
    "gift_upgrade_sent",
    "giveaway_completed",
    "giveaway_created",
    "group_chat_created",
    "left_chat_member",
    "managed_bot_created",
    "message_auto_delete_timer_changed",
    "migrate_from_chat_id",
    "migrate_to_chat_id",
    "new_chat_members",
    "new_chat_photo",
    "new_chat_title",
    "paid_message_price_changed",
    "pinned_message",
    "poll_option_added",
    "poll_option_deleted",
    "proximity_alert_triggered",
    "refunded_payment",
    "successful_payment",
    "suggested_post_approval_failed",
    "suggested_post_approved",
    "suggested_post_declined",
    "suggested_post_paid",
    "suggested_post_refunded",
    "supergroup_chat_created",
    "unique_gift",
    "users_shared",
    "video_chat_ended",
    "video_chat_participants_invited",
    "video_chat_scheduled",
    "video_chat_started",
    "web_app_data",
    "write_access_allowed",
)
