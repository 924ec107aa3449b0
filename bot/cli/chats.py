"""`metnos groups list` and `off`: the Telegram groups that the bot has met, and where it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.beside import read_store, write_store
from bot.cli.lines import table
from bot.cli.output import FAULT, Session

if TYPE_CHECKING:
    from core.store.database import Transaction


def list_groups(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """The groups that the bot has met, those where it is on first."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.store import chats

    found = read_store(settings, chats.list_chats)
    if as_json:
        console.json(
            [
                {
                    "id": chat.chat_id,
                    "title": chat.title,
                    "state": chat.state.value,
                    "forum": chat.is_forum,
                    "admin": chat.is_admin,
                    "since": chat.changed_at.isoformat(),
                }
                for chat in found
            ]
        )
        return 0
    if not found:
        console.tell("cli.groups.none")
    for line in table(
        [
            (
                chat.chat_id,
                chat.title,
                console.say(f"cli.groups.{chat.state.value}"),
                console.texts.datetime(chat.changed_at, console.lang, settings.metnos_tz),
            )
            for chat in found
        ]
    ):
        console.line(line)
    return 0


def turn_off(ctx: typer.Context, which: Annotated[str, typer.Argument(metavar="GROUP")]) -> int:
    """Turn the bot off in a group, by its number or its exact name; it counts at once."""
    session: Session = ctx.obj
    console = session.console
    from core.clock import SystemClock
    from core.store import chats
    from core.store.chats import Chat, ChatState

    async def work(tx: Transaction) -> list[Chat]:
        known = await chats.list_chats(tx)
        meant = [chat for chat in known if chat.chat_id == which]
        meant = meant or [chat for chat in known if chat.title.casefold() == which.casefold()]
        if len(meant) == 1:
            chat, now = meant[0], SystemClock().now()
            await chats.set_state(tx, chat.channel, chat.chat_id, ChatState.OFF, now)
        return meant

    meant = write_store(session.settings, work)
    if len(meant) != 1:
        key = "cli.groups.several" if meant else "cli.groups.unknown"
        numbers = ", ".join(chat.chat_id for chat in meant)
        console.note(key, name=which, numbers=numbers)
        return FAULT
    console.tell("cli.groups.turned_off", name=meant[0].title or which)
    return 0
