"""A reply's buttons as Telegram's keyboards. Pure.

One message has one keyboard: buttons under it, or, where a place is asked for, buttons in place
of the phone's keyboard, since only those can share it. A tap on one of the latter is a text.
"""

from __future__ import annotations

from collections.abc import Mapping

from telegram import (
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    KeyboardButton,
    ReplyKeyboardMarkup,
)

from bot.telegram.parts import clean
from core.messages import Button, Reply

Markup = InlineKeyboardMarkup | ReplyKeyboardMarkup | ForceReply

# Telegram's limits: of a button's data, and of the hint in the field of the answer.
MAX_DATA_BYTES = 64
MAX_HINT = 64
_MAX_LABEL = 60


def is_question(reply: Reply) -> bool:
    """Whether the reply waits for something; buttons alone may be pressed or not."""
    return reply.expects is not None


def may_settle(reply: Reply) -> bool:
    """Whether something may come to stand in the place of its buttons."""
    return bool(reply.buttons) or is_question(reply)


def asks_place(reply: Reply) -> bool:
    """Whether the keyboard shares a place, and thus stands where the phone's keyboard does."""
    return any(button.kind == "location" for row in reply.buttons for button in row)


def markup(reply: Reply, *, is_private: bool, hint: str = "") -> Markup | None:
    """The keyboard of the reply's last message; None without one.

    `hint` stands in the empty field where a text is typed. Outside private chats nobody can be
    asked for their place by a button, so such a button is left out there.
    """
    rows = tuple(filter(None, (_usable(row, is_private) for row in reply.buttons)))
    if reply.expects == "text" and sum(map(len, rows)) <= 1:
        # One button beside a text is the way out, which a word is too: to make the phone reply
        # tells answers apart from requests. In a group only the one asked is made to.
        return ForceReply(
            selective=not is_private, input_field_placeholder=hint[:MAX_HINT] or None
        )
    if is_private and asks_place(reply):
        return ReplyKeyboardMarkup(
            [
                [
                    KeyboardButton(_label(b), request_location=b.kind == "location" or None)
                    for b in r
                ]
                for r in rows
            ],
            resize_keyboard=True,
            one_time_keyboard=True,
        )
    if rows:
        return InlineKeyboardMarkup(
            [[InlineKeyboardButton(_label(b), callback_data=b.token) for b in r] for r in rows]
        )
    return None


def typed_labels(reply: Reply) -> Mapping[str, str]:
    """What a tap on a keyboard that shares a place is typed as → the token that it means.

    Empty for other keyboards, whose taps come as such.
    """
    if not asks_place(reply):
        return {}
    return {_label(b): b.token for row in reply.buttons for b in row if b.token}


def _usable(row: tuple[Button, ...], is_private: bool) -> tuple[Button, ...]:
    return tuple(
        b
        for b in row
        if (is_private if b.kind == "location" else 0 < len(b.token.encode()) <= MAX_DATA_BYTES)
    )


def _label(button: Button) -> str:
    label = " ".join(clean(button.label).split()) or "…"
    return label if len(label) <= _MAX_LABEL else f"{label[: _MAX_LABEL - 1]}…"
