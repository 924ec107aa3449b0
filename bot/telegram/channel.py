"""Telegram as a channel of Metnos: its parts put together, started, and stopped in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from telegram.error import InvalidToken, TelegramError

from bot.telegram.client import bot_id_of, build_bot
from bot.telegram.commands import NAMES, Commands, ConsoleDoor
from bot.telegram.delivery import Delivery
from bot.telegram.express import Express
from bot.telegram.faults import backoff_s
from bot.telegram.guest_mode import GuestMode
from bot.telegram.handlers import Handlers
from bot.telegram.identity import Identity
from bot.telegram.intake import Intake
from bot.telegram.outage import Outage
from bot.telegram.outbox_sender import OutboxSender
from bot.telegram.pacing import Gate
from bot.telegram.pairing import Pairing
from bot.telegram.poll import Poller
from bot.telegram.ports import Turns
from bot.telegram.presenter import Presenter
from bot.telegram.reach import Reach
from bot.telegram.receiving import Receiving
from bot.telegram.screening import CHANNEL
from bot.telegram.sifting import Sifter
from bot.telegram.watchdog import Watchdog
from bot.telegram.workers import Workers
from core.clock import Clock
from core.config import Settings
from core.errors import ChannelDeaf, MetnosError, SettingsInvalid, StoreCorrupt, StoreError
from core.execution.cage.status import Isolation
from core.execution.incoming import Incoming
from core.i18n import Texts
from core.llm.transcribe import Transcriber
from core.store import actors, inbox, outbox
from core.store import pairing as pairing_store
from core.store import reach as reach_store
from core.store.stores import Stores

if TYPE_CHECKING:
    from bot.telegram.webhook import Webhook

log = logging.getLogger(__name__)

KEPT = timedelta(days=7)
_PRUNE_EVERY_S = 6 * 3600.0
_END_S = 5.0


class TelegramChannel:
    """One bot, from the first poll to the last answer.

    Raises `SettingsInvalid` at once when no token is set or it cannot be one.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        stores: Stores,
        turns: Turns,
        texts: Texts,
        clock: Clock,
        isolation: Callable[[], Awaitable[Isolation]] | None = None,
        console: ConsoleDoor | None = None,
    ) -> None:
        lang = settings.metnos_lang
        folders = tuple(root.name for root in settings.metnos_files_roots or () if root.name)
        token = settings.telegram_bot_token
        secret = "" if token is None else token.get_secret_value().strip()
        bot_id = bot_id_of(secret)
        if bot_id is None:
            raise SettingsInvalid(texts.say("telegram.token_malformed", lang))
        gate = Gate(clock.monotonic)
        self._bot = build_bot(
            secret, settings.telegram_base_url, settings.telegram_base_file_url, gate
        )
        store = stores.main
        self._store = store
        self._clock = clock
        answers_wait = asyncio.Event()
        reach = Reach(store=store, texts=texts, clock=clock, lang=lang)
        self._presenter = Presenter(
            bot=self._bot,
            gate=gate,
            store=store,
            texts=texts,
            clock=clock,
            lang=lang,
            streams=settings.metnos_telegram_stream,
            wake_outbox=answers_wait.set,
        )
        self._sender = OutboxSender(
            store=store,
            gate=gate,
            clock=clock,
            delivery=Delivery(bot=self._bot, store=store, texts=texts, presenter=self._presenter),
            reach=reach,
            waiting=answers_wait,
        )
        self._commands = Commands(
            store=store,
            texts=texts,
            clock=clock,
            default_lang=lang,
            tz=settings.metnos_tz,
            folders=folders,
            isolation=isolation,
            console=console,
        )
        self._identity = Identity(self._bot, bot_id)
        pairing = Pairing(
            texts=texts,
            clock=clock,
            welcome=self._commands.welcome,
            lang=lang,
            tz=settings.metnos_tz,
        )
        outage = Outage(bot=self._bot, store=store, texts=texts, lang=lang)
        handlers = Handlers(
            bot=self._bot,
            store=store,
            turns=turns,
            presenter=self._presenter,
            sender=self._sender,
            commands=self._commands,
            pairing=pairing,
            texts=texts,
            clock=clock,
            lang=lang,
            identity=self._identity,
            receiving=Receiving(
                bot=self._bot,
                store=store,
                vault=stores.vault,
                texts=texts,
                clock=clock,
                incoming=Incoming(settings, texts),
                transcriber=Transcriber(settings),
                presenter=self._presenter,
                wake_outbox=self._sender.wake,
                tz=settings.metnos_tz,
            ),
        )
        express = Express(
            bot=self._bot,
            bot_id=bot_id,
            store=store,
            turns=turns,
            commands=self._commands,
            pending=lambda: self._workers,
            texts=texts,
            lang=lang,
        )
        self._workers = Workers(
            store=store,
            vault=stores.vault,
            bot_id=bot_id,
            handlers=handlers,
            turns=turns,
            clock=clock,
            poll_age_s=self.poll_age_s,
            rival=lambda: self._ear.rival,
            express=express,
        )
        self._guests: GuestMode | None = None
        if settings.metnos_guest_mode:
            self._guests = GuestMode(
                bot=self._bot,
                identity=self._identity,
                store=store,
                turns=turns,
                texts=texts,
                clock=clock,
                lang=lang,
            )
        intake = Intake(
            bot_id=bot_id,
            sifter=Sifter(
                identity=self._identity,
                clock=clock,
                is_locked=pairing.is_locked,
                commands=NAMES,
                reach=reach,
            ),
            store=store,
            vault=stores.vault,
            clock=clock,
            on_stored=self._workers.wake,
            slow=express.hurry,
            guests=self._guests,
        )
        self._ear: Poller | Webhook
        if settings.metnos_webhook_url is None:
            self._ear = Poller(
                bot=self._bot,
                identity=self._identity,
                intake=intake,
                texts=texts,
                lang=lang,
                clock=clock,
                outage=outage,
            )
        else:
            # What serves HTTP is loaded only where it is used.
            from bot.telegram.webhook import Webhook, address_of

            self._ear = Webhook(
                bot=self._bot,
                identity=self._identity,
                intake=intake,
                address=address_of(settings, texts),
                texts=texts,
                lang=lang,
                clock=clock,
                outage=outage,
            )
        self._watchdog = Watchdog(
            bot=self._bot, ear=self._ear, clock=clock, restart=self._poll_anew
        )
        self._polling: asyncio.Task[None] | None = None
        self._group: asyncio.TaskGroup | None = None
        self._running = False

    @property
    def username(self) -> str:
        """The bot's name without @, empty until Telegram has told it."""
        return self._identity.username

    def poll_age_s(self) -> float | None:
        """Seconds since the last completed poll, the sign of life; None before the first."""
        at = self._ear.last_poll_at
        return None if at is None else max(0.0, self._clock.monotonic() - at)

    def waiting(self) -> int:
        """How many updates wait behind others."""
        return self._workers.waiting()

    def rival(self) -> str | None:
        """The bot whose updates another program takes too; None when nobody does."""
        return self._ear.rival

    def wake_outbox(self) -> None:
        """Send what stands in the outbox now, whoever wrote it."""
        self._sender.wake()

    async def run(self) -> None:
        """Poll, work and send until cancelled or stopped.

        Raises `SettingsInvalid` when Telegram refuses the token, `ChannelDeaf` when no updates
        come and polling anew did not help, `StoreCorrupt` when the database is damaged meanwhile.
        A network that is down is waited out, also at the start. Runs once.
        """
        self._running = True
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._polling = group.create_task(self._ear.run(), name="telegram poll")
                group.create_task(self._watchdog.run(), name="telegram watchdog")
                group.create_task(self._workers.run(), name="telegram workers")
                group.create_task(self._sender.run(), name="telegram outbox")
                group.create_task(self._introduce(), name="telegram introduction")
                group.create_task(self._prune(), name="telegram pruning")
                group.create_task(self._store.broken(), name="telegram database")
        except* (SettingsInvalid, ChannelDeaf, StoreCorrupt) as ended:
            raise _first(ended) from None
        finally:
            self._group = None
            self._running = False
            if self._guests is not None:
                await self._guests.close()
            await self._bot.close_connections()

    async def _poll_anew(self) -> None:
        """End the poll that hangs, as far as it lets itself be ended, and begin another."""
        if self._group is None or self._polling is None:
            return
        self._polling.cancel()
        await asyncio.wait({self._polling}, timeout=_END_S)
        await self._bot.renew_polling()
        self._polling = self._group.create_task(self._ear.run(), name="telegram poll")

    async def stop(self, grace_s: float) -> None:
        """Stop polling, let running turns end for at most `grace_s` seconds, send what is ready.

        `run` is to be cancelled afterwards. What is left open is worked at the next start. Does
        nothing when `run` has ended or was never begun.
        """
        if not self._running:
            return
        if self._polling is not None:
            self._polling.cancel()
        await self._workers.stop(grace_s)
        await self._sender.stop(min(5.0, grace_s))

    async def _introduce(self) -> None:
        """What may wait until after the first poll: the bot's name, old progress, the menu."""
        attempts = 0
        while True:
            try:
                me = await self._identity.ask()
                break
            except InvalidToken:
                return  # the poll loop says so
            except TelegramError:
                attempts += 1
                await asyncio.sleep(backoff_s(attempts))
        log.info("telegram bot", extra={"bot": self._identity.username})
        if self._guests is not None and not me.answers_guests:
            log.warning("guest mode is not switched on at @BotFather")
        try:
            await self._presenter.clear_leftovers()
        except StoreError as exc:
            log.warning("old progress not cleared", extra={"error": exc.detail})
        await self._commands.announce(self._bot, await self._host_ids())

    async def _host_ids(self) -> list[str]:
        """The host's own chats with the bot."""
        try:
            async with self._store.read() as tx:
                host = await actors.find_host(tx)
                known = [] if host is None else await actors.identities_of(tx, host.id)
        except StoreError as exc:
            log.warning("host not known", extra={"error": exc.detail})
            return []
        return [sender_id for channel, sender_id in known if channel == CHANNEL]

    async def _prune(self) -> None:
        """Forget finished rows after a week, a few times a day."""
        while True:
            now = self._clock.now()
            try:
                async with self._store.write() as tx:
                    await inbox.prune(tx, now - KEPT)
                    await outbox.prune(tx, now - KEPT)
                    await pairing_store.prune(tx, now)
                    await reach_store.prune(tx, now)
            except StoreError as exc:
                log.warning("old rows not forgotten", extra={"error": exc.detail})
            await asyncio.sleep(_PRUNE_EVERY_S)


def _first(group: BaseExceptionGroup[MetnosError]) -> MetnosError:
    found = group.exceptions[0]
    return found if isinstance(found, MetnosError) else _first(found)
