"""Whether a message of a group is meant for the bot, and what it asks then. Pure.

Works on messages as Telegram wrote them, before anything is stored: what is not meant for us is
nobody's business here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

GROUPS = frozenset({"group", "supergroup"})

# What follows a name that begins a sentence: "@bot, what time is it" is "what time is it".
_AFTER_NAME = " \t,:;-–—"
_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,32})(?:@(\w+))?(?=\s|$)")


def is_group(chat_type: object) -> bool:
    return chat_type in GROUPS


def addressed(
    message: Mapping[str, Any], *, bot_id: str, username: str, commands: Collection[str]
) -> dict[str, Any] | None:
    """The message as it is meant for the bot, its name taken out; None: it is not meant for it.

    Meant for the bot are: what names it (an entity that Telegram made of its name), what replies
    to a message of it, and a command, with the bot's name or, when it is one of `commands`,
    without any. `username` is without @; an empty one is never named.
    """
    key = "text" if "text" in message else "caption"
    text = str(message.get(key) or "")
    command = _COMMAND.match(text.lstrip())
    spans = list(_names(message, text, bot_id, username))
    if command is not None and not spans and not _is_ours(command, username, commands):
        return None
    if command is None and not spans and not replies_to(message, bot_id):
        return None
    if not spans:
        return dict(message)
    kept = {k: v for k, v in message.items() if k not in {"entities", "caption_entities"}}
    kept[key] = _without(text, spans)
    return kept


def replies_to(message: Mapping[str, Any], bot_id: str) -> bool:
    """Whether it replies to a message of the bot. Every message of a topic hangs on the one that
    opened it, which is no reply."""
    replied = message.get("reply_to_message")
    if not isinstance(replied, Mapping) or "forum_topic_created" in replied:
        return False
    sender = replied.get("from")
    return isinstance(sender, Mapping) and str(sender.get("id")) == bot_id


def _is_ours(command: re.Match[str], username: str, commands: Collection[str]) -> bool:
    name, bot = command[1].lower(), command[2]
    return name in commands if bot is None else bot.lower() == username.lower() != ""


def _names(
    message: Mapping[str, Any], text: str, bot_id: str, username: str
) -> list[tuple[int, int]]:
    """Where the bot is named, in UTF-16 units."""
    wide = text.encode("utf-16-le", "surrogatepass")
    found = []
    for entity in message.get("entities") or message.get("caption_entities") or ():
        start, length = int(entity["offset"]), int(entity["length"])
        if entity["type"] == "text_mention":
            ours = str(entity["user"]["id"]) == bot_id
        else:
            name = wide[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")
            ours = entity["type"] == "mention" and name.lower() == f"@{username.lower()}"
        if ours and length > 1:
            found.append((start, start + length))
    return found


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """The text without these, and without the spaces and signs that only they needed."""
    wide = text.encode("utf-16-le", "surrogatepass")
    said, at = "", 0
    for start, end in sorted(spans):
        said = _joined(said, wide[2 * at : 2 * start].decode("utf-16-le", "surrogatepass"))
        at = end
    return _joined(said, wide[2 * at :].decode("utf-16-le", "surrogatepass")).strip()


def _joined(before: str, after: str) -> str:
    """Two pieces between which a name stood."""
    if not before.strip() or before.endswith("\n"):
        return before.lstrip() + after.lstrip(_AFTER_NAME)
    if not after.strip() or after[0] in " \t\n,.;:!?)":
        before = before.rstrip(" ")
    return before + after
