"""What a group has to do with the bot: what is meant for it, and what becomes of it there. Pure.

Works on messages as Telegram wrote them, before anything is stored: what is not meant for us is
nobody's business here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bot.telegram.numbers import number

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


@dataclass(frozen=True, slots=True)
class Membership:
    """The bot was let into a group, put out of it, or its rights there changed. `by` did that."""

    chat_id: str
    title: str
    is_forum: bool
    by: str
    is_in: bool
    was_in: bool
    is_admin: bool


@dataclass(frozen=True, slots=True)
class Migrated:
    """The group has another id from now on."""

    old_id: str
    new_id: str


Change = Membership | Migrated

_OUT = frozenset({"left", "kicked"})


def change_of(raw: Any) -> Change | None:
    """What an update says about a group itself; None: it says nothing about it. Raises `KeyError`,
    `TypeError` or `ValueError` when it cannot be read."""
    if not isinstance(raw, Mapping):
        return None
    if "my_chat_member" in raw:
        change = raw["my_chat_member"]
        chat = change["chat"]
        if not is_group(chat["type"]):
            return None
        new, old = change["new_chat_member"], change["old_chat_member"]
        return Membership(
            chat_id=str(number(chat["id"])),
            title=str(chat.get("title") or ""),
            is_forum=chat.get("is_forum") is True,
            by=str(number(change["from"]["id"])),
            is_in=_is_in(new),
            was_in=_is_in(old),
            is_admin=new["status"] == "administrator",
        )
    message = raw.get("message")
    if isinstance(message, Mapping):
        chat_id = message.get("chat", {}).get("id")
        if "migrate_to_chat_id" in message:
            return Migrated(str(number(chat_id)), str(number(message["migrate_to_chat_id"])))
        if "migrate_from_chat_id" in message:
            return Migrated(str(number(message["migrate_from_chat_id"])), str(number(chat_id)))
    return None


def without_people(raw: Mapping[str, Any]) -> dict[str, Any]:
    """An update about a group itself with what `change_of` reads, and nobody's name."""
    kind = "my_chat_member" if "my_chat_member" in raw else "message"
    content = raw[kind]
    kept = {
        key: content[key]
        for key in ("message_id", "date", "migrate_to_chat_id", "migrate_from_chat_id")
        if key in content
    }
    chat = content["chat"]
    kept["chat"] = {k: chat[k] for k in ("id", "type", "title", "is_forum") if k in chat}
    if "from" in content:
        kept["from"] = {"id": content["from"]["id"]}
    for key in ("new_chat_member", "old_chat_member"):
        if key in content:
            kept[key] = {k: content[key][k] for k in ("status", "is_member") if k in content[key]}
    return {"update_id": raw["update_id"], kind: kept}


def moved(raw: Mapping[str, Any], chat_id: str) -> dict[str, Any]:
    """An update as it would be in the chat that its group has become."""
    kept = dict(raw)
    for kind, content in raw.items():
        if not isinstance(content, Mapping):
            continue
        if "chat" in content:
            kept[kind] = {**content, "chat": {**content["chat"], "id": int(chat_id)}}
        elif isinstance(content.get("message"), Mapping):
            shown = content["message"]
            shown = {**shown, "chat": {**shown["chat"], "id": int(chat_id)}}
            kept[kind] = {**content, "message": shown}
    return kept


def _is_in(member: Mapping[str, Any]) -> bool:
    if member["status"] == "restricted":
        return member.get("is_member") is True
    return member["status"] not in _OUT
