"""Pairing on Telegram: a one-time code, said with `/start CODE` or `/pair CODE`, or the host's
button after a bare `/start`."""

from __future__ import annotations

from collections.abc import Callable

from bot.telegram.inbound import Origin
from bot.telegram.screening import CHANNEL
from core.clock import Clock
from core.i18n import Texts
from core.messages import Role
from core.store import pairing, visitors
from core.store.database import Transaction
from core.store.pairing import PairingOutcome
from core.turn_visitors import ask_host

# A locked sender is told so once in this time; to answer every try would serve the trier.
LOCKED_NOTICE_EVERY_S = 600.0
_KEPT_SENDERS = 1000


class Pairing:
    """Turns a code into the answer for whoever sent it."""

    def __init__(
        self,
        *,
        texts: Texts,
        clock: Clock,
        welcome: Callable[[Role, str], str],
        lang: str,
        tz: str,
    ) -> None:
        self._lang, self._tz = lang, tz
        self._texts = texts
        self._clock = clock
        self._welcome = welcome
        self._told_locked: dict[str, float] = {}

    async def redeem(self, tx: Transaction, origin: Origin, code: str, lang: str) -> str | None:
        """Try the code for the sender; what to tell them, in `lang`. None: say nothing.

        Works inside the caller's transaction, so that the code is spent and the answer stored
        together or not at all.
        """
        result = await pairing.redeem_code(
            tx, code, CHANNEL, origin.sender_id, origin.sender_name, self._clock
        )
        match result.outcome:
            case PairingOutcome.PAIRED if result.actor is not None:
                return self._welcome(result.actor.role, lang)
            case PairingOutcome.ALREADY_PAIRED:
                return self._texts.say("telegram.pairing.already", lang)
            case PairingOutcome.LOCKED:
                if not self._may_tell_locked(origin.sender_id):
                    return None
                return self._texts.say("telegram.pairing.locked", lang)
            case _:
                return self._texts.say("telegram.pairing.invalid", lang)

    async def knock(self, tx: Transaction, origin: Origin) -> None:
        """A stranger asks to be let in: ask the host, unless that was done or is too much."""
        visitor = await visitors.ask(
            tx, CHANNEL, origin.sender_id, origin.sender_name, origin.lang, self._clock.now()
        )
        if visitor is not None:
            await ask_host(tx, visitor, self._texts, self._clock, lang=self._lang, tz=self._tz)

    def is_locked(self, sender_id: str) -> bool:
        """Whether this sender was told a moment ago that they are locked: what they try until
        the next notice need not even be stored."""
        told_at = self._told_locked.get(sender_id, float("-inf"))
        return self._clock.monotonic() - told_at < LOCKED_NOTICE_EVERY_S

    def _may_tell_locked(self, sender_id: str) -> bool:
        if self.is_locked(sender_id):
            return False
        if len(self._told_locked) >= _KEPT_SENDERS:
            self._told_locked.clear()
        self._told_locked[sender_id] = self._clock.monotonic()
        return True
