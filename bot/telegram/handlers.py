"""What to do with one stored update: run a turn, answer a command, pair, or say what is missing.

The last net of the channel: whatever goes wrong here is logged, told to the person and closed,
so that one update never stops the ones behind it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from telegram import Bot

from bot.telegram import standing
from bot.telegram.answers import Answers, Hears
from bot.telegram.commands import Commands
from bot.telegram.group_door import GroupDoor, is_group
from bot.telegram.groups import Membership, change_of
from bot.telegram.identity import Identity
from bot.telegram.inbound import (
    Command,
    Heard,
    Ignored,
    Noted,
    Origin,
    Said,
    Tap,
    Unsupported,
    read,
)
from bot.telegram.merging import heard as heard_of
from bot.telegram.outbox_sender import OutboxSender
from bot.telegram.pairing import Pairing
from bot.telegram.ports import Pending, Turns
from bot.telegram.presenter import Presenter
from bot.telegram.receiving import Receiving
from bot.telegram.screening import CHANNEL, sender_of
from core.clock import Clock
from core.errors import ErrorCode, StoreError
from core.i18n import Texts
from core.messages import (
    Actor,
    Block,
    ButtonsChanged,
    ChatAddress,
    Inbound,
    QuestionSettled,
    Reply,
    TurnClosed,
    TurnEvent,
)
from core.store import actors, inbox, outbox
from core.store.database import Database, Transaction
from core.store.inbox import StoredInbox

log = logging.getLogger(__name__)

# Restarts that the work of one update may meet before it is given up as their cause.
MAX_ATTEMPTS = 6
# Tries of an update whose turn the store did not keep, while the store takes the update's end.
_UNKEPT_TRIES = 3
_UNKEPT = frozenset({ErrorCode.STORE_FAILED, ErrorCode.DISK_FULL})
_STOP_TRIES, _STOP_PAUSE_S = 15, 0.1


class Handlers:
    """Works stored updates, each to its end. Called again with the same row it answers once."""

    def __init__(
        self,
        *,
        bot: Bot,
        store: Database,
        turns: Turns,
        presenter: Presenter,
        sender: OutboxSender,
        commands: Commands,
        pairing: Pairing,
        texts: Texts,
        clock: Clock,
        lang: str,
        identity: Identity,
        receiving: Receiving,
    ) -> None:
        self._bot = bot
        self._answers = Answers(
            bot=bot, store=store, texts=texts, clock=clock, sender=sender, deliver=self.deliver
        )
        self._groups = GroupDoor(
            bot=bot,
            identity=identity,
            store=store,
            texts=texts,
            clock=clock,
            lang=lang,
            tz=commands.tz,
            answers=self._answers,
        )
        self._receiving = receiving
        self._store = store
        self._turns = turns
        self._presenter = presenter
        self._sender = sender
        self._commands = commands
        self._pairing = pairing
        self._texts = texts
        self._clock = clock
        self._lang = lang
        self._unkept: dict[str, int] = {}

    async def deliver(self, inbound: Inbound, hears: Hears | None = None) -> Reply | None:
        """Run one turn and show it; a failed send never undoes or aborts the turn.

        Returns the reply of a turn that could not be kept and thus is in no outbox; else None.
        `hears` is called with each event, before it is shown. Raises `StoreError` when the store
        failed the turn: the update is worked again, and the turn goes on or tells what it did.
        """
        unkept: Reply | None = None
        if is_group(inbound.address):
            alone = ChatAddress(CHANNEL, inbound.sender_id)
            inbound = replace(inbound, alone=alone)
        try:
            async for event in self._turns.run(inbound):
                if self._is_to_try_again(inbound, event):
                    raise StoreError("the turn was not kept")
                if hears is not None:
                    await hears(event)
                if isinstance(event, QuestionSettled):
                    await self._answers.settle(event, inbound.lang or self._lang)
                elif isinstance(event, ButtonsChanged):
                    self._sender.wake()
                await self._presenter.show(inbound.address, event)
                if isinstance(event, TurnClosed) and event.outbox_key is None:
                    # An empty one is of somebody whose right was withdrawn meanwhile.
                    unkept = event.reply if event.reply.blocks else None
        finally:
            # Nothing to do after a last event; without one no answer will replace the progress.
            await self._presenter.discard(inbound.address)
        return unkept

    def _is_to_try_again(self, inbound: Inbound, event: TurnEvent) -> bool:
        """Whether this end stands nowhere because the store failed, and not too often yet."""
        if not isinstance(event, TurnClosed) or event.turn_id:
            self._unkept.pop(inbound.id, None)
            return False
        if event.error is None or event.error.code not in _UNKEPT:
            return False
        self._unkept[inbound.id] = tries = self._unkept.get(inbound.id, 0) + 1
        return tries <= _UNKEPT_TRIES

    async def work(self, row: StoredInbox, *, leftover: bool = False) -> bool:
        """Do what the row asks and close it; False when the store failed and it is still open.

        `leftover`: a run before this one did not finish it. Raises only `CancelledError`, which
        leaves the row open too.
        """
        try:
            await self._work(row, leftover=leftover)
        except StoreError as exc:
            log.error("update not worked", extra={"inbox_id": row.id, "error": exc.detail})
            return False
        except Exception:
            log.exception("update failed", extra={"inbox_id": row.id})
            return await self._give_up(row, "failed")
        return True

    async def _work(self, row: StoredInbox, *, leftover: bool) -> None:
        if leftover:
            # It may be what ended that run. Only leftovers are counted: the first attempt of a
            # fresh row needs no commit of its own.
            async with self._store.write() as tx:
                attempts = await inbox.mark_running(tx, row.id)
            if attempts == 0:
                return
            if attempts > MAX_ATTEMPTS:
                await self._give_up(row, "given up after restarts")
                return
        try:
            raw = await self._groups.current(row, row.body.get("update") or {})
            change = change_of(raw)
            body = {**row.body, "update": raw}
            heard = Ignored("of a group") if change else heard_of(body, bot_id=row.bot_id)
        except ValueError as exc:
            log.warning("update not readable", extra={"inbox_id": row.id})
            async with self._store.write() as tx:
                await inbox.mark_dead(tx, row.id, str(exc))
            return
        if isinstance(change, Membership):
            await self._groups.change(row, change)
            self._sender.wake()
            return
        await self.handle(row, heard)

    async def handle(self, row: StoredInbox, heard: Heard) -> None:
        """Do one thing heard. Every way ends in one transaction that also closes the row."""
        if isinstance(heard, Ignored):
            await self._close(row)
            return
        async with self._store.read() as tx:
            actor = await actors.find_actor(tx, CHANNEL, heard.origin.sender_id)
            stands = await standing.of_chat(tx, heard.origin.address)
        lang = self._lang_for(actor, heard.origin)
        if await self._groups.take(row, heard, actor, lang):
            self._sender.wake()
            return
        if actor is None or row.body.get("stranger"):
            await self._meet(row, heard, actor)
            return
        match heard:
            case Said(edited=False):
                inbound = await self._receiving.receive(row, heard, actor, lang)
                await self._close(row, await self._answers.said(row.id, inbound, stands, lang))
            case Noted():
                await self._turns.follow(heard.inbound)
                await self._close(row)
            case Said():  # the first form of it was worked already: nothing is done twice
                if await self._turns.correct(heard.inbound):
                    self._sender.wake()
                await self._close(row)
            case Tap():
                await self._close(row, await self._answers.tap(heard, row.received_at, lang))
            case Command(name="start" | "pair", argument=code) if code:
                await self._pair(row, heard, code, lang)
            case Command():
                text, lang = await self._commands.run(heard, actor)
                await self._answer(row, heard.origin, lang, text)
            case Unsupported(key=key, params=params):
                text = self._texts.say(key, lang, **params)
                await self._answer(row, heard.origin, lang, text)

    async def work_past(self, row: StoredInbox, *, pending: Pending) -> None:
        """Work `/stop` or `/status` at once, while a turn of the chat may be running."""
        try:
            raw = await self._groups.current(row, row.body["update"])
            heard = read(raw, bot_id=row.bot_id)
            if isinstance(heard, Command) and heard.name in {"stop", "status"}:
                await self._control(row, heard, pending)
            else:
                await self.handle(row, heard)
        except Exception:
            log.exception("control failed", extra={"inbox_id": row.id})
            await self._give_up(row, "failed")

    async def _control(self, row: StoredInbox, heard: Command, pending: Pending) -> None:
        async with self._store.read() as tx:
            actor = await actors.find_actor(tx, CHANNEL, heard.origin.sender_id)
        lang, address = self._lang_for(actor, heard.origin), heard.origin.address
        if await self._groups.take(row, heard, actor, lang):
            self._sender.wake()
            return
        if actor is None:
            await self._close(row)
            return
        if heard.name == "stop":
            if await self._stop(heard.origin, pending):
                async with self._store.write() as tx:  # the turn itself says what had been done
                    await inbox.mark_done(tx, row.id)
                    await outbox.hasten(tx, address)
                self._sender.wake()
            else:
                foreign = self._turns.status(address) is not None
                key = "telegram.stop.not_yours" if foreign else "telegram.stop.nothing"
                text = self._texts.say(key, lang)
                await self._answer(row, heard.origin, lang, text, urgent=True)
            return
        text = await self._commands.status(
            actor,
            lang,
            waiting=pending.waiting(),
            running=self._turns.status(address),
            poll_age_s=pending.poll_age_s(),
            rival=pending.rival(),
            in_group=is_group(address),
        )
        await self._answer(row, heard.origin, lang, text, urgent=True)

    def hear_tap(self, query_id: str) -> None:
        """A tap came: see to it that it is answered soon, whenever it is worked."""
        self._answers.hear(query_id)

    async def _stop(self, origin: Origin, pending: Pending) -> bool:
        """Stop the chat's turn, else what the person is asked; a message just taken up is given a
        moment to become a turn."""
        for _ in range(_STOP_TRIES):
            if await self._turns.stop(origin.address, origin.sender_id):
                return True
            if self._turns.status(origin.address) is not None:
                return False  # somebody else's
            if not pending.is_working(origin.address):
                return False
            await asyncio.sleep(_STOP_PAUSE_S)
        return False

    async def _meet(self, row: StoredInbox, heard: Heard, actor: Actor | None) -> None:
        """A stranger, or one whose words were left out because they were one a moment ago."""
        if isinstance(heard, Ignored):
            await self._close(row)
            return
        lang = self._lang_for(actor, heard.origin)
        if isinstance(heard, Tap | Noted):
            if isinstance(heard, Tap) and actor is not None:
                await self._answers.refuse(heard, lang)
            await self._close(row)  # of somebody revoked since: not a word
            return
        if isinstance(heard, Command) and heard.name in {"start", "pair"} and heard.argument:
            await self._pair(row, heard, heard.argument, lang)
        elif actor is not None:
            await self._answer(
                row, heard.origin, lang, self._texts.say("telegram.pairing.say_again", lang)
            )
        elif row.body.get("asks"):
            async with self._store.write() as tx:
                await self._pairing.knock(tx, heard.origin)
                if row.body.get("notice"):
                    text = self._texts.say("telegram.stranger", lang)
                    await self._say(tx, row, heard.origin, lang, text)
                else:
                    await inbox.mark_done(tx, row.id)
            self._sender.wake()
        elif row.body.get("stranger"):
            await self._answer(row, heard.origin, lang, self._texts.say("telegram.stranger", lang))
        else:  # known when it was stored, revoked since
            await self._close(row)

    async def _pair(self, row: StoredInbox, heard: Command, code: str, lang: str) -> None:
        async with self._store.write() as tx:
            text = await self._pairing.redeem(tx, heard.origin, code, lang)
            if text is None:
                await inbox.mark_done(tx, row.id)
            else:
                await self._say(tx, row, heard.origin, lang, text)
        self._sender.wake()

    async def _answer(
        self, row: StoredInbox, origin: Origin, lang: str, text: str, *, urgent: bool = False
    ) -> None:
        async with self._store.write() as tx:
            await self._say(tx, row, origin, lang, text, urgent=urgent)
        self._sender.wake()

    async def _say(
        self,
        tx: Transaction,
        row: StoredInbox,
        origin: Origin,
        lang: str,
        text: str,
        *,
        urgent: bool = False,
    ) -> None:
        """Put the channel's own answer in the outbox and close the row."""
        answers = str(origin.message_id) if is_group(origin.address) else None
        reply = Reply((Block("text", text),), lang, answers=answers)
        await self._enqueue(tx, row, origin.address, reply, urgent=urgent)
        await inbox.mark_done(tx, row.id)

    async def _close(self, row: StoredInbox, reply: Reply | None = None) -> None:
        async with self._store.write() as tx:
            if reply is not None:
                await self._enqueue(tx, row, ChatAddress.from_key(row.chat_key), reply)
            await inbox.mark_done(tx, row.id)
        if reply is not None:
            self._sender.wake()

    async def _enqueue(
        self,
        tx: Transaction,
        row: StoredInbox,
        address: ChatAddress,
        reply: Reply,
        *,
        urgent: bool = False,
    ) -> None:
        """One answer for a row, however often it is worked."""
        now = self._clock.now()
        await outbox.enqueue(tx, f"inbox:{row.id}", address, reply.to_json(), now, urgent=urgent)

    async def _give_up(self, row: StoredInbox, note: str) -> bool:
        """Close a row that cannot be worked and tell the person, unless they are unknown."""
        try:
            async with self._store.write() as tx:
                await inbox.mark_dead(tx, row.id, note)
                address = ChatAddress.from_key(row.chat_key)
                sender = sender_of(row.body.get("update"))
                actor = await actors.find_actor(tx, CHANNEL, sender or "")
                if actor is not None:
                    lang = actor.lang or self._lang
                    text = self._texts.say(f"error.{ErrorCode.INTERNAL.value}", lang)
                    await self._enqueue(tx, row, address, Reply((Block("text", text),), lang))
        except StoreError as exc:
            log.error("update not closed", extra={"inbox_id": row.id, "error": exc.detail})
            return False
        self._sender.wake()
        return True

    def _lang_for(self, actor: Actor | None, origin: Origin) -> str:
        chosen = actor.lang if actor is not None else None
        return chosen or origin.lang or self._lang
