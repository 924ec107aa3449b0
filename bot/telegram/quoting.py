"""The person's message that an answer quotes, where others speak too."""

from __future__ import annotations

from telegram import ReplyParameters


def quoting(chat_id: str, message_id: str | None) -> ReplyParameters | None:
    """What makes a message of a group quote the one that it answers; None in private. One that is
    gone by then does not keep the answer back."""
    if not chat_id.startswith("-") or message_id is None or not message_id.isdecimal():
        return None
    return ReplyParameters(int(message_id), allow_sending_without_reply=True)
