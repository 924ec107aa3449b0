"""Who the bot is: its id and name, and what its groups show it.

Asked of Telegram once, and again when somebody wants to know; the name may change meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from telegram import Bot, User


@dataclass(frozen=True, slots=True)
class Me:
    """`reads_all`: privacy mode is off, so groups that it joins from then on show it everything.
    `answers_guests`: it may be named where it is no member."""

    username: str
    reads_all: bool
    answers_guests: bool


class Identity:
    """The bot of one token. `username` is empty until Telegram has told it."""

    def __init__(self, bot: Bot, bot_id: str) -> None:
        self._bot = bot
        self.bot_id = bot_id
        self.username = ""

    @property
    def shown(self) -> str:
        """How to name the bot to people: its @name, else its number."""
        return f"@{self.username}" if self.username else self.bot_id

    async def ask(self) -> Me:
        """Ask Telegram. Raises `TelegramError`."""
        me = await self._bot.get_me()
        self.username = me.username or ""
        return Me(self.username, _is(me, "can_read_all_group_messages"), _answers_guests(me))

    async def known(self) -> str:
        """The bot's name, asked for when it is not known yet. Raises `TelegramError`."""
        return self.username or (await self.ask()).username


def _is(me: User, name: str) -> bool:
    return getattr(me, name, None) is True


def _answers_guests(me: User) -> bool:
    return _is(me, "supports_guest_queries") or (
        me.api_kwargs.get("supports_guest_queries") is True
    )
