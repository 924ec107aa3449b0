"""`metnos setup`: make the home, its key, its signed executors and its database; ask the rest.

Safe to run again at any time: what is there stays, what is damaged is put right, and what was
answered before is offered as the answer.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bot.cli import questions
from bot.cli.lines import own_command, short_path
from bot.cli.output import FAULT, Console, Session
from bot.cli.pair import make_code, show_code
from core.config import Settings, load_settings


def setup(
    ctx: typer.Context,
    non_interactive: Annotated[bool, typer.Option("--non-interactive")] = False,
) -> int:
    """1 when an executor of the release could not be signed or the token is no good."""
    session: Session = ctx.obj
    settings = session.settings
    asks = not non_interactive and sys.stdin.isatty()
    from core.store.stores import make_home

    make_home(settings)
    if asks:
        session = questions.ask(session)
        settings = load_settings()
    console = session.console
    console.tell("cli.setup.home", path=short_path(settings.metnos_home))
    well = _stage(console, settings)
    has_phone = _open_database(console, settings)
    _look_at_model(console, settings)
    if asks and settings.telegram_bot_token is not None and not has_phone:
        code, _ = make_code(settings, "host")
        console.line()
        show_code(console, settings, "host", code)
        has_phone = True
    console.line()
    _next_steps(console, settings, asks=asks, has_phone=has_phone)
    return 0 if well else FAULT


def _stage(console: Console, settings: Settings) -> bool:
    """Sign the shipped executors into the home and say what became of them."""
    from core.catalog.keys import load_or_create_owner_key
    from core.catalog.staging import stage

    owner = load_or_create_owner_key(settings.private_dir)
    console.tell("cli.setup.key", id=owner.key_id)
    report = stage(settings)
    console.tell("cli.setup.executors", staged=len(report.staged), unchanged=len(report.unchanged))
    if report.kept:
        console.tell("cli.setup.kept", names=", ".join(report.kept))
    if report.removed:
        console.tell("cli.setup.removed", names=", ".join(report.removed))
    for rejection in report.refused:
        reason = console.say(rejection.message_key)
        why = f"{reason} ({rejection.detail})" if rejection.detail else reason
        console.tell("cli.executors.refused", name=rejection.name, reason=why)
    return not report.refused


def _count(units: tuple[str, ...]) -> int:
    """How many tools these are; what they all build on is none."""
    from core.catalog.manifest import SDK_NAME

    return sum(unit != SDK_NAME for unit in units)


def _open_database(console: Console, settings: Settings) -> bool:
    """Make or check the database; whether the host can be reached on Telegram already."""
    from bot.cli.beside import read_store
    from core.store import actors
    from core.store.database import Transaction

    async def host_on_telegram(tx: Transaction) -> bool:
        host = await actors.find_host(tx)
        known = [] if host is None else await actors.identities_of(tx, host.id)
        return any(channel == "telegram" for channel, _ in known)

    found = read_store(settings, host_on_telegram)
    console.tell("cli.setup.database")
    return found


def _look_at_model(console: Console, settings: Settings) -> None:
    from bot.cli.model import what_is_missing
    from core.llm.tiers import needs_bundled

    if not needs_bundled(settings):
        console.tell("cli.setup.model_own")
    elif (command := what_is_missing(settings)) is None:
        console.tell("cli.setup.model_bundled")
    else:
        console.tell("cli.setup.model_none", command=command)


def _next_steps(console: Console, settings: Settings, *, asks: bool, has_phone: bool) -> None:
    if settings.telegram_bot_token is None:
        console.tell("cli.setup.next_chat", command=own_command("chat"))
        if not asks:
            console.tell("cli.setup.next_token", command=own_command("setup"))
        return
    if not has_phone:
        console.tell("cli.setup.next_pair", command=own_command("pair --host"))
    console.tell("cli.setup.next_run", command=own_command("run"))
