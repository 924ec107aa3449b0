"""The commands of a private chat that need no turn, and the lines of `/status`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from zoneinfo import ZoneInfo

from telegram import (
    Bot,
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllChatAdministrators,
    BotCommandScopeAllGroupChats,
    BotCommandScopeChat,
    BotCommandScopeDefault,
)
from telegram.error import TelegramError

from bot.telegram.group_door import is_group
from bot.telegram.inbound import Command
from core.clock import Clock
from core.config import LANGS
from core.execution.cage.status import Isolation
from core.i18n import Texts
from core.messages import Actor, ChatAddress, Role
from core.store import actors, usage
from core.store.database import Database

log = logging.getLogger(__name__)

# In the order in which Telegram's menu and `/help` show them.
_GROUP_MENU = ("help", "undo", "stop", "status", "lang", "tz", "forget")
_ADMIN_MENU = ("start", *_GROUP_MENU)
_MENU = (*_GROUP_MENU, "start")
_HOST_MENU = (*_MENU, "pair", "praxis", "console")

# What a group need not say the bot's name with.
NAMES = frozenset({*_ADMIN_MENU, "pair"})


class RunningTurn(Protocol):
    """A running turn, as `/status` tells of it."""

    @property
    def request(self) -> str: ...
    @property
    def seconds(self) -> float: ...


class ConsoleDoor(Protocol):
    """The console, as `/console` tells of it."""

    @property
    def is_open(self) -> bool: ...
    @property
    def tunnel(self) -> str: ...
    async def link(self, actor: Actor) -> str: ...


class Commands:
    """Answers the commands that need no turn."""

    def __init__(
        self,
        *,
        store: Database,
        texts: Texts,
        clock: Clock,
        default_lang: str,
        tz: str,
        folders: Sequence[str] = (),
        isolation: Callable[[], Awaitable[Isolation]] | None = None,
        console: ConsoleDoor | None = None,
    ) -> None:
        self._store = store
        self._texts = texts
        self._clock = clock
        self._default_lang = default_lang
        self._folders = folders
        self._isolation = isolation
        self._console = console
        self.tz = tz
        self._started_at = clock.monotonic()

    async def run(self, command: Command, actor: Actor) -> tuple[str, str]:
        """Carry out a command of a known person; the answer and its language."""
        lang = actor.lang or command.origin.lang or self._default_lang
        match command.name:
            case "start":
                return self.welcome(actor.role, lang), lang
            case "help":
                return self.help(actor.role, lang, command.origin.address), lang
            case "lang":
                return await self._lang(command.argument, actor, lang)
            case "tz":
                return await self._zone(command.argument, actor, lang)
            case "pair":
                return self._texts.say("telegram.pairing.how", lang), lang
            case "console":
                return await self._enter(command, actor, lang), lang
            case _:
                name = f"/{command.name}"
                return self._texts.say("telegram.command_unknown", lang, name=name), lang

    def help(self, role: Role, lang: str, address: ChatAddress) -> str:
        """What can be asked for, and every command that is in the menu there, a line each."""
        names: Sequence[str]
        if is_group(address):
            scope, names = "group", _GROUP_MENU
        elif role is Role.HOST:
            scope, names = "host", _HOST_MENU
        else:
            scope, names = "guest", _MENU
        lines = [f"/{name} · {self._menu_word(name, scope, lang)}" for name in names]
        return "\n".join([self._texts.say(f"telegram.help.{scope}", lang), "", *lines])

    def _menu_word(self, name: str, scope: str, lang: str) -> str:
        own = f"telegram.menu.{name}.{scope}"
        return self._texts.say(
            own if self._texts.has(own, lang) else f"telegram.menu.{name}", lang
        )

    def welcome(self, role: Role, lang: str) -> str:
        """The first words to a person of the house."""
        if role is Role.GUEST:
            return self._texts.say("telegram.welcome.guest", lang)
        lines = [self._texts.say("telegram.welcome.host", lang)]
        if self._folders:
            folders = self._texts.list(self._folders, lang)
            lines.append(
                self._texts.say(
                    "telegram.welcome.folders", lang, folders=folders, count=len(self._folders)
                )
            )
        lines.append(self._texts.say("telegram.welcome.try", lang))
        return "\n\n".join(lines)

    async def status(
        self,
        actor: Actor,
        lang: str,
        *,
        waiting: int,
        running: RunningTurn | None,
        poll_age_s: float | None,
        rival: str | None = None,
        in_group: bool = False,
    ) -> str:
        """The lines of `/status`: time up, queue, what is being worked on, the person's day,
        whether executors are closed in, and how long ago Telegram was last heard (`poll_age_s`;
        None: not yet). `rival`: the bot whose messages another program reads too. `in_group`:
        others read along, whom the person's day does not concern."""
        say = self._texts.say
        up = self._span(self._clock.monotonic() - self._started_at, lang)
        head = [
            say("telegram.status.up", lang, span=up),
            say("telegram.status.waiting", lang, count=waiting),
        ]
        if running is None:
            head.append(say("telegram.status.idle", lang))
        else:
            request, span = _shortened(running.request, 60), self._span(running.seconds, lang)
            head.append(say("telegram.status.working", lang, request=request, span=span))
        lines = [" · ".join(head)]
        async with self._store.read() as tx:
            zone = ZoneInfo(actor.tz or self.tz)
            day = await usage.of_day(tx, actor.id, self._clock.now().astimezone(zone).date())
        if day.turns and not in_group:
            lines.append(
                say(
                    "telegram.status.today",
                    lang,
                    count=day.turns,
                    memory=day.from_memory,
                    share=round(100 * day.from_memory / day.turns),
                    tokens=day.tokens_in + day.tokens_out,
                )
            )
        tail = []
        if self._isolation is not None:
            state = await self._isolation()
            tail.append(say(f"telegram.status.isolation_{state.value}", lang))
        if poll_age_s is not None:
            tail.append(say("telegram.status.contact", lang, span=self._span(poll_age_s, lang)))
        if tail:
            lines.append(" · ".join(tail))
        if rival is not None:
            lines.append(say("telegram.status.rival", lang, name=rival))
        return "\n".join(lines)

    async def announce(self, bot: Bot, host_ids: Sequence[str] = ()) -> None:
        """Give Telegram the command menus: of private chats, of groups, of their administrators
        and of the host's own chat, in every language. A failure is logged, no more."""
        menus: list[tuple[BotCommandScope, Sequence[str], str]] = [
            (BotCommandScopeDefault(), _MENU, "guest"),
            (BotCommandScopeAllGroupChats(), _GROUP_MENU, "group"),
            (BotCommandScopeAllChatAdministrators(), _ADMIN_MENU, "group"),
            *((BotCommandScopeChat(int(id)), _HOST_MENU, "host") for id in host_ids),
        ]
        for scope, names, whose in menus:
            try:
                await self._announce(bot, scope, names, whose)
            except TelegramError as exc:
                log.warning(
                    "command menu not set",
                    extra={"scope": scope.type, "error": type(exc).__name__},
                )

    async def _announce(
        self, bot: Bot, scope: BotCommandScope, names: Sequence[str], whose: str
    ) -> None:
        for lang in (None, *LANGS):
            menu = [BotCommand(n, self._menu_word(n, whose, lang or "en")) for n in names]
            await bot.set_my_commands(menu, scope=scope, language_code=lang)

    async def _lang(self, argument: str, actor: Actor, lang: str) -> tuple[str, str]:
        wanted = argument.strip().lower()
        chosen = _LANG_WORDS.get(wanted)
        if chosen is None:
            key = "telegram.lang.unknown" if wanted else "telegram.lang.how"
            return self._texts.say(key, lang, name=_shortened(wanted, 20)), lang
        async with self._store.write() as tx:
            await actors.set_lang(tx, actor.id, chosen)
        return self._texts.say("telegram.lang.set", chosen), chosen

    async def _enter(self, command: Command, actor: Actor, lang: str) -> str:
        """The host's way into the console: where it is, and a link that works once."""
        say = self._texts.say
        if actor.role is not Role.HOST:
            return say("telegram.console.host_only", lang)
        # A private chat has the number of its person.
        if command.origin.address.chat_id != command.origin.sender_id:
            return say("telegram.console.alone_only", lang)
        if self._console is None:
            return say("telegram.console.off", lang)
        if not self._console.is_open:
            return say("telegram.console.closed", lang)
        link = await self._console.link(actor)
        return say("telegram.console.link", lang, link=link, tunnel=self._console.tunnel)

    async def _zone(self, argument: str, actor: Actor, lang: str) -> tuple[str, str]:
        """Say or change whose clock counts for this person; a place may be named in either
        language."""
        say, wanted = self._texts.say, " ".join(argument.split())
        if not wanted:
            zone = actor.tz or self.tz
            time = self._texts.time(self._clock.now(), lang, zone)
            return say("telegram.tz.how", lang, zone=zone, time=time), lang
        found = self._texts.zones_named(wanted)
        if len(found) != 1:
            key = "telegram.tz.several" if found else "telegram.tz.unknown"
            names = self._texts.list(found[:6], lang)
            return say(key, lang, name=_shortened(wanted, 40), zones=names), lang
        async with self._store.write() as tx:
            await actors.change(tx, actor.id, tz=found[0])
        time = self._texts.time(self._clock.now(), lang, found[0])
        return say("telegram.tz.set", lang, zone=found[0], time=time), lang

    def _span(self, seconds: float, lang: str) -> str:
        """A length of time in its largest unit: `6 giorni`, `12 s`."""
        for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
            if seconds >= size:
                return self._texts.say(f"telegram.span.{unit}", lang, count=int(seconds // size))
        return self._texts.say("telegram.span.second", lang, count=int(seconds))


_LANG_WORDS: dict[str, str] = {
    "it": "it",
    "italiano": "it",
    "italian": "it",
    "en": "en",
    "english": "en",
    "inglese": "en",
}


def _shortened(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
