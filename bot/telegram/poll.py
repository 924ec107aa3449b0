"""The poll loop: fetch updates, store them with the offset in one commit, only then fetch on.

Telegram forgets an update once a later offset is asked for, so nothing is asked for before the
commit. What of a batch is kept is for `bot.telegram.sifting` to say.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from contextlib import suppress
from typing import Any

from telegram.error import Conflict, InvalidToken, TelegramError

from bot.telegram.client import PollingBot
from bot.telegram.faults import FaultKind, backoff_s, classify
from bot.telegram.identity import Identity
from bot.telegram.intake import Intake
from bot.telegram.numbers import update_id
from bot.telegram.outage import Outage
from bot.telegram.sifting import readable
from core.clock import Clock
from core.errors import SettingsInvalid, StoreError
from core.i18n import Texts

log = logging.getLogger(__name__)

# How long Telegram may hold a request without news.
LONG_POLL_S = 30
# Longer than any poll of another program lasts, by so much.
_AFTER_RIVAL_S = 2.0
# 401s in a row after which a token that did work counts as withdrawn.
_REFUSALS = 5
_QUIET_S = 3 * 24 * 3600.0
# They cannot be acknowledged, so they come at once again.
_UNNUMBERED_S = 5.0


class Poller:
    """Fetches for one bot."""

    def __init__(
        self,
        *,
        bot: PollingBot,
        identity: Identity,
        intake: Intake,
        texts: Texts,
        lang: str,
        clock: Clock,
        outage: Outage,
    ) -> None:
        self._bot, self._identity, self._intake = bot, identity, intake
        self._texts, self._lang, self._clock = texts, lang, clock
        self._outage = outage
        self._heard_at: float | None = None
        self.last_poll_at: float | None = None
        """Monotonic seconds of the last completed poll: the sign of life of the channel."""
        self.rival: str | None = None
        """The bot whose updates another program fetches too, while that lasts."""
        self._store_fails = False

    @property
    def excuse(self) -> str:
        """Why polls are known not to be completed, empty when they should be."""
        return "store" if self._store_fails else "rival" if self.rival else ""

    async def run(self) -> None:
        """Poll until cancelled. Raises `SettingsInvalid` when Telegram does not know the token.

        Everything else is waited out: no network, 409, 5xx, a full disk, and also what nobody
        thought of, so that what was received is still worked and answered.
        """
        offset = await self._intake.first_offset()
        failures, settled = 0, False
        updates: list[Any] = []
        while True:
            # The first poll, and the one after a failure, do not wait for news.
            settled = settled and failures == 0
            try:
                async with asyncio.timeout(LONG_POLL_S + 30):
                    updates = await self._bot.get_raw_updates(
                        offset=offset,
                        timeout_s=LONG_POLL_S if settled else 0,
                        also=self._intake.also,
                    )
                offset = await self._store_batch(updates, offset)
                if settled:  # a whole poll, and nobody has thrown it out
                    await self._rival_gone()
                settled = True
            except InvalidToken as exc:
                failures += 1
                # A token that worked a moment ago is not given up at the first 401.
                if self.last_poll_at is None or failures > _REFUSALS:
                    text = self._texts.say("telegram.token_refused", self._lang)
                    raise SettingsInvalid(text) from exc
                await self._wait_out(exc, failures)
            except Conflict as exc:
                failures += 1
                await self._wait_out_conflict(exc, failures)
            except (TelegramError, TimeoutError) as exc:
                failures += 1
                await self._wait_out(exc, failures)
            except StoreError as exc:
                failures += 1
                self._store_fails = True
                log.error("updates not stored, not acknowledged", extra={"error": exc.detail})
                await self._outage.tell([one for one in readable(updates) if one.is_private], exc)
                await asyncio.sleep(backoff_s(failures, most_s=2))
            except Exception as exc:
                failures += 1
                log.error("poll failed", extra={"error": type(exc).__name__, "at": _place(exc)})
                await asyncio.sleep(backoff_s(failures, most_s=30))
            else:
                if failures:
                    log.info("telegram reached again", extra={"failures": failures})
                    self._outage.over()
                failures, self._store_fails = 0, False

    async def _store_batch(self, updates: list[Any], offset: int | None) -> int | None:
        """Store the updates and the next offset in one commit; the offset to go on with."""
        self.last_poll_at = now = self._clock.monotonic()
        ids = [found for one in updates if (found := update_id(one)) is not None]
        if updates and not ids:
            log.error("updates without a number", extra={"count": len(updates)})
            await asyncio.sleep(_UNNUMBERED_S)
            return offset
        if not ids:
            await self._intake.note_alive()
            # After a quiet week Telegram counts from a random number, and an old offset would
            # confirm lower ones unseen. Without it they come, and those we have are known.
            quiet = self._heard_at is None or now - self._heard_at > _QUIET_S
            return None if quiet else offset
        self._heard_at = now
        next_offset = max(ids) + 1
        # What comes in one answer is worked in the order in which it was written.
        updates.sort(key=_number)

        async def peek() -> list[Any]:
            # The same offset again: nothing is acknowledged by looking.
            with suppress(TelegramError):
                return await self._bot.get_raw_updates(
                    offset=offset, timeout_s=0, also=self._intake.also
                )
            return []

        await self._intake.keep(updates, next_offset, peek)
        return next_offset

    async def _rival_gone(self) -> None:
        self.rival = None
        await self._intake.rival_gone()

    async def _wait_out(self, exc: Exception, failures: int) -> None:
        wait = backoff_s(failures, most_s=30)
        if isinstance(exc, TelegramError):
            fault = classify(exc)
            wait = max(wait, fault.after_s) if fault.kind is FaultKind.WAIT else wait
        log.warning(
            "telegram not reached",
            extra={"error": type(exc).__name__, "failures": failures, "wait_s": wait},
        )
        await asyncio.sleep(wait)

    async def _wait_out_conflict(self, exc: Conflict, failures: int) -> None:
        """409: a webhook is set (taken away, updates kept), or somebody else polls this bot."""
        if "webhook" in exc.message.lower() and failures == 1:
            log.warning("a webhook is in the way and is taken away")
            with suppress(TelegramError):
                await self._bot.delete_webhook(drop_pending_updates=False)
            return
        bot = self._identity.shown
        log.error(
            "another program fetches the updates of this bot",
            extra={"bot": bot, "detail": exc.message, "failures": failures},
        )
        self.rival = bot
        try:
            await self._intake.note_rival(bot)
            if "webhook" in exc.message.lower():
                await self._bot.delete_webhook(drop_pending_updates=False)
        except (StoreError, TelegramError) as error:
            log.warning("409 not settled", extra={"error": type(error).__name__})
        # The other one's request must end first; hurrying would only throw each other out.
        await asyncio.sleep(LONG_POLL_S + _AFTER_RIVAL_S)


def _place(exc: BaseException) -> str:
    """Where something went wrong: it says more than the kind, and nothing that was written."""
    frames = traceback.extract_tb(exc.__traceback__)
    return f"{frames[-1].name}:{frames[-1].lineno}" if frames else ""


def _number(update: Any) -> int:
    found = update_id(update)
    return -1 if found is None else found
