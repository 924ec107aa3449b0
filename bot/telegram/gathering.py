"""Which messages that come one after the other are one request, and how long to wait for the rest.

Albums come as a message per picture, a text beyond the limit as several, and what somebody
forwards with a comment as the comment and what it is about. Pure: works on stored bodies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.telegram.media import has_file

# Seconds of quiet after which nothing more is waited for; every new part begins them anew.
ALBUM_S = 1.0
PIECES_S = 0.8
FORWARDS_S = 0.5
# However they come, no request waits for longer.
MOST_S = 6.0
MOST_PARTS = 20
# Telegram lets no album have more.
MOST_PICTURES = 10
# Clients cut at 4096, some of them at the last space before it.
_CUT_AT = 3800
_TOGETHER_S = 2
_SHORT = 200

_POINTS = re.compile(
    r"(?i)\b(?:quest[oaie]|quell[oaie]|ecco|seguent[ei]|inoltr\w+|allegat[oaie]"
    r"|this|these|that|those|following|forward\w*|attached|here)\b"
)


def is_apart(body: Mapping[str, Any]) -> bool:
    """Whether this stored update never belongs to others: it is no message of a known person."""
    return bool(body.keys() - {"update"}) or message_of(body) is None


def belongs(group: Sequence[Mapping[str, Any]], body: Mapping[str, Any]) -> bool:
    """Whether a stored update goes on with what these, in their order, began."""
    if len(group) >= MOST_PARTS or is_apart(body) or any(map(is_apart, group)):
        return False
    before, message = message_of(group[-1]), message_of(body)
    if before is None or message is None or _sender(before) != _sender(message):
        return False
    if album := _album(message):
        return album == _album(before) or (_is_comment(before) and _is_soon(before, message))
    if _album(before) or not _is_soon(before, message):
        return False
    if _is_forwarded(message):
        return _is_forwarded(before) or _is_comment(before)
    if has_file(message):
        return _is_comment(before)
    return _is_cut(before) and isinstance(message.get("text"), str) and not _is_command(message)


def waits_s(group: Sequence[Mapping[str, Any]]) -> float:
    """Seconds of quiet after the last of these before they are worked."""
    last = message_of(group[-1])
    if last is None or is_apart(group[-1]) or len(group) >= MOST_PARTS:
        return 0.0
    if album := _album(last):
        pictures = sum(1 for one in group if _album(message_of(one) or {}) == album)
        return 0.0 if pictures >= MOST_PICTURES else ALBUM_S
    if _is_forwarded(last) or _is_comment(last):
        return FORWARDS_S
    return PIECES_S if _is_cut(last) else 0.0


def album_key(body: Mapping[str, Any]) -> str | None:
    """What all parts of one album have in common, and no other message."""
    message = message_of(body)
    if message is None or not _album(message):
        return None
    return f"{_sender(message)}:{_album(message)}"


def sender_of(body: Mapping[str, Any]) -> object:
    """Who wrote a stored message; None where it is no message."""
    message = message_of(body)
    return None if message is None else _sender(message)


def message_of(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The message in a stored body; None where it holds none."""
    update = body.get("update")
    message = update.get("message") if isinstance(update, Mapping) else None
    return message if isinstance(message, Mapping) else None


def _sender(message: Mapping[str, Any]) -> object:
    sender = message.get("from")
    return sender.get("id") if isinstance(sender, Mapping) else None


def _album(message: Mapping[str, Any]) -> str:
    return str(message.get("media_group_id") or "")


def _is_forwarded(message: Mapping[str, Any]) -> bool:
    return "forward_origin" in message


def _is_command(message: Mapping[str, Any]) -> bool:
    return str(message.get("text") or "").lstrip().startswith("/")


def _is_comment(message: Mapping[str, Any]) -> bool:
    """Whether a text speaks of something that is not there yet."""
    text = message.get("text")
    if not isinstance(text, str) or _is_forwarded(message) or "reply_to_message" in message:
        return False
    return len(text) <= _SHORT and not _is_command(message) and bool(_POINTS.search(text))


def _is_cut(message: Mapping[str, Any]) -> bool:
    text = message.get("text")
    return isinstance(text, str) and len(text.encode("utf-16-le", "surrogatepass")) // 2 >= _CUT_AT


def _is_soon(before: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    first, second = before.get("date"), message.get("date")
    return isinstance(first, int) and isinstance(second, int) and second - first <= _TOGETHER_S
