"""What of a batch of updates is kept: what known people say to the bot, and nothing else.

Strangers' words are left out before anything is stored, and so is the talk of groups that is not
meant for the bot.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from bot.telegram import groups
from bot.telegram.identity import Identity
from bot.telegram.numbers import UNREADABLE, update_id
from bot.telegram.reach import Reach
from bot.telegram.screening import CHANNEL, Screened, screen, without_words
from core.clock import Clock
from core.errors import StoreError
from core.messages import ChatAddress
from core.store import actors, chats, inbox, pairing, visitors
from core.store.database import Transaction
from core.store.moves import move_chat
from core.store.visitors import VisitorState

log = logging.getLogger(__name__)

# A stranger's pairing attempts that one batch may bring; the rest is not stored.
_PAIRING_PER_BATCH = 5
_MESSAGES = frozenset({"message", "edited_message"})
# What nobody can send to a bot that they have blocked or removed.
_SPOKEN = _MESSAGES | {"callback_query"}
_ALBUMS_REMEMBERED = 64


class Sifter:
    """Makes rows of updates. `is_locked` tells of a stranger whose pairing attempts are not
    looked at; `commands` are those that a group need not say the bot's name with."""

    def __init__(
        self,
        *,
        identity: Identity,
        clock: Clock,
        is_locked: Callable[[str], bool],
        commands: Collection[str],
        reach: Reach,
    ) -> None:
        self._identity, self._clock, self._is_locked = identity, clock, is_locked
        self._commands = frozenset(commands)
        self._reach = reach
        # Only one part of an album says whom it is for.
        self._albums: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    async def prepare(self, updates: Collection[Any]) -> None:
        """What `rows` needs of Telegram: the bot's name, as soon as a group may name it. Raises
        `TelegramError`."""
        if any(not screened.is_private for screened in readable(updates)):
            await self._identity.known()

    async def rows(self, tx: Transaction, updates: Collection[Any]) -> list[inbox.InboxRow]:
        """What to keep of a batch. Strangers' taps and places are not even answered in private:
        they mostly are of people whose right was withdrawn. An update that cannot be read, for
        whatever reason, is kept empty: it must not come again, nor keep the others from coming.
        Raises `StoreError`."""
        rows: list[inbox.InboxRow] = []
        known: dict[str, bool] = {}
        attempts: Counter[str] = Counter()
        self._look_at_albums(updates)
        for raw in updates:
            number = update_id(raw)
            if number is None:
                log.warning("update without a number")
                continue
            try:
                change = groups.change_of(raw)
                if isinstance(change, groups.Migrated):
                    rows = await self._moved(tx, rows, change)
                elif (row := await self._row(tx, raw, known, attempts)) is not None:
                    rows.append(row)
            except StoreError:
                raise
            except Exception as exc:
                error = type(exc).__name__  # its text may be somebody's words
                log.warning("unreadable update", extra={"update_id": number, "error": error})
                rows.append(inbox.InboxRow(number, f"{CHANNEL}::", {}))
        return rows

    async def _row(
        self,
        tx: Transaction,
        raw: Mapping[str, Any],
        known: dict[str, bool],
        attempts: Counter[str],
    ) -> inbox.InboxRow | None:
        """What to keep of one update, if anything."""
        screened = screen(raw)
        if screened is None or screened.kind == "guest_message":  # that is never stored
            return None
        sender = screened.sender_id
        if sender not in known:
            known[sender] = await actors.find_actor(tx, CHANNEL, sender) is not None
        if self._reach.is_lost(screened.chat_id) and screened.kind in _SPOKEN:
            await self._reach.regain(tx, screened.chat_id)
        if screened.is_private:
            body = await self._private(tx, raw, screened, known[sender], attempts)
        else:
            new_id = await chats.moved_to(tx, CHANNEL, screened.chat_id)
            if new_id is not None:
                raw = groups.moved(raw, new_id)
                screened = replace(screened, chat_id=new_id)
            body = await self._group(tx, raw, screened, known[sender])
        if body is None:
            return None
        return inbox.InboxRow(screened.update_id, screened.address.key, body)

    async def _private(
        self,
        tx: Transaction,
        raw: Mapping[str, Any],
        screened: Screened,
        is_known: bool,
        attempts: Counter[str],
    ) -> dict[str, Any] | None:
        sender = screened.sender_id
        if is_known:
            return {"update": raw}
        if screened.kind != "message" or "location" in raw["message"]:
            return None
        now = self._clock.now()
        said = await visitors.silence(tx, CHANNEL, sender, now)
        if said is VisitorState.BLOCKED or (said is not None and not screened.is_pairing):
            return None
        notice = asks = False
        if screened.is_pairing:
            attempts[sender] += 1
            keep = attempts[sender] <= _PAIRING_PER_BATCH and not self._is_locked(sender)
        else:
            notice = await pairing.stranger_notice_due(tx, CHANNEL, sender, now)
            asks = screened.is_asking and await visitors.may_ask(tx, CHANNEL, sender, now)
            keep = notice or asks
        if not keep:
            return None
        words = without_words(raw, keep_text=screened.is_pairing, keep_name=asks)
        body = {"update": words, "stranger": True}
        return {**body, "notice": notice, "asks": True} if asks else body

    async def _moved(
        self, tx: Transaction, rows: list[inbox.InboxRow], change: groups.Migrated
    ) -> list[inbox.InboxRow]:
        """Let a group have its new id: in the store, and for what came before it in the batch."""
        old, new = ChatAddress(CHANNEL, change.old_id), ChatAddress(CHANNEL, change.new_id)
        if await move_chat(tx, CHANNEL, old.chat_id, new.chat_id, self._clock.now()):
            log.info("group moved", extra={"old": old.chat_id, "new": new.chat_id})
        return [
            replace(row, chat_key=new.key + row.chat_key.removeprefix(old.key))
            if row.chat_key.startswith(old.key)
            else row
            for row in rows
        ]

    async def _group(
        self, tx: Transaction, raw: Mapping[str, Any], screened: Screened, is_known: bool
    ) -> dict[str, Any] | None:
        if groups.change_of(raw) is not None:
            return {"update": groups.without_people(raw)}
        content = raw[screened.kind]
        if screened.kind == "callback_query":
            return {"update": raw} if is_known else {"update": _bare_tap(raw), "stranger": True}
        if screened.kind == "message_reaction":
            found = await chats.find(tx, CHANNEL, screened.chat_id)
            return {"update": raw} if is_known and found is not None and found.is_on else None
        if screened.kind not in _MESSAGES:
            return None
        said = self._said(screened, content)
        if said is None:
            return None
        now = self._clock.now()
        chat = await chats.meet(
            tx,
            CHANNEL,
            screened.chat_id,
            title=str(content["chat"].get("title") or ""),
            is_forum=content["chat"].get("is_forum") is True,
            now=now,
        )
        if is_known and chat.is_on:
            return {"update": {"update_id": raw["update_id"], screened.kind: said}}
        if screened.kind != "message" or not await self._is_answered(tx, screened, chat, is_known):
            return None
        return {"update": without_words(raw), "stranger": not is_known, "unheard": True}

    def _look_at_albums(self, updates: Collection[Any]) -> None:
        """Find out which albums are meant for the bot: any part may say so, also a later one."""
        for raw in updates:
            with suppress(*UNREADABLE):
                screened = screen(raw)
                if screened is None or screened.is_private or screened.kind != "message":
                    continue
                content = raw[screened.kind]
                if content.get("media_group_id"):
                    self._said(screened, content)

    def _said(self, screened: Screened, content: Mapping[str, Any]) -> dict[str, Any] | None:
        """The message as it is meant for the bot, if it is."""
        said = groups.addressed(
            content,
            bot_id=self._identity.bot_id,
            username=self._identity.username,
            commands=self._commands,
        )
        album = str(content.get("media_group_id") or "")
        if not album:
            return said
        key = (screened.chat_id, screened.sender_id, album)
        if said is None:
            return dict(content) if key in self._albums else None
        self._albums[key] = None
        while len(self._albums) > _ALBUMS_REMEMBERED:
            self._albums.popitem(last=False)
        return said

    async def _is_answered(
        self, tx: Transaction, screened: Screened, chat: chats.Chat, is_known: bool
    ) -> bool:
        """Whether somebody who is not heard there gets a word: the host always, others once a
        day."""
        now, sender = self._clock.now(), screened.sender_id
        if not is_known and await visitors.silence(tx, CHANNEL, sender, now) is not None:
            return False
        if chat.is_on:
            return await pairing.stranger_notice_due(tx, CHANNEL, screened.sender_id, now)
        host = await actors.find_host(tx) if is_known else None
        if host is not None and (CHANNEL, screened.sender_id) in await actors.identities_of(
            tx, host.id
        ):
            return True
        return await chats.word_due(tx, CHANNEL, screened.chat_id, now)


def readable(updates: Collection[Any]) -> list[Screened]:
    """The updates of people, as far as they can be read."""
    found = []
    for raw in updates:
        with suppress(*UNREADABLE):
            if (screened := screen(raw)) is not None:
                found.append(screened)
    return found


def _bare_tap(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A stranger's tap with what its answer needs."""
    query = raw["callback_query"]
    shown = query["message"]
    kept = {k: shown[k] for k in ("message_id", "date", "chat") if k in shown}
    sender = query["from"]
    person = {"id": sender["id"], "is_bot": False, "first_name": ""}
    if "language_code" in sender:
        person["language_code"] = str(sender["language_code"])[:8]
    bare = {
        "id": query["id"],
        "from": person,
        "chat_instance": str(query.get("chat_instance") or ""),
        "message": kept,
        "data": str(query.get("data") or ""),
    }
    return {"update_id": raw["update_id"], "callback_query": bare}
