"""Who is heard in a group: nobody until the host turns it on, then those who are known.

The host's buttons carry what they do in the clear; what counts is whose the tap is. Words for the
group itself are said at most once a day (`bot.telegram.sifting`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from telegram import Bot
from telegram.error import TelegramError

from bot.telegram.groups import Membership, moved
from bot.telegram.identity import Identity, Me
from bot.telegram.inbound import Command, Heard, Ignored, Noted, Origin, Tap
from bot.telegram.screening import CHANNEL
from core.clock import Clock
from core.i18n import Texts
from core.messages import Actor, Block, Button, ChatAddress, Reply, Role
from core.store import actors, chats, inbox, outbox, questions
from core.store.chats import Chat, ChatState
from core.store.database import Database, Transaction
from core.store.inbox import StoredInbox

log = logging.getLogger(__name__)

_ON, _OFF = "group:on:", "group:off:"
_DECIDED = {_ON: ChatState.ON, _OFF: ChatState.OFF}


@dataclass(frozen=True, slots=True)
class Sight:
    """What the bot is shown of a group; None: Telegram did not say."""

    me: Me | None
    is_admin: bool | None


class Answers(Protocol):
    """How a tap is answered (`bot.telegram.answers`)."""

    async def word(self, query_id: str, text: str) -> None: ...


class GroupDoor:
    """Lets a group's updates through to be worked, or says why not."""

    def __init__(
        self,
        *,
        bot: Bot,
        identity: Identity,
        store: Database,
        texts: Texts,
        clock: Clock,
        lang: str,
        tz: str,
        answers: Answers,
    ) -> None:
        self._bot, self._identity, self._store = bot, identity, store
        self._texts, self._clock, self._lang = texts, clock, lang
        self._tz, self._answers = tz, answers

    async def take(self, row: StoredInbox, heard: Heard, actor: Actor | None, lang: str) -> bool:
        """Answer and close what is not to be worked; False: it is let through, and nothing is
        done. The caller wakes the outbox."""
        if isinstance(heard, Ignored):
            return False
        if isinstance(heard, Tap) and (pressed := _pressed(heard)) is not None:
            await self._decide(row, heard, *pressed, actor, lang)
            return True
        origin = heard.origin
        if not is_group(origin.address):
            return False
        async with self._store.read() as tx:
            chat = await chats.find(tx, CHANNEL, origin.address.chat_id)
        is_on = chat is not None and chat.is_on
        if isinstance(heard, Tap):
            if is_on and actor is not None:
                return False
            key = "telegram.group.not_yours" if is_on else "telegram.button_expired"
            await self._answers.word(heard.query_id, self._texts.say(key, lang))
            await self._close(row)
        elif isinstance(heard, Noted) and not is_on:
            await self._close(row)
        elif not is_on or row.body.get("unheard") or actor is None:
            await self._meet(row, origin, chat, actor, lang)
        elif isinstance(heard, Command) and heard.name == "start" and not heard.argument:
            await self._explain(row, origin, chat, actor, lang)
        elif isinstance(heard, Command) and heard.name in {"start", "pair"}:
            await self._say(row, origin, lang, "telegram.group.code_in_private")
        else:
            return False
        return True

    async def current(self, row: StoredInbox, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """A stored update of a group, as in the chat that the group has become meanwhile."""
        address = ChatAddress.from_key(row.chat_key)
        if not is_group(address):
            return raw
        async with self._store.read() as tx:
            new_id = await chats.moved_to(tx, CHANNEL, address.chat_id)
        return moved(raw, new_id or address.chat_id)

    async def change(self, row: StoredInbox, change: Membership) -> None:
        """Note what became of a group, and ask the host when the bot was let into one."""
        now, here = self._clock.now(), ChatAddress(CHANNEL, change.chat_id)
        async with self._store.write() as tx:
            chat = await chats.meet(
                tx,
                CHANNEL,
                change.chat_id,
                title=change.title,
                is_forum=change.is_forum,
                now=now,
            )
            await chats.set_rights(tx, CHANNEL, change.chat_id, is_admin=change.is_admin)
            if not change.is_in:
                await chats.set_state(tx, CHANNEL, change.chat_id, ChatState.GONE, now)
            elif not change.was_in:
                if chat.state is ChatState.GONE:
                    await chats.set_state(tx, CHANNEL, change.chat_id, ChatState.NEW, now)
                actor = await actors.find_actor(tx, CHANNEL, change.by)
                if actor is not None and actor.role is Role.HOST:
                    await self._ask(tx, row, here, chat, actor.lang or self._lang)
                elif actor is not None:
                    await self._ask_host(tx, chat)
            await inbox.mark_done(tx, row.id)

    async def _meet(
        self,
        row: StoredInbox,
        origin: Origin,
        chat: Chat | None,
        actor: Actor | None,
        lang: str,
    ) -> None:
        """Somebody speaks to the bot where it does not listen, or to whom it does not."""
        if chat is None:
            await self._close(row)
            return
        if chat.is_on:
            key = "telegram.group.say_again" if actor is not None else "telegram.group.stranger"
            await self._say(row, origin, lang, key)
            return
        if actor is not None and actor.role is Role.HOST:
            await self._explain(row, origin, chat, actor, lang)
            return
        async with self._store.write() as tx:
            if actor is not None:
                await self._ask_host(tx, chat)
            await self._enqueue(tx, row, origin, self._text(lang, "telegram.group.silent"))
            await inbox.mark_done(tx, row.id)

    async def _decide(
        self,
        row: StoredInbox,
        tap: Tap,
        state: ChatState,
        chat_id: str,
        actor: Actor | None,
        lang: str,
    ) -> None:
        """The host turns a group on or off; nobody else does."""
        if actor is None or actor.role is not Role.HOST:
            word = self._texts.say("telegram.group.host_only", lang)
            await self._answers.word(tap.query_id, word)
            await self._close(row)
            return
        now = self._clock.now()
        async with self._store.read() as tx:
            chat = await chats.find(tx, CHANNEL, chat_id)
        if chat is None or chat.state is ChatState.GONE:
            word = self._texts.say("telegram.group.gone", lang)
            await self._answers.word(tap.query_id, word)
            await self._close(row)
            return
        await self._answers.word(tap.query_id, "")
        sight = await self._sight(chat) if state is ChatState.ON else None
        time = self._texts.time(now, lang, actor.tz or self._tz)
        async with self._store.write() as tx:
            changed = await chats.set_state(tx, CHANNEL, chat_id, state, now)
            asked = await outbox.find_by_message(
                tx, tap.origin.address.key, str(tap.origin.message_id)
            )
            text = self._texts.say(
                f"telegram.group.turned_{state.value}", lang, time=time, title=chat.title
            )
            if asked is not None:
                await questions.settle(tx, asked.key, text, lang, now)
            if changed and sight is not None:
                if sight.is_admin is not None:
                    await chats.set_rights(tx, CHANNEL, chat_id, is_admin=sight.is_admin)
                here = ChatAddress(CHANNEL, chat_id, _topic_of(tap, chat_id))
                reply = Reply(self._seen(sight, lang), lang)
                await outbox.enqueue(tx, f"inbox:{row.id}", here, reply.to_json(), now)
            await inbox.mark_done(tx, row.id)

    # -- words ------------------------------------------------------------------------------------

    async def _explain(
        self, row: StoredInbox, origin: Origin, chat: Chat | None, actor: Actor | None, lang: str
    ) -> None:
        """What the bot sees of this group, with the button that the host turns it on or off by."""
        if chat is None:
            await self._close(row)
            return
        is_host = actor is not None and actor.role is Role.HOST
        sight = await self._sight(chat)
        blocks = self._seen(sight, lang) if chat.is_on else ()
        if not chat.is_on:
            blocks = (Block("text", self._texts.say("telegram.group.ask_here", lang)),)
        buttons = self._buttons(chat, lang) if is_host else ()
        async with self._store.write() as tx:
            if sight.is_admin is not None:
                await chats.set_rights(tx, CHANNEL, chat.chat_id, is_admin=sight.is_admin)
            await self._enqueue(tx, row, origin, Reply(blocks, lang, buttons=buttons))
            await inbox.mark_done(tx, row.id)

    async def _sight(self, chat: Chat) -> Sight:
        me, is_admin = None, None
        try:
            me = await self._identity.ask()
            member = await self._bot.get_chat_member(int(chat.chat_id), int(self._identity.bot_id))
            is_admin = member.status == "administrator"
        except TelegramError as exc:
            log.info("rights in a group not known", extra={"error": type(exc).__name__})
        return Sight(me, is_admin)

    def _seen(self, sight: Sight, lang: str) -> tuple[Block, ...]:
        """What reaches the bot in a group, and what to do where that is too little."""
        say, name = self._texts.say, f"@{self._identity.username or '…'}"
        lines = [say("telegram.group.listens", lang, name=name)]
        if sight.is_admin:
            lines.append(say("telegram.group.sees_admin", lang))
        elif sight.me is not None and sight.me.reads_all:
            lines.append(say("telegram.group.sees_all", lang, name=name))
        elif sight.me is not None:
            lines.append(say("telegram.group.sees_little", lang, name=name))
            lines.append(say("telegram.group.privacy", lang, name=name))
        return tuple(Block("text", line) for line in lines)

    async def _ask(
        self, tx: Transaction, row: StoredInbox, here: ChatAddress, chat: Chat, lang: str
    ) -> None:
        text = self._texts.say("telegram.group.ask_here", lang)
        reply = Reply((Block("text", text),), lang, buttons=self._buttons(chat, lang))
        await outbox.enqueue(tx, f"inbox:{row.id}", here, reply.to_json(), self._clock.now())

    async def _ask_host(self, tx: Transaction, chat: Chat) -> None:
        """Ask in the host's own chat, once a day for a group, and not again after a no."""
        now = self._clock.now()
        host = await actors.find_host(tx)
        if host is None or chat.state is ChatState.OFF:
            return
        found = [
            id for channel, id in await actors.identities_of(tx, host.id) if channel == CHANNEL
        ]
        if not found or not await chats.question_due(tx, CHANNEL, chat.chat_id, now):
            return
        lang = host.lang or self._lang
        text = self._texts.say("telegram.group.ask_host", lang, title=chat.title or chat.chat_id)
        reply = Reply((Block("text", text),), lang, buttons=self._buttons(chat, lang))
        key = f"group:{chat.chat_id}:{int(now.timestamp())}"
        await outbox.enqueue(tx, key, ChatAddress(CHANNEL, found[0]), reply.to_json(), now)

    def _buttons(self, chat: Chat, lang: str) -> tuple[tuple[Button, ...], ...]:
        say = self._texts.say
        on = Button(say("telegram.group.button_on", lang), _ON + chat.chat_id)
        if chat.is_on:
            return ((Button(say("telegram.group.button_off", lang), _OFF + chat.chat_id),),)
        return ((on, Button(say("telegram.group.button_stay_off", lang), _OFF + chat.chat_id)),)

    def _text(self, lang: str, key: str) -> Reply:
        return Reply((Block("text", self._texts.say(key, lang)),), lang)

    async def _say(self, row: StoredInbox, origin: Origin, lang: str, key: str) -> None:
        async with self._store.write() as tx:
            await self._enqueue(tx, row, origin, self._text(lang, key))
            await inbox.mark_done(tx, row.id)

    async def _enqueue(
        self, tx: Transaction, row: StoredInbox, origin: Origin, reply: Reply
    ) -> None:
        answers = None if origin.message_id is None else str(origin.message_id)
        body = {**reply.to_json(), "answers": answers}
        await outbox.enqueue(tx, f"inbox:{row.id}", origin.address, body, self._clock.now())

    async def _close(self, row: StoredInbox) -> None:
        async with self._store.write() as tx:
            await inbox.mark_done(tx, row.id)


def is_group(address: ChatAddress) -> bool:
    """Telegram's groups have negative ids, people positive ones."""
    return address.chat_id.startswith("-")


def _pressed(tap: Tap) -> tuple[ChatState, str] | None:
    """What a button of ours decides about which group."""
    token = "" if tap.inbound is None else str(tap.inbound.data.get("token") or "")
    for prefix, state in _DECIDED.items():
        if token.startswith(prefix):
            return state, token.removeprefix(prefix)
    return None


def _topic_of(tap: Tap, chat_id: str) -> str | None:
    """The topic in which a group was turned on, if it was done there."""
    here = tap.origin.address
    return here.thread_id if here.chat_id == chat_id else None
