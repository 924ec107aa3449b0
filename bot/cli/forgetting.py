"""`metnos actors forget`: what somebody said is forgotten, by whoever holds the home."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.beside import read_store, write_store
from bot.cli.output import FAULT, Session, is_asked
from bot.cli.people import find_person
from bot.prompt import typed

if TYPE_CHECKING:
    from core.config import Settings
    from core.messages import Actor
    from core.store.database import Transaction

# An engine that runs looks every few seconds.
_WAIT_S = 30.0


def forget(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    yes: Annotated[bool, typer.Option("--yes")] = False,
) -> int:
    """Forget the words of somebody's requests and what was learnt from them, also of somebody
    whose right was withdrawn. It cannot be undone."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.clock import SystemClock
    from core.store import actors, forgetting

    async def find(tx: Transaction) -> Actor | None:
        here = find_person(await actors.list_actors(tx), name)
        return here or find_person(await actors.list_former(tx), name)

    person = read_store(settings, find)
    if person is None:
        console.note("cli.grants.no_actor", name=name)
        return FAULT
    if not yes:
        if not is_asked():
            console.note("cli.actors.forget_needs_yes")
            return FAULT
        for word in ("goes", "stays", "after"):
            console.tell(f"forget.{word}")
        word = console.say("cli.actors.forget_word")
        try:
            answer = typed(input, f"{console.say('cli.actors.forget_ask', name=name)} ")
        except EOFError:
            answer = ""
        if answer.strip().casefold() != word.casefold():
            console.note("cli.actors.forget_left")
            return FAULT
    write_store(settings, lambda tx: forgetting.ask(tx, person.id, SystemClock().now()))
    done = _carry_out(settings, person.id)
    console.tell(
        "cli.actors.forgotten" if done else "cli.actors.forgotten_later", name=person.display_name
    )
    return 0


def _carry_out(settings: Settings, actor_id: str) -> bool:
    """Do it here, or wait for the engine that holds the home; whether all of it is done."""
    from core.errors import AlreadyRunning
    from core.store import forgetting
    from core.store.lock import engine_lock

    def is_done() -> bool:
        return not read_store(settings, lambda tx: forgetting.orders(tx, actor_id=actor_id))

    until = time.monotonic() + _WAIT_S
    while not is_done() and time.monotonic() < until:
        try:
            with engine_lock(settings.metnos_home, "actors forget"):
                asyncio.run(_finish(settings))
            break
        except AlreadyRunning:
            time.sleep(0.5)
    return is_done()


async def _finish(settings: Settings) -> None:
    from core.clock import SystemClock
    from core.store.forgetting import Forgetting
    from core.store.stores import open_stores
    from core.store.turn_log import TurnLog

    clock = SystemClock()
    stores = await open_stores(settings, clock)
    try:
        await Forgetting(stores, clock, TurnLog(settings.metnos_home / "turns")).finish()
    finally:
        await stores.close()
